"""Faults do what they say; of the others those of ``integration/faults`` fail without them."""

import time
from collections.abc import Callable
from typing import Any

from cluster_faults import FaultyCluster
from embedded_mesos import Timing
from masters.mesos_scheduler import Scheduler, task
from processes import alive
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., FaultyCluster]
# Without exec the shell waits in vfork(2), uninterruptible, for a child that was stopped early.
SLEEP = "exec sleep 100"


def started(scheduler: Scheduler, task_id: str = "t", host: str = "127.0.0.1") -> Json:
    offer = scheduler.offer(host, least_cpus=0.1)
    scheduler.launch(offer, task(offer, task_id, SLEEP))
    return scheduler.run_until(task_id, "TASK_RUNNING")


def test_dropped_update_is_sent_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(timing=Timing(allocation=0.1, update_retry=0.3))
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.drop_updates(1, state="TASK_STARTING")
        offer = scheduler.offer()
        begin = time.monotonic()
        scheduler.launch(offer, task(offer, "t", SLEEP))
        scheduler.update("t", "TASK_STARTING")
        assert time.monotonic() - begin >= cluster.timing.update_retry


def test_delayed_update_comes_later(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.delay_updates(0.5, task_id="t")
        offer = scheduler.offer()
        begin = time.monotonic()
        scheduler.launch(offer, task(offer, "t", SLEEP))
        scheduler.update("t", "TASK_STARTING")
        assert time.monotonic() - begin >= 0.5


def test_duplicated_update_comes_twice_with_one_uuid(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.duplicate_updates(1, state="TASK_STARTING")
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, "t", SLEEP))
        assert scheduler.update("t")["uuid"] == scheduler.update("t")["uuid"]


def test_crash_of_an_agent_ends_tasks_without_checkpointing(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master, checkpoint=False) as scheduler:
        pid = started(scheduler)["container_status"]["executor_pid"]
        cluster.faults.crash_agent(0)
        assert scheduler.update("t")["state"] == "TASK_LOST"
        eventually(lambda: not alive(pid), what="the executor's end")


def test_master_that_was_lost_is_silent_about_tasks_until_their_agents_return(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        status = started(scheduler)
        cluster.faults.lose_master(agents_return=False)
        eventually(lambda: scheduler.stream.closed, what="the broken stream")
    with Scheduler(cluster.master, framework_id=scheduler.framework_id) as again:
        again.reconcile("t", status["agent_id"]["value"])
        again.reconcile()
        cluster.faults.return_agents()
        again.offer("127.0.0.1", least_cpus=3.9)
        assert not any(event["type"] == "UPDATE" for event in again.stream.events)
        again.reconcile("t", status["agent_id"]["value"])
        assert again.update("t")["state"] == "TASK_RUNNING"
        # Every agent is back: from now on an unknown task is unknown.
        again.reconcile("never-there")
        assert again.update("never-there")["state"] == "TASK_UNKNOWN"


def test_slow_answers_are_slow(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.slow_answers(0.2)
        begin = time.monotonic()
        scheduler.call("REVIVE")
        assert time.monotonic() - begin >= 0.2
