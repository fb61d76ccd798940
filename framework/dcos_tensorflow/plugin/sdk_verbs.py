"""The verbs of the DC/OS SDK's service client: the arguments, the request and the output of each.

One table for both command lines: ``main`` makes commands of ``dcos tensorflow`` of it, and
``cli.commands.plans_and_pods`` those of ``dcos-tensorflow``. Pure.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
)

#: What the command line names, by the name of the argument.
Arguments = Mapping[str, Any]

_ELEMENT_NOT_FOUND = "Element not found"
_PLACE = re.compile(r"/\{(\w+)\}")
#: How a verb of plans tells that it is done, by the last part of its path.
_DONE = {
    "interrupt": "paused",
    "continue": "resumed",
    "restart": "restarted",
    "forceComplete": "forced to complete",
}

#: The SDK's other names of verbs.
ALIASES = {
    "status": "show",
    "pause": "interrupt",
    "resume": "continue",
    "force-restart": "restart",
    "force-complete": "force",
}
#: What an argument is a name of, and which command lists these names.
_THINGS = {"endpoint": "endpoint", "pod": "pod", "id": "configuration", "property": "property"}
_LISTS = {"endpoint": "endpoints", "pod": "pod list"}
#: A label, and what hangs below it.
Tree = Tuple[str, Sequence[Any]]

_UNKNOWN = "<UNKNOWN>"


class VerbAnswer(Protocol):
    """What a scheduler has answered."""

    @property
    def status(self) -> int:
        """Return the HTTP status."""

    @property
    def text(self) -> str:
        """Return the body."""

    @property
    def message(self) -> str:
        """Return what the answer says as a sentence."""


class SdkVerb(NamedTuple):
    """One verb: its words, such as ``plan pause PLAN [PHASE]``, and what it asks for.

    An argument in brackets may be left out; one that is not in the path goes into the query.
    """

    usage: str
    meaning: str
    path: str
    method: str = "GET"
    #: Returns the answer, as JSON and as text, as lines; None: it is always shown as JSON.
    lines: Optional[Callable[[Arguments, Any, str], List[str]]] = None

    @property
    def words(self) -> List[str]:
        """Return the words of the command without its arguments."""
        return [word for word in self.usage.split() if word.islower()]

    @property
    def name(self) -> str:
        """Return the last word."""
        return self.words[-1]

    @property
    def group(self) -> str:
        """Return the words before the last one."""
        return " ".join(self.words[:-1])

    @property
    def alias(self) -> str:
        """Return the SDK's other name of it; empty where it has none."""
        has_one = self.group == "plan" or self.words == ["update", "status"]
        return ALIASES.get(self.name, "") if has_one else ""

    @property
    def arguments(self) -> List[Tuple[str, bool]]:
        """Return the names of the arguments, and whether each is required."""
        named = self.usage.split()[len(self.words) :]
        return [(word.strip("[]").lower(), not word.startswith("[")) for word in named]

    @property
    def body(self) -> str:
        """Return what a flag gives for the body: ``tasks``, ``parameters`` or nothing."""
        return {"plan start": "parameters", "debug pod": "tasks"}.get(" ".join(self.words[:2]), "")

    @property
    def is_of_plans(self) -> bool:
        """Say whether it shows or steers a plan."""
        return self.path.startswith("plans/")

    @property
    def shows_a_plan(self) -> bool:
        """Say whether it shows one plan, whose errors are a part of the answer."""
        return self.lines is _plan

    def path_for(self, given: Arguments) -> str:
        """Return the path below ``/v1/`` with its query; places without a value are left out."""

        def part(found: "re.Match[str]") -> str:
            name = given[found[1]]
            return f"/{urllib.parse.quote(name, safe='')}" if name else ""

        in_path = _PLACE.findall(self.path)
        query = {
            name: given[name] for name, _ in self.arguments if name not in in_path and given[name]
        }
        return _PLACE.sub(part, self.path) + ("?" + urllib.parse.urlencode(query) if query else "")

    def refusal(self, given: Arguments, answer: VerbAnswer) -> str:
        """Return the SDK's words for an answer that is none; empty where it has none of its own."""
        is_missing = answer.text.strip() == _ELEMENT_NOT_FOUND
        if self.is_of_plans and answer.status == 208:
            return (
                "Cannot execute command. Command has already been issued or the plan has completed:"
                f" {answer.message.rstrip('.')}."
            )
        if self.is_of_plans and is_missing:
            return "Plan, phase, and/or step does not exist."
        if not is_missing:
            return ""
        argument = next((name for name, _ in self.arguments), "")
        kind = _THINGS.get(argument, "such thing")
        listed = f"; see {_LISTS[kind]}" if kind in _LISTS else ""
        return f"There is no {kind} {given.get(argument, '')}".rstrip() + f"{listed}."

    def is_answered(self, status: int) -> bool:
        """Say whether a status comes with what was asked for."""
        return status in (200, 202) or (status == 417 and self.shows_a_plan)


def _plan(given: Arguments, plan: Any, text: str) -> List[str]:
    return plan_lines(given.get("plan", "deploy"), plan, reasons=bool(given.get("reasons")))


