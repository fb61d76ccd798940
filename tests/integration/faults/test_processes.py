"""A process of the job dies, or stands still: the user's, the task runner, the executor."""

import os
import signal
import time

import pytest

from dcos_tensorflow.core.restarts import restarts
from waiting import eventually, stays

from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)


def test_the_process_of_a_worker_is_killed(training: ScheduledTraining) -> None:
    training.signal("worker-1", signal.SIGKILL)
    job = training.recovers("worker-1")
    assert [i["task"] for i in job["incidents"]] == ["worker-1"]
    assert "worker-1 failed" in training.told()
    assert training.plan("recovery") == "COMPLETE"
    training.ends_right()


def test_the_process_of_a_ps_is_killed(training: ScheduledTraining) -> None:
    training.signal("ps-0", signal.SIGKILL)
    job = training.recovers("ps-0", "chief-0")
    assert [i["task"] for i in job["incidents"]] == ["ps-0"]
    training.ends_right()


def test_the_process_of_the_chief_is_killed(training: ScheduledTraining) -> None:
    training.signal("chief-0", signal.SIGKILL)
    job = training.recovers("chief-0")
    assert [i["task"] for i in job["incidents"]] == ["chief-0"]
    training.ends_right()


def test_a_task_runner_is_killed(training: ScheduledTraining) -> None:
    training.cluster.faults.signal_task(training.task_id("worker-1"), signal.SIGKILL)
    job = training.recovers("worker-1", moved=("worker-1",))
    assert [i["kind"] for i in job["incidents"]] == ["interrupted"]
    training.ends_right()


def test_an_executor_is_killed(training: ScheduledTraining) -> None:
    training.cluster.faults.kill_executor(training.task_id("ps-0"))
    job = training.recovers("ps-0", "chief-0", moved=("ps-0",))
    assert [i["kind"] for i in job["incidents"]] == ["interrupted"]
    training.ends_right()


def test_a_ps_that_is_frozen_is_found_within_15_seconds(training: ScheduledTraining) -> None:
    training.signal("ps-0", signal.SIGSTOP)
    frozen_at = time.monotonic()
    eventually(training.incidents, seconds=60, what="an incident")
    assert time.monotonic() - frozen_at < 15
    job = training.recovers("ps-0", "chief-0")
    assert [(i["task"], i["kind"]) for i in job["incidents"]] == [("ps-0", "frozen")]
    training.ends_right()


def test_a_task_runner_that_is_frozen_is_given_up_when_it_is_needed(
    training: ScheduledTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restarts, "DISOBEYED_SECONDS", 1.0)
    faults = training.cluster.faults
    runner = faults.task_pids(training.task_id("worker-1"))[0]
    os.kill(runner, signal.SIGSTOP)
    assert stays(lambda: training.job()["phase"] == "running", 1.0)
    training.is_untouched()
    training.order("/v1/pod/worker-1/restart")
    training.recovers("worker-1", moved=("worker-1",))
    assert training.incidents() == []
    training.ends_right()
