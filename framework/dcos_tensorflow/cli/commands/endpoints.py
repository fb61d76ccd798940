"""``endpoints``: where the tasks of a service listen."""

from __future__ import annotations

from urllib.parse import quote

import click

from dcos_tensorflow.cli.flags import asks
from dcos_tensorflow.cli.names import endpoint_names
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import say_lines, show_json


@click.command()
@click.argument("endpoint", metavar="[NAME]", required=False, shell_complete=endpoint_names)
@asks
def endpoints(asked: Asked, endpoint: str | None) -> int:
    """Show the endpoints, or the addresses of one."""
    if endpoint is None:
        show_json(asked.client().get("/v1/endpoints"))
        return 0
    answer = asked.client().ask("GET", f"/v1/endpoints/{quote(endpoint, safe='')}")
    found = answer.found(f"endpoint {endpoint}; see endpoints")
    if asked.as_json:
        show_json(found)
    else:
        say_lines(answer.text.splitlines())
    return 0
