"""Where everything of this user's services lies on this machine.

``<work>/local/`` is the embedded cluster that ``local up`` leaves running;
``<work>/services/<name>/`` holds one service's state, checkpoints, artifacts and logs. Only paths
below these folders are ever removed by the command line.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.core.kept.paths import service_folder
from untrusted_input import trees

HOME_VARIABLE = "DCOS_TENSORFLOW_HOME"


class ServiceDirectory:
    """The folder of one service. The folders exist once ``prepare`` was called."""

    def __init__(self, path: Path, work: Path | None = None) -> None:
        self.path = path
        #: The folder of all services, and of the embedded cluster.
        self.work = work or path
        #: The SQLite file that holds the state when nothing else is asked for, and its URL.
        self.database = path / "state.db"
        self.state_url = f"sqlite:///{self.database}"
        #: Where the tasks of a local job keep their checkpoints together.
        self.checkpoints = path / "checkpoints"
        #: Where the tasks of a local job leave what it makes, in a folder for each run.
        self.output = path / "output"
        #: Where the files lie that tasks fetch.
        self.artifacts = path / "artifacts"
        #: The folder of the embedded cluster that lives as long as one run.
        self.cluster = path / "cluster"
        #: Leads to the sandbox of each task of the last local job, else to what is kept of it.
        self.task_logs = path / "tasks"
        #: The end of what the tasks of the last job have told, where that was no local one.
        self.kept_output = path / "kept-output"
        #: What a batch works on, where that is a list of files of this machine.
        self.inputs = path / "inputs"
        #: What is kept of each run: its curves, its options, how it ended.
        self.history = path / "history"
        #: The scheduler's log.
        self.log = path / "scheduler.log"
        #: Each order by the API with its author, and each refusal.
        self.audit_log = path / "audit.jsonl"
        #: The file by which a running scheduler is found.
        self.registration = path / "scheduler.json"
        #: What one ``run`` holds. Beside the folder: of a job that is refused none is made.
        self.lock = path.with_name(f".{path.name}.lock")
        #: The file that tells how the last job ended.
        self.last_end = path / "last-job.json"
        #: What its dashboard showed at that end.
        self.last_page = path / "last-page.json"

    def prepare(self) -> None:
        """Make the folders, readable by this user only. Raises CliError."""
        self.prepare_above()
        for folder in (self.path, self.checkpoints, self.artifacts):
            make_folder(folder)

    def prepare_above(self) -> None:
        """Make those that the service's own lies in. Raises CliError."""
        above = [each for each in self.path.parents if each.is_relative_to(self.work)]
        for folder in reversed(above):
            make_folder(folder)

    def next_run(self) -> int:
        """Return a number that no run has which has left something here."""
        left = []
        for folder in (self.output, self.history):
            with contextlib.suppress(OSError):
                names = [each.name.partition("-")[0] for each in folder.iterdir()]
                left += [int(name) for name in names if name.isdecimal()]
        return max(left, default=0) + 1

    def remove(self) -> None:
        """Remove what a scheduler of an uninstalled service has left here, as far as it can be.

        Checkpoints, output, logs, sandboxes and the history are the user's, and stay; what was
        copied of the sandboxes of another cluster goes, with the links to it.
        """
        copied = (self.kept_output, self.task_logs) if self.kept_output.exists() else ()
        for folder in (self.artifacts, self.inputs, *copied):
            trees.remove(folder)
        for file in (self.registration, self.last_end, self.last_page):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        for folder in (self.checkpoints, self.output, self.path, self.path.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()


class WorkDirectory:
    """The folder of all services of this user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: The folder of the embedded cluster that ``local up`` leaves running.
        self.local = path / "local"
        #: The folder of the services' folders.
        self.services = path / "services"
        #: The file that errors of ours are written to.
        self.crash_log = path / "crash.log"

    def service(self, name: str) -> ServiceDirectory:
        """Return the folder of a service."""
        return ServiceDirectory(self.services / service_folder(name), self.path)


class _Nowhere(WorkDirectory):
    """Of a user without a home folder: what needs no folder works, all else raises CliError."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise CliError(
            f"This user (id {os.getuid()}) has no home folder: HOME is not set, and the machine"
            f" does not know the user. Name a folder with --work-dir or in {HOME_VARIABLE}."
        )


def expanded(path: str) -> Path:
    """Return a path, the folder that a ``~`` stands for in its place. Raises ValueError."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home folder that the ~ of {path} could stand for") from None


def work_directory(given: Path | None, environ: Mapping[str, str]) -> WorkDirectory:
    """Return the folder to work in: the flag's, DCOS_TENSORFLOW_HOME, or the user's data folder.

    Raises CliError for a variable that names none.
    """
    if given is not None:
        return WorkDirectory(given.absolute())
    if environ.get(HOME_VARIABLE):
        try:
            return WorkDirectory(expanded(environ[HOME_VARIABLE]).absolute())
        except ValueError as error:
            raise CliError(f"{HOME_VARIABLE}: {error}.") from error
    data = environ.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path in the variable is to be ignored.
    if os.path.isabs(data):
        return WorkDirectory(Path(data) / "dcos-tensorflow")
    try:
        home = expanded(environ.get("HOME") or "~")
    except ValueError:
        return _Nowhere()
    return WorkDirectory(home.absolute() / ".local" / "share" / "dcos-tensorflow")


def make_folder(folder: Path) -> None:
    """Make a folder for this user alone. Raises CliError, also where it is another user's."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError as error:
        raise CliError(
            f"The folder {folder} cannot be made ({error.strerror}); choose another with"
            " --work-dir."
        ) from error
    # Its owner, or a user who may write to it, could put links into it, and code.
    if found.st_uid != os.geteuid():
        raise CliError(
            f"The folder {folder} belongs to another user (id {found.st_uid}); choose one of your"
            " own with --work-dir."
        )
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise CliError(
            f"Every user of this machine may write to the folder {folder}: chmod o-w {folder}, or"
            " choose another with --work-dir."
        )
