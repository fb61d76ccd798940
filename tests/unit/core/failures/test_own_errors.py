"""A failure that is the code's own ends the job: the same error twice, or one that all have."""

import pytest

from dcos_tensorflow.core.failures.own_errors import repetitions
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import Incident, JobPhase, Outcome
from dcos_tensorflow.core.model.own_error import OwnError, own_error_of
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.scheduler import Scheduler, fail, recover, started, starts, training

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS, ALONE = Strategy.BETWEEN_GRAPH, Strategy.INDEPENDENT
#: An exception and its line in the user's code.
MISSING, OTHER = ("AttributeError", 7), ("ValueError", 30)
ALIKE = OwnError("AttributeError", "train.py", 7)


def a_job(strategy: Strategy = PSS, *, chief: int = 1, worker: int = 2, **retry: int) -> Scheduler:
    ps = 2 if strategy in (PSS, SESSIONS) else 0
    spec = training(strategy, ps=ps, chief=chief, worker=worker, retry=RetrySpec(**retry))
    return started(spec)


def one_worker(**retry: int) -> Scheduler:
    return a_job(ALONE, chief=0, worker=1, **retry)


def raise_in(
    scheduler: Scheduler, *names: str, error: tuple[str, int] = MISSING, step: int | None = None
) -> None:
    """Let the processes of tasks end of an exception, one after the other, and see it."""
    for name in names:
        runner = scheduler.cluster.runner(name)
        runner.step = step
        runner.fail("user_error", 1, f"{error[0]} at {error[1]}", error)
        scheduler.run(0.1, tick=0.1)


def verdict(scheduler: Scheduler) -> str:
    found = scheduler.state.job.verdict
    assert found is None or found.outcome is Outcome.FAILED
    return found.summary if found is not None else ""


def test_the_same_error_twice_without_a_step_between_ends_the_job():
    scheduler = a_job(PSS)
    raise_in(scheduler, "chief-0")
    recover(scheduler, 20)
    assert "chief-0 starts again (retry 1 of 3)" in scheduler.whys()
    assert starts(scheduler)["chief-0"] == 2
    raise_in(scheduler, "chief-0")
    assert "2 times the same error at the same line" in verdict(scheduler)
    assert scheduler.state.job.verdict.exit_code == 1
    scheduler.run(60)
    assert scheduler.cluster.alive() == []


def test_another_error_and_another_line_are_other_failures():
    scheduler = a_job(PSS)
    for error in (MISSING, OTHER, ("AttributeError", 8)):
        raise_in(scheduler, "chief-0", error=error)
        assert verdict(scheduler) == ""
        recover(scheduler, 40)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_error_that_comes_again_after_another_one_is_the_same():
    scheduler = a_job(PSS)
    for error in (MISSING, OTHER):
        raise_in(scheduler, "chief-0", error=error)
        recover(scheduler, 40)
    raise_in(scheduler, "chief-0")
    assert "2 times" in verdict(scheduler)


def test_an_interruption_between_two_failures_is_no_progress():
    scheduler = a_job(PSS)
    raise_in(scheduler, "chief-0")
    recover(scheduler, 20)
    fail(scheduler, "chief-0", "Command terminated with signal Killed")
    recover(scheduler, 20)
    raise_in(scheduler, "chief-0")
    assert "2 times" in verdict(scheduler)


def test_a_flaky_job_that_gets_further_in_between_goes_on():
    scheduler = one_worker()
    for step in (3, 6, 9):
        raise_in(scheduler, "worker-0", step=step)
        assert verdict(scheduler) == ""
        recover(scheduler, 40)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_job_that_begins_anew_and_fails_at_another_step_goes_on():
    scheduler = one_worker()
    for step in (90, 30):
        raise_in(scheduler, "worker-0", step=step)
        recover(scheduler, 40)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_job_that_fails_at_the_same_step_again_ends():
    scheduler = one_worker()
    raise_in(scheduler, "worker-0", step=5)
    recover(scheduler, 20)
    raise_in(scheduler, "worker-0", step=5)
    assert "2 times" in verdict(scheduler)


def test_a_job_that_tells_no_step_has_got_somewhere_when_it_ran_for_long():
    scheduler = one_worker()
    for _ in range(2):
        scheduler.run(600, tick=10)
        raise_in(scheduler, "worker-0")
        recover(scheduler, 20)
    assert verdict(scheduler) == ""


