"""What commands of the ``dcos`` client ask of the cluster itself: nodes, jobs, containers."""

import getpass
from typing import Any

import pytest

from local_dcos.mesos import mesos_protobuf
from waiting import eventually

from .conftest import MakeWorld
from .world import World

PROTOBUF = {"Content-Type": "application/x-protobuf", "Accept": "application/x-protobuf"}
#: The field drain_info of an agent: its state is DRAINED, its config says that it is not gone.
DRAINED = b"\x6a\x06" + b"\x08\x02" + b"\x12\x02\x10\x00"


@pytest.fixture
def bare(make_world: MakeWorld) -> World:
    return make_world()


def agent_id(world: World) -> str:
    return str(world.get("/mesos/slaves")["slaves"][0]["id"])


def operator(world: World, call: dict[str, Any]) -> None:
    reply = world.ask("POST", "/mesos/api/v1", call, {"Content-Type": "application/json"})
    assert reply.status in (200, 202), reply


def test_a_client_that_waits_for_a_drained_node_sees_when_it_is(bare: World) -> None:
    agent = {"agent_id": {"value": agent_id(bare)}}
    operator(bare, {"type": "DRAIN_AGENT", "drain_agent": {**agent, "mark_gone": False}})

    def told() -> bool:
        asked = bare.ask("POST", "/mesos/api/v1", b"\x08\x0a", PROTOBUF)
        return DRAINED in asked.body

    eventually(told, what="the agent to be drained")
    operator(bare, {"type": "REACTIVATE_AGENT", "reactivate_agent": agent})
    assert not told()


def test_the_config_of_a_draining_is_told_too() -> None:
    agent = {"id": "S0", "hostname": "h", "version": "1.12.0", "pid": "slave(1)@h:1"}
    grace = {"max_grace_period": {"nanoseconds": 5}, "mark_gone": True}
    found = mesos_protobuf.agents([{**agent, "drain_info": {"state": "DRAINING", "config": grace}}])
    assert b"\x6a\x0a\x08\x01\x12\x06\x0a\x02\x08\x05\x10\x01" in found


def test_tasks_are_shown_as_those_of_the_user_who_runs_all_of_it(bare: World) -> None:
    eventually(lambda: bare.get("/mesos/frameworks")["frameworks"], what="Marathon")
    asked = bare.ask("POST", "/mesos/api/v1", b"\x08\x0b", PROTOBUF)
    user = getpass.getuser().encode()
    assert b"\x0a" + bytes([len(user)]) + user + b"\x12\x08marathon" in asked.body


def test_the_metrics_of_a_node_are_those_of_the_machine(bare: World) -> None:
    path = f"/system/v1/agent/{agent_id(bare)}/metrics/v0"
    found = bare.get(f"{path}/node")
    values = {point["name"]: point["value"] for point in found["datapoints"]}
    assert values["memory.total"] > values["memory.free"] > 0
    assert values["filesystem.capacity.total"] >= values["filesystem.capacity.used"]
    assert found["dimensions"]["mesos_id"] == agent_id(bare)
    assert bare.ask("GET", f"{path}/containers/c").status == 204


def test_there_are_no_jobs_and_none_can_be_added(bare: World) -> None:
    assert bare.get("/service/metronome/v1/jobs?embed=activeRuns") == []
    assert bare.ask("GET", "/service/metronome/v1/jobs/mine").status == 404
    added = bare.ask("POST", "/service/metronome/v1/jobs", {"id": "mine"})
    assert added.status == 501
    assert added.json()["message"] == "Not supported by the local DC/OS: jobs (Metronome)"


@pytest.mark.parametrize("kind", ["application/x-protobuf", "application/recordio"])
def test_task_exec_and_attach_are_refused_by_name(kind: str, bare: World) -> None:
    path = f"/slave/{agent_id(bare)}/api/v1"
    reply = bare.ask("POST", path, b"\x08\x0d", {"Content-Type": kind})
    assert reply.status == 501
    assert b"Not supported by the local DC/OS: task exec and task attach" in reply.body


def test_an_index_that_is_none_is_told_with_those_that_there_are(bare: World) -> None:
    body = {"name": "a", "uri": "file:///a%20b.json", "index": 3}
    refused = bare.cosmos("repository/add", body, expect=400)
    assert refused["message"] == "Index out of range: 3; it can be from 0 to 0"


def test_an_escaped_address_is_what_the_client_prints(bare: World) -> None:
    body = {"name": "a", "uri": "file:///nowhere/a%20b.json"}
    client = {"User-Agent": "dcos-client-go(0.0.1)"}
    reply = bare.ask("POST", "/package/repository/add", body, client)
    assert reply.status == 400
    # It hands the message to Go's Errorf.
    assert "[file:///nowhere/a%%20b.json]" in reply.json()["message"]
