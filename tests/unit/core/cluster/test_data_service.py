"""The tf.data service of a job: its tasks come, go and move, and the training trains on."""

import json

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.addresses import reached_at
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.deploy import deploy_plan
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.mesos import Cluster
from simulated.scheduler import (
    fail,
    fail_process,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
    with_data_workers,
)

DISPATCHER = "data-dispatcher-0"
MEMBERS = ("chief-0", "worker-0", "worker-1")


def a_job(data_workers=2, cluster=None, **changes):
    spec = training(Strategy.MULTI_WORKER, ps=0, **changes)
    return started(with_data_workers(spec, data_workers), cluster or Cluster(4))


def told_runner(launch):
    return json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])


def led_to(scheduler, *names):
    """Where the runners of these tasks lead what asks for data."""
    return {scheduler.cluster.runner(name).data_service for name in names}


def where_it_is(scheduler):
    return reached_at(scheduler.state.tasks[DISPATCHER])


def untouched(scheduler, before):
    """Say whether the training runs as it did."""
    ids = task_ids(scheduler)
    same = all(ids[name] == before[name] and starts(scheduler)[name] == 1 for name in MEMBERS)
    return same and scheduler.state.job.phase is JobPhase.RUNNING


def test_what_reads_is_launched_with_the_dispatchers_address():
    scheduler = a_job(evaluator=1)
    readers = (*MEMBERS, "evaluator-0", "data-worker-0", "data-worker-1")
    for name in readers:
        launch = scheduler.cluster.tasks[scheduler.cluster.id_of(name)].launch
        assert told_runner(launch)["data_service"]["dispatcher"] == where_it_is(scheduler)
    assert led_to(scheduler, *readers) == {where_it_is(scheduler)}


def test_servers_of_data_run_a_program_of_ours_and_know_where_they_are_reached():
    scheduler = a_job()
    for name in (DISPATCHER, "data-worker-1"):
        told = told_runner(scheduler.cluster.tasks[scheduler.cluster.id_of(name)].launch)
        assert told["job"]["contract"] == contract.CONTRACT_DATA_SERVICE
        assert told["data_service"]["address"] == reached_at(scheduler.state.tasks[name])


def test_a_job_without_data_workers_is_told_of_no_service():
    scheduler = a_job(0)
    launches = [task.launch for task in scheduler.cluster.tasks.values()]
    assert not any("data_service" in told_runner(launch) for launch in launches)


@pytest.mark.parametrize("dies", [fail, lambda s, n: (lose_agent_of(s, n), recover(s))])
def test_a_data_worker_that_dies_is_replaced_alone(dies):
    scheduler = a_job(cluster=room_for_one_each(9))
    before = task_ids(scheduler)
    dies(scheduler, "data-worker-1")
    recover(scheduler, 30)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == {"data-worker-1"}
    assert untouched(scheduler, before)
    assert led_to(scheduler, "data-worker-1") == {where_it_is(scheduler)}


def test_a_dispatcher_that_moves_is_told_to_runners_and_restarts_nothing():
    scheduler = a_job(cluster=room_for_one_each(9))
    before, there = task_ids(scheduler), where_it_is(scheduler)
    lose_agent_of(scheduler, DISPATCHER)
    recover(scheduler, 30)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == {DISPATCHER}
    assert where_it_is(scheduler) != there
    assert led_to(scheduler, *MEMBERS, "data-worker-0") == {where_it_is(scheduler)}
    assert untouched(scheduler, before)


def test_a_scheduler_that_comes_back_tells_where_the_dispatcher_has_moved():
    scheduler = a_job(cluster=room_for_one_each(9))
    lose_agent_of(scheduler, DISPATCHER)
    recover(scheduler, 30)
    for name in MEMBERS:
        scheduler.cluster.runner(name).data_service = "192.0.2.1:1"
    scheduler.restart()
    scheduler.run(5)
    assert led_to(scheduler, *MEMBERS) == {where_it_is(scheduler)}


@pytest.mark.parametrize("count", [4, 1])
def test_another_number_of_data_workers_does_not_touch_the_training(count):
    scheduler = a_job(2)
    before = task_ids(scheduler)
    scheduler.handle(events.ConfigurationChanged(with_data_workers(scheduler.state.spec, count)))
    recover(scheduler, 30)
    live = {r.name for r in scheduler.state.live_tasks if r.name.startswith("data-worker")}
    assert live == {f"data-worker-{index}" for index in range(count)}
    assert untouched(scheduler, before)


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0)])
def test_the_first_and_the_last_data_worker_restart_what_reads(before, after):
    scheduler = a_job(before)
    known = task_ids(scheduler)
    scheduler.handle(events.ConfigurationChanged(with_data_workers(scheduler.state.spec, after)))
    for _ in range(3):
        recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert all(task_ids(scheduler)[name] != known[name] for name in MEMBERS)
    assert scheduler.state.job.incidents == ()
    assert led_to(scheduler, *MEMBERS) == ({where_it_is(scheduler)} if after else {""})


def test_the_job_ends_at_once_when_the_training_has():
    scheduler = a_job(outcome_grace_seconds=1000.0)
    for name in MEMBERS:
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FINISHED)
    scheduler.run(10)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert not scheduler.state.live_tasks


def test_a_stopped_training_reads_until_it_has_saved():
    scheduler = a_job()
    scheduler.handle(events.StopRequested("by a person"))
    killed = {scheduler.state.tasks[n].kill_reason != "" for n in MEMBERS}
    assert killed == {True}
    assert not scheduler.state.tasks["data-worker-0"].kill_reason
    scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.DONE


@pytest.mark.parametrize("given_up", [(DISPATCHER,), ("data-worker-0", "data-worker-1")])
def test_a_job_whose_data_service_is_given_up_fails_and_says_so(given_up):
    scheduler = a_job(retry=RetrySpec(limit=0))
    for name in given_up:
        assert scheduler.state.job.phase is JobPhase.RUNNING
        fail_process(scheduler, name)
        scheduler.run(5)
    verdict = scheduler.state.job.verdict
    assert verdict.outcome is Outcome.FAILED
    role = given_up[0].rpartition("-")[0]
    assert f"{given_up[-1]} ended as user_error" in verdict.summary
    assert f"no {role} is left" in verdict.summary


def test_a_service_with_one_data_worker_left_goes_on():
    scheduler = a_job(retry=RetrySpec(limit=0))
    fail_process(scheduler, "data-worker-0")
    scheduler.run(30)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_gang_that_restarts_finds_the_same_service():
    scheduler = a_job()
    before = task_ids(scheduler)
    fail_process(scheduler, "worker-1")
    recover(scheduler)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == set()
    assert starts(scheduler)[DISPATCHER] == starts(scheduler)["data-worker-0"] == 1
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_data_workers_do_not_hold_up_a_gang_for_which_there_is_room():
    scheduler = a_job(2, room_for_one_each(4))
    assert scheduler.state.job.phase is JobPhase.RUNNING
    scheduler.run(10)
    assert set(scheduler.state.gangs["main"].placing.reasons) <= {"data-worker-0", "data-worker-1"}
    waits = {s.name: s.message for p in deploy_plan(scheduler.state.view()).phases for s in p.steps}
    assert "needs 1 cpu" in waits["data-worker-1:[node]"]
