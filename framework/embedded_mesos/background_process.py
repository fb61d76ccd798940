"""One background process per folder: start it, find it again, stop it.

For the two daemons of this room, the embedded cluster and the local DC/OS. The folder holds a
record (process id, start time of the process, and the server's own fields), a lock and a log. The
server decides about its protocol.

The process reads its configuration from its standard input, a socket, by which its starter hears
when it serves. When the starter goes away before that, the process has nothing to do, and ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded_mesos.machine.process_tree import kill_tree
from untrusted_input.process_table import start_time

#: How long a server may be busy before it counts as dead: its process is ended then.
_ANSWER_SECONDS = 10.0
#: Between two looks at a process whose end the kernel does not tell, in seconds.
_LOOK_SECONDS = 0.05
_KILLED_SECONDS = 5.0
#: How often a process looks whether it can still be found.
_FOUND_SECONDS = 2.0


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

    def start(self, configuration: object, seconds: float) -> None:
        """Start the process in a session of its own, and return when it serves.

        It reads its configuration from its standard input, and goes on without us. Raises
        BackgroundProcessError when it ended, or did not serve in time, with the end of its log.
        """
        root = str(Path(__file__).resolve().parents[1])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        ours, its = socket.socketpair()
        # What it says before it has its log, of a library that is missing.
        with ours, tempfile.TemporaryFile() as said:
            with its:
                process = subprocess.Popen(
                    [sys.executable, "-m", self.module, *self.arguments],
                    stdin=its.fileno(),
                    stdout=said,
                    stderr=said,
                    cwd="/",
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                    start_new_session=True,
                )
            wrong = _hand_over(process, ours, json.dumps(configuration).encode() + b"\n", seconds)
            if wrong:
                said.seek(0)
                early = _end(said.read().decode(errors="replace"))
                told = early or self.log_end() or "its log is empty"
                raise BackgroundProcessError(f"{self.title} {wrong}: {told}")

    def handed_over(self) -> Any:
        """Return this very process' configuration once it is known; None when the parent has gone.

        From then on its output goes to the log.
        """
        line = sys.stdin.buffer.readline()
        if not line.endswith(b"\n"):
            return None
        log = os.open(self.folder / self.log_name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for number in (1, 2):
            os.dup2(log, number)
        os.close(log)
        return json.loads(line)

    def announce(self, **facts: object) -> None:
        """Write the record of this very process, and tell its parent that it serves."""
        record = {"pid": os.getpid(), "started": start_time(os.getpid()), **facts}
        write_json(self.folder / self.record_name, record)
        with contextlib.suppress(OSError):  # The parent waits for it no more.
            os.write(0, b"\n")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)

    def await_end(self, stopping: threading.Event) -> None:
        """Return when this very process shall end: it is told so, or it cannot be found any more.

        That is so once its folder was removed.
        """
        while not stopping.wait(_FOUND_SECONDS) and not self.is_lost():
            pass

    def is_lost(self) -> bool:
        """Say whether the record of this very process is gone, or another's."""
        with contextlib.suppress(OSError):  # It may be there, and cannot be read just now.
            record = read_json(self.folder / self.record_name)
            return record is None or record["pid"] != os.getpid()
        return False

    def log_end(self) -> str:
        """Return the last lines of the log; empty for none."""
        with contextlib.suppress(FileNotFoundError):
            return _end(self.folder.joinpath(self.log_name).read_text(errors="replace"))
        return ""

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


def _hand_over(
    process: subprocess.Popen[bytes], channel: socket.socket, configuration: bytes, seconds: float
) -> str:
    """Tell a process what to do; return why it does not serve, empty when it does."""
    deadline = time.monotonic() + seconds
    try:
        channel.settimeout(seconds)
        channel.sendall(configuration)
        if channel.recv(1):
            # It outlives this process, and Popen need not complain.
            process.returncode = 0
            return ""
    except TimeoutError:
        kill_tree(process.pid)
        process.wait()
        return f"did not answer within {seconds:g} s"
    except OSError:
        pass  # It has ended before it read anything.
    try:
        return f"ended with {process.wait(max(0.0, deadline - time.monotonic()))}"
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()
        return f"did not end within {seconds:g} s, nor answer"


def stop_requested() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set from now on."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def answers(address: str, path: str) -> bool:
    """Tell whether the server of this machine at ``host:port`` says 200."""
    # A parent of a process of its own asks no server, and it takes ssl and email along.
    import http.client

    connection = http.client.HTTPConnection(address, timeout=_ANSWER_SECONDS)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
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
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


def _end(log: str) -> str:
    return " / ".join(log.splitlines()[-5:])


def _ended(pid: int, started: int | None, seconds: float) -> bool:
    """Wait for the end of a process, which need not be our child; False when it is still there."""
    if started is None or start_time(pid) != started:
        return True
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):
        # A kernel before 5.3, or a Python that was built for one, cannot tell: it is asked.
        gone = _seen_ending(pid, started, seconds)
    else:
        try:
            gone = bool(select.select([process], [], [], seconds)[0])
        finally:
            os.close(process)
    _reap(pid)
    return gone


def _seen_ending(pid: int, started: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while start_time(pid) == started:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _reap(pid: int) -> None:
    """Let go of a process that has ended; one that this process started is a zombie until then."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
