"""Another framework of the cluster, with a login of its own, moves nothing of ours."""

import http.client
import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from embedded_mesos import AgentConfig, EmbeddedCluster, Timing

FAST = Timing(allocation=0.05, agent_registration=0.05)


class Framework:
    """A framework that says what a test tells it to, and hears all that it is told."""

    def __init__(self, master: str, principal: str) -> None:
        self._master = master
        known = b64encode(f"{principal}:secret-of-{principal}".encode()).decode()
        self._headers = {"Authorization": f"Basic {known}", "Content-Type": "application/json"}
        info = {"user": "root", "name": principal, "principal": principal, "roles": ["*"]}
        info["capabilities"] = [{"type": "MULTI_ROLE"}]
        self._connection = http.client.HTTPConnection(master, timeout=30)
        body = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
        self._connection.request("POST", "/api/v1/scheduler", json.dumps(body), self._headers)
        self._stream = self._connection.getresponse()
        assert self._stream.status == 200, self._stream.read()
        self.stream_id = str(self._stream.getheader("Mesos-Stream-Id"))
        self.id = self.hear("SUBSCRIBED")["subscribed"]["framework_id"]["value"]

    def hear(self, kind: str) -> Any:
        """Wait for an event of this kind."""
        while True:
            length = int(self._stream.readline())
            event = json.loads(self._stream.read(length))
            if event["type"] == kind:
                return event

    def say(self, kind: str, *, framework: str = "", stream: str = "", **body: Any) -> int:
        """Call the master, in the name of a framework; return the status."""
        call = {"framework_id": {"value": framework or self.id}, "type": kind}
        call |= {kind.lower(): body} if body else {}
        headers = {**self._headers, "Mesos-Stream-Id": stream or self.stream_id}
        with closing(http.client.HTTPConnection(self._master, timeout=30)) as connection:
            connection.request("POST", "/api/v1/scheduler", json.dumps(call), headers)
            return connection.getresponse().status

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    known = {name: f"secret-of-{name}" for name in ("ours", "other")}
    agents = [AgentConfig(cpus=2, mem=512)]
    with EmbeddedCluster(agents, tmp_path, timing=FAST, credentials=known) as found:
        yield found


@pytest.fixture
def ours(cluster: EmbeddedCluster) -> Iterator[Framework]:
    with closing(Framework(cluster.master, "ours")) as found:
        yield found


@pytest.fixture
def other(cluster: EmbeddedCluster, ours: Framework) -> Iterator[Framework]:
    with closing(Framework(cluster.master, "other")) as found:
        yield found


def _task(agent: str) -> dict[str, Any]:
    resources = [
        {"name": name, "type": "SCALAR", "scalar": {"value": value}}
        for name, value in (("cpus", 0.1), ("mem", 32))
    ]
    return {
        "name": "t",
        "task_id": {"value": "t"},
        "agent_id": {"value": agent},
        "resources": resources,
        "command": {"value": "sleep 600"},
    }


@pytest.fixture
def agent(ours: Framework) -> str:
    """Where a task of ours runs, and nothing is acknowledged yet."""
    offer = ours.hear("OFFERS")["offers"]["offers"][0]
    found = str(offer["agent_id"]["value"])
    launch = {"type": "LAUNCH", "launch": {"task_infos": [_task(found)]}}
    assert ours.say("ACCEPT", offer_ids=[offer["id"]], operations=[launch]) == 202
    return found


def _state_of(cluster: EmbeddedCluster, framework: Framework) -> list[str]:
    with cluster.lock:
        known = cluster.core.desk.state.frameworks[framework.id]
        return [str(task.state) for task in known.tasks.values()]


@pytest.mark.parametrize("kind", ["TEARDOWN", "KILL", "REVIVE", "ACKNOWLEDGE", "SUPPRESS"])
def test_nothing_is_said_in_our_name(
    cluster: EmbeddedCluster, ours: Framework, other: Framework, agent: str, kind: str
) -> None:
    update = ours.hear("UPDATE")["update"]["status"]
    body = {
        "KILL": {"task_id": {"value": "t"}, "agent_id": {"value": agent}},
        "ACKNOWLEDGE": {
            "agent_id": {"value": agent},
            "task_id": {"value": "t"},
            "uuid": update.get("uuid", ""),
        },
    }.get(kind, {})
    for known in (other.stream_id, ours.stream_id):
        assert other.say(kind, framework=ours.id, stream=known, **body) == 400
    assert ours.id in cluster.core.desk.state.frameworks


def test_a_task_of_ours_is_not_killed_by_its_name(
    cluster: EmbeddedCluster, ours: Framework, other: Framework, agent: str
) -> None:
    ours.hear("UPDATE")
    before = _state_of(cluster, ours)
    status = other.say("KILL", task_id={"value": "t"}, agent_id={"value": agent})
    told = other.hear("UPDATE")["update"]["status"]
    assert (status, told["state"]) == (202, "TASK_LOST"), "its own task t, which it does not have"
    assert _state_of(cluster, ours) == before != []


def test_an_offer_of_ours_launches_nothing_of_the_other(
    cluster: EmbeddedCluster, ours: Framework, other: Framework
) -> None:
    offer = ours.hear("OFFERS")["offers"]["offers"][0]
    launch = {"type": "LAUNCH", "launch": {"task_infos": [_task(offer["agent_id"]["value"])]}}
    assert other.say("ACCEPT", offer_ids=[offer["id"]], operations=[launch]) == 202
    told = other.hear("UPDATE")["update"]["status"]
    assert told["state"] in ("TASK_LOST", "TASK_DROPPED")
    assert _state_of(cluster, other) == []