def test_a_start_that_takes_minutes_is_no_progress():
    scheduler = one_worker()
    scheduler.run(150, tick=10)
    raise_in(scheduler, "worker-0")
    assert verdict(scheduler) == ""
    recover(scheduler, 20)
    scheduler.run(150, tick=10)
    raise_in(scheduler, "worker-0")
    assert "2 times" in verdict(scheduler)


def test_a_newer_checkpoint_is_progress_where_no_step_is_told():
    scheduler = one_worker()
    for step in (10, 20, 30):
        scheduler.run(150, tick=10)
        scheduler.cluster.runner("worker-0").checkpoint = step
        raise_in(scheduler, "worker-0")
        assert verdict(scheduler) == ""
        recover(scheduler, 40)
    assert "the gang starts again from the last checkpoint" in scheduler.whys()


def test_the_limit_is_the_users():
    scheduler = one_worker(same_failure_limit=3)
    for _ in range(2):
        raise_in(scheduler, "worker-0")
        assert verdict(scheduler) == ""
        recover(scheduler, 20)
    raise_in(scheduler, "worker-0")
    assert "3 times" in verdict(scheduler)


def test_with_a_limit_of_one_no_error_of_the_code_is_tried_again():
    scheduler = one_worker(same_failure_limit=1)
    raise_in(scheduler, "worker-0", step=100)
    assert "the code's own, not tried again" in verdict(scheduler)


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (MWMS, ("worker-1", "chief-0", "worker-0")),
        (PSS, ("worker-0", "worker-1", "chief-0")),
        (SESSIONS, ("chief-0", "worker-0", "worker-1")),
    ],
)
def test_an_error_that_all_have_before_the_first_step_is_not_tried_again(strategy, names):
    scheduler = a_job(strategy)
    raise_in(scheduler, *names)
    assert "before the first step, in all tasks that run the code" in verdict(scheduler)
    assert scheduler.state.job.restart.count == 0


def test_one_task_is_all_tasks():
    scheduler = one_worker()
    raise_in(scheduler, "worker-0")
    assert "before the first step" in verdict(scheduler)


def test_members_may_reach_the_line_a_second_apart():
    scheduler = a_job(MWMS)
    for name in ("worker-1", "chief-0", "worker-0"):
        raise_in(scheduler, name)
        scheduler.run(0.6, tick=0.2)
    assert "in all tasks that run the code" in verdict(scheduler)


def test_members_that_do_not_fail_alike_before_the_back_off_ends_are_stopped():
    scheduler = a_job(MWMS)
    raise_in(scheduler, "worker-1")
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert starts(scheduler) == {"chief-0": 2, "worker-0": 2, "worker-1": 2}


def test_members_that_fail_alike_in_one_start_are_no_repetition():
    scheduler = a_job(PSS)
    raise_in(scheduler, "worker-0", "worker-1")
    assert verdict(scheduler) == ""


def test_an_error_of_all_after_the_first_step_is_tried_again():
    scheduler = a_job(MWMS)
    raise_in(scheduler, "worker-1", "chief-0", "worker-0", step=1)
    assert verdict(scheduler) == ""


def test_who_wants_more_tries_has_them_for_an_error_of_all_too():
    scheduler = one_worker(same_failure_limit=5)
    raise_in(scheduler, "worker-0")
    assert verdict(scheduler) == ""


def test_two_failures_are_the_same_though_the_scheduler_was_restarted_between():
    scheduler = a_job(PSS)
    raise_in(scheduler, "chief-0")
    scheduler.restart()
    recover(scheduler, 20)
    scheduler.restart()
    recover(scheduler, 5)
    raise_in(scheduler, "chief-0")
    assert "2 times" in verdict(scheduler)


def end_container(scheduler: Scheduler, name: str) -> str:
    """Let a task's container end of its process' error; return the id of the attempt."""
    task_id = scheduler.state.tasks[name].task_id
    fail(scheduler, name)
    return task_id


def silent(scheduler: Scheduler) -> Scheduler:
    """Let no sandbox be read: what one tells is the test's to say."""
    scheduler.cluster.sandboxes_are_read = False
    return scheduler


def found(task_id: str, error: OwnError | None = ALIKE) -> events.EvidenceFound:
    return events.EvidenceFound(task_id, "AttributeError: told", error=error)


