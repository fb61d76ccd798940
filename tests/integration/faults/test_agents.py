"""An agent dies, is cut off, is taken away, or comes back when its task runs elsewhere."""

import pytest

from embedded_mesos import Timing
from waiting import eventually

from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)

#: An agent may be away for as long as a test needs to bring it back: it is not unreachable then.
PATIENT = pytest.mark.parametrize(
    "timing", [Timing(agent_ping=15, update_retry=0.5, heartbeat=0.5)], ids=["patient"]
)


def reregistered(training: ScheduledTraining, agent: int) -> bool:
    return bool(training.cluster.agents[agent].registered)


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


def test_an_agent_starts_again_with_a_new_id(training: ScheduledTraining) -> None:
    lost = training.agent_of("ps-0")
    old_id = training.cluster.faults.agent_id(lost)
    training.cluster.faults.lose_machine(lost)
    training.cluster.faults.replace_machine(lost)
    eventually(lambda: training.cluster.agents[lost].agent_id not in (None, old_id), what="an id")
    training.recovers("ps-0", "chief-0", "worker-0", "worker-1", moved=("ps-0",))
    assert old_id not in {task["agent_id"] for task in training.job()["tasks"].values()}
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
