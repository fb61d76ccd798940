"""The step function: masters, agents and schedulers that come and go."""

from dataclasses import replace

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Revive, Suppress
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.service_spec import RetrySpec
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, fail, recover, small_job, started


def test_while_disconnected_nothing_is_asked_of_the_master():
    scheduler = started()
    scheduler.handle(events.Disconnected("stream closed"))
    scheduler.handle(events.StopRequested("stop"))
    scheduler.cluster.now += 600
    assert scheduler.handle(events.Tick()).actions == ()


def test_a_master_that_cannot_be_reached_is_named_to_a_waiting_client():
    scheduler = Scheduler(small_job(), Cluster())
    scheduler.handle(events.Disconnected("10.0.0.1:5050: Connection refused"))
    waiting = plans(scheduler.state.view())["deploy"].phases[0].steps[0].message
    assert "10.0.0.1:5050: Connection refused" in waiting
    scheduler.cluster.subscribe()
    scheduler.run(1)
    assert scheduler.state.subscription.disconnected == ""


def test_a_restarted_scheduler_carries_on_with_the_tasks_that_run():
    scheduler = started()
    scheduler.restart()
    scheduler.run(60)
    assert len(scheduler.cluster.launch_history) == 3
    assert scheduler.state.job.phase is JobPhase.RUNNING


def remove_framework(scheduler: Scheduler) -> None:
    for task_id in scheduler.cluster.alive():
        scheduler.cluster.tasks[task_id].state = TaskState.KILLED
        scheduler.cluster._release(scheduler.cluster.tasks[task_id].launch)
    scheduler.handle(events.FrameworkRefused("Framework has been removed"))


def test_a_framework_that_was_removed_starts_its_job_again_as_a_new_one():
    scheduler = started(small_job(retry=RetrySpec(limit=0)))
    remove_framework(scheduler)
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.exit is None
    assert len(scheduler.cluster.launch_history) == 6


def test_a_removed_framework_whose_job_is_done_stays_removed():
    scheduler = started()
    scheduler.handle(events.StopRequested("stop"))
    scheduler.run(5)
    decision = scheduler.handle(events.FrameworkRefused("Framework has been removed"))
    assert decision.actions == ()
    assert decision.state.framework_id == ""


def test_a_refused_framework_ends_the_scheduler_and_leaves_the_tasks_alone():
    scheduler = started()
    scheduler.handle(events.FrameworkRefused("Framework failed over"))
    assert scheduler.exit is not None
    assert len(scheduler.cluster.alive()) == 3


def test_a_first_subscription_needs_no_revive():
    scheduler = Scheduler(small_job(), Cluster(agents=0))
    decision = scheduler.handle(events.Registered("framework-1", "m"))
    assert not any(isinstance(a, Revive) for a in decision.actions)


def test_offers_are_asked_for_as_soon_as_a_lost_member_may_be_placed_again():
    scheduler = started()
    fail(scheduler, "worker-1")
    scheduler.run(5)
    assert scheduler.state.job.phase is JobPhase.STAGING


def test_suppression_is_repeated_after_a_new_subscription():
    scheduler = started()
    decision = scheduler.handle(events.Registered("framework-1", "m"))
    assert any(isinstance(a, Suppress) for a in decision.actions)


def test_offers_are_asked_for_when_the_master_is_lost_just_before_they_are_needed():
    scheduler = started()
    scheduler.run(5)
    assert scheduler.cluster.suppressed
    # They were asked for just now, and may not be again so soon.
    desk = replace(scheduler.state.desk, revived_at=scheduler.cluster.now)
    scheduler.state = replace(scheduler.state, desk=desk)
    fail(scheduler, "worker-1", "Command terminated with signal Killed")
    assert scheduler.cluster.suppressed
    scheduler.handle(events.Disconnected("the master is gone"))
    scheduler.cluster.subscribe()
    # The driver repeats its suppression, whatever the core has come to want meanwhile.
    scheduler.cluster.suppressed = True
    scheduler.run(8)
    assert scheduler.state.job.phase is JobPhase.STAGING