def test_what_the_sandbox_tells_counts_when_it_comes_before_the_next_failure():
    scheduler = silent(a_job(PSS))
    scheduler.handle(found(end_container(scheduler, "chief-0")))
    assert verdict(scheduler) == ""
    recover(scheduler, 20)
    raise_in(scheduler, "chief-0")
    assert "2 times" in verdict(scheduler)


def test_what_the_sandbox_tells_after_the_second_failure_ends_the_job():
    scheduler = silent(a_job(PSS))
    scheduler.handle(found(end_container(scheduler, "chief-0")))
    recover(scheduler, 20)
    second = end_container(scheduler, "chief-0")
    assert verdict(scheduler) == ""
    scheduler.handle(found(second))
    assert "AttributeError: told (2 times the same error" in verdict(scheduler)


def test_what_the_sandboxes_of_all_tell_ends_the_job():
    scheduler = silent(a_job(MWMS))
    ids = [end_container(scheduler, name) for name in ("worker-1", "chief-0", "worker-0")]
    for task_id in ids:
        assert verdict(scheduler) == ""
        scheduler.handle(found(task_id))
    assert "in all tasks that run the code" in verdict(scheduler)


def test_a_sandbox_that_was_not_read_before_a_restart_of_the_scheduler_is_asked_again():
    scheduler = silent(a_job(PSS))
    scheduler.handle(found(end_container(scheduler, "chief-0")))
    recover(scheduler, 20)
    second = end_container(scheduler, "chief-0")
    scheduler.restart()
    scheduler.cluster.asked_for.clear()
    scheduler.run(0.5, tick=0.5)
    assert scheduler.cluster.asked_for == [second]
    scheduler.handle(found(second))
    assert "2 times" in verdict(scheduler)


def test_a_sandbox_that_tells_of_a_failure_that_is_known_tells_of_no_second_one():
    scheduler = a_job(PSS)
    raise_in(scheduler, "chief-0")
    task_id = end_container(scheduler, "chief-0")
    scheduler.handle(found(task_id))
    recover(scheduler, 20)
    assert verdict(scheduler) == ""
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_what_a_success_leaves_says_nothing_of_the_failures_before_it():
    scheduler = one_worker()
    raise_in(scheduler, "worker-0", step=3)
    recover(scheduler, 20)
    task_id = scheduler.state.tasks["worker-0"].task_id
    scheduler.cluster.report(task_id, TaskState.FINISHED, "", "")
    scheduler.run(1)
    scheduler.handle(events.EvidenceFound(task_id, "The job's process finished"))
    [incident] = scheduler.state.job.incidents
    assert "finished" not in incident.told
    assert "The job's process" not in scheduler.state.job.verdict.summary


def incident(at: float, step: int | None = None, **fields: object) -> Incident:
    values = {"error": ALIKE, "began_at": at - 5, "charged": True, **fields}
    return Incident("chief-0", "t", at, "failed", "", step=step, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("incidents", "times"),
    [
        pytest.param([incident(10)], 1, id="one"),
        pytest.param([incident(10), incident(20), incident(30)], 3, id="three"),
        pytest.param([incident(10, 5), incident(20, 9)], 1, id="the gang has got further"),
        pytest.param(
            [incident(10, 5), incident(20, 9, error=None, charged=False), incident(30, 5)],
            1,
            id="it had got further before it was interrupted",
        ),
        pytest.param(
            [incident(10), incident(12), incident(30)], 2, id="two of them in the same start"
        ),
        pytest.param([incident(100), incident(900, began_at=110)], 1, id="it ran for long"),
        pytest.param(
            [incident(10, checkpoint=4), incident(20, checkpoint=8)], 1, id="a newer checkpoint"
        ),
        pytest.param([incident(10), incident(20, began_at=0.0)], 1, id="an older scheduler's"),
    ],
)
def test_repetitions_are_counted_while_there_is_no_progress(incidents, times):
    assert repetitions(incidents) == times


def test_an_incident_of_an_older_scheduler_is_read():
    older = codec.to_plain(incident(10))
    del older["error"], older["began_at"], older["checkpoint"]
    assert codec.from_plain(Incident, older, "Incident").error is None
    newer = incident(10)
    assert codec.decode(Incident, codec.encode(newer)) == newer


@pytest.mark.parametrize(
    "told", [None, "AttributeError", {"exception": "E"}, {"exception": 1, "file": "f", "line": 2}]
)
def test_what_is_no_error_of_ours_is_none(told):
    assert own_error_of(told) is None
