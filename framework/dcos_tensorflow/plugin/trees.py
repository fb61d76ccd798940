"""Plans and pods as trees of text, in the form that users of DC/OS services know. Pure.

Used by both command lines, ``dcos tensorflow`` and ``dcos-tensorflow``.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Tuple

#: A label, and what hangs below it.
Tree = Tuple[str, Sequence[Any]]

_UNKNOWN = "<UNKNOWN>"


def plan_lines(name: str, plan: Mapping[str, Any], *, reasons: bool = False) -> List[str]:
    """Return a plan with its phases and steps, and below them its errors.

    With ``reasons`` each step that is not complete says why.
    """
    phases = [
        (
            f"{_word(phase, 'name')} ({_word(phase, 'strategy')} strategy)"
            f" ({_word(phase, 'status')})",
            [(_step(step, reasons), ()) for step in phase.get("steps") or ()],
        )
        for phase in plan.get("phases") or ()
    ]
    head = f"{name} ({_word(plan, 'strategy')} strategy) ({_word(plan, 'status')})"
    lines = tree_lines((head, phases))
    errors = plan.get("errors") or ()
    if errors:
        lines += ["", "Errors:", *(f"- {error}" for error in errors)]
    return lines


def pods_lines(status: Mapping[str, Any]) -> List[str]:
    """Return all pods of a service with their instances and tasks."""
    pods = [
        (_word(pod, "name"), [_instance(each) for each in pod.get("instances") or ()])
        for pod in status.get("pods") or ()
    ]
    return tree_lines((_word(status, "service"), pods))


def pod_lines(instance: Mapping[str, Any]) -> List[str]:
    """Return one pod instance with its tasks."""
    return tree_lines(_instance(instance))


def tree_lines(tree: Tree) -> List[str]:
    """Return the lines of a tree, its root first."""
    label, below = tree
    lines = [label]
    for number, child in enumerate(below, 1):
        last = number == len(below)
        first, *rest = tree_lines(child)
        lines.append(("\u2514\u2500 " if last else "\u251c\u2500 ") + first)
        lines += [("   " if last else "\u2502  ") + line for line in rest]
    return lines


def _step(step: Mapping[str, Any], reasons: bool) -> str:
    text = f"{_word(step, 'name')} ({_word(step, 'status')})"
    why = step.get("message") if reasons and step.get("status") != "COMPLETE" else ""
    return f"{text}: {why}" if why else text


def _instance(instance: Mapping[str, Any]) -> Tree:
    tasks = [
        (f"{_word(task, 'name')} ({_word(task, 'status')})", ())
        for task in instance.get("tasks") or ()
    ]
    return _word(instance, "name"), tasks


def _word(given: Mapping[str, Any], key: str) -> str:
    return str(given.get(key) or _UNKNOWN)
