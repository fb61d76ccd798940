"""The step function: a failed gang is stopped and started again."""

from __future__ import annotations

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.job import JobPhase, Outcome
from dcos_tensorflow.core.spec import (
    RetrySpec,
)
from simulated_mesos import fail, recover, small_job, started, with_evaluator


def test_when_a_worker_fails_the_whole_gang_is_stopped_before_any_of_it_starts_again():
    scheduler = started()
    fail(scheduler, "worker-1")
    recover(scheduler)
    assert scheduler.cluster.double_starts == []
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.epoch.epoch == 2


def test_a_restarted_gang_has_new_task_ids():
    scheduler = started()
    fail(scheduler, "worker-1")
    recover(scheduler)
    assert len(set(scheduler.cluster.launch_history)) == 6


def test_failures_beyond_the_limit_end_the_job_with_the_exit_code_of_the_process():
    scheduler = started(small_job(retry=RetrySpec(limit=1)))
    fail(scheduler, "worker-1", "Command exited with status 3")
    recover(scheduler)
    fail(scheduler, "worker-1", "Command exited with status 3")
    scheduler.run(30)
    assert scheduler.state.job.verdict.outcome is Outcome.FAILED
    assert scheduler.state.job.verdict.exit_code == 3
    assert scheduler.cluster.alive() == []


def test_the_verdict_tells_what_the_sandbox_told():
    scheduler = started(small_job(retry=RetrySpec(limit=0)))
    fail(scheduler, "worker-1")
    scheduler.run(30)
    assert "it said why" in scheduler.state.job.verdict.summary


def test_a_job_that_can_never_run_is_not_tried_again():
    scheduler = started()
    fail(scheduler, "worker-1", f"Command exited with status {contract.EXIT_JOB_UNUSABLE}")
    scheduler.run(30)
    assert scheduler.state.job.verdict.outcome is Outcome.FAILED
    assert len(scheduler.cluster.launch_history) == 3


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"Command exited with status {contract.EXIT_PORT_TAKEN}", ""),
        (f"Command exited with status {contract.EXIT_CHECKPOINTED}", ""),
        ("agent restarted", "REASON_AGENT_RESTARTED"),
        ("preempted", "REASON_CONTAINER_PREEMPTED"),
    ],
)
def test_what_is_nobodys_fault_costs_no_retry(message, reason):
    scheduler = started(small_job(retry=RetrySpec(limit=0)))
    fail(scheduler, "worker-1", message, reason=reason)
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_after_a_port_was_taken_the_task_gets_another():
    scheduler = started()
    before = scheduler.state.tasks["worker-1"].ports
    fail(scheduler, "worker-1", f"Command exited with status {contract.EXIT_PORT_TAKEN}")
    recover(scheduler)
    assert scheduler.state.tasks["worker-1"].ports != before


def test_without_a_clash_a_restarted_task_keeps_its_ports():
    scheduler = started()
    before = scheduler.state.tasks["worker-1"].ports
    fail(scheduler, "worker-1")
    recover(scheduler)
    assert scheduler.state.tasks["worker-1"].ports == before


def test_each_further_failure_waits_longer():
    scheduler = started(small_job(retry=RetrySpec(limit=5)))
    waits = []
    for _ in range(3):
        fail(scheduler, "worker-1")
        waits.append(scheduler.state.job.restart_at - scheduler.cluster.now)
        recover(scheduler)
    assert waits[0] < waits[1] < waits[2]


def test_failures_outside_the_window_are_forgotten():
    scheduler = started(small_job(retry=RetrySpec(limit=1, window_seconds=600)))
    for _ in range(3):
        fail(scheduler, "worker-1")
        recover(scheduler)
        scheduler.cluster.now += 700
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_failed_evaluator_restarts_alone():
    scheduler = started(with_evaluator())
    fail(scheduler, "evaluator-0")
    recover(scheduler, 30)
    assert len(scheduler.cluster.launch_history) == 5
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_evaluator_that_keeps_failing_is_given_up_and_the_job_goes_on():
    scheduler = started(with_evaluator())
    for _ in range(4):
        fail(scheduler, "evaluator-0")
        recover(scheduler)
    assert len(scheduler.cluster.launch_history) == 4 + 3
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.suppressed
