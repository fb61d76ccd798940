"""The commands ``plan``, ``pod``, ``update`` and ``uninstall``: their names, arguments and flags.

Added to the command line by ``main``. The names and aliases are those of the DC/OS SDK.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.completion import plan_names, service_names
from dcos_tensorflow.cli.flags import json_flag, name_flag, overrides_flag, work_dir_flag
from dcos_tensorflow.cli.work_directory import work_directory

#: Commands by group, with the SDK's other names for them.
_ALIASES = {
    "show": "status",
    "interrupt": "pause",
    "continue": "resume",
    "restart": "force-restart",
    "force": "force-complete",
}


class _Aliased(click.Group):
    """A group that knows the SDK's other names of its commands."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or its other name."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in _ALIASES:
            found = super().get_command(ctx, _ALIASES[cmd_name])
        return found


def _asked(work_dir: Path | None, name: str | None, as_json: bool = False) -> Any:
    from dcos_tensorflow.cli.steering import Asked

    return Asked(work_directory(work_dir, os.environ), name, as_json)


def _service(function: Callable[..., int]) -> Callable[..., int]:
    return name_flag(work_dir_flag(function))


@click.group(cls=_Aliased)
def plan() -> None:
    """See and steer plans: deploy, recovery, update, decommission."""


@plan.command(name="list")
@_service
@json_flag
def plan_list(name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the names of all plans, as JSON in any case."""
    from dcos_tensorflow.cli import steering

    return steering.plan_list(_asked(work_dir, name, as_json))


_REASONS = click.option("--reasons", is_flag=True, help="Say why each step is not complete.")


@plan.command(name="status")
@click.argument("plan_name", metavar="PLAN", shell_complete=plan_names)
@_REASONS
@_service
@json_flag
def plan_status(
    plan_name: str, reasons: bool, name: str | None, work_dir: Path | None, as_json: bool
) -> int:
    """Show one plan as a tree."""
    from dcos_tensorflow.cli import steering

    return steering.plan_status(_asked(work_dir, name, as_json), plan_name, reasons=reasons)


def _add_plan_verb(command: str, word: str, parts: int, meaning: str) -> None:
    """Add a verb to ``plan``, with as many optional arguments (phase, step) as it takes."""

    @_service
    @json_flag
    def verb(
        *,
        plan_name: str,
        name: str | None,
        work_dir: Path | None,
        as_json: bool,
        phase: str | None = None,
        step: str | None = None,
    ) -> int:
        from dcos_tensorflow.cli import steering

        asked = _asked(work_dir, name, as_json)
        return steering.plan_verb(asked, plan_name, word, phase or "", step or "")

    for argument in ("step", "phase")[2 - parts :]:
        required = command == "force-complete"
        verb = click.argument(argument, required=required)(verb)
    verb = click.argument("plan_name", metavar="PLAN", shell_complete=plan_names)(verb)
    plan.command(name=command, help=meaning)(verb)


for _command, _word, _parts, _meaning in (
    ("start", "start", 0, "Resume a plan that is paused; start one again that is complete."),
    ("stop", "stop", 0, "Pause a plan, and take back what was forced and approved in it."),
    ("pause", "interrupt", 1, "Hold a plan or a phase back. It stays so until it is resumed."),
    ("resume", "continue", 1, "Let a plan or a phase go on, or approve of a canary."),
    ("force-restart", "restart", 2, "Start the tasks of a plan, a phase or a step again."),
    ("force-complete", "forceComplete", 2, "Take a step for complete, whatever it is."),
):
    _add_plan_verb(_command, _word, _parts, _meaning)


@click.group()
def pod() -> None:
    """See and steer single tasks: a pod instance is a task."""


@pod.command(name="list")
@_service
@json_flag
def pod_list(name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the names of all pod instances, as JSON in any case."""
    from dcos_tensorflow.cli import steering

    return steering.pod_list(_asked(work_dir, name, as_json))


@pod.command(name="status")
@click.argument("pod_name", metavar="[POD]", required=False)
@_service
@json_flag
def pod_status(pod_name: str | None, name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show all pods as a tree, or one."""
    from dcos_tensorflow.cli import steering

    return steering.pod_status(_asked(work_dir, name, as_json), pod_name)


@pod.command(name="info")
@click.argument("pod_name", metavar="POD")
@_service
@json_flag
def pod_info(pod_name: str, name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show what Mesos knows of a pod, as JSON in any case."""
    from dcos_tensorflow.cli import steering

    return steering.pod_info(_asked(work_dir, name, as_json), pod_name)


def _add_pod_verb(word: str, meaning: str, *, takes_tasks: bool) -> None:
    @_service
    @json_flag
    def verb(
        pod_name: str,
        name: str | None,
        work_dir: Path | None,
        as_json: bool,
        tasks: tuple[str, ...] = (),
    ) -> int:
        from dcos_tensorflow.cli import steering

        return steering.pod_verb(_asked(work_dir, name, as_json), pod_name, word, tasks)

    if takes_tasks:
        verb = click.option("-t", "--tasks", multiple=True, help="Only this task of the pod.")(verb)
    verb = click.argument("pod_name", metavar="POD")(verb)
    pod.command(name=word, help=meaning)(verb)


_add_pod_verb("restart", "Start a task's process again, in its container.", takes_tasks=False)
_add_pod_verb("replace", "Give a task a new container, elsewhere if it can.", takes_tasks=False)
_add_pod_verb("pause", "Stop a task's process and keep its container.", takes_tasks=True)
_add_pod_verb("resume", "Start the process of a paused task again.", takes_tasks=True)


@click.group(cls=_Aliased)
def update() -> None:
    """Change the options of a service that runs."""


@update.command(name="start")
@click.option(
    "--options",
    "options_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    required=True,
    metavar="FILE",
    help="The options, all of them; - reads standard input.",
)
@overrides_flag
@_service
@json_flag
def update_start(
    options_file: Path,
    overrides: tuple[str, ...],
    name: str | None,
    work_dir: Path | None,
    as_json: bool,
) -> int:
    """Make other options the target: what differs is restarted."""
    from dcos_tensorflow.cli import steering

    return steering.update_start(_asked(work_dir, name, as_json), options_file, overrides)


@update.command(name="rollback")
@click.argument("configuration", metavar="[ID]", required=False)
@_service
@json_flag
def update_rollback(
    configuration: str | None, name: str | None, work_dir: Path | None, as_json: bool
) -> int:
    """Go back to a configuration of before; without an id to the only other one."""
    from dcos_tensorflow.cli import steering

    return steering.update_rollback(_asked(work_dir, name, as_json), configuration)


@update.command(name="configurations")
@_service
@json_flag
def update_configurations(name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the ids of all configurations, the target's first, as JSON in any case."""
    from dcos_tensorflow.cli import steering

    return steering.update_configurations(_asked(work_dir, name, as_json))


@update.command(name="status")
@_REASONS
@_service
@json_flag
def update_status(reasons: bool, name: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show how far an update is."""
    from dcos_tensorflow.cli import steering

    asked = _asked(work_dir, name, as_json)
    return steering.plan_status(asked, steering.DEPLOY, reasons=reasons)


def _add_update_verb(command: str, word: str, parts: int, meaning: str) -> None:
    @_service
    @json_flag
    def verb(
        name: str | None,
        work_dir: Path | None,
        as_json: bool,
        phase: str | None = None,
        step: str | None = None,
    ) -> int:
        from dcos_tensorflow.cli import steering

        asked = _asked(work_dir, name, as_json)
        return steering.plan_verb(asked, steering.DEPLOY, word, phase or "", step or "")

    for argument in ("step", "phase")[2 - parts :]:
        verb = click.argument(argument, required=command == "force-complete")(verb)
    update.command(name=command, help=meaning)(verb)


for _command, _word, _parts, _meaning in (
    ("pause", "interrupt", 0, "Keep the tasks that have not gone over yet as they are."),
    ("resume", "continue", 0, "Go on with an update, or approve of its canary."),
    ("force-restart", "restart", 2, "Start the tasks of an update, a phase or a step again."),
    ("force-complete", "forceComplete", 2, "Leave a task as it is until the next update."),
):
    _add_update_verb(_command, _word, _parts, _meaning)


@click.command()
@click.argument("service", shell_complete=service_names)
@click.option("--wait/--no-wait", default=True, help="Wait until nothing is left.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=1200.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@work_dir_flag
@json_flag
def uninstall(
    *, service: str, wait: bool, timeout: float, yes: bool, work_dir: Path | None, as_json: bool
) -> int:
    """End a service and leave nothing behind: tasks, framework and state. Cannot be taken back."""
    from dcos_tensorflow.cli import steering

    asked = _asked(work_dir, service, as_json)
    return steering.uninstall(asked, yes=yes, wait=wait, seconds=timeout)
