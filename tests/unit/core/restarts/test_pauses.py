"""What an operator holds back stays back, whatever fails meanwhile."""

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.service_spec import Strategy
from samples.states import with_job
from simulated.scheduler import (
    fail,
    fail_process,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    starts,
    training,
)

PSS = Strategy.PARAMETER_SERVER
KILLED = "Command terminated with signal Killed"


def a_gang(**changes):
    return started(training(PSS, **changes), room_for_one_each(10))


@pytest.mark.parametrize(("exit_class", "code"), [("user_error", 1), ("interrupted", 137)])
def test_while_recovery_is_paused_no_process_starts_again(exit_class, code):
    scheduler = a_gang()
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    fail_process(scheduler, "worker-1", exit_class, code)
    scheduler.run(60)
    assert starts(scheduler)["worker-1"] == 1
    assert "recovery is paused" in scheduler.state.job.why


@pytest.mark.parametrize("phase", ["", "worker"])
def test_while_the_deployment_is_paused_no_process_starts_again(phase):
    scheduler = a_gang()
    # Its first member fails before all of them have run.
    scheduler.state = with_job(scheduler.state, deployed=False)
    scheduler.handle(events.PlanCommand("deploy", events.PlanVerb.PAUSE, phase))
    fail_process(scheduler, "worker-1", "user_error", 1)
    scheduler.run(60)
    assert starts(scheduler)["worker-1"] == 1
    assert "the deployment is paused" in scheduler.state.job.why
    plan = plans(scheduler.state.view())["deploy"]
    steps = {s.task: s.status for part in plan.phases for s in part.steps}
    assert steps["worker-1"] is Status.WAITING
    scheduler.handle(events.PlanCommand("deploy", events.PlanVerb.RESUME, phase))
    scheduler.run(10)
    assert starts(scheduler)["worker-1"] == 2


def test_a_paused_recovery_holds_no_restart_back_that_an_operator_asks_for():
    scheduler = a_gang()
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-1",)))
    scheduler.run(10)
    assert starts(scheduler)["worker-1"] == 2


def test_a_paused_task_that_is_launched_anew_is_not_started():
    scheduler = a_gang()
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("worker-1",)))
    scheduler.run(5)
    lose_agent_of(scheduler, "worker-1")
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.runner("worker-1").starts == ()


def test_a_paused_task_of_a_gang_that_is_launched_as_a_whole_is_not_started():
    scheduler = a_gang()
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("worker-1",)))
    scheduler.run(5)
    for name in list(scheduler.state.tasks):
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FAILED, KILLED)
    recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.runner("worker-1").starts == ()
    assert scheduler.cluster.runner("worker-0").state == "running"


def test_a_paused_evaluator_that_is_launched_anew_is_not_started():
    scheduler = a_gang(evaluator=1)
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("evaluator-0",)))
    scheduler.run(5)
    fail(scheduler, "evaluator-0", KILLED)
    recover(scheduler, 30)
    assert scheduler.cluster.runner("evaluator-0").starts == ()
    scheduler.handle(events.PodCommand(events.PodVerb.RESUME, ("evaluator-0",)))
    scheduler.run(5)
    assert scheduler.cluster.runner("evaluator-0").state == "running"


def test_a_task_out_of_reach_stops_with_the_gang_that_is_paused():
    spec = training(Strategy.MULTI_WORKER, ps=0, replace_after_seconds=300.0)
    scheduler = started(spec, room_for_one_each(10))
    agent = lose_agent_of(scheduler, "worker-0")
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("worker-1",)))
    scheduler.run(10)
    scheduler.cluster.bring_back(agent)
    scheduler.run(10)
    assert scheduler.cluster.runner("worker-0").state == "held"


def test_a_gang_whose_pause_ends_while_a_member_is_away_starts_as_one():
    spec = training(Strategy.MULTI_WORKER, ps=0, replace_after_seconds=300.0)
    scheduler = started(spec, room_for_one_each(10))
    agent = lose_agent_of(scheduler, "worker-0")
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("worker-1",)))
    scheduler.run(10)
    scheduler.handle(events.PodCommand(events.PodVerb.RESUME, ("worker-1",)))
    scheduler.run(10)
    scheduler.cluster.bring_back(agent)
    scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert len({r.ordered_at for r in scheduler.state.tasks.values()}) == 1
