"""The whole scheduler on an embedded cluster, from a job's beginning to its end.

What goes wrong around it is in ``tests/integration/faults``.
"""

from __future__ import annotations

import pytest

from dcos_tensorflow.core.model.events import StopRequested
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.model.task import TaskState
from scheduled_jobs import command_job, done, running, wait_until

UNTIL_TOLD = 'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done'


@pytest.fixture
def lasting(marks):
    """A job that ends when the test says so."""
    return command_job(UNTIL_TOLD.format(marks=marks))


def test_a_job_runs_to_its_end_and_gives_everything_back(schedule):
    scheduler = schedule(command_job("echo step 1 loss 0.5"))
    state = wait_until(scheduler, done)
    assert state.job.verdict.outcome is Outcome.SUCCEEDED
    assert all(record.terminal for record in state.tasks.values())


def test_the_result_of_the_deciding_task_is_kept(schedule):
    scheduler = schedule(command_job("""echo 'result: {"test_accuracy": 0.5}'"""))
    assert wait_until(scheduler, done).job.result == {"test_accuracy": 0.5}


def test_the_verdict_of_a_failed_job_tells_the_last_words_of_the_task(schedule):
    scheduler = schedule(command_job("echo no such number >&2; exit 7", workers=1))
    state = wait_until(scheduler, done)
    assert (state.job.verdict.outcome, state.job.verdict.exit_code) == (Outcome.FAILED, 7)
    assert any(
        "no such number" in line for e in state.told.evidence.values() for line in e.last_lines
    )


def test_a_master_that_refuses_for_a_while_is_waited_for(schedule, cluster):
    cluster.faults.refuse(1.0)
    scheduler = schedule(command_job("true"))
    assert wait_until(scheduler, done).job.verdict.outcome is Outcome.SUCCEEDED


def test_a_stop_ends_the_processes_of_the_tasks(schedule, lasting):
    scheduler = schedule(lasting)
    wait_until(scheduler, running)
    scheduler.submit(StopRequested("the test ends it"))
    state = wait_until(scheduler, done)
    assert {record.state for record in state.tasks.values()} == {TaskState.KILLED}
