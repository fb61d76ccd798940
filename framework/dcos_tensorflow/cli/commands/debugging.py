"""The commands ``debug config|state|pod``: their names and arguments, those of the DC/OS SDK."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.commands.steering import pod
from dcos_tensorflow.cli.flags import json_flag, name_flag, work_dir_flag
from dcos_tensorflow.cli.work_directory import work_directory


@click.group()
def debug() -> None:
    """Look inside the scheduler; everything is JSON in any case."""


@debug.group()
def config() -> None:
    """See the configurations that are kept."""


@debug.group()
def state() -> None:
    """See what the scheduler keeps beside them."""


@debug.group(name="pod")
def debug_pod() -> None:
    """Pause and resume single tasks, as pod pause and pod resume do."""


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

    @work_dir_flag
    @name_flag
    @json_flag
    def show(name: str | None, work_dir: Path | None, as_json: bool, **given: Any) -> int:
        from dcos_tensorflow.cli import inspection
        from dcos_tensorflow.cli.steering import Asked

        asked = Asked(work_directory(work_dir, os.environ), name, as_json)
        return inspection.debug(asked, path, what, given.get("item"), method)

    command = click.argument("item", metavar=item)(show) if item else show
    group.command(name=name, help=meaning)(command)


_add(config, "list", "configurations", "Show the ids of all configurations, the target's first.")
_add(config, "target", "configurations/target", "Show the configuration that runs or is wanted.")
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
    "Refresh the cache, of which there is none.",
    method="PUT",
)
