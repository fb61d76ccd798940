"""The parts of a service: its options and its ClusterSpec."""

from __future__ import annotations

from typing import Any

import click

from dcos_tensorflow.cli.flags import takes_service
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.wording import table


@click.command()
@takes_service()
def options(choice: ServiceChoice) -> int:
    """Show the options in force as JSON, without secrets."""
    show_json(options_in_force(choice))
    return 0


def options_in_force(choice: ServiceChoice) -> Any:
    """Return the options as the scheduler shows them. Raises CliError."""
    found = choice.client().get("/v1/configurations/target").get("options")
    if not found:
        raise CliError("The scheduler does not know its options: it was started without them.")
    return found


@click.command(hidden=True)
@takes_service()
def cluster(choice: ServiceChoice) -> int:
    """Show the ClusterSpec of a running job."""
    service = choice.service()
    found = service.connect().get("/v1/cluster")
    if choice.as_json:
        show_json(found)
    elif not found["epoch"]:
        say(f"{service.name} has no ClusterSpec yet: its tasks have no place.")
    else:
        say(f"{service.name}: version {found['epoch']}, strategy {found['strategy']}")
        say_lines(table(list(found["addresses"].items())))
    return 0


@click.command(hidden=True)
@takes_service()
def describe(choice: ServiceChoice) -> int:
    """Show the options in force, sorted by name, always as JSON."""
    show_json(options_in_force(choice), sort_keys=True)
    return 0
