"""Agents and their machines fail; the tasks on them are real processes."""

import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.processes import descendants
from embedded_mesos import Timing
from masters.mesos_scheduler import Scheduler, task
from waiting import eventually, stays

Json = dict[str, Any]
MakeCluster = Callable[..., FaultyCluster]
SLEEP = "exec sleep 100"
#: An agent may be away for as long as a test needs to bring it back: it is not unreachable then.
PATIENT = Timing(allocation=0.1, agent_ping=15)
#: Counts in a session and a process group of its own, as a user's process below a runner does.
COUNTS = "setsid sh -c 'i=0; while :; do i=$((i+1)); echo $i >{0}; sleep 0.02; done' & wait"


def state(pid: int) -> str:
    """Return the state letter of a process; empty when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    return state(pid) not in ("", "Z", "X")


def started(scheduler: Scheduler, task_id: str = "t", command: str = SLEEP) -> Json:
    offer = scheduler.offer("127.0.0.1", least_cpus=0.1)
    scheduler.launch(offer, task(offer, task_id, command))
    return scheduler.run_until(task_id, "TASK_RUNNING")


def counting(scheduler: Scheduler, file: Path) -> None:
    started(scheduler, command=COUNTS.format(file))
    eventually(file.exists, what="the first count")


def goes_on(file: Path) -> None:
    """Wait until the counter changes."""
    before = file.read_text()
    eventually(lambda: file.read_text() not in ("", before), what="a further count")


def stands_still(file: Path) -> bool:
    """Say whether the counter does not change for a moment."""
    before = file.read_text()
    return stays(lambda: file.read_text() in ("", before), 0.3)


# -- agents die and come back ------------------------------------------------------------------


def test_task_works_on_while_its_agent_is_away(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        pids = cluster.faults.task_pids("t")
        cluster.faults.crash_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        goes_on(file)
        cluster.faults.restart_agent(0)
        back = scheduler.update("t", "TASK_RUNNING")
        assert back["reason"] == "REASON_AGENT_REREGISTERED"
        assert cluster.faults.task_pids("t")[0] == pids[0]


def test_task_is_killed_through_an_agent_that_was_restarted(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        (pid,) = cluster.faults.task_pids("t")
        cluster.faults.crash_agent(0)
        cluster.faults.restart_agent(0)
        scheduler.kill("t")
        scheduler.run_until("t", "TASK_KILLED")
        assert not alive(pid)


def test_task_that_ends_while_its_agent_is_away_says_so_afterwards(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, go = make_cluster(), tmp_path / "go"
    with Scheduler(cluster.master) as scheduler:
        started(scheduler, command=f"while [ ! -e {go} ]; do sleep 0.02; done; exit 3")
        cluster.faults.crash_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        go.touch()
        eventually(lambda: not cluster.host.executor_pids(), what="the task's end")
        cluster.faults.restart_agent(0)
        assert scheduler.run_until("t", "TASK_FAILED")["message"].endswith("status 3")


def test_lost_machine_kills_everything_that_its_tasks_started(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        pids = cluster.faults.task_pids("t")
        cluster.faults.lose_machine(0)
        eventually(lambda: not any(map(alive, pids)), what="the end of every process")
        assert stands_still(file)
        status = scheduler.update("t")
        assert status["state"] == "TASK_UNREACHABLE"
        cluster.faults.replace_machine(0)
        assert scheduler.offer("127.0.0.1", least_cpus=4)["agent_id"] != status["agent_id"]


# -- standing still and partitions -------------------------------------------------------------


def test_frozen_machine_stops_processes_in_other_sessions_too(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        cluster.faults.freeze_agent(0, tasks=True)
        scheduler.update("t", "TASK_UNREACHABLE")
        assert stands_still(file)
        cluster.faults.thaw_agent(0)
        scheduler.update("t", "TASK_RUNNING")
        goes_on(file)


def test_frozen_agent_alone_leaves_its_tasks_running(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        cluster.faults.freeze_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        goes_on(file)


def test_task_that_starts_while_its_machine_freezes_stands_still(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        scheduler.launch(offer, task(offer, "t", SLEEP))
        cluster.faults.freeze_agent(0, tasks=True)
        # Whether it stands still before its exec(2) or after is chance.
        eventually(lambda: "T" in states_below(cluster), what="SIGSTOP")
        cluster.faults.thaw_agent(0)
        scheduler.run_until("t", "TASK_RUNNING")


def states_below(cluster: FaultyCluster) -> list[str]:
    """Return the states of all that the executors have started."""
    executors = cluster.host.executor_pids().values()
    return [state(pid) for executor in executors for pid in descendants(executor)]


def test_cluster_stops_with_a_frozen_machine(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        pids = cluster.faults.task_pids("t")
        cluster.faults.freeze_agent(0, tasks=True)
    cluster.stop()
    eventually(lambda: not any(map(alive, pids)), what="the end of every process")


def test_task_that_was_launched_into_a_partition_is_dropped_at_its_end(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(timing=PATIENT)
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        cluster.faults.partition_agent(0)
        scheduler.launch(offer, task(offer, "t", SLEEP))
        cluster.faults.heal_agent(0)
        status = scheduler.update("t")
        assert (status["state"], status["reason"]) == ("TASK_DROPPED", "REASON_RECONCILIATION")
        assert not cluster.host.executor_pids()


def test_short_partition_is_not_noticed(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(timing=PATIENT)
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.partition_agent(0)
        cluster.faults.heal_agent(0)
        scheduler.reconcile("t", cluster.faults.agent_id(0))
        answer = scheduler.update("t")
        assert (answer["state"], answer["reason"]) == ("TASK_RUNNING", "REASON_RECONCILIATION")


def test_late_timer_is_not_taken_for_a_silent_master(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(timing=Timing(allocation=0.1, update_retry=600))
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        scheduler.launch(offer, task(offer, "t", SLEEP))
        scheduler.update("t", "TASK_STARTING")
        with cluster.lock:
            cluster._offset += 2 * cluster.timing.agent_timeout
            cluster.tick(cluster.now())
        scheduler.reconcile("nobody")
        scheduler.update("nobody")
        # An agent that registers again sends again what was not acknowledged.
        assert not any(event["type"] == "UPDATE" for event in scheduler.stream.events)


# -- the agent's HTTP server -------------------------------------------------------------------


def ask(cluster: FaultyCluster, seconds: float) -> int:
    """Ask an agent how it is; return the HTTP status. Raises OSError."""
    identity = cluster.agents[0].identity
    url = f"http://{identity.ip}:{identity.port}/health"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=seconds) as response:
        return int(response.status)


@pytest.mark.parametrize(
    ("order", "back"),
    [
        ("partition_agent", "heal_agent"),
        ("freeze_agent", "thaw_agent"),
        ("lose_machine", "replace_machine"),
    ],
)
def test_agent_that_cannot_be_reached_does_not_answer(
    order: str, back: str, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()
    getattr(cluster.faults, order)(0)
    with pytest.raises(TimeoutError):
        ask(cluster, 0.2)
    getattr(cluster.faults, back)(0)
    assert ask(cluster, 10) == 200


def test_crashed_agent_breaks_the_connection(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    cluster.faults.crash_agent(0)
    with pytest.raises((ConnectionError, urllib.error.URLError)):
        ask(cluster, 10)
    cluster.faults.restart_agent(0)
    assert ask(cluster, 10) == 200


# -- processes ---------------------------------------------------------------------------------


def test_task_is_killed_by_a_signal(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        cluster.faults.signal_task("t", signal.SIGKILL)
        status = scheduler.run_until("t", "TASK_FAILED")
        assert status["message"] == "Command terminated with signal Killed"


def test_tree_of_a_task_is_frozen_and_goes_on(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        cluster.faults.signal_task("t", signal.SIGSTOP, tree=True)
        assert stands_still(file)
        cluster.faults.signal_task("t", signal.SIGCONT, tree=True)
        goes_on(file)


def test_executor_that_is_killed_takes_its_task_along(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, file = make_cluster(), tmp_path / "count"
    with Scheduler(cluster.master) as scheduler:
        counting(scheduler, file)
        pids = cluster.faults.task_pids("t")
        cluster.faults.kill_executor("t")
        status = scheduler.run_until("t", "TASK_FAILED")
        assert status["reason"] == "REASON_EXECUTOR_TERMINATED"
        eventually(lambda: not any(map(alive, pids)), what="the end of every process")


# -- the master is gone for a while ------------------------------------------------------------


def test_task_that_ends_without_a_master_is_told_to_the_next_one(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    # What comes before the scheduler is back is lost, and comes again.
    cluster = make_cluster(timing=Timing(allocation=0.1, agent_ping=0.1, update_retry=0.3))
    go = tmp_path / "go"
    with Scheduler(cluster.master) as scheduler:
        started(scheduler, command=f"while [ ! -e {go} ]; do sleep 0.02; done")
        cluster.faults.stop_master()
        go.touch()
        eventually(lambda: not cluster.host.executor_pids(), what="the task's end")
        cluster.faults.start_master()
        with Scheduler(cluster.master, framework_id=scheduler.framework_id) as again:
            again.run_until("t", "TASK_FINISHED")


def test_agent_that_does_not_come_back_to_a_new_master_is_unreachable(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    cluster.faults.reregister_seconds = 0.3
    with Scheduler(cluster.master) as scheduler:
        agent_id = started(scheduler)["agent_id"]["value"]
        cluster.faults.partition_agent(0)
        cluster.faults.lose_master()
    with Scheduler(cluster.master, framework_id=scheduler.framework_id) as again:
        unreachable = cluster.core.state.unreachable_agents
        eventually(lambda: agent_id in unreachable, what="the end of the wait for agents")
        again.reconcile("t", agent_id)
        assert again.update("t")["state"] == "TASK_UNREACHABLE"
        cluster.faults.heal_agent(0)
        again.offer("127.0.0.1", least_cpus=3.9)
        again.reconcile("t", agent_id)
        assert again.update("t")["state"] == "TASK_RUNNING"
