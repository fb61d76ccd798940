"""How something failed can be told late: until then it is not guessed, and costs what it should."""

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.offers.reconciliation import EXPLANATION_SECONDS
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.scheduler import fail_process, recover, started, training

OUT_OF_MEMORY = ("Command exited with status 137", "REASON_CONTAINER_LIMITATION_MEMORY")


def incidents(scheduler):
    return [(i.task, i.kind, i.charged, i.collateral) for i in scheduler.state.job.incidents]


def whose_update_is_lost(strategy=Strategy.PARAMETER_SERVER):
    """A worker has failed, its update went to a scheduler that is gone; a new one asks."""
    scheduler = started(training(strategy, ps=0 if strategy is Strategy.MULTI_WORKER else 2))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FAILED, *OUT_OF_MEMORY)
    cluster.outbox.clear()
    scheduler.restart()
    return scheduler


def test_a_failure_that_an_answer_tells_of_is_no_incident_before_its_update_says_how():
    scheduler = whose_update_is_lost()
    scheduler.run(3)
    assert scheduler.state.tasks["worker-0"].state is TaskState.RUNNING
    assert incidents(scheduler) == []
    assert "worker-0 has failed, and how is still to be told" in scheduler.whys()


def test_a_failure_that_an_answer_tells_of_costs_what_its_update_says():
    scheduler = whose_update_is_lost()
    scheduler.run(15)
    assert incidents(scheduler) == [("worker-0", "out of memory", True, ())]


def test_an_update_that_is_lost_with_its_agent_is_not_waited_for_for_ever():
    scheduler = whose_update_is_lost()
    scheduler.cluster.tasks[scheduler.state.tasks["worker-0"].task_id].retry_at = float("inf")
    scheduler.run(EXPLANATION_SECONDS + 90)
    assert incidents(scheduler) == [("worker-0", "interrupted", False, ())]
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_task_that_finished_needs_no_explanation():
    scheduler = started(training(Strategy.PARAMETER_SERVER))
    scheduler.cluster.report(scheduler.cluster.id_of("chief-0"), TaskState.FINISHED)
    scheduler.cluster.outbox.clear()
    scheduler.restart()
    scheduler.run(1)
    assert scheduler.state.job.phase is not JobPhase.RUNNING
    assert scheduler.state.tasks["chief-0"].state is TaskState.FINISHED


def test_when_the_job_ends_anyway_no_explanation_is_waited_for():
    scheduler = started(training(Strategy.BETWEEN_GRAPH))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("chief-0"), TaskState.FINISHED)
    scheduler.run(1)
    cluster.report(cluster.id_of("worker-0"), TaskState.FAILED, *OUT_OF_MEMORY)
    cluster.outbox.clear()
    scheduler.restart()
    scheduler.run(1)
    assert scheduler.state.tasks["worker-0"].state is TaskState.FAILED


@pytest.mark.parametrize("seconds", [5, 20, 60])
def test_a_cause_that_is_seen_long_after_its_effect_costs_what_it_costs(seconds):
    scheduler = started(training(Strategy.MULTI_WORKER, ps=0))
    task_id = scheduler.cluster.id_of("worker-0")
    scheduler.cluster.report(task_id, TaskState.FAILED, *OUT_OF_MEMORY)
    scheduler.cluster.outbox.clear()
    scheduler.cluster.tasks[task_id].retry_at = scheduler.cluster.now + seconds
    fail_process(scheduler, "worker-1", "peer_lost", 1)
    scheduler.run(seconds - 2)
    assert incidents(scheduler) == [("worker-1", "peer lost", False, ())]
    scheduler.run(3)
    assert incidents(scheduler) == [("worker-0", "out of memory", True, ("worker-1",))]


def test_what_fails_after_a_restart_is_no_late_cause_of_it():
    scheduler = started(training(Strategy.MULTI_WORKER, ps=0))
    fail_process(scheduler, "worker-1", "peer_lost", 1)
    recover(scheduler, 60)
    fail_process(scheduler, "worker-0", "user_error", 1)
    assert incidents(scheduler) == [
        ("worker-1", "peer lost", False, ()),
        ("worker-0", "failed", True, ()),
    ]


@pytest.mark.parametrize(
    "end",
    [(TaskState.UNREACHABLE,), (TaskState.FAILED, *OUT_OF_MEMORY)],
    ids=["its agent is lost", "its container dies"],
)
def test_a_failure_that_was_charged_is_not_charged_again_by_what_comes_later(end):
    scheduler = started(training(Strategy.PARAMETER_SERVER))
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    fail_process(scheduler, "ps-1", "user_error", 1)
    scheduler.run(30)
    fail_process(scheduler, "ps-0", "peer_lost", 1)
    scheduler.cluster.report(scheduler.cluster.id_of("ps-1"), *end)
    scheduler.run(3)
    assert scheduler.state.tasks["ps-1"].state is end[0]
    assert [(task, charged) for task, _, charged, _ in incidents(scheduler)] == [
        ("ps-1", True),
        ("ps-0", False),
    ]
