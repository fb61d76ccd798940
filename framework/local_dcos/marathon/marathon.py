"""Marathon: keeps the apps, and keeps their tasks as the apps describe them.

``marathon_calls`` and ``cosmos`` call it. ``app_schedule`` decides, ``app_framework`` has the tasks
run by Mesos; everything that must survive is in the state file before it is acted on, and before an
update is acknowledged. One thread settles; callers and Mesos' updates change records under one
lock and wake it.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from embedded_mesos import TERMINAL_STATES, Credential
from local_dcos.errors import AppChanged, MarathonError
from local_dcos.integration import Integration
from local_dcos.marathon import app_schedule, app_task
from local_dcos.marathon.app_definition import App, app_of, normalised
from local_dcos.marathon.app_framework import AppFramework
from local_dcos.marathon.app_records import (
    KILLING,
    RUNNING,
    AppRecord,
    Deployment,
    TaskRecord,
    failure,
    timestamp,
)
from local_dcos.marathon.app_task import Machine, Prepared, TaskNotStarted
from local_dcos.state_file import StateFile

Json = dict[str, Any]
log = logging.getLogger(__name__)

_SECTION = "marathon"
_KEPT_VERSIONS = 25
# What can be changed without a new start of the tasks.
_NO_RESTART = ("instances",)
#: Between two times that everything is asked for again: offers, ends, the state of tasks.
_ASK_AGAIN_SECONDS = 10.0
#: How long Mesos may take, beyond the tasks' own grace, to tell of their end when all of it stops.
_END_SECONDS = 10.0
_REMOVED = "Framework has been removed"


class Marathon:
    """The apps. Thread-safe. ``start`` and ``stop`` are called once each."""

    def __init__(
        self,
        state: StateFile,
        machine: Machine,
        master: str,
        name: str,
        *,
        credential: Credential,
        integration: Integration,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the apps that ``state`` keeps; nothing runs yet.

        ``name`` is what the framework's id begins with; never that of another cluster. ``clock``
        tells unix seconds.
        """
        self._state = state
        self._machine = machine
        self._name = name
        self._clock = clock
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        stored = state.get(_SECTION, {"apps": [], "tasks": []})
        apps = [AppRecord.from_json(one) for one in stored["apps"]]
        # One that was never given to Mesos is no task: the next look at its app starts another.
        tasks = [TaskRecord.from_json(one) for one in stored["tasks"] if one.get("agent_id")]
        self._apps = {one.app_id: one for one in apps}
        self._tasks = {one.task_id: one for one in tasks}
        self._framework_number = int(stored.get("framework", 0))
        #: Tasks that wait for a place.
        self._prepared: dict[str, Prepared] = {}
        self._framework = AppFramework(master, credential, self, integration)
        self._ask_at = 0.0
        #: When to subscribe again after a refusal.
        self._return_at: float | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="marathon", daemon=True)

    @property
    def framework_id(self) -> str:
        """Return the framework's id: known before there is a subscription, and kept."""
        return f"{self._name}-{self._framework_number:04d}"

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Subscribe, take up the tasks that run, and start what is missing."""
        self._framework.start(self.framework_id)
        self._thread.start()

    def stop(self) -> None:
        """End every task; the apps stay and are started again by the next ``start``."""
        with self._lock:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        with self._lock:
            graces = [app_of(one.definition).kill_grace for one in self._apps.values()]
            for task in list(self._tasks.values()):
                self._kill(task)
            self._changed.wait_for(
                lambda: not self._tasks or not self._framework.connected,
                max(graces, default=0.0) + _END_SECONDS,
            )
        self._framework.stop()

    def _run(self) -> None:
        with self._lock:
            while not self._stopping:
                wake = self._settle()
                self._changed.wait(None if wake is None else max(0.01, wake - self._clock()))

    # -- settling ------------------------------------------------------------------------------

    def _settle(self) -> float | None:
        """Do what the apps want now; return when to look again although nothing happened."""
        wakes = [self._settle_app(app_id) for app_id in list(self._apps)]
        wakes.append(self._settle_tasks())
        return min((one for one in wakes if one is not None), default=None)

    def _settle_app(self, app_id: str) -> float | None:
        record = self._apps[app_id]
        app = app_of(record.definition)
        decision = app_schedule.decide(app, record, self.tasks(app_id), self._clock())
        for task_id in decision.kill:
            self._kill(self._tasks[task_id])
        for _ in range(decision.launch):
            self._prepare(app, record)
        if decision.complete and record.deleting:
            del self._apps[app_id]
            self._save()
            self._changed.notify_all()
        elif decision.complete and record.deployment is not None:
            self._apps[app_id] = replace(record, deployment=None)
            self._save()
            self._changed.notify_all()
        # One that had no place yet has ended at once: its app may be complete now.
        return self._clock() if decision.kill else decision.wake_at

    def _settle_tasks(self) -> float | None:
        """Hold Mesos to the records: launch, and ask again for what was not answered."""
        now = self._clock()
        if self._return_at is not None:
            if now < self._return_at:
                return self._return_at
            self._return_at = None
            self._framework.start(self.framework_id)
        for offer in self._framework.take_offers():
            self._use(offer)
        if not self._framework.connected:
            return None
        if now >= self._ask_at:
            self._ask_at = now + _ASK_AGAIN_SECONDS
            self._framework.reconcile(one for one in self._tasks.values() if one.agent_id)
            for task in self._tasks.values():
                if task.state == KILLING:
                    self._framework.kill(task.task_id)
            if self._prepared:
                self._framework.ask_for_offers()
        return self._ask_at if self._tasks else None

    def _prepare(self, app: App, record: AppRecord) -> None:
        name = app.app_id.strip("/").replace("/", "_")
        task_id = f"{name}.instance-{uuid.uuid4()}._app.1"
        task = TaskRecord(task_id, app.app_id, record.config_version, staged_at=self._clock())
        self._tasks[task_id] = task

        def prepare() -> None:
            try:
                found = app_task.prepared(app, record.version, self._machine)
            except (TaskNotStarted, OSError) as error:
                self._ended(task_id, "TASK_FAILED", str(error))
                return
            with self._lock:
                if task_id in self._tasks:
                    self._prepared[task_id] = found
                    self._ask_at = 0.0
                    self._changed.notify_all()

        # It may have to wait for a server.
        threading.Thread(target=prepare, name=f"task {task_id}", daemon=True).start()

    def _use(self, offer: Json) -> None:
        """Launch on an agent what waits and fits there."""
        offered = app_task.for_apps(offer)
        infos = []
        for task_id, one in list(self._prepared.items()):
            ports = app_task.ports(one.app, offered.ports())
            if ports is None:
                continue
            taken = app_task.taken(one.app, ports, offered)
            if taken is None:
                log.warning("%s: it asks for more than the offer has left, %s", task_id, offered)
                continue
            offered -= taken
            agent_id = offer["agent_id"]["value"]
            task = replace(self._tasks[task_id], agent_id=agent_id, ports=ports)
            self._tasks[task_id] = task
            del self._prepared[task_id]
            infos.append(app_task.task_info(one, task, taken))
        if infos:
            self._save()
        if not self._framework.launch(offer, infos):
            # Whether they were launched is to be asked.
            self._ask_at = 0.0

    def _kill(self, task: TaskRecord) -> None:
        if task.state == KILLING:
            return
        self._tasks[task.task_id] = replace(task, state=KILLING)
        if not task.agent_id:
            self._ended(task.task_id, "TASK_KILLED", "")
            return
        self._save()
        self._framework.kill(task.task_id)

    # -- what Mesos tells ----------------------------------------------------------------------

    def subscribed(self) -> None:
        """Ask for everything anew."""
        with self._lock:
            self._ask_at = 0.0
            self._changed.notify_all()

    def changed(self) -> None:
        """Look again."""
        with self._lock:
            self._changed.notify_all()

    def refused(self, message: str) -> None:
        """Come back as another framework when this one was removed, and its tasks with it."""
        log.error("the master refuses Marathon: %s", message)
        with self._lock:
            if message == _REMOVED:
                self._framework_number += 1
                for task in [one for one in self._tasks.values() if one.agent_id]:
                    self._ended(task.task_id, "TASK_LOST", message)
                self._save()
            self._return_at = self._clock() + 1.0
            self._changed.notify_all()

    def task_updated(self, status: Json) -> None:
        """Note what became of a task."""
        task_id, state = status["task_id"]["value"], status["state"]
        with self._lock:
            task = self._tasks.get(task_id)
            if state in TERMINAL_STATES:
                self._ended(task_id, state, status.get("message", ""))
            elif task is None:
                self._framework.kill(task_id)
            elif state == "TASK_RUNNING":
                found = replace(
                    task,
                    state=KILLING if task.state == KILLING else RUNNING,
                    started_at=task.started_at or self._clock(),
                    healthy=status.get("healthy"),
                )
                if found != task:
                    self._tasks[task_id] = found
                    self._save()
                    self._changed.notify_all()
            # Within the lock: a wait for the end of all tasks leaves none unacknowledged.
            self._framework.acknowledge(status)

    def _ended(self, task_id: str, state: str, why: str) -> None:
        """Note a task's end, and make its app wait before the next launch if it failed."""
        with self._lock:
            now = self._clock()
            task = self._tasks.pop(task_id, None)
            self._prepared.pop(task_id, None)
            if task is None:
                return
            record = self._apps.get(task.app_id)
            if record is not None and task.state != KILLING:
                if state == "TASK_KILLED" and task.healthy is False:
                    state, why = "TASK_FAILED", f"it was unhealthy, and was killed: {why}"
                ran = now - task.started_at if task.started_at else 0.0
                record = app_schedule.after_failure(record, app_of(record.definition), ran, now)
                if state != "TASK_FINISHED":
                    log.warning("%s: %s", task_id, why)
                    found = failure(task, state, why, record.version, now)
                    record = replace(record, last_failure=found)
                self._apps[task.app_id] = record
            self._save()
            self._changed.notify_all()

    def _save(self) -> None:
        stored = {
            "framework": self._framework_number,
            "apps": [one.to_json() for one in self._apps.values()],
            "tasks": [one.to_json() for one in self._tasks.values()],
        }
        self._state.put(_SECTION, stored)

    # -- looking -------------------------------------------------------------------------------

    def apps(self) -> list[AppRecord]:
        """Return all apps, oldest first."""
        with self._lock:
            return list(self._apps.values())

    def app(self, app_id: str) -> AppRecord:
        """Return an app. Raises MarathonError 404 when there is none."""
        with self._lock:
            found = self._apps.get(app_id)
        if found is None:
            raise MarathonError(404, f"App '{app_id}' does not exist")
        return found

    def tasks(self, app_id: str | None = None) -> list[TaskRecord]:
        """Return the tasks of an app, or all, oldest first."""
        with self._lock:
            return [one for one in self._tasks.values() if app_id in (None, one.app_id)]

    # -- changing ------------------------------------------------------------------------------

    def create(self, definition: Any) -> AppRecord:
        """Add an app. Raises InvalidApp, and MarathonError 409 when there is one with this id."""
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

    def update(
        self, app_id: str, change: Json, *, whole: bool, force: bool, made_from: str = ""
    ) -> AppRecord:
        """Change an app: by the members given, or to ``change`` as a ``whole``.

        Raises InvalidApp when it could not run here; nothing has changed then. Raises MarathonError
        404 when there is none, 409 when it is being changed and ``force`` is not set; AppChanged
        when ``made_from`` names another version than that of the app.
        """
        with self._lock:
            before = self.app(app_id)
            if made_from and made_from != before.version:
                raise AppChanged(app_id)
            base = {} if whole else before.definition
            after = normalised({**base, **change, "id": app_id})
            self._check_unlocked(before, force)
            version = self._next_version(before)
            same = _without_scale(after) == _without_scale(before.definition)
            scaled = after["instances"] != before.definition["instances"]
            action = "ScaleApplication" if same else "RestartApplication"
            return self._deploy(
                before,
                version,
                action,
                definition=after,
                config_version=before.config_version if same else version,
                last_scaling_at=version if scaled else before.last_scaling_at,
            )

    def restart(self, app_id: str, *, force: bool) -> AppRecord:
        """Replace all tasks of an app. Raises MarathonError as ``update`` does."""
        with self._lock:
            before = self.app(app_id)
            self._check_unlocked(before, force)
            version = self._next_version(before)
            return self._deploy(before, version, "RestartApplication", config_version=version)

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

    def _deploy(self, before: AppRecord, version: str, action: str, **changed: Any) -> AppRecord:
        """Put another version of an app, whose tasks are not to wait; the one before is kept."""
        kept = (*before.history, (before.version, before.definition))[-_KEPT_VERSIONS:]
        deployment = Deployment(str(uuid.uuid4()), action, version)
        changed |= {"version": version, "deployment": deployment, "history": kept}
        changed |= {"delay": 0.0, "not_before": 0.0}
        record = replace(before, **changed)
        self._put(record)
        # Once a caller hears of the change, no older task answers it.
        self._settle_app(record.app_id)
        return record

    def _put(self, record: AppRecord) -> None:
        self._apps[record.app_id] = record
        self._save()
        self._changed.notify_all()


def _without_scale(definition: Json) -> Json:
    return {name: value for name, value in definition.items() if name not in _NO_RESTART}
