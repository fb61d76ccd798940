"""Asks the master and its agents as DC/OS' own parts do.

``mesos_calls``, ``services`` and ``uninstall`` use it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from embedded_mesos import Credential
from local_dcos.upstream import Unreachable, ask, ask_json

Json = dict[str, Any]
_NOBODY = Credential()


class MesosClient:
    """Asks a master and its agents. Thread-safe; keeps nothing."""

    def __init__(self, master: str, credentials: Credential = _NOBODY) -> None:
        """``master`` is ``host:port``; ``credentials`` are what it asks for."""
        self.master = master
        self.credentials = credentials

    def state(self) -> Json:
        """Return the master's ``/state``. Raises Unreachable."""
        return dict(self._ask(self.master, "/state"))

    def _ask(self, address: str, target: str) -> Any:
        return ask_json(address, target, headers=self.credentials.header())

    def agent_address(self, agent_id: str) -> str | None:
        """Return an agent's ``host:port``, None when there is no such. Raises Unreachable."""
        return self._agents().get(agent_id)

    def _agents(self) -> dict[str, str]:
        slaves = self._ask(self.master, "/slaves")["slaves"]
        return {one["id"]: one["pid"].rpartition("@")[2] for one in slaves}

    def framework_ids(self, name: str) -> list[str]:
        """Return the ids of the frameworks with this name. Raises Unreachable."""
        found = self._ask(self.master, "/frameworks")["frameworks"]
        return [str(one["id"]) for one in found if one["name"] == name]

    def teardown(self, framework_id: str) -> None:
        """End a framework and its tasks. Raises Unreachable."""
        call = {"type": "TEARDOWN", "teardown": {"framework_id": {"value": framework_id}}}
        headers = {"Content-Type": "application/json", **self.credentials.header()}
        body = json.dumps(call).encode()
        status, text = ask(self.master, "/api/v1", method="POST", body=body, headers=headers)
        if status != 200:
            raise Unreachable(f"the master refused the teardown of {framework_id}: {text!r}")

    def sandbox_of(self, task_id: str) -> Path | None:
        """Return the sandbox of a task, None when there is no such task. Raises Unreachable."""
        for address in self._agents().values():
            state = self._ask(address, "/state")
            # Of several runs under one name the one that goes on, or else the last, is meant.
            for kind in ("executors", "completed_executors"):
                for framework in [*state["frameworks"], *state["completed_frameworks"]]:
                    for executor in reversed(framework[kind]):
                        names = ("tasks", "queued_tasks", "completed_tasks")
                        if any(task["id"] == task_id for name in names for task in executor[name]):
                            return Path(executor["directory"])
        return None
