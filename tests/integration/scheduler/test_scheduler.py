"""The whole scheduler on an embedded cluster, from a job's beginning to its end.

What goes wrong around it is in ``tests/integration/faults``.
"""

from dcos_tensorflow.core.model.job import Outcome
from jobs.scheduled_jobs import command_job, done, wait_until


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
