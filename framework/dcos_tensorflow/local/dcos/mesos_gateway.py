"""Mesos as DC/OS shows it: the master's own state, with Marathon as one more framework.

``mesos_calls``, ``logs`` and ``uninstall`` ask. The master knows nothing of Marathon's tasks, for
they are run by this daemon; they are shown on its first agent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos.app_definition import app_of
from dcos_tensorflow.local.dcos.app_records import STAGING, AppRecord, TaskRecord
from dcos_tensorflow.local.dcos.marathon import Marathon
from dcos_tensorflow.local.dcos.upstream import Unreachable, ask, ask_json

Json = dict[str, Any]


@dataclass(frozen=True)
class Sandbox:
    """Where the files of a task lie. ``virtual`` is how ``files/debug`` names it."""

    task_ids: tuple[str, ...]
    virtual: str
    path: Path


class MesosGateway:
    """Asks a master and its agents. Thread-safe; keeps nothing."""

    def __init__(self, master: str, marathon: Marathon, framework_id: str) -> None:
        """``master`` is ``host:port``, ``framework_id`` the one that Marathon has."""
        self.master = master
        self.framework_id = framework_id
        self._marathon = marathon

    # -- the master ----------------------------------------------------------------------------

    def state(self) -> Json:
        """Return the master's ``/state`` with Marathon in it. Raises Unreachable."""
        found: Json = ask_json(self.master, "/state")
        framework = self._framework(_first_agent(found))
        return {**found, "frameworks": [framework, *found["frameworks"]]}

    def state_summary(self) -> Json:
        """Return the master's ``/state-summary`` with Marathon in it. Raises Unreachable."""
        found: Json = ask_json(self.master, "/state-summary")
        agent_id = _first_agent(found)
        framework = self._framework(agent_id)
        tasks = framework.pop("tasks")
        for name in ("completed_tasks", "unreachable_tasks", "offers"):
            framework.pop(name)
        running = sum(one["state"] == "TASK_RUNNING" for one in tasks)
        summary = {**framework, "TASK_RUNNING": running, "slave_ids": [agent_id]}
        return {**found, "frameworks": [summary, *found["frameworks"]]}

    def agent_id(self) -> str:
        """Return the agent that Marathon's tasks are shown on; empty when there is none."""
        try:
            return _first_agent(ask_json(self.master, "/state-summary"))
        except Unreachable:
            return ""

    def agent_address(self, agent_id: str) -> str | None:
        """Return an agent's ``host:port``, None when there is no such. Raises Unreachable."""
        for slave in ask_json(self.master, "/slaves")["slaves"]:
            if slave["id"] == agent_id:
                return str(slave["pid"].rpartition("@")[2])
        return None

    def framework_ids(self, name: str) -> list[str]:
        """Return the ids of the frameworks with this name. Raises Unreachable."""
        found = ask_json(self.master, "/frameworks")["frameworks"]
        return [str(one["id"]) for one in found if one["name"] == name]

    def teardown(self, framework_id: str) -> None:
        """End a framework and its tasks. Raises Unreachable."""
        call = {"type": "TEARDOWN", "teardown": {"framework_id": {"value": framework_id}}}
        headers = {"Content-Type": "application/json"}
        body = json.dumps(call).encode()
        status, text = ask(self.master, "/api/v1", method="POST", body=body, headers=headers)
        if status != 200:
            raise Unreachable(f"the master refused the teardown of {framework_id}: {text!r}")

    def _framework(self, agent_id: str) -> Json:
        running = self._marathon.tasks()
        records = {one.app_id: one for one in self._marathon.apps()}
        tasks = [self._task(one, records.get(one.app_id), agent_id) for one in running]
        finished = [
            self._task(one, records.get(one.app_id), agent_id)
            for one in reversed(self._marathon.finished())
        ]
        used = {
            name: sum(one["resources"][name] for one in tasks)
            for name in ("cpus", "mem", "disk", "gpus")
        }
        return {
            "id": self.framework_id,
            "name": "marathon",
            "user": "root",
            "role": "slave_public",
            "hostname": "127.0.0.1",
            "pid": "marathon@127.0.0.1:0",
            "webui_url": "",
            "active": True,
            "connected": True,
            "recovered": False,
            "capabilities": [],
            "checkpoint": True,
            "failover_timeout": 604800.0,
            "registered_time": 1.0,
            "reregistered_time": 1.0,
            "unregistered_time": 0.0,
            "resources": used,
            "used_resources": used,
            "offered_resources": {},
            "offers": [],
            "executors": [],
            "tasks": tasks,
            "unreachable_tasks": [],
            "completed_tasks": finished,
        }

    def _task(self, task: TaskRecord, record: AppRecord | None, agent_id: str) -> Json:
        resources = {"cpus": 0.0, "mem": 0.0, "disk": 0.0, "gpus": 0.0}
        if record is not None:
            resources = dict(app_of(record.definition).resources)
        status = {
            "state": task.state,
            "timestamp": task.ended_at or task.started_at or task.staged_at,
            "container_status": {
                "container_id": {"value": task.container_id},
                "network_infos": [
                    {"ip_addresses": [{"protocol": "IPv4", "ip_address": "127.0.0.1"}]}
                ],
            },
        }
        return {
            "id": task.task_id,
            "name": ".".join(reversed(task.app_id.strip("/").split("/"))),
            "framework_id": self.framework_id,
            "executor_id": "",
            "slave_id": agent_id,
            "state": task.state,
            "resources": resources,
            "labels": [],
            "statuses": [] if task.state == STAGING else [status],
        }

    # -- sandboxes -----------------------------------------------------------------------------

    def sandboxes(self, agent_id: str) -> list[Sandbox]:
        """Return the sandboxes on an agent, the newest last. Raises Unreachable."""
        found = []
        address = self.agent_address(agent_id)
        if address is not None:
            found = _of_agent(ask_json(address, "/state"))
        if agent_id == self.agent_id():
            found += self._own_sandboxes()
        return found

    def sandbox_of(self, task_id: str) -> Path | None:
        """Return the sandbox of a task, None when there is no such task. Raises Unreachable."""
        for one in reversed(self._own_sandboxes()):
            if task_id in one.task_ids:
                return one.path
        for slave in ask_json(self.master, "/slaves")["slaves"]:
            address = slave["pid"].rpartition("@")[2]
            for one in reversed(_of_agent(ask_json(address, "/state"))):
                if task_id in one.task_ids:
                    return one.path
        return None

    def _own_sandboxes(self) -> list[Sandbox]:
        return [
            Sandbox(
                (task.task_id,),
                _virtual(self.framework_id, task.task_id, task.container_id),
                Path(task.sandbox),
            )
            for task in [*self._marathon.finished(), *self._marathon.tasks()]
        ]


def _first_agent(state: Json) -> str:
    return str(state["slaves"][0]["id"]) if state["slaves"] else ""


def _virtual(framework_id: str, executor_id: str, container_id: str) -> str:
    return f"/frameworks/{framework_id}/executors/{executor_id}/runs/{container_id}"


def _of_agent(state: Json) -> list[Sandbox]:
    """Return the sandboxes in an agent's ``/state``, those of ended executors first."""
    found = []
    for kind in ("completed_executors", "executors"):
        for framework in [*state["completed_frameworks"], *state["frameworks"]]:
            for executor in framework[kind]:
                names = ("queued_tasks", "completed_tasks", "tasks")
                ids = [task["id"] for name in names for task in executor.get(name, [])]
                virtual = _virtual(framework["id"], executor["id"], executor["container"])
                found.append(Sandbox(tuple(ids), virtual, Path(executor["directory"])))
    return found
