"""What operators order, on real processes: maintenance, draining, agents marked gone."""

import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultError, FaultyCluster
from embedded_mesos import Timing
from masters.mesos_scheduler import CAPABILITIES, Scheduler, task
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., FaultyCluster]
SLEEP = "exec sleep 100"
#: An agent may be away for as long as a test needs to bring it back: it is not unreachable then.
PATIENT = Timing(allocation=0.1, agent_ping=15)


def started(scheduler: Scheduler, task_id: str = "t", command: str = SLEEP, **more: Any) -> Json:
    offer = scheduler.offer("127.0.0.1", least_cpus=0.1)
    scheduler.launch(offer, task(offer, task_id, command, **more))
    return scheduler.run_until(task_id, "TASK_RUNNING")


def stubborn(scheduler: Scheduler, ready: Path, **more: Any) -> None:
    """Start a task that ignores SIGTERM, as MultiWorkerMirrored does."""
    command = f"trap '' TERM; touch {ready}; while :; do sleep 0.05; done"
    started(scheduler, command=command, **more)
    eventually(ready.exists, what="the trap")


def call(cluster: FaultyCluster, path: str, body: object) -> tuple[int, Any]:
    """Ask the master over HTTP; return status and body."""
    connection = http.client.HTTPConnection(cluster.master, timeout=10)
    data = json.dumps(body) if body is not None else None
    connection.request("POST" if data else "GET", path, data)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, json.loads(text) if text.startswith(("{", "[")) else text


# -- maintenance -------------------------------------------------------------------------------


