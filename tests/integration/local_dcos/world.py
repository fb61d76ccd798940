"""A local DC/OS in front of an embedded cluster, as tests look at it."""

import http.client
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_dcos import LocalDcos
from waiting import eventually

Json = dict[str, Any]


@dataclass
class Reply:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class World:
    """A running local DC/OS."""

    dcos: LocalDcos
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection(self.dcos.address, timeout=20)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            sent = {**self.headers, **(headers or {})}
            connection.request(method, target, None if body is None else raw, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, target: str) -> Any:
        reply = self.ask("GET", target)
        assert reply.status == 200, (target, reply)
        return reply.json()

    def cosmos(self, verb: str, body: Any, *, expect: int = 200) -> Any:
        reply = self.ask("POST", f"/package/{verb}", body)
        assert reply.status == expect, reply
        return reply.json()

    def service(self, verb: str, body: Any, *, expect: int = 200) -> Any:
        reply = self.ask("POST", f"/cosmos/service/{verb}", body)
        assert reply.status == expect, reply
        return reply.json()

    def app(self, app_id: str) -> Json:
        return dict(self.get(f"/service/marathon/v2/apps{app_id}")["app"])

    def sandbox(self, app_id: str) -> Path:
        """Return where the files of the app's task lie."""
        task = self.app(app_id)["tasks"][0]
        found = self.get(f"/agent/{task['slaveId']}/files/debug")
        return next(Path(path) for name, path in found.items() if task["id"] in name)

    def ended(self) -> list[Json]:
        """Return the tasks of Marathon that have ended."""
        frameworks = self.get("/mesos/state")["frameworks"]
        own = [one for one in frameworks if one["id"] == self.dcos.marathon.framework_id]
        return [task for one in own for task in one["completed_tasks"]]

    def app_ids(self) -> list[str]:
        return [one["id"] for one in self.get("/service/marathon/v2/apps")["apps"]]

    def install(self, **service: Any) -> str:
        options = {"service": {"user": "root", **service}, "worker": {"count": 2}}
        body = {"packageName": "tensorflow", "options": options}
        app_id = str(self.cosmos("install", body)["appId"])
        self.settled(app_id)
        return app_id

    def settled(self, app_id: str) -> Json:
        """Wait until the app runs as it should."""

        def done() -> Json | None:
            app = self.app(app_id)
            return app if not app["deployments"] and app["tasksHealthy"] else None

        found = eventually(done, what=f"{app_id} to be deployed")
        assert found is not None
        return found

    def gone(self, app_id: str) -> None:
        eventually(lambda: app_id not in self.app_ids(), seconds=60, what=f"{app_id} to be gone")
