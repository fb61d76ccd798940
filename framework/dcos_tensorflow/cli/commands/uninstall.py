"""``uninstall``: ends a service and leaves nothing of it behind."""

from __future__ import annotations

import json
import sys
import time

import click

from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.flags import asks_about, timeout_flags
from dcos_tensorflow.cli.output import say, show_json
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.client import SchedulerAway, SchedulerClient

_LOOK_SECONDS = 0.5

_UNFINISHED = "What it left is removed by dcos-tensorflow scheduler OPTIONS.json --uninstall."


@click.command()
@timeout_flags("Wait until nothing is left.", 1200.0)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@asks_about(required=True)
def uninstall(asked: Asked, wait: bool, seconds: float, yes: bool) -> int:
    """End a service and leave nothing behind: tasks, framework and state. Cannot be taken back."""
    try:
        client = asked.client()
    except SchedulerAway as away:
        raise CliError(f"{away} {_UNFINISHED}") from away
    service = client.registration.service
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"Uninstalling {service} cannot be taken back: say --yes.")
        click.confirm(
            f"End every task of {service}, and forget it? This cannot be taken back.", abort=True
        )
    answer = client.ask("POST", "/v1/uninstall", json.dumps({"why": "from the command line"}))
    body = answer.expected()
    if wait:
        return _await_the_end(asked, client, service, seconds)
    if asked.as_json:
        show_json({"service": service, "uninstalled": False, **body})
    else:
        say(f"{service} is being uninstalled; see dcos-tensorflow plan status deploy.")
    return 0


def _await_the_end(asked: Asked, client: SchedulerClient, service: str, seconds: float) -> int:
    from dcos_tensorflow.cli.services.stored import stored_state

    deadline = time.monotonic() + seconds
    given_up: list[str] = []
    while time.monotonic() < deadline:
        try:
            # Until the order is carried out the plan is that of the deployment, complete as it is.
            begun = client.get("/v1/job")["uninstalling"]
            done = begun and client.ask("GET", "/v1/plans/deploy").status == 200
            given_up = list(client.get("/v1/job")["given_up"])
        except SchedulerAway as away:
            # It goes when its work is done: then nothing is stored any more.
            if stored_state(client.registration.state, service) is not None:
                raise CliError(f"{away} {_UNFINISHED}") from away
            return _uninstalled(asked, service, given_up)
        if done:
            return _uninstalled(asked, service, given_up)
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service} was asked to leave and has not within {seconds:g} s; see"
        f" dcos-tensorflow plan status deploy --name={service} --reasons."
    )


def _uninstalled(asked: Asked, service: str, given_up: list[str]) -> int:
    if asked.as_json:
        show_json({"service": service, "uninstalled": True, "given_up": given_up})
        return 0
    say(f"{service} is uninstalled.")
    for left in given_up:
        say(f"Given up, because nobody answered: {left}")
    return 0
