"""``describe``: the options in force as the SDK shows them, sorted by name."""

from __future__ import annotations

import json

import click

from dcos_tensorflow.cli.commands.options import options_in_force
from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.cli.output import say
from dcos_tensorflow.cli.services.asked import Asked


@click.command()
@asks_about()
def describe(asked: Asked) -> int:
    """Show the options in force sorted by name, as JSON in any case."""
    say(json.dumps(options_in_force(asked), indent=2, sort_keys=True))
    return 0
