"""The step function, one situation a test: events in, decisions out."""

from __future__ import annotations

import dataclasses

import pytest

from dcos_tensorflow.core import contract, events
from dcos_tensorflow.core.actions import (
    Accept,
    Acknowledge,
    Decline,
    Kill,
    Reconcile,
    Revive,
    Suppress,
)
from dcos_tensorflow.core.job import JobPhase, Outcome
from dcos_tensorflow.core.plan import deploy_plan
from dcos_tensorflow.core.resources import Resources
from dcos_tensorflow.core.spec import (
    GangSpec,
    OutcomePolicy,
    RetrySpec,
    RoleSpec,
    TaskRole,
)
from dcos_tensorflow.core.task import TaskState
from simulated_mesos import Cluster, Scheduler, small_job, started


def with_evaluator():
    spec = small_job()
    small = Resources(cpus=1, mem=1024, disk=100)
    return dataclasses.replace(spec, roles=(*spec.roles, RoleSpec(TaskRole.EVALUATOR, 1, small)))


def fail(scheduler: Scheduler, name: str, message: str = "Command exited with status 1", **more):
    cluster = scheduler.cluster
    cluster.report(cluster.id_of(name), TaskState.FAILED, message, **more)
    scheduler.run(1)


def recover(scheduler: Scheduler, seconds: float = 150) -> None:
    scheduler.run(seconds)
    scheduler.cluster.run_everything()
    scheduler.run(1)


# Placing and launching.


def test_a_gang_that_fits_is_launched_whole_in_one_step():
    scheduler = Scheduler(small_job(), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(2)
    accepts = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Accept)]
    assert sorted(t.name for a in accepts for t in a.launches) == ["ps-0", "worker-0", "worker-1"]


def test_every_task_record_is_committed_before_its_accept_is_sent():
    class Checked(Scheduler):
        def before_action(self, action):
            if isinstance(action, Accept):
                for launch in action.launches:
                    assert launch.task_id in self.store[f"Tasks/{launch.name}/TaskInfo"].decode()

    scheduler = Checked(small_job(), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(2)
    assert len(scheduler.cluster.launch_history) == 3


def test_a_gang_that_does_not_fit_launches_nothing():
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.run(30)
    assert cluster.launch_history == []


def test_a_gang_that_waits_says_why():
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.run(3)
    assert "cpus" in scheduler.state.job.why


def test_offers_are_not_held_longer_than_the_gang_may_hold_them():
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(gang=GangSpec(hold_seconds=5)), cluster)
    cluster.subscribe()
    scheduler.run(8)
    held = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Decline)]
    assert held
    assert cluster.offers == {}


