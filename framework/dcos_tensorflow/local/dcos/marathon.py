"""Marathon: keeps the apps and holds what runs to what they say.

``marathon_calls`` and ``cosmos`` call it. ``app_schedule`` decides, ``task_supervisor`` carries
out, everything that must survive is in the state file before it is acted on. One thread settles;
callers and the supervisor's threads change records under one lock and wake it.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos import app_process, app_schedule
from dcos_tensorflow.local.dcos.app_definition import App, app_of, normalised
from dcos_tensorflow.local.dcos.app_process import Machine
from dcos_tensorflow.local.dcos.app_records import (
    KILLING,
    RUNNING,
    AppRecord,
    Deployment,
    TaskRecord,
    failure,
    timestamp,
)
from dcos_tensorflow.local.dcos.download_cache import DownloadCache
from dcos_tensorflow.local.dcos.errors import MarathonError
from dcos_tensorflow.local.dcos.state_file import StateFile
from dcos_tensorflow.local.dcos.task_supervisor import TaskSupervisor
from dcos_tensorflow.local.machine.process_tree import start_time

Json = dict[str, Any]
log = logging.getLogger(__name__)

_SECTION = "marathon"
#: Tasks that have ended and whose sandboxes are kept.
_KEPT_TASKS = 20
_KEPT_VERSIONS = 25
# What can be changed without a new start of the tasks.
_NO_RESTART = ("instances",)


class Marathon:
    """The apps. Thread-safe. ``start`` and ``stop`` are called once each."""

    def __init__(
        self,
        state: StateFile,
        folder: Path,
        machine: Machine,
        cache: DownloadCache,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the apps; nothing runs yet.

        Args:
            state: where they are kept.
            folder: of the sandboxes.
            machine: what tasks get of this machine.
            cache: of what they fetch.
            clock: unix seconds.
        """
        self._state = state
        self._folder = folder
        self._clock = clock
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        stored = state.get(_SECTION, {"apps": [], "tasks": [], "finished": []})
        apps = [AppRecord.from_json(one) for one in stored["apps"]]
        tasks = [TaskRecord.from_json(one) for one in stored["tasks"]]
        self._apps = {one.app_id: one for one in apps}
        self._tasks = {one.task_id: one for one in tasks}
        self._finished = [TaskRecord.from_json(one) for one in stored["finished"]]
        self._supervisor = TaskSupervisor(self, machine, cache)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="marathon", daemon=True)

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the tasks that run, and start what is missing."""
        with self._lock:
            for task in list(self._tasks.values()):
                self._take_up(task)
            self._save()
        self._thread.start()

    def _take_up(self, task: TaskRecord) -> None:
        if not task.pid:
            # It was started in the moment in which the daemon died, or it was not.
            pid = app_process.find(task.task_id) or 0
            state = task.state if task.state == KILLING else RUNNING
            task = replace(task, pid=pid, process_started=start_time(pid) or 0, state=state)
        record = self._apps.get(task.app_id)
        lives = task.pid and start_time(task.pid) == task.process_started
        if record is None or not lives:
            del self._tasks[task.task_id]
            self._keep(replace(task, state="TASK_LOST", message="its process is gone"))
            return
        app = app_of(record.definition)
        self._tasks[task.task_id] = task
        self._supervisor.adopt(app, task, record.version)
        if task.state == KILLING:
            self._supervisor.end(task, app.kill_grace)

    def stop(self) -> None:
        """End every task; the apps stay and are started again by the next ``start``."""
        with self._lock:
            self._stopping = True
            for task in list(self._tasks.values()):
                self._kill(task)
            self._changed.notify_all()
        self._thread.join()
        self._supervisor.stop()

    def _run(self) -> None:
        with self._lock:
            while not self._stopping:
                wake = self._settle()
                self._changed.wait(None if wake is None else max(0.01, wake - self._clock()))

    # -- settling ------------------------------------------------------------------------------

    def _settle(self) -> float | None:
        """Do what the apps want now; return when to look again although nothing happened."""
        wakes = []
        for app_id in list(self._apps):
            wake = self._settle_app(app_id)
            if wake is not None:
                wakes.append(wake)
        return min(wakes, default=None)

    def _settle_app(self, app_id: str) -> float | None:
        record = self._apps[app_id]
        app = app_of(record.definition)
        decision = app_schedule.decide(app, record, self.tasks(app_id), self._clock())
        for task_id in decision.kill:
            self._kill(self._tasks[task_id])
        for _ in range(decision.launch):
            self._launch(app, record)
        if decision.complete and record.deleting:
            del self._apps[app_id]
            self._save()
            self._changed.notify_all()
        elif decision.complete and record.deployment is not None:
            self._apps[app_id] = replace(record, deployment=None)
            self._save()
            self._changed.notify_all()
        return decision.wake_at

    def _launch(self, app: App, record: AppRecord) -> None:
        name = app.app_id.strip("/").replace("/", "_")
        task_id = f"{name}.instance-{uuid.uuid4()}._app.1"
        task = TaskRecord(
            task_id=task_id,
            app_id=app.app_id,
            config_version=record.config_version,
            container_id=str(uuid.uuid4()),
            sandbox=str(self._folder / name / task_id),
            ports=app_process.free_ports(app.ports, required=app.require_ports),
            staged_at=self._clock(),
        )
        self._tasks[task_id] = task
        self._save()
        self._supervisor.launch(app, task, record.version)

    def _kill(self, task: TaskRecord) -> None:
        if task.state == KILLING:
            return
        self._tasks[task.task_id] = replace(task, state=KILLING)
        self._save()
        record = self._apps.get(task.app_id)
        grace = app_of(record.definition).kill_grace if record is not None else 0.0
        self._supervisor.end(task, grace)

    # -- what the supervisor tells -------------------------------------------------------------

    def may_start(self, task_id: str) -> bool:
        """Say whether the task is still wanted."""
        with self._lock:
            return self._tasks[task_id].state != KILLING

    def task_started(self, task_id: str, pid: int, started: int) -> None:
        """Note a task's process."""
        with self._lock:
            task = self._tasks[task_id]
            killing = task.state == KILLING
            task = replace(
                task,
                pid=pid,
                process_started=started,
                started_at=self._clock(),
                state=KILLING if killing else RUNNING,
            )
            self._tasks[task_id] = task
            self._save()
            if killing:
                # The order came between the question whether it may start and its start.
                self._supervisor.end(task, 0.0)
            self._changed.notify_all()

    def task_checked(self, task_id: str, healthy: bool) -> None:
        """Note a task's health."""
        with self._lock:
            task = self._tasks.get(task_id)
            if task is not None and task.healthy is not healthy:
                self._tasks[task_id] = replace(task, healthy=healthy)
                self._changed.notify_all()

    def task_unhealthy(self, task_id: str, why: str) -> None:
        """End a task whose checks failed too often; it counts as failed."""
        with self._lock:
            task = self._tasks.get(task_id)
            if task is not None and task.state != KILLING:
                self._tasks[task_id] = replace(task, message=f"it was unhealthy: {why}")
                self._kill(self._tasks[task_id])

    def task_ended(self, task_id: str, state: str, why: str) -> None:
        """Note a task's end, and make its app wait before the next launch if it failed."""
        with self._lock:
            now = self._clock()
            task = self._tasks.pop(task_id)
            ordered = task.state == KILLING and not task.message
            message = task.message or why
            state = "TASK_KILLED" if ordered else "TASK_FAILED" if task.message else state
            task = replace(task, state=state, message=message, ended_at=now)
            self._keep(task)
            record = self._apps.get(task.app_id)
            if record is not None and not ordered:
                ran = now - task.started_at if task.started_at else 0.0
                record = app_schedule.after_failure(record, app_of(record.definition), ran, now)
                if state != "TASK_FINISHED":
                    log.warning("%s: %s", task_id, message)
                    record = replace(record, last_failure=failure(task, record.version))
                self._apps[task.app_id] = record
            self._save()
            self._changed.notify_all()

    def _keep(self, task: TaskRecord) -> None:
        self._finished.append(task)
        for old in self._finished[:-_KEPT_TASKS]:
            shutil.rmtree(old.sandbox, ignore_errors=True)
        self._finished = self._finished[-_KEPT_TASKS:]

    def _save(self) -> None:
        stored = {
            "apps": [one.to_json() for one in self._apps.values()],
            "tasks": [one.to_json() for one in self._tasks.values()],
            "finished": [one.to_json() for one in self._finished],
        }
        self._state.put(_SECTION, stored)

    # -- looking -------------------------------------------------------------------------------

    def apps(self) -> list[AppRecord]:
        """Return all apps, oldest first."""
        with self._lock:
            return list(self._apps.values())

    def app(self, app_id: str) -> AppRecord:
        """Return an app.

        Raises:
            MarathonError: 404, there is none.
        """
        with self._lock:
            found = self._apps.get(app_id)
        if found is None:
            raise MarathonError(404, f"App '{app_id}' does not exist")
        return found

    def tasks(self, app_id: str | None = None) -> list[TaskRecord]:
        """Return the tasks of an app, or all, oldest first."""
        with self._lock:
            return [one for one in self._tasks.values() if app_id in (None, one.app_id)]

    def finished(self) -> list[TaskRecord]:
        """Return the last tasks that ended, oldest first."""
        with self._lock:
            return list(self._finished)

    # -- changing ------------------------------------------------------------------------------

    def create(self, definition: Any) -> AppRecord:
        """Add an app.

        Raises:
            InvalidApp: it cannot run here.
            MarathonError: 409, there is one with this id.
        """
        found = normalised(definition)
        with self._lock:
            app_id = found["id"]
            if app_id in self._apps:
                raise MarathonError(409, f"An app with id [{app_id}] already exists.")
            version = timestamp(self._clock())
            deployment = Deployment(str(uuid.uuid4()), "StartApplication", version)
            record = AppRecord(
                found, version, version, deployment=deployment, last_scaling_at=version
            )
            self._put(record)
            return record

    def update(self, app_id: str, change: Json, *, whole: bool, force: bool) -> AppRecord:
        """Change an app: by the members given, or to ``change`` as a ``whole``.

        Raises:
            InvalidApp: it could not run here; nothing has changed.
            MarathonError: 404, there is none; 409, it is being changed and ``force`` is not set.
        """
        with self._lock:
            before = self.app(app_id)
            base = {} if whole else before.definition
            after = normalised({**base, **change, "id": app_id})
            self._check_unlocked(before, force)
            version = self._next_version(before)
            same = _without_scale(after) == _without_scale(before.definition)
            scaled = after["instances"] != before.definition["instances"]
            action = "ScaleApplication" if same else "RestartApplication"
            record = replace(
                before,
                definition=after,
                version=version,
                config_version=before.config_version if same else version,
                history=(*before.history, (before.version, before.definition))[-_KEPT_VERSIONS:],
                deployment=Deployment(str(uuid.uuid4()), action, version),
                delay=0.0,
                not_before=0.0,
                last_scaling_at=version if scaled else before.last_scaling_at,
            )
            self._put(record)
            return record

    def restart(self, app_id: str, *, force: bool) -> AppRecord:
        """Replace all tasks of an app. Raises MarathonError as ``update`` does."""
        with self._lock:
            before = self.app(app_id)
            self._check_unlocked(before, force)
            version = self._next_version(before)
            record = replace(
                before,
                version=version,
                config_version=version,
                deployment=Deployment(str(uuid.uuid4()), "RestartApplication", version),
                delay=0.0,
                not_before=0.0,
            )
            self._put(record)
            return record

    def delete(self, app_id: str, *, force: bool) -> Deployment:
        """End an app and forget it. Raises MarathonError as ``update`` does."""
        with self._lock:
            before = self.app(app_id)
            self._check_unlocked(before, force)
            deployment = Deployment(
                str(uuid.uuid4()), "StopApplication", self._next_version(before)
            )
            self._put(replace(before, deleting=True, deployment=deployment))
            return deployment

    def kill(self, app_id: str, task_ids: Sequence[str] | None = None) -> list[TaskRecord]:
        """End tasks of an app, or all of them; others take their place. Raises MarathonError."""
        with self._lock:
            self.app(app_id)
            chosen = [
                one for one in self.tasks(app_id) if task_ids is None or one.task_id in task_ids
            ]
            for task in chosen:
                self._kill(task)
            return chosen

    def reset_delay(self, app_id: str) -> None:
        """Let a failed app start again at once. Raises MarathonError."""
        with self._lock:
            self._put(replace(self.app(app_id), delay=0.0, not_before=0.0))

    def _check_unlocked(self, record: AppRecord, force: bool) -> None:
        if record.deployment is None or force:
            return
        raise MarathonError(
            409,
            "App is locked by one or more deployments. Override with the option '?force=true'."
            " View details at '/v2/deployments/<DEPLOYMENT_ID>'.",
            deployments=[{"id": record.deployment.deployment_id}],
        )

    def _next_version(self, record: AppRecord) -> str:
        now = self._clock()
        while timestamp(now) <= record.version:
            now += 0.001
        return timestamp(now)

    def _put(self, record: AppRecord) -> None:
        self._apps[record.app_id] = record
        self._save()
        self._changed.notify_all()


def _without_scale(definition: Json) -> Json:
    return {name: value for name, value in definition.items() if name not in _NO_RESTART}
