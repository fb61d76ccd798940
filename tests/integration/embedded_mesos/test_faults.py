"""Faults do what they say."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from embedded_mesos import Timing
from mesos_scheduler import Scheduler, task
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., FaultyCluster]
# Without exec the shell waits in vfork(2), uninterruptible, for a child that was stopped early.
SLEEP = "exec sleep 100"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


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


def test_partitioned_agent_becomes_unreachable_and_its_task_lives_on(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        pid = started(scheduler)["container_status"]["executor_pid"]
        cluster.faults.partition_agent(0)
        assert scheduler.update("t")["state"] == "TASK_UNREACHABLE"
        assert alive(pid)
        cluster.faults.heal_agent(0)
        back = scheduler.update("t")
        assert (back["state"], back["reason"]) == ("TASK_RUNNING", "REASON_AGENT_REREGISTERED")
        assert back["container_status"]["executor_pid"] == pid


def test_task_that_ends_during_a_partition_says_so_afterwards(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        go = tmp_path / "go"
        command = f"while [ ! -e {go} ]; do sleep 0.02; done"
        scheduler.launch(offer, task(offer, "t", command))
        scheduler.run_until("t", "TASK_RUNNING")
        cluster.faults.partition_agent(0)
        scheduler.update("t", "TASK_UNREACHABLE")
        go.touch()
        eventually(lambda: not cluster.host.executor_pids(), what="the task's end")
        cluster.faults.heal_agent(0)
        scheduler.run_until("t", "TASK_FINISHED")


def test_lost_machine_takes_its_tasks_along_without_a_word(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        status = started(scheduler)
        cluster.faults.lose_machine(0)
        eventually(lambda: not alive(status["container_status"]["executor_pid"]), what="its end")
        assert scheduler.update("t")["state"] == "TASK_UNREACHABLE"
        cluster.faults.replace_machine(0)
        offer = scheduler.offer("127.0.0.1", least_cpus=4)
        assert offer["agent_id"] != status["agent_id"]


def test_frozen_machine_stops_its_tasks(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        started(scheduler)
        (entry,) = cluster.host._processes.values()
        assert entry.task_pid is not None
        state = Path(f"/proc/{entry.task_pid}/stat")
        cluster.faults.freeze_agent(0, tasks=True)
        eventually(lambda: state.read_text().split()[2] == "T", what="SIGSTOP")
        cluster.faults.thaw_agent(0)
        eventually(lambda: state.read_text().split()[2] != "T", what="SIGCONT")


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


def test_refusing_master_answers_503_for_a_while(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.refuse(60)
        text = scheduler.call("REVIVE", expect=503)
        assert text == "Master has not finished recovery"
        cluster.faults.refuse(0.3)
        eventually(lambda: _revives(scheduler), what="the end of the refusal")


def _revives(scheduler: Scheduler) -> bool:
    try:
        scheduler.call("REVIVE")
    except AssertionError:
        return False
    return True


def test_stream_is_closed_in_the_middle_of_a_record(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.close_streams_mid_record()
        eventually(lambda: scheduler.stream.closed, what="the end of the stream")


def test_half_open_stream_says_nothing_more(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.half_open_streams()
        scheduler.reconcile("unknown")
        with Scheduler(cluster.master, role="other") as other:
            other.reconcile("unknown")
            other.update("unknown")
        assert not any(event["type"] == "UPDATE" for event in scheduler.stream.events)
        assert not scheduler.stream.closed


def test_slow_answers_are_slow(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        cluster.faults.slow_answers(0.2)
        begin = time.monotonic()
        scheduler.call("REVIVE")
        assert time.monotonic() - begin >= 0.2


def test_accept_dropped_before_it_was_read_launches_nothing(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        cluster.faults.drop_accept_before()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            scheduler.launch(offer, task(offer, "t", SLEEP))
        scheduler.reconcile("t", offer["agent_id"]["value"])
        assert scheduler.update("t")["state"] == "TASK_GONE"


def test_accept_dropped_after_it_was_carried_out_launches(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        cluster.faults.drop_accept_after()
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            scheduler.launch(offer, task(offer, "t", SLEEP))
        scheduler.run_until("t", "TASK_RUNNING")


def test_offer_rescinded_while_it_is_accepted_drops_the_task(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer("127.0.0.1")
        cluster.faults.rescind_at_accept()
        scheduler.launch(offer, task(offer, "t", SLEEP))
        status = scheduler.update("t")
        assert (status["state"], status["reason"]) == ("TASK_DROPPED", "REASON_INVALID_OFFERS")


def test_redirect_names_the_leader(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    cluster.faults.redirect("127.0.0.1:5050")
    connection = http.client.HTTPConnection(cluster.master)
    body = json.dumps({"type": "SUBSCRIBE"})
    connection.request("POST", "/api/v1/scheduler", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    connection.close()
    assert response.status == 307
    assert response.getheader("Location") == "//127.0.0.1:5050/master/api/v1/scheduler"
