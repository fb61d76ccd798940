"""What attackers reach, what they try there, and what must not have changed afterwards."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass

from embedded_mesos import EmbeddedCluster
from local_dcos import LocalDcos
from runner_process import Task
from servers.answering_service import Service

PRINCIPAL, SECRET = "tf", "hush"


@dataclass(frozen=True)
class Order:
    """A request that would read, or change something, if it were answered."""

    method: str
    path: str
    body: str = ""


@dataclass(frozen=True)
class Listeners:
    """All servers of ours, each of them real."""

    cluster: EmbeddedCluster
    dcos: LocalDcos
    service: Service
    open_service: Service
    task: Task

    @property
    def agent(self) -> str:
        """Where the agent listens."""
        identity = self.cluster.agents[0].identity
        return f"{identity.ip}:{identity.port}"

    def addresses(self) -> Mapping[str, str]:
        """Where each listens, by name."""
        return {
            "master": self.cluster.master,
            "agent": self.agent,
            "API": self.service.server.address,
            "open API": self.open_service.server.address,
            "local DC/OS": self.dcos.address,
            "task runner": f"127.0.0.1:{self.task.port}",
        }

    def orders(self, name: str) -> tuple[Order, ...]:
        """What would do harm at one of them, by its name."""
        if name == "master":
            identifier = self.cluster.agents[0].agent_id
            gone = {
                "type": "MARK_AGENT_GONE",
                "mark_agent_gone": {"agent_id": {"value": identifier}},
            }
            machine = [{"hostname": self.cluster.agents[0].identity.hostname, "ip": "127.0.0.1"}]
            return (
                Order("GET", "/master/state"),
                Order("POST", "/api/v1", json.dumps(gone)),
                Order("POST", "/master/machine/down", json.dumps(machine)),
                Order("GET", "/overview/agents"),
                Order("POST", "/overview/agents/0/start"),
                Order("POST", "/overview/tasks/any/kill"),
            )
        if name == "agent":
            return (Order("GET", "/state"), Order("GET", "/files/debug"))
        if name in ("API", "open API"):
            return (
                Order("GET", "/v1/why"),
                Order("GET", "/v1/openapi.json"),
                Order("GET", "/v1/pod/worker-0/files/stdout"),
                Order("GET", "/v1/events"),
                Order("GET", "/v1/curves"),
                Order("GET", "/v1/runs"),
                Order("POST", "/v1/capacity/release", "{}"),
                Order("POST", "/v1/job/stop", "{}"),
            )
        if name == "local DC/OS":
            app = {"id": "/evil", "cmd": "sleep 60", "cpus": 0.1, "mem": 32, "instances": 1}
            return (
                Order("GET", "/mesos/state"),
                Order("POST", "/service/marathon/v2/apps", json.dumps(app)),
            )
        return (Order("GET", "/v1/status"), Order("POST", "/v1/stop", "0"))

    def harm(self) -> list[str]:
        """Return what an attacker has changed."""
        found = []
        if not self.cluster.agents[0].running:
            found.append("the agent is gone")
        found += [f"ordered: {event}" for event in self.service.events + self.open_service.events]
        found += [f"app {app.app_id}" for app in self.dcos.marathon.apps()]
        if self.task.process.poll() is not None:
            found.append("the task has ended")
        return found


def as_operator() -> Mapping[str, str]:
    """What a browser adds by itself when its user has logged in at the master (HTTP basic)."""
    known = base64.b64encode(f"{PRINCIPAL}:{SECRET}".encode()).decode()
    return {"Authorization": f"Basic {known}"}
