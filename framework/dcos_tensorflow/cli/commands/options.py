"""``options``: the options in force."""

from __future__ import annotations

from typing import Any

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import show_json


@click.command()
@asks_about()
def options(asked: Asked) -> int:
    """Show the options in force as JSON, without secrets."""
    show_json(options_in_force(asked))
    return 0


def options_in_force(asked: Asked) -> Any:
    """Return the options as the scheduler shows them. Raises CliError."""
    found = asked.client().get("/v1/configurations/target").get("options")
    if not found:
        raise CliError("The scheduler does not know its options: it was started without them.")
    return found
