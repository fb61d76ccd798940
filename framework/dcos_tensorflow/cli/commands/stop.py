"""``stop``: ends a job, also one whose scheduler is gone."""

from __future__ import annotations

import time
from typing import Any

import click

from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.flags import asks_about, timeout_flags
from dcos_tensorflow.cli.output import say, show_json
from dcos_tensorflow.cli.services import ending, registry
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.client import SchedulerAway

_LOOK_SECONDS = 0.5


@click.command()
@timeout_flags("Wait until the job has ended.", 120.0)
@asks_about(required=True)
def stop(asked: Asked, wait: bool, seconds: float) -> int:
    """End a job: its tasks are ended and its resources given back."""
    service, directory = asked.service()
    try:
        client = asked.client()
        client.stop("stopped from the command line")
    except SchedulerAway as away:
        return _stopped(asked, service, _stop_without_scheduler(asked, away, seconds))
    if not wait:
        if asked.as_json:
            show_json({"service": service, "outcome": None})
        else:
            say(f"{service} is being stopped.")
        return 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        snapshot = client.snapshot_if_there()
        if snapshot is None or snapshot.done:
            found = snapshot.verdict if snapshot is not None else ending.last(directory)
            return _stopped(asked, service, dict(found or {}))
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service} was asked to stop and has not ended within {seconds:g} s; see"
        f" dcos-tensorflow why {service}."
    )


def _stop_without_scheduler(asked: Asked, away: SchedulerAway, seconds: float) -> dict[str, Any]:
    """End a job that nobody serves. Raises CliError when there is none, or it is not on here."""
    from dcos_tensorflow.cli.services.stored import stored_state
    from dcos_tensorflow.cli.serving.left_behind import end_left_behind
    from dcos_tensorflow.core.model.job import JobPhase

    service, directory = asked.service()
    last = ending.last(directory)
    if last is not None:
        how = f"{last.get('outcome')}, {last.get('summary')}"
        raise CliError(f"{away} Its last job has ended: {how}.") from away
    registration = registry.read(directory)
    if registration is None:
        raise away
    state = stored_state(registration.state, service)
    if state is None:
        raise away
    if state.job.phase is JobPhase.DONE:
        raise CliError(f"{away} Its last job has ended.") from away
    if not registration.local:
        raise CliError(
            f"{away} Its job is {state.job.phase} on the cluster of {registration.master}: run it"
            " again there to take it up, and stop it then."
        ) from away
    snapshot = end_left_behind(asked.work, directory, state, registration.state, seconds)
    return dict(snapshot.verdict or {})


def _stopped(asked: Asked, service: str, found: dict[str, Any]) -> int:
    if asked.as_json:
        show_json({"service": service, **found})
    else:
        say(f"{service} has ended: {found.get('outcome', 'stopped')}, {found.get('summary', '')}")
    return 0
