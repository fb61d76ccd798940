"""``batch``: how far a batch is, and what has failed of it."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.boards import batch_lines
from dcos_tensorflow.client.output import say_lines, show_json
from dcos_tensorflow.client.told_units import told_units


@click.command()
@asks_about()
def batch(asked: Asked) -> int:
    """Show the progress of a batch and its failed shards."""
    if asked.as_json:
        show_json(told_units(asked, "shard"))
    else:
        # Of ten thousand shards those are asked for that are told one by one.
        say_lines(batch_lines(told_units(asked, "shard", "failed")))
    return 0
