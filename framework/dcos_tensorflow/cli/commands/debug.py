"""``debug config|state|pod``: looks inside a scheduler, in the words of the DC/OS SDK."""

from __future__ import annotations

from urllib.parse import quote

import click

from dcos_tensorflow.cli.commands.pod import pod
from dcos_tensorflow.cli.flags import NamedGroup, asks, asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import show_json


@click.group(cls=NamedGroup)
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
