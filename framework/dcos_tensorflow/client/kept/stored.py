"""The stored state of a service, before a scheduler of it is started.

Used by ``run`` to announce its effect, and to remove old checkpoints safely; by
``uninstall`` for a service whose scheduler has gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError, UsageError
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore, upgrade
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.state.errors import LeadershipTaken, StateError
from dcos_tensorflow.state.store import StateStore, open_store
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url
from untrusted_input import trees


def stored_state(url: str, service: str) -> ServiceState | None:
    """Return what is stored of the service; None when it is new. Raises CliError.

    To look makes no database where there is none.
    """
    if is_missing(url):
        return None
    with opened(url, service) as store:
        return _restored(store)


def stored_options(url: str, service: str) -> Mapping[str, Any]:
    """Return the options of the stored service, secrets hidden; empty for none. Raises CliError."""
    from dcos_tensorflow.scheduler.options_documents import OptionsDocuments

    if is_missing(url):
        return {}
    with opened(url, service) as store:
        state, documents = _restored(store), OptionsDocuments()
        documents.load(store.load())
        return documents.of(state.spec) if state is not None else {}


def state_url(directory: ServiceDirectory) -> str:
    """Return where the service of a folder keeps its state, or did when it was served last."""
    served = registry.read(directory)
    return (served.state if served is not None else "") or directory.state_url


def check_same(
    stored: ServiceState | None, spec: ServiceSpec, *, served: bool, update: str
) -> None:
    """Raise UsageError when a job with other options has not ended yet.

    ``served`` says that a scheduler serves it now: that one takes it over to other options, as the
    command ``update`` asks it to. Else a run with --update does.
    """
    if stored is None or stored.job.phase is JobPhase.DONE:
        return
    if configuration_id(stored.spec) != configuration_id(spec):
        over = f"({update})" if served else "with --update"
        raise UsageError(
            f"A job of the service {spec.name} has not ended (it is {stored.job.phase}) and has"
            f" other options. Take it over to these {over}, end it first (dcos-tensorflow"
            f" stop {spec.name}), or give this one another service.name."
        )


def wait_until_left(url: str, service: str, seconds: float) -> None:
    """Wait until the scheduler of a job that has ended has left the service; at most so long.

    It tells the end a moment before it leaves. One that stays is told of by the next reader.
    """
    with opened(url, service) as store, suppress(LeadershipTaken):
        store.lead(f"the next run, pid {os.getpid()}", seconds, lambda _: None).release()


def remove_checkpoints(url: str, service: str, checkpoints: Path, work: WorkDirectory) -> None:
    """Remove the checkpoints of a job that is done.

    Only below our own folder, and only as the service's leader, so that no scheduler can have
    started a job in between. Raises CliError.
    """
    inside = checkpoints.resolve()
    if not inside.is_relative_to(work.services.resolve()) or checkpoints.is_symlink():
        raise UsageError(f"--fresh removes nothing outside {work.services}: {checkpoints} is kept.")
    with led(url, service, "removing checkpoints") as store:
        state = _restored(store)
        if state is not None and state.job.phase is not JobPhase.DONE:
            raise UsageError(
                f"--fresh: the job of {service} has not ended (it is {state.job.phase}); its"
                " checkpoints are kept."
            )
        if checkpoints.exists():
            trees.remove(checkpoints, strictly=True)
        checkpoints.mkdir(mode=0o700)


def forget(url: str, service: str) -> ServiceState | None:
    """Erase what is stored of a service that no cluster knows any more; None when it is gone.

    One that is registered, or holds a reservation, a machine or a task anywhere, stays, and is
    returned: to end that takes a scheduler. Raises CliError, also where one serves it.
    """
    if is_missing(url):
        return None
    with led(url, service, "uninstalling") as store:
        state = _restored(store)
        if state is not None and (
            state.framework_id
            or state.reservations
            or state.abandoned
            or machines_left(state.capacity)
        ):
            return state
        store.erase()
        return None


def is_missing(url: str) -> bool:
    """Say whether a database is meant that does not exist: to open it would make it."""
    try:
        where = parse_state_url(url)
    except StateError:
        # The command that opens it tells.
        return False
    return isinstance(where, SqliteUrl) and not where.path.exists()


@contextmanager
def opened(url: str, service: str) -> Iterator[StateStore]:
    """Open the state of a service. What is wrong with it, then or later, becomes a CliError."""
    try:
        with closing(open_store(url, service)) as store:
            yield store
    except StateError as error:
        raise CliError(f"The state store: {sentence(str(error))}", 8) from error


@contextmanager
def led(url: str, service: str, why: str) -> Iterator[StateStore]:
    """Open it as the one that may write. Raises CliError where another process leads it."""
    with opened(url, service) as store:
        try:
            leadership = store.lead(f"{why}, pid {os.getpid()}", 0.0, lambda _: None)
        except LeadershipTaken as error:
            raise CliError(sentence(str(error)), EXIT_LOCKED) from error
        with leadership:
            yield store


def _restored(store: StateStore) -> ServiceState | None:
    try:
        values, _ = upgrade(store.load())
        return restore(values, LaunchSettings(), time.time())
    except StateUnreadable as error:
        raise CliError(f"The state of {store.service} cannot be read: {error}.", 8) from error
