"""One background process per folder: start it, find it again, stop it.

For the two daemons of this room, the embedded cluster and the local DC/OS. The folder holds a
record (process id, start time of the process, and what the daemon adds), a configuration, a lock
and a log. What the process serves, and how one asks it, is the daemon's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dcos_tensorflow.local.machine.process_tree import kill_tree, start_time

#: How long a server may be busy before it counts as dead: its process is ended then.
_ANSWER_SECONDS = 10.0
#: Between two looks at a process that starts or ends, in seconds.
_LOOK_SECONDS = 0.05
_KILLED_SECONDS = 5.0

Status = TypeVar("Status")


class BackgroundProcessError(Exception):
    """The process could not be started or stopped. The text says why."""


@dataclass(frozen=True)
class BackgroundProcess:
    """The process that belongs to a folder, whether it runs or not."""

    folder: Path
    #: How messages call it: ``the cluster``.
    title: str
    #: What ``python -m`` is given.
    module: str
    arguments: Sequence[str]
    record_name: str
    log_name: str

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands out: two at a time must not start two processes."""
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def record(self) -> Any:
        """Return the record of the process that runs, None when none does."""
        record = read_json(self.folder / self.record_name)
        if record is None or start_time(record["pid"]) != record["started"]:
            return None
        return record

    def forget(self) -> None:
        """Remove the record of a process that is gone."""
        (self.folder / self.record_name).unlink(missing_ok=True)

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process in a session of its own, its output going to the log."""
        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        with open(self.folder / self.log_name, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self.module, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )

    def wait_for_answer(
        self, process: subprocess.Popen[bytes], ask: Callable[[], Status | None], seconds: float
    ) -> Status:
        """Return what ``ask`` says of the spawned process once that is not None.

        Raises BackgroundProcessError when it ended, or not in time, with the end of its log.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            code = process.poll()
            if code is not None:
                raise BackgroundProcessError(f"{self.title} ended with {code}: {self._log_end()}")
            record = self.record()
            status = ask() if record is not None and record["pid"] == process.pid else None
            if status is not None:
                # It goes on without us: nobody waits for it any more, and Popen need not complain.
                process.returncode = 0
                return status
            time.sleep(_LOOK_SECONDS)
        kill_tree(process.pid)
        process.wait()
        raise BackgroundProcessError(
            f"{self.title} did not answer within {seconds:g} s: {self._log_end()}"
        )

    def stop(self, pid: int, seconds: float) -> None:
        """End the process: SIGTERM, and after ``seconds`` SIGKILL of it and all below it.

        Raises BackgroundProcessError when it is still there.
        """
        started = start_time(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        if not _ended(pid, started, seconds):
            kill_tree(pid)
            if not _ended(pid, started, _KILLED_SECONDS):
                raise BackgroundProcessError(f"process {pid} does not end")
        self.forget()

    def down(self, seconds: float) -> bool:
        """End the process, if there is one; say whether there was. Raises as ``stop``."""
        if not self.folder.is_dir():
            return False
        with self.locked():
            record = self.record()
            if record is None:
                self.forget()
                return False
            self.stop(record["pid"], seconds)
            return True

    def announce(self, **facts: object) -> None:
        """Write the record of this very process: what ``wait_for_answer`` waits for."""
        record = {"pid": os.getpid(), "started": start_time(os.getpid()), **facts}
        write_json(self.folder / self.record_name, record)

    def _log_end(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            lines = (self.folder / self.log_name).read_text(errors="replace").splitlines()
            if lines:
                return " / ".join(lines[-5:])
        return "its log is empty"


def stop_requested() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set from now on."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def answers(url: str) -> bool:
    """Tell whether a server of this machine says 200, asked without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_ANSWER_SECONDS) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def write_json(path: Path, value: object) -> None:
    """Replace a file as a whole, on disk when this returns.

    It is readable by its owner alone: it may hold a password.
    """
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_json(path: Path) -> Any:
    """Return what the file holds, None when it is missing or cut."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _ended(pid: int, started: int | None, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while started is not None and start_time(pid) == started:
        with contextlib.suppress(ChildProcessError):
            # When this process started it, it is a zombie until it is waited for.
            os.waitpid(pid, os.WNOHANG)
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
