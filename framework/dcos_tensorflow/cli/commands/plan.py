"""``plan``: sees and steers the plans of a service that runs.

The words, trees and messages are those of the DC/OS SDK's service command line; ``update`` shares
them, for an update is steered as the plan that shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, urlencode

import click

from dcos_tensorflow.cli.flags import NamedGroup, asks, asks_about
from dcos_tensorflow.cli.names import plan_names
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.plugin.trees import plan_lines

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


@plan.command(name="list")
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
        group.command(name=command, help=meaning)(verb)


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
