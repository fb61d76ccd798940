"""``stop``: ends a job, also one whose scheduler is gone."""

from __future__ import annotations

import time
from typing import Any

import click

from dcos_tensorflow.cli.errors import EXIT_FAILED, CliError
from dcos_tensorflow.cli.flags import asks_about, timeout_flags
from dcos_tensorflow.cli.output import complain, say, show_json
from dcos_tensorflow.cli.services import registry
from dcos_tensorflow.cli.services.asked import Asked, Service
from dcos_tensorflow.cli.services.client import NoScheduler, SchedulerAway
from dcos_tensorflow.core.model.job import JobPhase, Outcome

_LOOK_SECONDS = 0.5
#: How long a scheduler that was asked to end a job has to begin with that.
_HEARD_SECONDS = 2.0
_WHY = "stopped from the command line"


@click.command()
@timeout_flags("Wait until the job has ended.", 120.0)
@asks_about(required=True)
def stop(asked: Asked, wait: bool, seconds: float) -> int:
    """End a job: its tasks are ended and its resources given back."""
    service = asked.service()
    try:
        service.connect().stop(_WHY)
        ordered = True
    except NoScheduler as away:
        return _stopped(asked, service, _stop_without_scheduler(asked, service, away, seconds))
    except SchedulerAway:
        if not wait:
            raise
        ordered = False
    if not wait:
        if asked.as_json:
            show_json({"service": service.name, "outcome": None})
        else:
            say(f"{service.name} is being stopped.")
        return 0
    ended = _await_the_end(asked, service, seconds, ordered=ordered)
    return _stopped(asked, service, ended)


def _await_the_end(
    asked: Asked, service: Service, seconds: float, *, ordered: bool
) -> dict[str, Any]:
    """Ask until the job has ended; return how. ``ordered``: the scheduler knows that it is to.

    An answer that is missing says nothing of the tasks: only a scheduler knows that they have
    ended. Raises CliError when that takes too long.
    """
    deadline = time.monotonic() + seconds
    ordered_at = time.monotonic() if ordered else None
    told_away = ""
    while time.monotonic() < deadline:
        try:
            if ordered_at is None:
                service.connect().stop(_WHY)
                ordered_at = time.monotonic()
            snapshot = service.snapshot()
            if snapshot.done:
                return dict(snapshot.verdict or {})
            told_away = ""
            late = time.monotonic() - ordered_at > _HEARD_SECONDS
            if snapshot.phase != JobPhase.ENDING and late:
                # Another scheduler serves the job by now, and this one never heard of it.
                ordered_at = None
        except SchedulerAway as away:
            last = service.last_end()
            if last is not None:
                return last
            if isinstance(away, NoScheduler) and _is_local(service):
                # Nobody brings the scheduler of a local job back.
                left = deadline - time.monotonic()
                return _stop_without_scheduler(asked, service, away, left)
            ordered_at = None
            if str(away) != told_away:
                told_away = str(away)
                complain(f"{away} Waiting for it to come back.")
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service.name} was asked to stop and has not ended within {seconds:g} s."
        + (f" {told_away} Its tasks may run." if told_away else "")
        + f" See dcos-tensorflow why {service.name}."
    )


def _is_local(service: Service) -> bool:
    found = registry.read(service.directory) if service.directory is not None else None
    return found is not None and found.local


def _stop_without_scheduler(
    asked: Asked, service: Service, away: SchedulerAway, seconds: float
) -> dict[str, Any]:
    """End a job that nobody serves. Raises CliError when there is none, or it is not on here."""
    from dcos_tensorflow.cli.services.stored import stored_state
    from dcos_tensorflow.cli.serving.left_behind import end_left_behind

    last = service.last_end()
    if last is not None:
        how = f"{last.get('outcome')}, {last.get('summary')}"
        raise CliError(f"{away} Its last job has ended: {how}.") from away
    registration = registry.read(service.directory) if service.directory is not None else None
    if registration is None or service.directory is None:
        raise away
    state = stored_state(registration.state, service.name)
    if state is None:
        raise away
    if state.job.phase is JobPhase.DONE:
        raise CliError(f"{away} Its last job has ended.") from away
    if not registration.local:
        raise CliError(
            f"{away} Its job is {state.job.phase} on the cluster of {registration.master}: run it"
            " again there to take it up, and stop it then."
        ) from away
    snapshot = end_left_behind(asked.work, service.directory, state, registration.state, seconds)
    return dict(snapshot.verdict or {})


def _stopped(asked: Asked, service: Service, found: dict[str, Any]) -> int:
    """Tell how the job ended and return its exit code; one that was stopped ended as was asked."""
    outcome = found.get("outcome", Outcome.STOPPED)
    if asked.as_json:
        show_json({"service": service.name, **found})
    else:
        say(f"{service.name} has ended: {outcome}, {found.get('summary', '')}")
    return 0 if outcome == Outcome.STOPPED else int(found.get("exit_code", EXIT_FAILED))
