"""Plans and pods as trees, as the DC/OS SDK's command line draws them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_UNKNOWN = "<UNKNOWN>"


@dataclass(frozen=True)
class Node:
    """One line of a tree, and what hangs below it."""

    text: str
    children: Sequence[Node] = ()


def lines(root: Node) -> list[str]:
    """Return a tree as lines."""
    return [root.text, *_below(root, "")]


def _below(node: Node, indent: str) -> list[str]:
    found: list[str] = []
    for number, child in enumerate(node.children, start=1):
        last = number == len(node.children)
        found.append(f"{indent}{'└─' if last else '├─'} {child.text}")
        found += _below(child, indent + ("   " if last else "│  "))
    return found


def plan_lines(name: str, plan: Mapping[str, Any], *, reasons: bool) -> list[str]:
    """Return a plan as its tree; with ``reasons`` each step that is not complete says why."""
    phases = [
        Node(_titled(phase), [Node(_step(step, reasons)) for step in phase.get("steps", ())])
        for phase in plan.get("phases", ())
    ]
    found = lines(Node(_titled({**plan, "name": name}), phases))
    errors = plan.get("errors", ())
    if errors:
        found += ["", "Errors:", *(f"- {error}" for error in errors)]
    return found


def _titled(part: Mapping[str, Any]) -> str:
    name, strategy = part.get("name", _UNKNOWN), part.get("strategy", _UNKNOWN)
    return f"{name} ({strategy} strategy) ({part.get('status', _UNKNOWN)})"


def _step(step: Mapping[str, Any], reasons: bool) -> str:
    status = step.get("status", _UNKNOWN)
    text = f"{step.get('name', _UNKNOWN)} ({status})"
    message = step.get("message", "")
    return f"{text}: {message}" if reasons and message and status != "COMPLETE" else text


def pods_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return all pods as their tree."""
    pods = [
        Node(pod["name"], [_instance(instance) for instance in pod["instances"]])
        for pod in answer["pods"]
    ]
    return lines(Node(answer["service"], pods))


def pod_lines(instance: Mapping[str, Any]) -> list[str]:
    """Return one pod instance as its tree."""
    return lines(_instance(instance))


def _instance(instance: Mapping[str, Any]) -> Node:
    tasks = [Node(f"{task['name']} ({task['status']})") for task in instance["tasks"]]
    return Node(instance["name"], tasks)
