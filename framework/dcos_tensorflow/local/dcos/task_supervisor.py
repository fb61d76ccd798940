"""Runs tasks: fetches, starts, watches, checks and ends each one in threads of its own.

``marathon`` orders and is told through a ``Listener``; it decides, this carries out. A task whose
process was started by an earlier daemon is watched on as if it were ours.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from dcos_tensorflow.local.dcos import app_process, health
from dcos_tensorflow.local.dcos.app_definition import App, HealthCheck
from dcos_tensorflow.local.dcos.app_process import Machine, TaskNotStarted
from dcos_tensorflow.local.dcos.app_records import TaskRecord
from dcos_tensorflow.local.dcos.download_cache import DownloadCache
from dcos_tensorflow.local.machine.process_tree import start_time

log = logging.getLogger(__name__)

#: Until a check succeeds for the first time it is made as often as this, whatever its interval:
#: a person waits for it.
_FIRST_CHECKS_SECONDS = 0.2


class Listener(Protocol):
    """What hears of tasks."""

    def may_start(self, task_id: str) -> bool:
        """Say whether the task is still wanted."""

    def task_started(self, task_id: str, pid: int, started: int) -> None:
        """Note its process."""

    def task_checked(self, task_id: str, healthy: bool) -> None:
        """Note its health."""

    def task_unhealthy(self, task_id: str, why: str) -> None:
        """End it: its checks have failed too often."""

    def task_ended(self, task_id: str, state: str, why: str) -> None:
        """Note its end."""


class TaskSupervisor:
    """Threads for tasks. ``stop`` waits for all of them: order every task's end before."""

    def __init__(self, listener: Listener, machine: Machine, cache: DownloadCache) -> None:
        self._listener = listener
        self._machine = machine
        self._cache = cache
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._ended: dict[str, threading.Event] = {}

    def launch(self, app: App, task: TaskRecord, version: str) -> None:
        """Start a task; returns at once."""
        self._in_thread(task.task_id, lambda: self._run(app, task, version))

    def adopt(self, app: App, task: TaskRecord, version: str) -> None:
        """Watch a task that runs already; returns at once."""
        self._in_thread(task.task_id, lambda: self._watch_adopted(app, task, version))

    def end(self, task: TaskRecord, grace: float) -> None:
        """End a task's process; returns at once, the listener hears of the end."""
        if task.pid:
            self._in_thread(None, lambda: app_process.end(task.pid, task.process_started, grace))

    def stop(self) -> None:
        """Wait until no thread is left."""
        while True:
            with self._lock:
                threads = list(self._threads)
            if not threads:
                return
            for thread in threads:
                thread.join()

    def _in_thread(self, task_id: str | None, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                with self._lock:
                    self._threads.discard(thread)

        thread = threading.Thread(target=run, name=f"task {task_id or 'end'}", daemon=True)
        with self._lock:
            self._threads.add(thread)
            if task_id is not None:
                self._ended[task_id] = threading.Event()
            # Within: whoever waits for all threads finds none that has not begun.
            thread.start()

    # -- one task ------------------------------------------------------------------------------

    def _run(self, app: App, task: TaskRecord, version: str) -> None:
        sandbox = Path(task.sandbox)
        try:
            sandbox.mkdir(parents=True, exist_ok=True)
            app_process.bring(app, sandbox, self._cache)
            env = app_process.environment(app, task, version, self._machine)
            process = self._start(app, task, env)
        except (TaskNotStarted, OSError) as error:
            self._end(task.task_id, "TASK_FAILED", str(error))
            return
        if process is None:
            self._end(task.task_id, "TASK_KILLED", "it was killed before it had started")
            return
        self._check_health(app, task, env)
        status = process.wait()
        _clear(process.pid, app)
        state = "TASK_FINISHED" if status == 0 else "TASK_FAILED"
        self._end(task.task_id, state, _ended_with(status))

    def _start(
        self, app: App, task: TaskRecord, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | None:
        if not self._listener.may_start(task.task_id):
            return None
        process = app_process.start(app, env, Path(task.sandbox))
        self._listener.task_started(task.task_id, process.pid, start_time(process.pid) or 0)
        return process

    def _watch_adopted(self, app: App, task: TaskRecord, version: str) -> None:
        try:
            env = app_process.environment(app, task, version, self._machine)
        except TaskNotStarted as error:
            # It runs; only its health commands may miss a secret.
            log.warning("%s: %s", task.task_id, error)
            env = dict(self._machine.environment)
        self._check_health(app, task, env)
        app_process.wait_for(task.pid, task.process_started)
        _clear(task.pid, app)
        why = "it ended; its exit status is unknown, for an earlier daemon started it"
        self._end(task.task_id, "TASK_FAILED", why)

    def _end(self, task_id: str, state: str, why: str) -> None:
        with self._lock:
            self._ended.pop(task_id).set()
        self._listener.task_ended(task_id, state, why)

    # -- health --------------------------------------------------------------------------------

    def _check_health(self, app: App, task: TaskRecord, env: Mapping[str, str]) -> None:
        with self._lock:
            ended = self._ended[task.task_id]
        results: dict[int, bool] = {}
        for index, check in enumerate(app.health_checks):

            def note(healthy: bool, index: int = index) -> None:
                results[index] = healthy
                # Healthy when every check says so; until each has spoken it is not known.
                if len(results) == len(app.health_checks) or not healthy:
                    self._listener.task_checked(task.task_id, all(results.values()))

            def watch(check: HealthCheck = check, note: Callable[[bool], None] = note) -> None:
                self._watch_health(check, task, env, ended, note)

            self._in_thread(None, watch)

    def _watch_health(
        self,
        check: HealthCheck,
        task: TaskRecord,
        env: Mapping[str, str],
        ended: threading.Event,
        note: Callable[[bool], None],
    ) -> None:
        failures, succeeded, waited = 0, False, 0.0
        while True:
            interval = check.interval if succeeded else min(check.interval, _FIRST_CHECKS_SECONDS)
            if ended.wait(interval):
                return
            waited += interval
            why = health.problem(check, task.ports, env, task.sandbox)
            if ended.is_set():
                return
            if why is None:
                failures, succeeded = 0, True
                note(True)
            elif succeeded or waited >= check.grace:
                failures += 1
                note(False)
                if check.max_failures and failures >= check.max_failures:
                    self._listener.task_unhealthy(task.task_id, why)
                    return


def _clear(pid: int, app: App) -> None:
    """End what a task's command left running in its process group."""
    app_process.wait_for_group(pid, app.kill_grace)
    app_process.end_group(pid)


def _ended_with(status: int) -> str:
    if status >= 0:
        return f"Command exited with status {status}"
    return f"Command terminated with signal {-status}"
