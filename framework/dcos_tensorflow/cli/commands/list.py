"""``list``: all services of this machine, or of a ZooKeeper, or the one that an API is of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

import click

from dcos_tensorflow.cli.flags import api_flags, json_flag, work_dir_flag
from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.wording import table
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.deploy.settings import with_access, zookeeper_flags
from dcos_tensorflow.records import dataclass

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


@click.command(name="list")
@click.option(
    "--state",
    metavar="zk://HOST:PORT,...",
    help="Show the services with their state in this ZooKeeper, on all machines.",
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
    """Show all services of this machine, or of a ZooKeeper."""
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
        say_lines(table([(each.service, _words(each)) for each in found], indent=""))
    return 0


def _words(listed: _Listed) -> str:
    """Return one line: where it stands, why, and who serves it."""
    standing = listed.outcome or listed.phase
    parts = [": ".join(part for part in (standing, listed.why) if part)]
    if listed.scheduler:
        parts.append(f"served by {listed.scheduler}")
    return ", ".join(part for part in parts if part)


def _at(api: ApiAddress) -> _Listed:
    from dcos_tensorflow.client.api_client import SchedulerClient

    return _answered(SchedulerClient("", api).get("/v1/job"), api.url)


def _answered(job: Mapping[str, Any], scheduler: str) -> _Listed:
    return _Listed(
        job["service"], job["phase"], _outcome(job.get("verdict")), job["why"], scheduler
    )


def _here(work: WorkDirectory) -> Sequence[_Listed]:
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="list") as pool:
        names = registry.service_names(work)
        return [*pool.map(lambda name: _of_this_machine(work.service(name), name), names)]


def _of_this_machine(directory: ServiceDirectory, folder: str) -> _Listed:
    from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway, connect

    known = registry.read(directory)
    name = known.service if known is not None else folder
    try:
        client = connect(directory, name)
        job = client.get("/v1/job")
    except NoScheduler:
        return _unserved(directory, name, known.state if known is not None else "")
    except SchedulerAway as away:
        return _Listed(name, "", "", str(away).rstrip("."), "")
    except CliError as error:
        return _Listed(name, "", "", str(error).rstrip("."), "")
    where = f"{client.api.url} (pid {known.pid})" if known is not None else client.api.url
    return replace(_answered(job, where), service=name)


def _unserved(directory: ServiceDirectory, name: str, state_url: str) -> _Listed:
    """Return what is known of a service that no process of this machine serves."""
    last = ending.last(directory)
    if last is not None:
        summary = str(last.get("summary", ""))
        return _Listed(name, "done", str(last.get("outcome") or ""), summary, "")
    if not directory.database.exists():
        kept = f"; its state is in {state_url}" if state_url.startswith("zk://") else ""
        return _Listed(name, "", "", f"no scheduler of it runs on this machine{kept}", "")
    return _by_its_state(directory.state_url, name, "no scheduler of it runs")


def _by_its_state(url: str, name: str, why: str, scheduler: str = "") -> _Listed:
    from dcos_tensorflow.client.stored import stored_state

    try:
        state = stored_state(url, name)
    except CliError as error:
        return _Listed(name, "", "", str(error).rstrip("."), scheduler)
    if state is None:
        return _Listed(name, "", "", "its state is empty", scheduler)
    verdict = state.job.verdict
    outcome = str(verdict.outcome) if verdict is not None else ""
    told = why or (verdict.summary if verdict is not None else state.job.why)
    return _Listed(state.spec.name, str(state.job.phase), outcome, told, scheduler)


def _stored_in(url: str) -> Sequence[_Listed]:
    from dcos_tensorflow.client.wording import sentence
    from dcos_tensorflow.state.errors import BadStateUrl, StateError
    from dcos_tensorflow.state.urls import parse_state_url
    from dcos_tensorflow.state.zookeeper_services import services_in
    from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

    try:
        place = parse_state_url(url)
    except BadStateUrl as error:
        raise UsageError(f"--state: {error}.") from error
    if not isinstance(place, ZooKeeperAddress):
        raise UsageError("--state: a ZooKeeper has services, zk://HOST:PORT,...; this is a file.")
    try:
        found = services_in(place)
    except StateError as error:
        raise CliError(f"The state store: {sentence(str(error))}", 8) from error
    return [
        _by_its_state(
            url,
            each.folder,
            "" if each.leader else "no scheduler serves it",
            str(each.leader or ""),
        )
        for each in found
    ]


def _outcome(verdict: Mapping[str, object] | None) -> str:
    return str(verdict.get("outcome") or "") if verdict else ""