def test_who_has_tasks_on_a_scheduled_machine_is_asked_to_leave(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        agent_id = started(scheduler)["agent_id"]
        cluster.faults.schedule_maintenance([0, 1], 3600)
        (asked,) = scheduler.wait("INVERSE_OFFERS")["inverse_offers"]
        assert asked["agent_id"] == agent_id
        assert list(asked["unavailability"]) == ["start"]
        scheduler.call(
            "DECLINE_INVERSE_OFFERS",
            {"inverse_offer_ids": [asked["id"]], "filters": {"refuse_seconds": 0.1}},
        )
        (again,) = scheduler.wait("INVERSE_OFFERS")["inverse_offers"]
        assert again["id"] != asked["id"]
        cluster.faults.cancel_maintenance()
        rescinded = scheduler.wait("RESCIND_INVERSE_OFFER")
        assert rescinded["inverse_offer_id"] == again["id"]


def test_scheduler_that_comes_back_is_asked_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.schedule_maintenance([0], 3600)
        scheduler.wait("INVERSE_OFFERS")
    with Scheduler(cluster.master, framework_id=scheduler.framework_id) as again:
        again.wait("INVERSE_OFFERS")


def test_machine_that_goes_down_takes_its_tasks_along(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.schedule_maintenance([0], 0, 60)
        cluster.faults.start_maintenance([0])
        status = scheduler.update("t")
        assert (status["state"], status["reason"]) == ("TASK_LOST", "REASON_AGENT_REMOVED")
        eventually(lambda: not cluster.host.executor_pids(), what="the end of its processes")
        scheduler.wait("FAILURE")
        cluster.faults.restart_agent(0)
        eventually(lambda: not cluster.agents[0].running, what="the refusal of its agent")
        cluster.faults.stop_maintenance([0])
        offer = scheduler.offer("127.0.0.1", least_cpus=4)
        assert offer["agent_id"] != status["agent_id"]
        assert "unavailability" not in offer


# -- draining ----------------------------------------------------------------------------------


def test_drained_agent_kills_even_a_stubborn_task_within_the_grace(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        hour = {"grace_period": {"nanoseconds": 3_600_000_000_000}}
        stubborn(scheduler, tmp_path / "ready", kill_policy=hour)
        cluster.faults.drain_agent(0, max_grace_seconds=0.3)
        status = scheduler.update("t")
        assert (status["state"], status["reason"]) == ("TASK_KILLED", "REASON_AGENT_DRAINING")


def test_agent_is_drained_when_the_last_update_is_acknowledged(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.drain_agent(0)
        status = scheduler.update("t", "TASK_KILLED")
        with pytest.raises(FaultError, match="still in the DRAINING state"):
            cluster.faults.reactivate_agent(0)
        scheduler.acknowledge(status)
        eventually(lambda: drain_state(cluster) == "DRAINED", what="the end of the drain")
        cluster.faults.reactivate_agent(0)
        assert scheduler.offer("127.0.0.1", least_cpus=4)["agent_id"] == status["agent_id"]


def drain_state(cluster: FaultyCluster) -> str | None:
    _, body = call(cluster, "/api/v1", {"type": "GET_AGENTS"})
    for agent in body["get_agents"]["agents"]:
        if agent["agent_info"]["hostname"] == "127.0.0.1":
            return agent.get("drain_info", {}).get("state")
    return None


def test_task_that_ends_well_while_its_agent_drains_was_killed(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler, command="trap 'exit 0' TERM; while :; do sleep 0.02; done")
        cluster.faults.drain_agent(0)
        status = scheduler.update("t")
        # The command executor calls what it killed KILLED, whatever its exit code.
        assert (status["state"], status["reason"]) == ("TASK_KILLED", "REASON_AGENT_DRAINING")


def test_kill_that_drains_is_announced_to_who_wants_to_know(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master, capabilities=(*CAPABILITIES, "TASK_KILLING_STATE")) as scheduler:
        started(scheduler)
        cluster.faults.drain_agent(0)
        killing = scheduler.update("t", "TASK_KILLING")
        assert killing["reason"] == "REASON_AGENT_DRAINING"
        scheduler.acknowledge(killing)
        assert scheduler.update("t", "TASK_KILLED")["reason"] == "REASON_AGENT_DRAINING"


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [(CAPABILITIES, "TASK_GONE_BY_OPERATOR"), (("MULTI_ROLE",), "TASK_KILLED")],
    ids=["aware", "not aware"],
)
def test_agent_drained_for_good_is_gone_afterwards(
    capabilities: tuple[str, ...], expected: str, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master, capabilities=capabilities) as scheduler:
        started(scheduler)
        agent_id = cluster.faults.agent_id(0)
        cluster.faults.drain_agent(0, mark_gone=True)
        status = scheduler.update("t", expected)
        assert status["reason"] == "REASON_AGENT_DRAINING"
        scheduler.acknowledge(status)
        scheduler.wait("FAILURE")
        assert agent_id in cluster.core.state.gone_agents


def test_agent_that_was_away_is_drained_when_it_comes_back(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.partition_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        cluster.faults.drain_agent(0)
        cluster.faults.heal_agent(0)
        assert scheduler.update("t")["state"] == "TASK_RUNNING"
        assert scheduler.run_until("t", "TASK_KILLED")["reason"] == "REASON_AGENT_DRAINING"


def test_drain_goes_on_under_a_new_master(make_cluster: MakeCluster, tmp_path: Path) -> None:
    # What comes before the scheduler is back is lost, and comes again.
    cluster = make_cluster(timing=Timing(allocation=0.1, agent_ping=0.1, update_retry=0.3))
    with Scheduler(cluster.master) as scheduler:
        stubborn(scheduler, tmp_path / "ready")
        cluster.faults.drain_agent(0, max_grace_seconds=1)
        cluster.faults.lose_master()
    with Scheduler(cluster.master, framework_id=scheduler.framework_id) as again:
        status = again.run_until("t", "TASK_KILLED")
        assert status["reason"] == "REASON_AGENT_DRAINING"
        eventually(lambda: drain_state(cluster) == "DRAINED", what="the end of the drain")


def test_deactivated_agent_keeps_its_tasks_and_is_not_offered(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(timing=PATIENT)
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        rest = scheduler.offer("127.0.0.1", least_cpus=3.9)
        cluster.faults.deactivate_agent(0)
        assert scheduler.wait("RESCIND")["offer_id"] == rest["id"]
        cluster.faults.crash_agent(0)
        cluster.faults.restart_agent(0)
        scheduler.reconcile("t", cluster.faults.agent_id(0))
        assert scheduler.update("t")["state"] == "TASK_RUNNING"
        cluster.faults.reactivate_agent(0)
        scheduler.offer("127.0.0.1", least_cpus=3.9)


# -- gone --------------------------------------------------------------------------------------


def test_gone_agent_that_cannot_hear_it_ends_when_it_comes_back(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(timing=PATIENT)
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.partition_agent(0)
        cluster.faults.mark_agent_gone(0)
        status = scheduler.update("t")
        assert status["state"] == "TASK_GONE_BY_OPERATOR"
        assert cluster.host.executor_pids()
        cluster.faults.heal_agent(0)
        eventually(lambda: not cluster.host.executor_pids(), what="the end of its processes")
        scheduler.reconcile("t", status["agent_id"]["value"])
        assert scheduler.update("t")["state"] == "TASK_GONE_BY_OPERATOR"


def test_unreachable_agent_can_be_marked_gone(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.partition_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        cluster.faults.mark_agent_gone(0)
        status = scheduler.update("t")
        assert status["reason"] == "REASON_AGENT_REMOVED_BY_OPERATOR"


def test_an_unknown_agent_cannot_be_drained(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    body = {"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": "nobody"}}}
    assert call(cluster, "/api/v1", body) == (404, "Agent not found")