def test_offers_of_agents_too_small_for_any_task_go_back_at_once():
    cluster = Cluster(agents=2, resources=Resources(cpus=0.5, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.run(1)
    assert cluster.offers == {}


def test_a_gang_completed_by_later_offers_is_launched():
    cluster = Cluster(agents=2, resources=Resources(cpus=2, mem=8192, disk=10000))
    cluster.agents["S1"].reachable = False
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.run(3)
    cluster.agents["S1"].reachable = True
    scheduler.run(30)
    assert len(cluster.launch_history) == 3


def test_once_everything_runs_offers_are_suppressed():
    scheduler = started()
    assert scheduler.cluster.suppressed
    assert scheduler.cluster.offers == {}


def test_each_launch_has_its_own_ports():
    scheduler = started()
    ports = [p for t in scheduler.cluster.tasks.values() for p in t.launch.ports]
    assert len(set(ports)) == len(ports) == 6


def test_the_runner_token_is_in_no_visible_environment():
    scheduler = started()
    for task in scheduler.cluster.tasks.values():
        token = task.launch.secret_env[contract.RUNNER_TOKEN_VARIABLE]
        assert token not in str(task.launch.env) + task.launch.command + str(task.launch.labels)


def test_an_evaluator_that_finds_no_room_does_not_hold_up_the_gang():
    cluster = Cluster(agents=1, resources=Resources(cpus=3, mem=8192, disk=10000))
    scheduler = Scheduler(with_evaluator(), cluster)
    cluster.subscribe()
    scheduler.run(2)
    assert sorted(scheduler.state.tasks) == ["ps-0", "worker-0", "worker-1"]


def test_an_evaluator_that_finds_no_room_says_why():
    cluster = Cluster(agents=1, resources=Resources(cpus=3, mem=8192, disk=10000))
    scheduler = Scheduler(with_evaluator(), cluster)
    cluster.subscribe()
    scheduler.run(2)
    assert [m.task for m in scheduler.state.misfits] == ["evaluator-0"]


def test_a_sidecar_is_not_placed_while_an_old_gang_is_still_being_stopped():
    scheduler = started(with_evaluator())
    evaluator = scheduler.cluster.id_of("evaluator-0")
    scheduler.cluster.report(evaluator, TaskState.FAILED, "Command exited with status 1")
    scheduler.drain()
    # What a crash in the middle of a split commit leaves: members, but neither epoch nor phase.
    job = dataclasses.replace(scheduler.state.job, phase=JobPhase.PLACING)
    scheduler.state = dataclasses.replace(scheduler.state, job=job, epoch=None)
    scheduler.cluster.now += 100
    scheduler.cluster.make_offers()
    launched = len(scheduler.cluster.launch_history)
    scheduler.handle(scheduler.cluster.outbox.pop())
    assert len(scheduler.cluster.launch_history) == launched


def test_an_evaluator_follows_when_room_appears():
    cluster = Cluster(agents=1, resources=Resources(cpus=3, mem=8192, disk=10000))
    scheduler = Scheduler(with_evaluator(), cluster)
    cluster.subscribe()
    scheduler.run(2)
    cluster.run_everything()
    cluster.agents["S0"].free = Resources(cpus=1, mem=4096, disk=5000)
    scheduler.run(30)
    assert "evaluator-0" in scheduler.state.tasks


# Outcome.


def test_when_the_decider_finishes_the_job_has_succeeded_and_everything_is_given_back():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert scheduler.state.job.phase is JobPhase.DONE
    assert cluster.alive() == []


def test_the_others_may_end_by_themselves_within_the_grace():
    scheduler = started(small_job(outcome_grace_seconds=30.0))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.job.phase is JobPhase.FINISHING
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.DONE


def test_a_parameter_server_ended_by_the_policy_is_no_failure():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.tasks["ps-0"].state is TaskState.KILLED
    assert scheduler.state.job.verdict.exit_code == 0


def test_with_all_workers_one_finished_worker_is_not_the_end():
    scheduler = started(small_job(outcome=OutcomePolicy.ALL_WORKERS))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_worker_that_fails_after_the_decider_finished_changes_nothing():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(1)
    fail(scheduler, "worker-1")
    scheduler.run(20)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_decider_that_finished_while_the_gang_was_being_stopped_has_decided():
    scheduler = started()
    cluster = scheduler.cluster
    fails, finishes = cluster.id_of("worker-1"), cluster.id_of("worker-0")
    cluster.report(fails, TaskState.FAILED, "Command exited with status 1")
    cluster.report(finishes, TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert len(cluster.launch_history) == 3


def test_a_finished_job_is_never_run_again_by_a_restarted_scheduler():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(60)
    scheduler.restart()
    scheduler.run(60)
    assert len(cluster.launch_history) == 3


def test_a_stop_ends_every_task_and_the_verdict_is_stopped():
    scheduler = started()
    scheduler.handle(events.StopRequested("asked for by a person"))
    scheduler.run(5)
    assert scheduler.cluster.alive() == []
    assert scheduler.state.job.verdict.outcome is Outcome.STOPPED


def test_a_stop_while_the_gang_waits_for_offers_ends_at_once():
    scheduler = Scheduler(small_job(), Cluster(agents=0))
    scheduler.cluster.subscribe()
    scheduler.run(2)
    scheduler.handle(events.StopRequested("asked for by a person"))
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.DONE


# Simple recovery: the gang is stopped and started again.


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


# Updates, acknowledgements, reconciliation.


def test_an_update_is_acknowledged_after_everything_else_of_its_step():
    scheduler = started()
    cluster = scheduler.cluster
    task_id = cluster.id_of("worker-1")
    cluster.report(task_id, TaskState.FAILED, "Command exited with status 1")
    decision = scheduler.handle(cluster.outbox.pop(0))
    assert isinstance(decision.actions[-1], Acknowledge)
    assert decision.writes


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
    scheduler = Scheduler(small_job(), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(2)
    ids = tuple(r.task_id for r in scheduler.state.live_tasks)
    scheduler.cluster.tasks.clear()
    scheduler.handle(events.CallFailed("ACCEPT", "offer is gone", False, (), ids))
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert not any(i.charged for i in scheduler.state.job.incidents)


def test_an_accept_without_an_answer_is_asked_about_and_never_repeated():
    scheduler = Scheduler(small_job(), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(2)
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


# Masters, agents, restarts.


def test_while_disconnected_nothing_is_asked_of_the_master():
    scheduler = started()
    scheduler.handle(events.Disconnected("stream closed"))
    scheduler.handle(events.StopRequested("stop"))
    scheduler.cluster.now += 600
    assert scheduler.handle(events.Tick()).actions == ()


def test_a_master_that_cannot_be_reached_is_named_to_whoever_waits():
    scheduler = Scheduler(small_job(), Cluster())
    scheduler.handle(events.Disconnected("10.0.0.1:5050: Connection refused"))
    waiting = deploy_plan(scheduler.state).phases[0].steps[0].message
    assert "10.0.0.1:5050: Connection refused" in waiting
    scheduler.cluster.subscribe()
    scheduler.run(1)
    assert scheduler.state.disconnected == ""


def test_a_restarted_scheduler_carries_on_with_the_tasks_that_run():
    scheduler = started()
    scheduler.restart()
    scheduler.run(60)
    assert len(scheduler.cluster.launch_history) == 3
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_retries_and_back_off_survive_a_restart():
    scheduler = started()
    fail(scheduler, "worker-1")
    before = scheduler.state.job
    scheduler.restart()
    assert scheduler.state.job == before


def test_an_unreachable_member_restarts_the_gang_and_is_killed_when_it_comes_back():
    scheduler = started()
    cluster = scheduler.cluster
    old = cluster.id_of("worker-1")
    agent = cluster.agents[cluster.tasks[old].launch.agent_id]
    agent.reachable = False
    for task_id in list(cluster.alive()):
        scheduler.handle(
            events.TaskUpdate(task_id, TaskState.UNREACHABLE, agent.agent_id, source="MASTER")
        )
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    agent.reachable = True
    cluster.outbox.append(events.TaskUpdate(old, TaskState.RUNNING, agent.agent_id))
    scheduler.run(5)
    assert not cluster.tasks[old].alive


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


def test_nothing_is_placed_before_the_master_has_answered_about_attempts_that_were_given_up():
    scheduler = started()
    cluster = scheduler.cluster
    agent = cluster.agents[scheduler.state.tasks["worker-1"].agent_id]
    agent.reachable = False
    for task_id in cluster.alive():
        scheduler.handle(events.TaskUpdate(task_id, TaskState.UNREACHABLE, agent.agent_id))
    scheduler.handle(events.Registered("framework-1", "m"))
    cluster.outbox.clear()
    cluster.now += 4
    scheduler.handle(events.Tick())
    other = Cluster(agents=3)
    other.make_offers()
    offers = [o for o in other.outbox[0].offers if o.agent_id != agent.agent_id]
    decision = scheduler.handle(events.OffersReceived(tuple(offers)))
    assert not any(isinstance(a, Accept) for a in decision.actions)


def test_a_refused_framework_ends_the_scheduler_and_leaves_the_tasks_alone():
    scheduler = started()
    scheduler.handle(events.FrameworkRefused("Framework failed over"))
    assert scheduler.exit is not None
    assert len(scheduler.cluster.alive()) == 3


def test_a_first_subscription_needs_no_revive():
    scheduler = Scheduler(small_job(), Cluster(agents=0))
    decision = scheduler.handle(events.Registered("framework-1", "m"))
    assert not any(isinstance(a, Revive) for a in decision.actions)


def test_offers_are_asked_for_as_soon_as_a_failed_gang_may_start_again():
    scheduler = started()
    fail(scheduler, "worker-1")
    scheduler.run(5)
    assert scheduler.state.job.phase is JobPhase.STARTING


def test_suppression_is_repeated_after_a_new_subscription():
    scheduler = started()
    decision = scheduler.handle(events.Registered("framework-1", "m"))
    assert any(isinstance(a, Suppress) for a in decision.actions)


def test_a_gang_that_does_not_come_up_in_time_is_started_again():
    scheduler = Scheduler(small_job(gang=GangSpec(start_seconds=60)), Cluster())
    scheduler.cluster.subscribe()
    scheduler.run(70)
    assert scheduler.state.job.incidents[0].kind == "start timed out"
