"""How a running scheduler is found from another terminal: a small file in its service's folder.

The scheduler's process writes it once its API answers and notes in it when it ends. A file that
outlived its process (SIGKILL) is harmless: its reader asks the process itself.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError, UsageError
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json
from untrusted_input.process_table import start_time

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


@dataclass(frozen=True)
class Registration:
    """Where a scheduler is, or was: ``pid`` is 0 once it has ended.

    ``started`` is when the process began, in clock ticks since boot: another one that got its
    number, maybe another program's, is not taken for it. 0 is told by earlier releases. ``api`` is
    ``host:port``; ``token`` is what its API asks for, ``certificate`` the file of the one that it
    shows, empty where it speaks plain HTTP. ``local`` says that it served an embedded
    cluster, ``folder`` where relative paths in its options start.
    """

    service: str
    pid: int
    api: str
    token: str = field(default="", repr=False)
    state: str = ""
    master: str = ""
    started_at: float = 0.0
    local: bool = False
    folder: str = ""
    started: int = 0
    certificate: str = ""

    def process_lives(self) -> bool:
        """Say whether this process runs on this machine."""
        began = start_time(self.pid) if self.pid > 0 else None
        return began is not None and self.started in (0, began)


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable by this user alone. Raises OSError."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(partial, path)


def register(directory: ServiceDirectory, registration: Registration) -> None:
    """Leave the address of this scheduler for others. Raises CliError."""
    try:
        write_private(directory.registration, json.dumps(asdict(registration), indent=2) + "\n")
    except OSError as error:
        raise CliError(
            f"{directory.registration} cannot be written ({error.strerror}): the scheduler could"
            " not be found from other terminals."
        ) from error


def unregister(directory: ServiceDirectory) -> None:
    """Note that this process serves no more; another's registration stays as it is."""
    found = read(directory)
    if found is not None and found.pid == os.getpid():
        # A full disk must not spoil the end: a reader of the file asks the process itself.
        with contextlib.suppress(CliError):
            register(directory, replace(found, pid=0, api="", token=""))


@contextlib.contextmanager
def only_run(directory: ServiceDirectory, service: str) -> Iterator[None]:
    """Keep other runs of the service out. Raises CliError when another one does so.

    The kernel gives it back however a process ends. Without it a second ``run`` would take the
    first one's cluster for one that was left behind, and end it.
    """
    from dcos_tensorflow.state.file_lock import FileLock
    from dcos_tensorflow.state.leadership import this_process

    directory.prepare_above()
    lock = FileLock(directory.lock)
    try:
        taken = not lock.try_acquire(this_process("dcos-tensorflow run"))
    except OSError as error:
        raise CliError(f"{lock.path} cannot be written: {error.strerror}.") from error
    if taken:
        raise CliError(
            f"Another run of {service} is under way: {lock.read_holder()}. See it with"
            f" dcos-tensorflow status {service}, or give this job another service.name.",
            EXIT_LOCKED,
        )
    try:
        yield
    finally:
        lock.release(remove=True)


def read(directory: ServiceDirectory) -> Registration | None:
    """Return what was registered last, None when there is nothing that can be read."""
    return record_in(directory.registration, Registration)


def record_in(path: Path, kind: type[Record]) -> Record | None:
    """Return what a process has left of itself in a file; None where that cannot be read."""
    try:
        values = read_json(path.read_text(encoding="utf-8"))
        known = {f.name for f in fields(kind)}
        return kind(**{k: v for k, v in values.items() if k in known})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def service_names(work: WorkDirectory) -> list[str]:
    """Return the names of all services that have a folder here, as their folders are called."""
    if not work.services.is_dir():
        return []
    return sorted(path.name for path in work.services.iterdir() if path.is_dir())


def knows(work: WorkDirectory, name: str) -> bool:
    """Say whether a service of this name has a folder here."""
    return work.service(name).path.name in service_names(work)


def choose(work: WorkDirectory, name: str | None) -> tuple[str, ServiceDirectory]:
    """Return the service that is meant: the named one, or the only one there is.

    Without a name a service whose scheduler runs goes before those that have ended. Raises
    UsageError when there is none, or more than one.
    """
    known = service_names(work)
    if name is not None:
        directory = work.service(name)
        if directory.path.name not in known:
            there = f"; there are {', '.join(known)}" if known else ", nor any other"
            raise UsageError(f"There is no service {name} in {work.services}{there}.")
        return name, directory
    running = [n for n in known if (r := read(work.service(n))) is not None and r.process_lives()]
    candidates = running or known
    if not candidates:
        raise UsageError(f"There is no service in {work.services}; start one with run.")
    if len(candidates) > 1:
        raise UsageError(f"Which service is meant? There are {', '.join(candidates)}.")
    return candidates[0], work.service(candidates[0])
