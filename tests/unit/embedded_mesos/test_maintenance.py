"""The maintenance schedule, pure."""

import json
from typing import Any

import pytest

from cluster_faults.losses import inherit
from embedded_mesos import Timing
from embedded_mesos.master.calls import operator_calls
from embedded_mesos.master.desk import Desk, MasterAddress
from embedded_mesos.master.master import Master
from embedded_mesos.messages import RegisterAgent, ShutdownAgent, ToAgent

Json = dict[str, Any]

START = {"start": {"nanoseconds": 5_000_000_000}}
CPUS = [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 4.0}}]
INFO = {
    "hostname": "Node1",
    "ip": "127.0.0.1",
    "port": 1,
    "resources": CPUS,
    "offered_resources": CPUS,
}
MACHINE = {"hostname": "node1", "ip": "127.0.0.1"}


@pytest.fixture
def master() -> Master:
    """A master with one agent, on a machine that is called Node1."""
    made = Master(Desk(MasterAddress("127.0.0.1", 5050, "127.0.0.1"), Timing(), 0.0))
    made.agent_message(0, RegisterAgent(None, INFO), 0.0)
    made.desk.take_effects()
    return made


def order(master: Master, kind: str, body: Json) -> tuple[int, str]:
    reply = operator_calls.call(
        master.desk, json.dumps({"type": kind, kind.lower(): body}).encode(), 1
    )
    return reply.status, reply.body


def schedule(master: Master, *windows: Json) -> tuple[int, str]:
    return order(master, "UPDATE_MAINTENANCE_SCHEDULE", {"schedule": {"windows": list(windows)}})


def window(*machines: Json) -> Json:
    return {"machine_ids": list(machines), "unavailability": START}


def unavailable(master: Master) -> bool:
    (agent,) = master.state.agents.values()
    return agent.unavailability is not None


@pytest.mark.parametrize(
    ("machine", "meant"),
    [
        (MACHINE, True),
        ({**MACHINE, "hostname": "NODE1"}, True),
        ({**MACHINE, "ip": "127.0.0.9"}, False),
        ({"hostname": "node1"}, False),
        ({"ip": "127.0.0.1"}, False),
    ],
    ids=["both", "other case", "other ip", "hostname alone", "ip alone"],
)
def test_machine_is_known_by_hostname_and_ip(machine: Json, meant: bool, master: Master) -> None:
    assert schedule(master, window(machine)) == (200, "")
    assert unavailable(master) is meant


@pytest.mark.parametrize(
    ("windows", "problem"),
    [
        ([window()], "List of machines is empty"),
        ([window({})], "Both 'hostname' and 'ip' for a machine are empty"),
        ([window(MACHINE), window(MACHINE)], "appears more than once in the schedule"),
        ([{"machine_ids": [MACHINE]}], "Maintenance window lacks 'unavailability.start'"),
        (
            [{**window(MACHINE), "unavailability": {**START, "duration": {"nanoseconds": -1}}}],
            "Unavailability 'duration' is negative",
        ),
    ],
    ids=["no machine", "no name", "twice", "no start", "negative"],
)
def test_schedule_that_makes_no_sense_changes_nothing(
    windows: list[Json], problem: str, master: Master
) -> None:
    status, text = schedule(master, *windows)
    assert status == 400
    assert problem in text
    assert master.state.maintenance == []


def test_machine_that_is_down_stays_in_the_schedule(master: Master) -> None:
    schedule(master, window(MACHINE))
    assert order(master, "START_MAINTENANCE", {"machines": [MACHINE]}) == (200, "")
    status, text = schedule(master)
    assert status == 400
    assert "is deactivated and cannot be removed from the schedule" in text


@pytest.mark.parametrize(
    ("kind", "times", "problem"),
    [
        ("START_MAINTENANCE", 2, "is not in DRAINING mode and cannot be brought down"),
        ("STOP_MAINTENANCE", 1, "is not in DOWN mode and cannot be brought up"),
    ],
)
def test_machines_go_down_and_up_in_turn(
    kind: str, times: int, problem: str, master: Master
) -> None:
    schedule(master, window(MACHINE))
    for _ in range(times):
        status, text = order(master, kind, {"machines": [MACHINE]})
    assert status == 400
    assert problem in text


def test_agent_of_a_machine_that_is_down_is_told_to_leave(master: Master) -> None:
    schedule(master, window(MACHINE))
    order(master, "START_MAINTENANCE", {"machines": [MACHINE]})
    assert master.state.agents == {}
    master.desk.take_effects()
    master.agent_message(0, RegisterAgent(None, INFO), 2.0)
    assert master.desk.take_effects() == [ToAgent(0, ShutdownAgent("Machine is DOWN"))]


def test_machine_that_is_up_again_has_left_the_schedule(master: Master) -> None:
    other = {"hostname": "other", "ip": "127.0.0.2"}
    schedule(master, window(MACHINE, other))
    order(master, "START_MAINTENANCE", {"machines": [MACHINE]})
    assert order(master, "STOP_MAINTENANCE", {"machines": [MACHINE]}) == (200, "")
    assert master.state.maintenance == [window(other)]


def test_new_master_knows_what_the_registry_knew(master: Master) -> None:
    (agent_id,) = master.state.agents
    schedule(master, window(MACHINE))
    order(master, "DRAIN_AGENT", {"agent_id": {"value": agent_id}})
    order(master, "UPDATE_QUOTA", {"quota_configs": [{"role": "r", "limits": {"cpus": 2}}]})
    heir = Master(Desk(master.desk.address, Timing(), 3.0))
    inherit(heir.state, master.state, until=603.0)
    assert order(heir, "DEACTIVATE_AGENT", {"agent_id": {"value": agent_id}}) == (200, "")
    heir.agent_message(0, RegisterAgent(agent_id, INFO), 3.0)
    (agent,) = heir.state.agents.values()
    assert agent.restriction.drain is not None
    assert unavailable(heir)
    assert heir.state.quotas == {"r": {"cpus": 2000}}
