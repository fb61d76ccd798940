"""``list``: all services of this machine, or of a state store, or the one that an API is of."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from dcos_tensorflow.cli.flags import api_flags, json_flag, work_dir_flag
from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.served_queue import served_queue
from dcos_tensorflow.client.wording import columns, moment
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.deploy.settings import with_access, zookeeper_flags
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.client.state_services import StateService

_ASKED_AT_ONCE = 8


@dataclass(frozen=True)
class _Listed:
    """What is known of one service."""

    service: str
    #: The job's phase; empty when it is not known.
    phase: str
    #: How the job ended; empty while it has not, or when that is not known.
    outcome: str
    #: In words, what else there is to say.
    why: str
    #: The scheduler that serves it; empty without one.
    scheduler: str
    #: When the job began and ended, in unix seconds; None where it has not, or it is not known.
    started_at: float | None = None
    finished_at: float | None = None


@click.command(name="list")
@click.option(
    "--state",
    metavar="URL",
    help="Show the services with their state there, on all machines: zk://HOST:PORT,...",
)
@zookeeper_flags
@api_flags
@work_dir_flag
@json_flag
def list(
    state: str | None,
    work: WorkDirectory,
    as_json: bool,
    api: ApiAddress | None,
    **zookeeper: str | None,
) -> int:
    """Show all services of this machine, or of a state store."""
    if state is not None:
        found: Sequence[_Listed] = _stored_in(with_access(state, os.environ, zookeeper))
    elif api is not None:
        found = [_at(api)]
    else:
        found = _here(work)
    if as_json:
        show_json([asdict(each) for each in found])
    elif not found:
        where = f"in {work.services}; start one with run" if state is None else "there"
        say(f"There is no service {where}.")
    else:
        rows = [_HEAD, *map(_row, found)]
        say_lines(line[: _width()].rstrip() for line in columns(rows))
    return 0


_HEAD = ("service", "state", "begun", "ended", "why", "served by")


def _row(listed: _Listed) -> tuple[str, ...]:
    """Return where it stands, since when, why, and who serves it."""
    times = (moment(listed.started_at), moment(listed.finished_at))
    state = listed.outcome or listed.phase
    return (listed.service, state, *times, listed.why, listed.scheduler)


def _width() -> int | None:
    """Return how much of a line a terminal shows; None where nothing cuts it."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _at(api: ApiAddress) -> _Listed:
    from dcos_tensorflow.client.api_client import SchedulerClient

    return _answered(SchedulerClient("", api).get("/v1/job"), api.url)


def _answered(job: Mapping[str, Any], scheduler: str) -> _Listed:
    return _Listed(
        job["service"],
        job["phase"],
        str((job.get("verdict") or {}).get("outcome") or ""),
        job["why"],
        scheduler,
        job.get("started_at"),
        job.get("finished_at"),
    )


def _here(work: WorkDirectory) -> Sequence[_Listed]:
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="list") as pool:
        names = registry.service_names(work)
        found = pool.map(lambda name: _of_this_machine(work.service(name), name), names)
        listed = {each.service: each for each in found if each is not None}
    queue = served_queue(work)
    for job in queue.running(work) if queue is not None else ():
        where = f"the queue {queue.name}" if queue is not None else ""
        name = str(job["job"])
        listed[name] = _Listed(name, "running", "", job["why"], where, job["began_at"])
    return [*listed.values()]


def _of_this_machine(directory: ServiceDirectory, folder: str) -> _Listed | None:
    """Return what is known of a service; None of one that was uninstalled, or never begun."""
    from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway, connect

    known = registry.read(directory)
    name = known.service if known is not None else folder
    try:
        client = connect(directory, name)
        job = client.get("/v1/job")
    except NoScheduler:
        return _unserved(directory, name, known)
    except SchedulerAway as away:
        return _Listed(name, "", "", str(away).rstrip("."), "")
    except CliError as error:
        return _Listed(name, "", "", str(error).rstrip("."), "")
    where = f"{client.api.url} (pid {known.pid})" if known is not None else client.api.url
    return replace(_answered(job, where), service=name)


def _unserved(
    directory: ServiceDirectory, name: str, known: registry.Registration | None
) -> _Listed | None:
    """Return what is known of a service that no process of this machine serves; None for nothing.

    Checkpoints, logs and runs are left of one that was uninstalled, and make it no service.
    """
    last = ending.last(directory)
    if last is not None:
        outcome, summary = str(last.get("outcome") or ""), str(last.get("summary", ""))
        times = (last.get("started_at"), last.get("finished_at"))
        return _Listed(name, "done", outcome, summary, "", *times)
    if known is not None and known.state.startswith("zk://"):
        kept = f"no scheduler of it runs on this machine; its state is in {known.state}"
        return _Listed(name, "", "", kept, "")
    if not directory.database.exists():
        why = "no scheduler of it runs on this machine"
        return _Listed(name, "", "", why, "") if known is not None else None
    return _by_its_state(directory.state_url, name, "no scheduler of it runs")


def _by_its_state(url: str, name: str, why: str, scheduler: str = "") -> _Listed | None:
    from dcos_tensorflow.client.kept.stored import stored_state

    try:
        state = stored_state(url, name)
    except CliError as error:
        return _Listed(name, "", "", str(error).rstrip("."), scheduler)
    if state is None:
        return None
    verdict = state.job.verdict
    outcome = str(verdict.outcome) if verdict is not None else ""
    told = why or (verdict.summary if verdict is not None else state.job.why)
    times = (state.job.started_at or None, state.job.finished_at or None)
    return _Listed(state.spec.name, str(state.job.phase), outcome, told, scheduler, *times)


def _stored_in(url: str) -> Sequence[_Listed]:
    from dcos_tensorflow.client.kept.stored import is_missing
    from dcos_tensorflow.client.state_services import services_of

    if is_missing(url):
        raise UsageError(f"--state: there is no file {url.partition('///')[2]}.")
    told = (
        _by_its_state(
            url, each.folder, "" if each.leader else "no scheduler serves it", _asked_at(each)
        )
        for each in services_of(url)
    )
    return [listed for listed in told if listed is not None]


def _asked_at(service: StateService) -> str:
    """Return where the scheduler of a service is asked, and which one that is."""
    if service.leader is None:
        return ""
    where = service.api.url if service.api is not None else f"address unknown ({service.unknown})"
    return f"{where} {service.leader}"
