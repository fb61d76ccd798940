"""``plan``, ``pod`` and ``debug``: plans and single tasks, in the words of the DC/OS SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, urlencode

import click

from dcos_tensorflow.cli.flags import NamedGroup, asks, asks_about
from dcos_tensorflow.cli.names import plan_names
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.plugin.trees import plan_lines, pod_lines, pods_lines

#: The SDK's other names of commands.
_ALIASES = {
    "show": "status",
    "interrupt": "pause",
    "continue": "resume",
    "restart": "force-restart",
    "force": "force-complete",
}

_ALREADY = "Cannot execute command. Command has already been issued or the plan has completed"
_UNKNOWN_ELEMENT = "Plan, phase, and/or step does not exist"

#: Words of the SDK's client, which no list shows: so are ``list``, ``info`` and ``pod status``, and
#: the verbs of ``update``, which are those of ``plan`` for the plan deploy.
_OF_THE_SDK = frozenset({"start", "stop", "force-restart", "force-complete"})

#: What has been done to a plan, a phase or a step, by the last part of the verb's path.
_DONE = {
    "interrupt": "paused",
    "continue": "resumed",
    "restart": "restarted",
    "forceComplete": "forced to complete",
}


class SdkGroup(NamedGroup):
    """A group that knows the SDK's other names of its commands."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or its other name."""
        found = super().get_command(ctx, cmd_name)
        return found or super().get_command(ctx, _ALIASES.get(cmd_name, ""))


@click.group(cls=SdkGroup)
def plan() -> None:
    """Show and control plans, such as deploy and recovery."""


@plan.command(name="list", hidden=True)
@asks_about()
def plan_list(asked: Asked) -> int:
    """Show the names of all plans, always as JSON."""
    show_json(asked.client().get("/v1/plans"))
    return 0


#: Has a status say more.
reasons_flag = click.option("--reasons", is_flag=True, help="Say why each step is not complete.")
_PLAN = click.argument("plan_name", metavar="PLAN", shell_complete=plan_names)


@plan.command(name="status")
@_PLAN
@reasons_flag
@asks
def plan_status(asked: Asked, plan_name: str, reasons: bool) -> int:
    """Show one plan as a tree."""
    return show_plan(asked, plan_name, reasons=reasons)


def show_plan(asked: Asked, plan_name: str, *, reasons: bool) -> int:
    """Show one plan."""
    answer = asked.client().ask("GET", f"/v1/plans/{quote(plan_name)}")
    if answer.is_missing:
        raise CliError(f"{_UNKNOWN_ELEMENT}.")
    # 417 says that the plan has errors: they are shown with it.
    body = answer.document if answer.status == 417 else answer.expected()
    if asked.as_json:
        show_json(body)
    else:
        say_lines(plan_lines(plan_name, body, reasons=reasons))
    return 0


def add_verbs(
    group: click.Group, verbs: Iterable[tuple[str, str, int, str]], plan_name: str | None = None
) -> None:
    """Add commands that steer the plan of this name, or the one that their first argument names.

    A verb is its command, the last part of its path, how many of phase and step it takes, and what
    it does.
    """
    for command, word, parts, meaning in verbs:
        alone = plan_name is not None and not parts
        verb = (asks_about() if alone else asks)(_verb(word, plan_name))
        for argument in ("step", "phase")[2 - parts :]:
            verb = click.argument(argument, required=command == "force-complete")(verb)
        if plan_name is None:
            verb = _PLAN(verb)
        group.command(
            name=command, help=meaning, hidden=plan_name is not None or command in _OF_THE_SDK
        )(verb)


def _verb(word: str, of: str | None) -> Callable[..., int]:
    def verb(
        asked: Asked, plan_name: str = of or "", phase: str | None = None, step: str | None = None
    ) -> int:
        query = urlencode({k: v for k, v in (("phase", phase), ("step", step)) if v})
        path = f"/v1/plans/{quote(plan_name)}/{word}" + (f"?{query}" if query else "")
        body = _ordered(asked, path)
        if asked.as_json or word not in _DONE:
            show_json(body)
        else:
            say(f'"{plan_name}" plan{_part(phase, step)} has been {_DONE[word]}.')
        return 0

    return verb


def _ordered(asked: Asked, path: str) -> Any:
    """Return the answer to a verb. Raises CliError in the SDK's words where it has some."""
    answer = asked.client().ask("POST", path)
    if answer.status == 208:
        raise CliError(f"{_ALREADY}: {answer.message}.")
    if answer.is_missing:
        raise CliError(f"{_UNKNOWN_ELEMENT}.")
    return answer.expected()


def _part(phase: str | None, step: str | None) -> str:
    if step:
        return f': step "{step}" in phase "{phase or ""}"'
    return f': phase "{phase}"' if phase else ""


