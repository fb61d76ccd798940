"""Ending a job, also one whose scheduler is gone.

Used by ``stop`` and by jobs that were begun in Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase

_LOOK_SECONDS = 0.5
#: How long a scheduler that was asked to end a job has to begin with that.
_HEARD_SECONDS = 2.0


def stop_job(
    work: WorkDirectory,
    service: KnownService,
    why: str,
    *,
    wait: bool,
    seconds: float,
    tell: Callable[[str], None],
) -> dict[str, Any] | None:
    """End the job and return its verdict; None where its end is not to be waited for.

    ``tell`` is what a person hears while the scheduler is away. Raises CliError where there is
    no job, and where it does not end in ``seconds``.
    """
    try:
        service.connect().stop(why)
        ordered = True
    except NoScheduler as away:
        return _stop_without_scheduler(work, service, away, seconds)
    except SchedulerAway:
        if not wait:
            raise
        ordered = False
    if not wait:
        return None
    return _await_the_end(work, service, why, seconds, ordered=ordered, tell=tell)


def _await_the_end(
    work: WorkDirectory,
    service: KnownService,
    why: str,
    seconds: float,
    *,
    ordered: bool,
    tell: Callable[[str], None],
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
                service.connect().stop(why)
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
                # Nothing brings the scheduler of a local job back.
                left = deadline - time.monotonic()
                return _stop_without_scheduler(work, service, away, left)
            ordered_at = None
            if str(away) != told_away:
                told_away = str(away)
                tell(f"{away} Waiting for it to come back.")
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service.name} was asked to stop and has not ended within {seconds:g} s."
        + (f" {told_away} Its tasks may run." if told_away else "")
        + f" See dcos-tensorflow why {service.name}."
    )


def _is_local(service: KnownService) -> bool:
    found = registry.read(service.directory) if service.directory is not None else None
    return found is not None and found.local


def _stop_without_scheduler(
    work: WorkDirectory, service: KnownService, away: SchedulerAway, seconds: float
) -> dict[str, Any]:
    """End a job without a scheduler. Raises CliError when there is none, or it is not on here."""
    # Of a job that is served nothing is read here, and no scheduler made.
    from dcos_tensorflow.client.kept.stored import stored_state
    from dcos_tensorflow.deploy.orphaned_job import end_orphaned_job

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
    snapshot = end_orphaned_job(work, service.directory, state, registration.state, seconds)
    return dict(snapshot.verdict or {})
