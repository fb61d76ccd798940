"""``cluster``: the ClusterSpec of a running job."""

from __future__ import annotations

import click

from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.wording import table


@click.command()
@asks_about()
def cluster(asked: Asked) -> int:
    """Show the ClusterSpec of a running job."""
    service = asked.service()
    found = service.connect().get("/v1/cluster")
    if asked.as_json:
        show_json(found)
    elif not found["epoch"]:
        say(f"{service.name} has no ClusterSpec yet: its tasks have no place.")
    else:
        say(f"{service.name}: version {found['epoch']}, strategy {found['strategy']}")
        say_lines(table(list(found["addresses"].items())))
    return 0
