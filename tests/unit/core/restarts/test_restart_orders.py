"""Orders to runners in a restart: all stop before any starts, and all from one checkpoint."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.cluster.orders import order
from dcos_tensorflow.core.contract import NOTHING_TO_SAVE_SECONDS
from dcos_tensorflow.core.failures.causes import START_TIMED_OUT
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import GangSpec, RetrySpec, Strategy
from simulated.scheduler import (
    begun,
    fail_process,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER


def a_gang(strategy=MWMS, **changes):
    scheduler = started(
        training(strategy, ps=0 if strategy is MWMS else 2, **changes), room_for_one_each(8)
    )
    assert scheduler.state.job.phase is JobPhase.RUNNING
    return scheduler


def test_no_task_starts_before_all_have_stopped():
    scheduler = a_gang()
    scheduler.cluster.runner("worker-0").stop_seconds = 1.5
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(1)
    assert scheduler.state.job.phase is JobPhase.STOPPING
    assert scheduler.cluster.runner("worker-0").state == "stopping"
    assert not any(t.runner.state == "running" for t in scheduler.cluster.tasks.values())
    scheduler.run(5)
    assert set(starts(scheduler).values()) == {2}


def test_processes_whose_sessions_are_broken_anyway_get_a_short_grace():
    scheduler = a_gang(kill_grace_seconds=60.0)
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(5)
    assert scheduler.cluster.runner("worker-0").graces == (NOTHING_TO_SAVE_SECONDS,)


def graces(scheduler):
    return {name: scheduler.cluster.runner(name).graces for name in scheduler.state.tasks}


def test_in_a_planned_restart_the_decider_has_its_whole_grace():
    scheduler = a_gang(kill_grace_seconds=60.0)
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-1",)))
    scheduler.run(10)
    assert graces(scheduler)["chief-0"] == (60.0,)


def test_members_whose_collectives_broke_with_the_decider_have_nothing_to_save():
    scheduler = a_gang(kill_grace_seconds=60.0)
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-1",)))
    scheduler.run(10)
    assert graces(scheduler)["worker-0"] == (NOTHING_TO_SAVE_SECONDS,)


def everybody_starts_again(scheduler):
    job = scheduler.state.spec.job
    changed = replace(scheduler.state.spec, job=replace(job, arguments=("--again",)))
    scheduler.handle(events.ConfigurationChanged(changed))


def test_servers_are_stopped_at_once_when_whom_they_serve_has_saved():
    scheduler = a_gang(PSS, kill_grace_seconds=60.0)
    scheduler.cluster.runner("chief-0").stop_seconds = 5.0
    everybody_starts_again(scheduler)
    scheduler.run(3)
    before = {n for n, told in graces(scheduler).items() if told}
    old = {n: scheduler.cluster.runner(n) for n in scheduler.state.tasks}
    scheduler.run(15)
    assert before == {"chief-0"}
    short = (NOTHING_TO_SAVE_SECONDS,)
    told = {name: runner.graces for name, runner in old.items()}
    assert told == {**dict.fromkeys(old, short), "chief-0": (60.0,)}


def test_workers_with_sessions_have_their_whole_grace_before_their_servers_stop():
    scheduler = a_gang(Strategy.BETWEEN_GRAPH, kill_grace_seconds=60.0)
    old = {n: scheduler.cluster.runner(n) for n in scheduler.state.tasks}
    old["worker-0"].stop_seconds = 5.0
    everybody_starts_again(scheduler)
    scheduler.run(4)
    assert old["worker-0"].graces == (60.0,)
    assert old["ps-0"].graces == ()
    scheduler.run(15)
    assert old["ps-0"].graces == (NOTHING_TO_SAVE_SECONDS,)


def test_independent_tasks_stop_all_at_once_each_with_its_whole_grace():
    scheduler = started(
        training(Strategy.INDEPENDENT, ps=0, kill_grace_seconds=60.0), room_for_one_each(8)
    )
    old = {n: scheduler.cluster.runner(n) for n in scheduler.state.tasks}
    for runner in old.values():
        runner.stop_seconds = 5.0
    everybody_starts_again(scheduler)
    scheduler.run(3)
    assert {runner.graces for runner in old.values()} == {(60.0,)}


def test_in_a_planned_restart_the_decider_stops_first():
    scheduler = a_gang(kill_grace_seconds=60.0)
    scheduler.cluster.runner("chief-0").stop_seconds = 5.0
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-1",)))
    scheduler.run(3)
    assert scheduler.cluster.runner("chief-0").state == "stopping"
    assert scheduler.cluster.runner("worker-1").state == "running"
    scheduler.run(15)
    assert set(starts(scheduler).values()) == {2}


@pytest.mark.parametrize("step", [None, 1200])
def test_every_member_of_a_multi_worker_gang_is_told_the_step_that_the_chief_restores(step):
    scheduler = a_gang()
    for name in scheduler.state.tasks:
        scheduler.cluster.runner(name).checkpoint = step
    scheduler.run(1)
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(5)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    told = {scheduler.cluster.runner(n).starts[-1][2] for n in scheduler.state.tasks}
    assert told == {step}


def test_a_member_with_another_checkpoint_does_not_train():
    scheduler = a_gang()
    for name in scheduler.state.tasks:
        scheduler.cluster.runner(name).checkpoint = 500 if name == "worker-1" else 600
    scheduler.run(1)
    fail_process(scheduler, "worker-0", "interrupted", 137)
    scheduler.run(3)
    assert starts(scheduler)["worker-1"] == 1
    assert scheduler.state.job.incidents[-1].kind == "checkpoints differ"


def test_with_parameter_servers_no_task_is_asked_to_agree():
    scheduler = a_gang(PSS)
    record = scheduler.state.tasks["worker-0"]
    assert "expects_restore_step" not in order(scheduler.state.view(), record)


def test_a_multi_worker_gang_is_launched_held_and_started_at_one_moment():
    scheduler = begun(training(MWMS, ps=0), room_for_one_each(8), seconds=3)
    assert scheduler.state.job.phase is JobPhase.STAGING
    assert {t.runner.state for t in scheduler.cluster.tasks.values()} == {"held"}
    scheduler.cluster.run_everything()
    scheduler.run(3)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_gang_with_parameter_servers_needs_no_scheduler_to_start():
    scheduler = begun(training(PSS), room_for_one_each(8), seconds=3)
    assert {t.runner.state for t in scheduler.cluster.tasks.values()} == {"running"}


def test_a_runner_that_does_not_stop_its_process_loses_its_container():
    scheduler = a_gang()
    before = task_ids(scheduler)
    scheduler.cluster.runner("worker-0").obeys = False
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(40)
    recover(scheduler, 20)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == {"worker-0"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_old_report_is_not_taken_for_an_answer_to_a_newer_order():
    scheduler = a_gang()
    old = scheduler.cluster.runner("worker-0").report()
    task_id = scheduler.state.tasks["worker-0"].task_id
    scheduler.cluster.runner("worker-0").stop_seconds = 1.5
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.handle(events.RunnerReported(task_id, {**old, "state": "held", "run": False}))
    assert scheduler.state.job.phase is JobPhase.STOPPING


def test_an_old_failure_is_not_taken_for_one_of_the_new_start():
    scheduler = a_gang()
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(5)
    failed = {"state": "failed", "exit": {"class": "user_error", "code": 1, "start": 1}}
    scheduler.handle(
        events.RunnerReported(scheduler.state.tasks["worker-1"].task_id, {**failed, "start": 1})
    )
    assert len(scheduler.state.job.incidents) == 1


def test_a_member_out_of_reach_is_under_no_order_of_an_older_cluster():
    scheduler = a_gang(PSS)
    record = scheduler.state.tasks["worker-0"]
    assert order(scheduler.state.view(), record)["epoch"] == scheduler.state.epoch.epoch


def test_a_member_that_a_restart_has_yet_to_stop_is_told_nothing():
    scheduler = a_gang(retry=RetrySpec(initial_backoff_seconds=8.0))
    fail_process(scheduler, "worker-1", "user_error", 1)
    scheduler.run(3)
    state = scheduler.state
    back = replace(state.tasks["worker-0"], held=False)
    assert state.job.phase is JobPhase.BACKING_OFF
    assert order(state.view(), back) is None


def test_a_member_that_is_back_during_a_back_off_is_stopped_before_anybody_starts():
    scheduler = a_gang(retry=RetrySpec(initial_backoff_seconds=8.0), replace_after_seconds=60.0)
    agent = lose_agent_of(scheduler, "worker-0")
    fail_process(scheduler, "worker-1", "user_error", 1)
    scheduler.run(3)
    assert scheduler.state.job.phase is JobPhase.BACKING_OFF
    scheduler.cluster.bring_back(agent)
    scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert set(starts(scheduler).values()) == {2}


def a_member_that_is_cut_off_before_it_has_heard_of_its_start(**changes):
    retry = RetrySpec(initial_backoff_seconds=8.0)
    scheduler = a_gang(PSS, retry=retry, replace_after_seconds=300.0, **changes)
    runner = scheduler.cluster.runner("worker-0")
    fail_process(scheduler, "worker-0", "user_error", 1)
    scheduler.run(3)
    runner.obeys = False
    scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.STARTING
    return scheduler, runner, lose_agent_of(scheduler, "worker-0")


def test_the_gang_does_not_run_while_a_member_is_away_that_may_not_have_started():
    scheduler, runner, agent = a_member_that_is_cut_off_before_it_has_heard_of_its_start()
    scheduler.run(10)
    assert scheduler.state.job.phase is not JobPhase.RUNNING
    runner.obeys = True
    scheduler.cluster.bring_back(agent)
    scheduler.run(10)
    assert runner.state == "running"
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_member_that_comes_back_has_its_whole_time_to_start():
    gang = GangSpec(start_seconds=60.0)
    scheduler, _, agent = a_member_that_is_cut_off_before_it_has_heard_of_its_start(gang=gang)
    scheduler.run(100)
    scheduler.cluster.bring_back(agent)
    scheduler.run(3)
    assert START_TIMED_OUT not in [i.kind for i in scheduler.state.job.incidents]
    scheduler.run(70)
    assert START_TIMED_OUT in [i.kind for i in scheduler.state.job.incidents]
