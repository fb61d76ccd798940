"""``state``: the stored state of a service: a check, an export into a file, and back.

``check`` and ``export`` only read, also while a scheduler serves. ``import`` writes where nothing
is kept yet, and no scheduler serves. ``record`` asks a scheduler that serves for its last turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from dcos_tensorflow.cli.flags import json_flag, name_flag, takes_service, work_dir_flag
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError, UsageError
from dcos_tensorflow.client.output import say, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.deploy.settings import with_access, zookeeper_flags

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState
    from dcos_tensorflow.state.store import StateStore

F = TypeVar("F", bound=Callable[..., Any])

#: How often what is kept is read until it is the same twice: then it is so at one moment.
_MOST_READS = 20


@click.group()
def state() -> None:
    """Check, save and restore the stored state of a service; record its scheduler."""


def _place_flags(function: F) -> F:
    where = click.option(
        "--state",
        "url",
        metavar="URL",
        help="State store, sqlite:///FILE or zk://HOST:PORT,...; else that of the service's last"
        " scheduler on this machine.",
    )
    return where(zookeeper_flags(name_flag(work_dir_flag(function))))


@state.command()
@_place_flags
@json_flag
def check(
    work: WorkDirectory, name: str | None, url: str | None, as_json: bool, **zookeeper: str | None
) -> int:
    """Say whether a service's state is readable, and describe it; change nothing."""
    service, values = _kept(work, name, url, zookeeper)
    found = _restored(service, values)
    phase, tasks = str(found.job.phase), len(found.live_tasks)
    if as_json:
        show_json({"service": service, "values": len(values), "phase": phase, "tasks": tasks})
    else:
        say(
            f"The state of {service} is sound: {counted(len(values), 'value')}, the job is"
            f" {phase}, {counted(tasks, 'task')} live."
        )
    return 0


@state.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_place_flags
@json_flag
def export(
    work: WorkDirectory,
    name: str | None,
    url: str | None,
    file: Path,
    as_json: bool,
    **zookeeper: str | None,
) -> int:
    """Save a service's state to a new file that only you can read; change nothing.

    A damaged state is saved as it is. The file contains the key that the service's tasks trust.
    """
    from dcos_tensorflow.state.exported import Export, to_text

    service, values = _kept(work, name, url, zookeeper)
    with _new(file) as written:
        written.write(to_text(Export(service, values)).encode())
    if as_json:
        show_json({"service": service, "values": len(values), "file": str(file)})
    else:
        say(f"{counted(len(values), 'value')} of {service} are in {file}.")
    return 0


@state.command()
@takes_service()
@click.option(
    "--out",
    "file",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; it must not exist.",
)
def record(choice: ServiceChoice, file: Path) -> int:
    """Save the last turns of a service's scheduler, to be sent with the report of a defect.

    The file has the events and decisions of the scheduler, without secrets; a developer can play
    them again. It names your machines, tasks and options: read it before you send it.
    """
    service = choice.service()
    with _new(file) as written:
        service.connect().download("/v1/state/record", "", written, "recording")
    size = file.stat().st_size
    if choice.as_json:
        show_json({"service": service.name, "bytes": size, "file": str(file)})
    else:
        say(f"The last turns of {service.name} are in {file}: {size:,} bytes.")
    return 0


@state.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_place_flags
@json_flag
def import_(
    work: WorkDirectory,
    name: str | None,
    url: str | None,
    file: Path,
    as_json: bool,
    **zookeeper: str | None,
) -> int:
    """Restore an export into an empty state store, while no scheduler serves the service."""
    from dcos_tensorflow.client.kept.stored import led
    from dcos_tensorflow.core.kept.paths import CONFIG_TARGET
    from dcos_tensorflow.core.model.actions import Write
    from dcos_tensorflow.state.exported import NotExported, from_text

    try:
        export = from_text(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, NotExported) as error:
        raise UsageError(f"{file}: {error}.") from error
    service, place = _place(work, name or export.service, url, zookeeper)
    if service != export.service:
        raise UsageError(f"{file} is of {export.service}, not of {service}.")
    _restored(service, export.values)
    # Last, as a new service has it: without it nothing is taken for a state.
    ordered = sorted(export.values.items(), key=lambda item: item[0] == CONFIG_TARGET)
    with led(place, service, "state import") as store:
        kept = store.load()
        if kept:
            raise CliError(
                f"{counted(len(kept), 'value')} of {service} are kept there already, and stay"
                " as they are. Save them with state export, and remove them first: the file"
                f" of SQLite, or /dcos-service-{service} by ZooKeeper's own client."
            )
        store.commit([Write(path, value) for path, value in ordered])
    if as_json:
        show_json({"service": service, "values": len(ordered), "file": str(file)})
    else:
        say(f"{counted(len(ordered), 'value')} of {service} are put back.")
    return 0


@contextmanager
def _new(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that was not there and that the caller alone can read; it is whole or gone.

    Raises CliError.
    """
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as written:
                yield written
                written.flush()
                os.fsync(handle)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CliError(f"{file} cannot be written: {error.strerror}.") from error


def _place(
    work: WorkDirectory, name: str | None, url: str | None, zookeeper: Mapping[str, str | None]
) -> tuple[str, str]:
    """Return the service's name, and where its state is, with login and TLS. Raises UsageError."""
    from dcos_tensorflow.client.kept.stored import state_url

    if url is None:
        name, directory = registry.choose(work, name)
        known = registry.read(directory)
        name, url = known.service if known is not None else name, state_url(directory)
    elif name is None:
        raise UsageError("Which service is meant? Name it with --name.")
    return name, with_access(url, os.environ, zookeeper)


def _kept(
    work: WorkDirectory, name: str | None, url: str | None, zookeeper: Mapping[str, str | None]
) -> tuple[str, Mapping[str, bytes]]:
    """Return the service's name and all that is kept of it. Raises CliError for nothing."""
    from dcos_tensorflow.client.kept.stored import is_missing, opened

    service, place = _place(work, name, url, zookeeper)
    values: Mapping[str, bytes] = {}
    if not is_missing(place):
        with opened(place, service) as store:
            values = _at_one_moment(store)
    if not values:
        raise CliError(f"Nothing is kept of {service} there.")
    return service, values


def _at_one_moment(store: StateStore) -> Mapping[str, bytes]:
    """Return what is kept, all of it at the same moment: the leader may write meanwhile.

    Two readings in a row that agree hold at every moment between them. Raises CliError.
    """
    before = store.load()
    for _ in range(_MOST_READS):
        found = store.load()
        if found == before:
            return found
        before = found
    raise CliError(
        f"The state of {store.service} changes faster than it is read: try again, or end its"
        " scheduler first."
    )


def _restored(service: str, values: Mapping[str, bytes]) -> ServiceState:
    from dcos_tensorflow.core.kept.restore import StateUnreadable, restore, without_service
    from dcos_tensorflow.core.model.service_state import LaunchSettings

    try:
        foreign = without_service(values)
        found = restore(values, LaunchSettings(), time.time())
        if foreign or found is None:
            raise StateUnreadable(foreign or "its first part was never written whole")
    except StateUnreadable as error:
        raise CliError(f"The state of {service} cannot be read: {error}.", EXIT_LOCKED) from error
    return found
