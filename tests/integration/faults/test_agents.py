"""An agent dies, is cut off, is taken away, or comes back when its task runs elsewhere."""

import pytest

from dcos_tensorflow.core.model.job import JobPhase
from embedded_mesos import Timing
from waiting import eventually

from .conftest import MakeTraining
from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)

#: An agent may be away for as long as a test needs to bring it back: it is not unreachable then.
PATIENT = pytest.mark.parametrize(
    "timing", [Timing(agent_ping=15, update_retry=0.5, heartbeat=0.5)], ids=["patient"]
)


def reregistered(training: ScheduledTraining, agent: int) -> bool:
    return bool(training.cluster.agents[agent].registered)


def unreachable(training: ScheduledTraining, name: str) -> None:
    training.says(
        lambda job: job["tasks"][name]["state"] == "unreachable", f"that {name} is unreachable"
    )


def gone(training: ScheduledTraining, pid: int) -> None:
    """Wait for the end of a process that is not wanted any more."""
    eventually(lambda: not is_alive(pid), seconds=60, what=f"the end of process {pid}")


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@PATIENT
def test_all_agents_are_killed_and_return_with_their_tasks(training: ScheduledTraining) -> None:
    agents = range(len(training.cluster.agents))
    for agent in agents:
        training.cluster.faults.crash_agent(agent)
    for agent in agents:
        training.cluster.faults.restart_agent(agent)
    eventually(lambda: all(reregistered(training, a) for a in agents), what="registrations")
    training.is_untouched()
    assert training.incidents() == []
    training.ends_right()


def test_a_host_is_lost_and_its_task_is_replaced(training: ScheduledTraining) -> None:
    lost = training.agent_of("worker-1")
    training.cluster.faults.lose_machine(lost)
    job = training.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert [(i["task"], i["kind"]) for i in job["incidents"]] == [("worker-1", "agent unreachable")]
    assert training.agent_of("worker-1") != lost
    training.ends_right()


def test_two_hosts_are_lost_at_once(training: ScheduledTraining) -> None:
    lost = [training.agent_of(name) for name in ("worker-0", "worker-1")]
    for agent in lost:
        training.cluster.faults.lose_machine(agent)
    eventually(training.incidents, seconds=60, what="an incident")
    # There is one agent to spare, and two are needed.
    training.cluster.faults.replace_machine(lost[0])
    training.recovers("worker-0", "worker-1", "chief-0", moved=("worker-0", "worker-1"))
    training.ends_right()


def test_an_agent_starts_again_with_a_new_id(training: ScheduledTraining) -> None:
    lost = training.agent_of("ps-0")
    old_id = training.cluster.faults.agent_id(lost)
    training.cluster.faults.lose_machine(lost)
    training.cluster.faults.replace_machine(lost)
    eventually(lambda: training.cluster.agents[lost].agent_id not in (None, old_id), what="an id")
    training.recovers("ps-0", "chief-0", "worker-0", "worker-1", moved=("ps-0",))
    assert old_id not in {task["agent_id"] for task in training.job()["tasks"].values()}
    training.ends_right()


def test_an_agent_is_marked_gone(training: ScheduledTraining) -> None:
    left = training.agent_of("worker-1")
    training.cluster.faults.mark_agent_gone(left)
    job = training.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert [i["task"] for i in job["incidents"]] == ["worker-1"]
    assert training.agent_of("worker-1") != left
    gone(training, training.pids["worker-1"])
    training.ends_right()


def test_an_agent_returns_after_its_task_was_replaced(training: ScheduledTraining) -> None:
    agent = training.agent_of("worker-1")
    # Its process will not be killed: on another machine it would serve on. Here its lock would keep
    # the new one from starting, and say so.
    (training.marks / "worker-1.lock").unlink()
    training.cluster.faults.partition_agent(agent)
    eventually(training.incidents, seconds=60, what="an incident")
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert is_alive(training.pids["worker-1"])
    training.cluster.faults.heal_agent(agent)
    gone(training, training.pids["worker-1"])
    training.look()
    training.is_untouched()
    training.ends_right()


def test_an_agent_returns_while_its_task_waits_for_a_place(training: ScheduledTraining) -> None:
    agent = training.agent_of("worker-1")
    spare = next(a for a in range(5) if a not in {training.agent_of(n) for n in training.gang})
    training.cluster.faults.deactivate_agent(spare)
    training.cluster.faults.partition_agent(agent)
    eventually(
        lambda: (s := training.scheduler.state()) and s.job.phase is JobPhase.PLACING,
        seconds=60,
        what="that it waits",
    )
    training.cluster.faults.heal_agent(agent)
    # Its container is there again: no other task has to be found a place.
    training.recovers("worker-1", "chief-0")
    assert not is_alive(training.pids["worker-1"])
    assert training.agent_of("worker-1") == agent
    training.ends_right()


def test_with_a_long_wait_agents_that_come_back_cost_nothing_and_a_pod_is_replaced_by_hand(
    make_training: MakeTraining,
) -> None:
    training = make_training(service={"replace_after_seconds": 600})
    training.look()
    agent, faults = training.agent_of("worker-1"), training.cluster.faults
    faults.freeze_agent(agent)
    training.trains()
    faults.thaw_agent(agent)
    eventually(lambda: reregistered(training, agent), what="the agent's registration")
    training.is_untouched()
    faults.partition_agent(agent)
    unreachable(training, "worker-1")
    training.trains()
    faults.heal_agent(agent)
    training.says(lambda job: job["tasks"]["worker-1"]["state"] == "running", "worker-1 back")
    training.is_untouched()
    assert training.incidents() == []
    faults.lose_machine(agent)
    unreachable(training, "worker-1")
    training.trains()
    assert training.job()["phase"] == "running"
    training.order("/v1/pod/worker-1/replace")
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    training.ends_right()