def _pods(given: Arguments, pods: Any, text: str) -> List[str]:
    return pod_lines(pods) if given["pod"] else pods_lines(pods)


def _endpoint(given: Arguments, endpoint: Any, text: str) -> List[str]:
    return text.split("\n") if given["endpoint"] else json.dumps(endpoint, indent=2).split("\n")


def _steering(
    group: str, path: str, rows: Iterable[Tuple[str, str, str, str]]
) -> Iterator[SdkVerb]:
    """Yield verbs that steer a plan, of their words, the last part of the path, and arguments."""
    for name, last, arguments, meaning in rows:
        lines = _telling(_DONE[last]) if last in _DONE else None
        yield SdkVerb(f"{group} {name} {arguments}", meaning, f"{path}/{last}", "POST", lines)


def _telling(done: str) -> Callable[[Arguments, Any, str], List[str]]:
    def lines(given: Arguments, document: Any, text: str) -> List[str]:
        part, phase, step = "", given.get("phase"), given.get("step")
        if phase:
            part = f': step "{step}" in phase "{phase}"' if step else f': phase "{phase}"'
        return [f'"{given.get("plan", "deploy")}" plan{part} has been {done}.']

    return lines


def _of_pod(words: str, meaning: str) -> SdkVerb:
    return SdkVerb(f"{words} POD", meaning, f"pod/{{pod}}/{words.rsplit(maxsplit=1)[-1]}", "POST")


#: The groups of verbs, those above before those below.
GROUPS: Dict[str, str] = {
    "plan": "Show and control plans, such as deploy and recovery.",
    "pod": "Show and control single tasks: a pod instance is a task.",
    "update": "Change the options of a running service.",
    "debug": "Look inside the scheduler; always prints JSON.",
    "debug config": "Show the stored configurations.",
    "debug pod": "Pause and resume single tasks, like pod pause and pod resume.",
    "debug state": "Show the other stored values.",
}

VERBS: Tuple[SdkVerb, ...] = (
    SdkVerb(
        "endpoints [ENDPOINT]",
        "Show the endpoints, or the addresses of one.",
        "endpoints/{endpoint}",
        lines=_endpoint,
    ),
    SdkVerb("plan list", "Show the names of all plans, always as JSON.", "plans"),
    SdkVerb("plan status PLAN", "Show one plan as a tree.", "plans/{plan}", lines=_plan),
    *_steering(
        "plan",
        "plans/{plan}",
        (
            ("start", "start", "PLAN", "Resume a paused plan; start a complete one again."),
            ("stop", "stop", "PLAN", "Pause a plan, and withdraw its forced steps and approvals."),
            ("pause", "interrupt", "PLAN [PHASE]", "Pause a plan or a phase until it is resumed."),
            (
                "resume",
                "continue",
                "PLAN [PHASE]",
                "Resume a plan or a phase, or approve a canary.",
            ),
            (
                "force-restart",
                "restart",
                "PLAN [PHASE] [STEP]",
                "Start the tasks of a plan, a phase or a step again.",
            ),
            (
                "force-complete",
                "forceComplete",
                "PLAN PHASE STEP",
                "Mark a step as complete, in every state.",
            ),
        ),
    ),
    SdkVerb("pod list", "Show the names of all pod instances, always as JSON.", "pod"),
    SdkVerb(
        "pod status [POD]", "Show all pods as a tree, or one.", "pod/{pod}/status", lines=_pods
    ),
    SdkVerb("pod info POD", "Show Mesos' data about a pod, always as JSON.", "pod/{pod}/info"),
    _of_pod("pod restart", "Start a task's process again, in its container."),
    _of_pod("pod replace", "Give a task a new container, elsewhere if it can."),
    SdkVerb("update status", "Show the progress of an update.", "plans/deploy", lines=_plan),
    *_steering(
        "update",
        "plans/deploy",
        (
            ("pause", "interrupt", "", "Keep the tasks with the old options as they are."),
            ("resume", "continue", "", "Go on with an update, or approve its canary."),
            (
                "force-restart",
                "restart",
                "[PHASE] [STEP]",
                "Start the tasks of an update, a phase or a step again.",
            ),
            (
                "force-complete",
                "forceComplete",
                "PHASE STEP",
                "Keep a task's old options until the next update.",
            ),
        ),
    ),
    _of_pod("debug pod pause", "Stop a task's process and keep its container."),
    _of_pod("debug pod resume", "Start the process of a paused task again."),
    *(
        SdkVerb(f"debug {usage}", meaning, path)
        for usage, path, meaning in (
            (
                "config list",
                "configurations",
                "Show the ids of all configurations, the target's first.",
            ),
            ("config target", "configurations/target", "Show the target configuration."),
            ("config target_id", "configurations/targetId", "Show the target's id, in a list."),
            ("config show ID", "configurations/{id}", "Show one configuration."),
            ("state framework_id", "state/frameworkId", "Show the framework id, in a list."),
            ("state properties", "state/properties", "Show the names of all properties."),
            ("state property PROPERTY", "state/properties/{property}", "Show one property."),
        )
    ),
    SdkVerb(
        "debug state refresh_cache",
        "Refresh the cache; the scheduler has none.",
        "state/refresh",
        "PUT",
    ),
)


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
