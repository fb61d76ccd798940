"""Starts, tells and ends executor processes: the shell under the agents.

``cluster`` has one; it hands it the effects of its agents and gets back the processes' messages.
A process belongs to the machine, not to an agent: a simulated crash of an agent touches none.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded_mesos import messages
from embedded_mesos.machine import secret_files
from embedded_mesos.machine.executor_source import ExecutorSource
from embedded_mesos.machine.process_tree import kill_tree, signal_group

#: Called with the container's id and a message of ``messages``.
Deliver = Callable[[str, object], None]

#: Reports after which nothing of a task is left.
_LAST_WORDS = ("exited", "fetch_failed")
# What tasks inherit of the cluster's own environment.
_INHERITED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    # Where packages come from, for tasks that need some.
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "UV_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
)


def machine_environment() -> dict[str, str]:
    """Return what every task on this machine inherits."""
    found = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    found.setdefault("PATH", os.defpath)
    # Not under its own name: nothing but the packages may go through a proxy.
    proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY")
    if proxy:
        found.setdefault("PIP_PROXY", proxy)
    return found


@dataclass(eq=False)
class _Process:
    """An executor process and what is known of its task."""

    container_id: str
    pid: int
    #: Whose child it is.
    source: ExecutorSource
    #: The pipes of its standard input, to write, and of its standard output.
    orders: int
    reports: int
    secrets: Mapping[str, Any] | None
    #: Of the task's command, once it runs.
    task_pid: int | None = None
    #: It has said how its task has ended, and that nothing of it is left.
    has_ended: bool = False
    pending: bytes = b""


class Host:
    """See the module. Thread-safe; ``deliver`` is called from the reading thread."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._processes: dict[str, _Process] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._stopping = False
        #: By the network that they live in, as what they fork does: only tests know more than one.
        self._sources = {_network(): ExecutorSource()}
        self._thread = threading.Thread(target=self._read, name="executors", daemon=True)
        self._thread.start()

    def start(self, container_id: str, sandbox: str, spec: Mapping[str, Any]) -> int:
        """Start an executor in a new sandbox; return its process id. Raises OSError."""
        os.makedirs(sandbox, exist_ok=True)
        for name in ("stdout", "stderr"):
            Path(sandbox, name).touch()
        for volume in spec["volumes"]:
            os.makedirs(volume["source"], exist_ok=True)
            target = os.path.join(sandbox, volume["container_path"])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(volume["source"], target)
        secrets = spec.get("secrets")
        if secrets is not None:
            secret_files.write(secrets, sandbox)
        entry = self._fork(container_id, sandbox, secrets)
        with self._lock:
            self._processes[container_id] = entry
            self._selector.register(entry.reports, selectors.EVENT_READ, entry)
            _write(entry, {"type": "task", **spec})
        os.eventfd_write(self._wake, 1)
        return entry.pid

    def _fork(self, container_id: str, sandbox: str, secrets: Mapping[str, Any] | None) -> _Process:
        network = _network()
        with self._lock:
            source = self._sources.get(network)
            if source is None:
                source = self._sources[network] = ExecutorSource()
        its_input, orders = os.pipe()
        reports, its_output = os.pipe()
        with open(os.path.join(sandbox, "stderr"), "ab") as log:
            try:
                pid = source.fork(sandbox, (its_input, its_output, log.fileno()))
            except OSError:
                os.close(orders)
                os.close(reports)
                raise
            finally:
                os.close(its_input)
                os.close(its_output)
        return _Process(container_id, pid, source, orders, reports, secrets)

    def tell(self, container_id: str, command: Mapping[str, Any]) -> None:
        """Write a command to an executor; one that is gone needs none."""
        with self._lock:
            entry = self._processes.get(container_id)
            if entry is not None:
                _write(entry, command)

    def destroy(self, container_id: str) -> None:
        """End an executor and everything below it at once."""
        with self._lock:
            entry = self._processes.get(container_id)
        if entry is not None:
            kill_tree(entry.pid)
            if entry.task_pid is not None:
                signal_group(entry.task_pid, signal.SIGKILL)

    def executor_pids(self) -> dict[str, int]:
        """Return the process ids of the executors that live, by container."""
        with self._lock:
            return {name: entry.pid for name, entry in self._processes.items()}

    def stop(self) -> None:
        """End every process and the reading thread."""
        for container_id in self.executor_pids():
            self.destroy(container_id)
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        for source in self._sources.values():
            source.end()
        self._selector.close()
        os.close(self._wake)

    def _read(self) -> None:
        while True:
            with self._lock:
                if self._stopping and not self._processes:
                    return
            for key, _ in self._selector.select():
                if key.fd == self._wake:
                    os.eventfd_read(self._wake)
                else:
                    self._read_one(key.data)

    def _read_one(self, entry: _Process) -> None:
        data = os.read(entry.reports, 65536)
        if not data:
            self._gone(entry)
            return
        *lines, entry.pending = (entry.pending + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if report["type"] == "running":
                entry.task_pid = report.get("pid")
            entry.has_ended = entry.has_ended or report["type"] in _LAST_WORDS
            message = messages.ExecutorReport(entry.container_id, report)
            self._deliver(entry.container_id, message)

    def _gone(self, entry: _Process) -> None:
        with self._lock:
            self._selector.unregister(entry.reports)
            del self._processes[entry.container_id]
            os.close(entry.reports)
            os.close(entry.orders)
        secret_files.remove(entry.secrets)
        if not entry.has_ended and entry.task_pid is not None:
            # The executor was killed: no other process ends its task.
            kill_tree(entry.task_pid)
        entry.source.forget(entry.pid)
        self._deliver(entry.container_id, messages.ExecutorGone(entry.container_id))


def _write(entry: _Process, order: Mapping[str, Any]) -> None:
    left = json.dumps(order).encode() + b"\n"
    # It may just have ended.
    with contextlib.suppress(BrokenPipeError):
        while left:
            left = left[os.write(entry.orders, left) :]


def _network() -> str:
    """Return which network this thread lives in."""
    try:
        return os.readlink("/proc/thread-self/ns/net")
    except OSError:
        # A kernel that does not tell has no others.
        return ""
