"""The process beside each task: brings its files, starts it, watches it, ends it.

A process of its own for each task, forked by ``executor_source`` for ``host``. Reads its orders as
lines of JSON from standard input (the first is the task) and reports on standard output. It
outlives a simulated crash of its agent, but not the cluster, which alone holds the other end of
standard input: when that ends, it kills its task and everything the task has started. Standard
library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Any

from embedded_mesos.machine import secret_files
from embedded_mesos.machine.checks import start_checks
from embedded_mesos.machine.fetcher import FetchError, fetch
from embedded_mesos.machine.limited_process import wrapped
from embedded_mesos.machine.process_tree import group_lives, kill_tree, signal_group

#: prctl(2): orphans below this process become its children, so that it can end them.
_PR_SET_CHILD_SUBREAPER = 36


class Executor:
    """See the module."""

    def __init__(self) -> None:
        self._task: subprocess.Popen[bytes] | None = None
        self._spec: dict[str, Any] = {}
        self._events, self._events_in = os.pipe()
        self._lock = threading.Lock()
        self._fetched = threading.Event()
        self._kill_at: float | None = None
        self._complete_at: float | None = None
        self._killed = False
        self._timed_out = False

    def run(self) -> int:
        """Serve one task; return the exit status of this process."""
        _become_subreaper()
        os.set_blocking(self._events_in, False)
        signal.set_wakeup_fd(self._events_in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        pending = b""
        while True:
            ready, _, _ = select.select([0, self._events], [], [], self._timeout())
            if self._events in ready:
                os.read(self._events, 4096)
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    return self._abandon()
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._order(json.loads(line))
            if self._task is None and self._fetched.is_set():
                self._start()
            self._deadlines()
            if self._task is not None and self._task.poll() is not None and not self._in_grace():
                return self._finished(self._task.returncode)

    def _timeout(self) -> float | None:
        deadlines = [at for at in (self._kill_at, self._complete_at) if at is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _report(self, report: Mapping[str, Any]) -> None:
        line = json.dumps(report).encode() + b"\n"
        with self._lock, contextlib.suppress(BrokenPipeError):
            os.write(1, line)

    def _order(self, order: dict[str, Any]) -> None:
        if order["type"] == "task":
            self._spec = order
            threading.Thread(target=self._fetch, daemon=True).start()
        elif order["type"] == "kill":
            self._kill(float(order["grace_seconds"]))

    def _fetch(self) -> None:
        try:
            fetch(self._spec["uris"], self._spec["sandbox"])
        except FetchError as error:
            # The disk may be full, which is a reason to fail, too.
            with contextlib.suppress(OSError), _sandbox_file(self._spec, "stderr") as stderr:
                stderr.write(f"{error}\n".encode("utf-8", "backslashreplace"))
            self._report({"type": "fetch_failed", "message": str(error)})
            os._exit(1)
        self._fetched.set()
        self._wake()

    def _start(self) -> None:
        self._report({"type": "ready"})
        spec = self._spec
        command = spec["command"]
        if command["shell"]:
            arguments, executable = ["sh", "-c", command["value"]], "/bin/sh"
        else:
            arguments, executable = command["arguments"] or [command["value"]], command["value"]
        if spec.get("limits"):
            arguments = wrapped([executable, *arguments], spec["limits"])
            executable = arguments[0]
        with _sandbox_file(spec, "stdout") as out, _sandbox_file(spec, "stderr") as err:
            try:
                task = subprocess.Popen(
                    arguments,
                    executable=executable,
                    cwd=spec["sandbox"],
                    env=spec["environment"],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                # Mesos' launcher fails to exec after RUNNING, and exits with 1.
                err.write(f"Failed to execute '{command['value']}': {error}\n".encode())
                err.flush()
                self._report({"type": "running"})
                self._report(_exit_report(1))
                os._exit(0)
        self._report({"type": "running", "pid": task.pid})
        if "max_completion_seconds" in spec:
            self._complete_at = time.monotonic() + spec["max_completion_seconds"]
        self._task = task
        start_checks(spec, self._check_result)

    def _check_result(self, result: dict[str, Any]) -> None:
        if self._task is None or self._task.poll() is not None or self._killed:
            return
        if result["type"] == "unhealthy":
            self._kill(float(self._spec["kill_grace_seconds"]))
            self._wake()
        else:
            self._report(result)

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._events_in, b"!")

    def _kill(self, grace_seconds: float) -> None:
        at = time.monotonic() + grace_seconds
        if self._killed:
            # A later kill may only shorten the grace.
            self._kill_at = min(at, self._kill_at) if self._kill_at is not None else at
            return
        self._killed = True
        self._report({"type": "killing"})
        self._kill_at = at
        if self._task is not None:
            signal_group(self._task.pid, signal.SIGTERM)

    def _deadlines(self) -> None:
        now = time.monotonic()
        if self._complete_at is not None and now >= self._complete_at:
            self._complete_at = None
            self._timed_out = True
            self._end_tree()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self._end_tree()

    def _in_grace(self) -> bool:
        """Say whether something that a killed command has started may still end by itself.

        A shell that leads the command dies of SIGTERM at once: what it started got one as well.
        """
        return self._kill_at is not None and self._task is not None and group_lives(self._task.pid)

    def _end_tree(self) -> None:
        if self._task is not None:
            signal_group(self._task.pid, signal.SIGKILL)

    def _finished(self, code: int) -> int:
        kill_tree(os.getpid(), itself=False)
        report = _exit_report(code)
        self._report({**report, "killed": self._killed, "timed_out": self._timed_out})
        return 0

    def _abandon(self) -> int:
        if self._task is not None:
            signal_group(self._task.pid, signal.SIGKILL)
        kill_tree(os.getpid(), itself=False)
        secret_files.remove(self._spec.get("secrets"))
        return 1


def _exit_report(code: int) -> dict[str, Any]:
    if code < 0:
        name = signal.strsignal(-code) or f"Unknown signal {-code}"
        return {"type": "exited", "message": f"Command terminated with signal {name}"}
    return {"type": "exited", "message": f"Command exited with status {code}"}


def _sandbox_file(spec: Mapping[str, Any], name: str) -> Any:
    return open(os.path.join(spec["sandbox"], name), "ab")


def _become_subreaper() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
