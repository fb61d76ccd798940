"""Where everything of this user's services lies on this machine.

``<work>/local/`` is the embedded cluster that ``local up`` leaves running;
``<work>/services/<name>/`` holds one service's state, checkpoints, artifacts and logs. Only paths
below these folders are ever removed by the command line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dcos_tensorflow.cli.errors import CliError

HOME_VARIABLE = "DCOS_TENSORFLOW_HOME"


@dataclass(frozen=True)
class ServiceDirectory:
    """The folder of one service. The folders exist once ``prepare`` was called."""

    path: Path

    @property
    def database(self) -> Path:
        """Return the SQLite file that holds the state when nothing else is asked for."""
        return self.path / "state.db"

    @property
    def state_url(self) -> str:
        """Return the URL of ``database``."""
        return f"sqlite:///{self.database}"

    @property
    def checkpoints(self) -> Path:
        """Return where the tasks of a local job keep their checkpoints together."""
        return self.path / "checkpoints"

    @property
    def artifacts(self) -> Path:
        """Return where the files lie that tasks fetch."""
        return self.path / "artifacts"

    @property
    def cluster(self) -> Path:
        """Return the folder of the embedded cluster that lives as long as one run."""
        return self.path / "cluster"

    @property
    def task_logs(self) -> Path:
        """Return the folder that leads to the sandbox of each task of the last local job."""
        return self.path / "tasks"

    @property
    def log(self) -> Path:
        """Return the scheduler's log."""
        return self.path / "scheduler.log"

    @property
    def registration(self) -> Path:
        """Return the file by which a running scheduler is found."""
        return self.path / "scheduler.json"

    @property
    def last_end(self) -> Path:
        """Return the file that tells how the last job ended."""
        return self.path / "last-job.json"

    def prepare(self) -> None:
        """Make the folders, readable by this user only. Raises CliError."""
        for folder in (self.path, self.checkpoints, self.artifacts):
            make_folder(folder)


@dataclass(frozen=True)
class WorkDirectory:
    """The folder of all services of this user."""

    path: Path

    @property
    def local(self) -> Path:
        """Return the folder of the embedded cluster that ``local up`` leaves running."""
        return self.path / "local"

    @property
    def services(self) -> Path:
        """Return the folder of the services' folders."""
        return self.path / "services"

    @property
    def crash_log(self) -> Path:
        """Return the file that errors of ours are written to."""
        return self.path / "crash.log"

    def service(self, name: str) -> ServiceDirectory:
        """Return the folder of a service; ``/`` in its name becomes ``__``, as in ZooKeeper."""
        return ServiceDirectory(self.services / name.strip("/").replace("/", "__"))


def work_directory(given: Path | None, environ: Mapping[str, str]) -> WorkDirectory:
    """Return the folder to work in: the flag's, DCOS_TENSORFLOW_HOME, or the user's data folder."""
    if given is not None:
        return WorkDirectory(given.absolute())
    if environ.get(HOME_VARIABLE):
        return WorkDirectory(Path(environ[HOME_VARIABLE]).expanduser().absolute())
    data = environ.get("XDG_DATA_HOME", "")
    # The XDG specification: a relative path in the variable is to be ignored.
    base = Path(data) if os.path.isabs(data) else Path(environ.get("HOME") or "~").expanduser()
    below = base if os.path.isabs(data) else base / ".local" / "share"
    return WorkDirectory(below.absolute() / "dcos-tensorflow")


def make_folder(folder: Path) -> None:
    """Make a folder for this user alone. Raises CliError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CliError(
            f"The folder {folder} cannot be made ({error.strerror}); choose another with"
            " --work-dir."
        ) from error
