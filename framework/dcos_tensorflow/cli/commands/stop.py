"""``stop``: ends a job, also one whose scheduler is gone."""

from __future__ import annotations

from typing import Any

import click

from dcos_tensorflow.cli.flags import asks_about, timeout_flags
from dcos_tensorflow.client.asked import Asked, Service
from dcos_tensorflow.client.errors import EXIT_FAILED
from dcos_tensorflow.client.output import complain, say, show_json
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.deploy.stopping import stop_job

_WHY = "stopped from the command line"


@click.command()
@timeout_flags("Wait until the job has ended.", 120.0)
@asks_about(required=True)
def stop(asked: Asked, wait: bool, seconds: float) -> int:
    """End a job and give its resources back."""
    service = asked.service()
    ended = stop_job(asked.work, service, _WHY, wait=wait, seconds=seconds, tell=complain)
    if ended is not None:
        return _stopped(asked, service, ended)
    if asked.as_json:
        show_json({"service": service.name, "outcome": None})
    else:
        say(f"{service.name} is being stopped.")
    return 0


def _stopped(asked: Asked, service: Service, found: dict[str, Any]) -> int:
    """Tell how the job ended and return its exit code; one that was stopped ended as was asked."""
    outcome = found.get("outcome", Outcome.STOPPED)
    if asked.as_json:
        show_json({"service": service.name, **found})
    else:
        say(f"{service.name} has ended: {outcome}, {found.get('summary', '')}")
    return 0 if outcome == Outcome.STOPPED else int(found.get("exit_code", EXIT_FAILED))
