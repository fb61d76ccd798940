"""``status``, ``why``, ``cluster`` and ``stop``: questions and orders to a running scheduler."""

from __future__ import annotations

import sys
import time
from typing import Any

from dcos_tensorflow.cli import ending, registry
from dcos_tensorflow.cli.client import SchedulerAway, SchedulerClient, connect
from dcos_tensorflow.cli.errors import EXIT_FAILED, CliError
from dcos_tensorflow.cli.following import caught_signals, view_for
from dcos_tensorflow.cli.left_behind import end_left_behind
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.snapshot import Snapshot
from dcos_tensorflow.cli.stored import stored_state
from dcos_tensorflow.cli.wording import numbers, table
from dcos_tensorflow.cli.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase

_LOOK_SECONDS = 0.5


def status(work: WorkDirectory, name: str | None, *, follow: bool, as_json: bool) -> int:
    """Show where a job stands, or how the last one ended; with ``follow`` until its end."""
    service, directory = registry.choose(work, name)
    try:
        client = connect(directory, service)
        snapshot = client.snapshot()
    except SchedulerAway as away:
        return _last_end(directory, service, away, as_json=as_json, as_exit_code=follow)
    if follow:
        return _follow(client, directory, service, as_json=as_json)
    if as_json:
        show_json(dict(snapshot.job))
    else:
        say_lines(_status_lines(snapshot, client.registration))
    return 0


def why(work: WorkDirectory, name: str | None, *, as_json: bool) -> int:
    """Show why the job is not further."""
    service, directory = registry.choose(work, name)
    found = connect(directory, service).get("/v1/why")
    if as_json:
        show_json(found)
        return 0
    say(f"{service} is {found['phase']}: {found['why']}")
    if not found["registered"]:
        say("The scheduler is not registered with a Mesos master.")
    say_lines(table([(task, str(each["why"])) for task, each in found["tasks"].items()]))
    say_lines(
        table([(task, p["why"]) for task, problems in found["storage"].items() for p in problems])
    )
    seen: set[str] = set()
    for verdict in found["offers"]["handed_back"]:
        line = f"offer of {verdict['offer']['hostname']}: {'; '.join(verdict['explanation'])}"
        if line not in seen:
            seen.add(line)
            say(f"  {line}")
    return 0


def cluster(work: WorkDirectory, name: str | None, *, as_json: bool) -> int:
    """Show the ClusterSpec."""
    service, directory = registry.choose(work, name)
    found = connect(directory, service).get("/v1/cluster")
    if as_json:
        show_json(found)
    elif not found["epoch"]:
        say(f"{service} has no ClusterSpec yet: its tasks have no place.")
    else:
        say(f"{service}: epoch {found['epoch']}, strategy {found['strategy']}")
        say_lines(table(list(found["addresses"].items())))
    return 0


def stop(work: WorkDirectory, name: str, *, wait: bool, seconds: float, as_json: bool) -> int:
    """End a job: its tasks are ended and its resources given back."""
    service, directory = registry.choose(work, name)
    try:
        client = connect(directory, service)
        client.stop("stopped from the command line")
    except SchedulerAway as away:
        verdict = _stop_without_scheduler(work, directory, service, away, seconds)
        return _stopped(service, verdict, as_json=as_json)
    if not wait and as_json:
        show_json({"service": service, "outcome": None})
        return 0
    if not wait:
        say(f"{service} is being stopped.")
        return 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        snapshot = _snapshot(client)
        if snapshot is None or snapshot.done:
            found = snapshot.verdict if snapshot is not None else ending.last(directory)
            return _stopped(service, dict(found or {}), as_json=as_json)
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service} was asked to stop and has not ended within {seconds:g} s; see"
        f" dcos-tensorflow why {service}."
    )


def _stop_without_scheduler(
    work: WorkDirectory,
    directory: ServiceDirectory,
    service: str,
    away: SchedulerAway,
    seconds: float,
) -> dict[str, Any]:
    """End a job that nobody serves. Raises CliError when there is none, or it is not on here."""
    last = ending.last(directory)
    if last is not None:
        raise CliError(f"{away} Its last job {_ended(last)}.") from away
    registration = registry.read(directory)
    url = registration.state if registration is not None else directory.state_url
    state = stored_state(url, service) if registration is not None else None
    if registration is None or state is None:
        raise away
    if state.job.phase is JobPhase.DONE:
        raise CliError(f"{away} Its last job has ended.") from away
    if not registration.local:
        raise CliError(
            f"{away} Its job is {state.job.phase} on the cluster of {registration.master}: run it"
            " again there to take it up, and stop it then."
        ) from away
    snapshot = end_left_behind(work, directory, state, url, seconds)
    return dict(snapshot.verdict or {})


def _stopped(service: str, found: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        show_json({"service": service, **found})
    else:
        say(f"{service} has ended: {found.get('outcome', 'stopped')}, {found.get('summary', '')}")
    return 0


def _follow(
    client: SchedulerClient, directory: ServiceDirectory, service: str, *, as_json: bool
) -> int:
    view = view_for(sys.stderr if as_json else sys.stdout)
    with caught_signals() as signals:
        try:
            while not signals.interrupts and not signals.ending:
                snapshot = _snapshot(client)
                if snapshot is None:
                    away = SchedulerAway(f"The scheduler of {service} has ended.")
                    return _last_end(directory, service, away, as_json=as_json, as_exit_code=True)
                view.show(snapshot, time.time())
                if snapshot.done and ending.last(directory) is not None:
                    break
                time.sleep(_LOOK_SECONDS)
        finally:
            view.close()
    if signals.interrupts or signals.ending:
        say(f"{service} goes on.", sys.stderr)
        return 128 + (signals.ending or 2)
    away = SchedulerAway(f"The scheduler of {service} has ended.")
    return _last_end(directory, service, away, as_json=as_json, as_exit_code=True)


def _snapshot(client: SchedulerClient) -> Snapshot | None:
    """Return where the job stands; None when the scheduler has gone."""
    try:
        return client.snapshot()
    except SchedulerAway:
        return None


def _last_end(
    directory: ServiceDirectory,
    service: str,
    away: SchedulerAway,
    *,
    as_json: bool,
    as_exit_code: bool,
) -> int:
    last = ending.last(directory)
    if last is None:
        raise CliError(f"{away} {_stored(directory, service)}")
    if as_json:
        show_json(last)
    else:
        say_lines(ending.lines(last))
    return int(last.get("exit_code", EXIT_FAILED)) if as_exit_code else 0


def _stored(directory: ServiceDirectory, service: str) -> str:
    """Say what the state in the service's own folder tells."""
    if not directory.database.exists():
        return "Nothing is known of an ended job of it either."
    state = stored_state(directory.state_url, service)
    if state is None:
        return "Its state is empty."
    return f"By its state the job is {state.job.phase}; run takes it up again, and stop ends it."


def _ended(last: dict[str, Any]) -> str:
    return f"has ended: {last.get('outcome')}, {last.get('summary')}"


def _status_lines(snapshot: Snapshot, registration: registry.Registration) -> list[str]:
    rows = []
    for task in snapshot.tasks:
        parts = [task.doing, task.detail, numbers(task)]
        rows.append((task.name, ", ".join(part for part in parts if part)))
    return [
        f"{snapshot.service} is {snapshot.phase}: {snapshot.job['why']}",
        *table(rows),
        *table([(problem.task, problem.text) for problem in snapshot.storage_problems]),
        f"  scheduler pid {registration.pid}, API http://{registration.api}",
    ]