add_verbs(
    plan,
    (
        ("start", "start", 0, "Resume a paused plan; start a complete one again."),
        ("stop", "stop", 0, "Pause a plan, and withdraw its forced steps and approvals."),
        ("pause", "interrupt", 1, "Pause a plan or a phase until it is resumed."),
        ("resume", "continue", 1, "Resume a plan or a phase, or approve a canary."),
        ("force-restart", "restart", 2, "Start the tasks of a plan, a phase or a step again."),
        ("force-complete", "forceComplete", 2, "Mark a step as complete, in every state."),
    ),
)


@click.group(cls=NamedGroup)
def pod() -> None:
    """Show and control single tasks: a pod instance is a task."""


@pod.command(name="list", hidden=True)
@asks_about()
def pod_list(asked: Asked) -> int:
    """Show the names of all pod instances, always as JSON."""
    show_json(asked.client().get("/v1/pod"))
    return 0


@pod.command(name="status", hidden=True)
@click.argument("pod_name", metavar="[POD]", required=False)
@asks
def pod_status(asked: Asked, pod_name: str | None) -> int:
    """Show all pods as a tree, or one."""
    path = f"/v1/pod/{quote(pod_name)}/status" if pod_name else "/v1/pod/status"
    found = asked.client().ask("GET", path).found(_what(pod_name))
    if asked.as_json:
        show_json(found)
    else:
        say_lines(pod_lines(found) if pod_name else pods_lines(found))
    return 0


@pod.command(name="info", hidden=True)
@click.argument("pod_name", metavar="POD")
@asks
def pod_info(asked: Asked, pod_name: str) -> int:
    """Show Mesos' data about a pod, always as JSON."""
    answer = asked.client().ask("GET", f"/v1/pod/{quote(pod_name)}/info")
    show_json(answer.found(_what(pod_name)))
    return 0


def _what(pod_name: str | None) -> str:
    return f"pod {pod_name}; see pod list"


def _add_verb(word: str, meaning: str, *, takes_tasks: bool) -> None:
    @asks
    def verb(asked: Asked, pod_name: str, tasks: tuple[str, ...] = ()) -> int:
        body = json.dumps(list(tasks)) if tasks else None
        answer = asked.client().ask("POST", f"/v1/pod/{quote(pod_name)}/{word}", body)
        show_json(answer.found(_what(pod_name)))
        return 0

    if takes_tasks:
        verb = click.option("-t", "--tasks", multiple=True, help="Only this task of the pod.")(verb)
    verb = click.argument("pod_name", metavar="POD")(verb)
    pod.command(name=word, help=meaning)(verb)


_add_verb("restart", "Start a task's process again, in its container.", takes_tasks=False)
_add_verb("replace", "Give a task a new container, elsewhere if it can.", takes_tasks=False)
_add_verb("pause", "Stop a task's process and keep its container.", takes_tasks=True)
_add_verb("resume", "Start the process of a paused task again.", takes_tasks=True)


@click.group(cls=NamedGroup, hidden=True)
def debug() -> None:
    """Look inside the scheduler; always prints JSON."""


@debug.group(cls=NamedGroup)
def config() -> None:
    """Show the stored configurations."""


@debug.group(cls=NamedGroup)
def state() -> None:
    """Show the other stored values."""


@debug.group(name="pod", cls=NamedGroup)
def debug_pod() -> None:
    """Pause and resume single tasks, like pod pause and pod resume."""


for _name in ("pause", "resume"):
    debug_pod.add_command(pod.commands[_name])


def _add(
    group: click.Group,
    name: str,
    path: str,
    meaning: str,
    *,
    item: str = "",
    method: str = "GET",
    what: str = "",
) -> None:
    """Add a command that shows what is at ``path``, or below it the ``item`` that is named."""

    def show(asked: Asked, **given: str) -> int:
        full = f"/v1/{path}" + (f"/{quote(given['item'], safe='')}" if item else "")
        answer = asked.client().ask(method, full)
        show_json(answer.found(f"{what} {given.get('item', '')}".strip()))
        return 0

    command = click.argument("item", metavar=item)(asks(show)) if item else asks_about()(show)
    group.command(name=name, help=meaning)(command)


_add(config, "list", "configurations", "Show the ids of all configurations, the target's first.")
_add(config, "target", "configurations/target", "Show the target configuration.")
_add(config, "target_id", "configurations/targetId", "Show the target's id, in a list.")
_add(config, "show", "configurations", "Show one configuration.", item="ID", what="configuration")
_add(
    state,
    "framework_id",
    "state/frameworkId",
    "Show the framework id, in a list.",
    what="framework id",
)
_add(state, "properties", "state/properties", "Show the names of all properties.")
_add(state, "property", "state/properties", "Show one property.", item="NAME", what="property")
_add(
    state,
    "refresh_cache",
    "state/refresh",
    "Refresh the cache; the scheduler has none.",
    method="PUT",
)
