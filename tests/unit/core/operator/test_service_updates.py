"""The step function: updates, acknowledgements, reconciliation."""

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Acknowledge, Kill, Reconcile
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from simulated.mesos import Cluster
from simulated.scheduler import begun, recover, small_job, started


def test_an_update_without_uuid_is_never_acknowledged():
    scheduler = started()
    update = events.TaskUpdate(scheduler.cluster.id_of("ps-0"), TaskState.RUNNING, "S0")
    assert scheduler.handle(update).actions == ()


def test_an_update_that_comes_twice_changes_nothing_but_is_acknowledged_again():
    scheduler = started()
    task_id = scheduler.cluster.id_of("ps-0")
    decision = scheduler.handle(events.TaskUpdate(task_id, TaskState.RUNNING, "S0", uuid="again"))
    assert decision.writes == ()
    assert decision.actions == (Acknowledge("S0", task_id, "again"),)


def test_an_older_state_does_not_take_a_running_task_back():
    scheduler = started()
    task_id = scheduler.cluster.id_of("ps-0")
    scheduler.handle(events.TaskUpdate(task_id, TaskState.STAGING, "S0"))
    assert scheduler.state.tasks["ps-0"].state is TaskState.RUNNING


def test_a_task_that_is_not_ours_to_run_is_killed():
    scheduler = started()
    decision = scheduler.handle(events.TaskUpdate("mnist__worker-9__x", TaskState.RUNNING, "S1"))
    assert Kill("mnist__worker-9__x", "S1", 0.0) in decision.actions


def test_after_registering_every_live_task_is_asked_about_with_its_agent():
    scheduler = started()
    decision = scheduler.handle(events.Registered("framework-1", "m"))
    asked = [a for a in decision.actions if isinstance(a, Reconcile)]
    assert any(len(a.tasks) == 3 and all(agent for _, agent in a.tasks) for a in asked)


def test_a_task_that_the_master_does_not_know_any_more_restarts_the_gang():
    scheduler = started()
    del scheduler.cluster.tasks[scheduler.cluster.id_of("ps-0")]
    scheduler.handle(events.Registered("framework-1", "m"))
    recover(scheduler)
    assert scheduler.state.epoch.epoch == 2
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_unanswered_reconciliation_is_asked_again_later():
    scheduler = started()
    scheduler.handle(events.Registered("framework-1", "m"))
    scheduler.cluster.outbox.clear()
    scheduler.cluster.now += 30
    decision = scheduler.handle(events.Tick())
    assert any(isinstance(a, Reconcile) for a in decision.actions)


def test_an_accept_that_surely_failed_launches_the_gang_again():
    scheduler = begun(small_job(), Cluster())
    ids = tuple(r.task_id for r in scheduler.state.live_tasks)
    scheduler.cluster.tasks.clear()
    scheduler.handle(events.CallFailed("ACCEPT", "offer is gone", False, (), ids))
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert not any(i.charged for i in scheduler.state.job.incidents)


def test_an_accept_without_an_answer_is_asked_about_and_never_repeated():
    scheduler = begun(small_job(), Cluster())
    ids = tuple(r.task_id for r in scheduler.state.live_tasks)
    scheduler.handle(events.CallFailed("ACCEPT", "timed out", True, (), ids))
    scheduler.run(5)
    accepts = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Accept)]
    asked = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Reconcile)]
    assert len(accepts) == 1
    assert any(set(ids) == {task_id for task_id, _ in a.tasks} for a in asked)


def test_a_kill_that_had_no_effect_is_sent_again():
    scheduler = started()
    scheduler.handle(events.StopRequested("stop"))
    scheduler.cluster.outbox.clear()
    scheduler.cluster.tasks[scheduler.cluster.launch_history[0]].state = TaskState.RUNNING
    scheduler.cluster.now += 60
    decision = scheduler.handle(events.Tick())
    assert any(isinstance(a, Kill) for a in decision.actions)
