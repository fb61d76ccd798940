"""``describe``: the options in force as the SDK shows them, sorted by name."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.commands.options import options_in_force
from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import show_json


@click.command()
@asks_about()
def describe(asked: Asked) -> int:
    """Show the options in force, sorted by name, always as JSON."""
    show_json(options_in_force(asked), sort_keys=True)
    return 0
