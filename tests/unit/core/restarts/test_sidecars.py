"""Evaluators and TensorBoards: they fail and restart by themselves and hold nothing up."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
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
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER


def a_job(cluster=None, **changes):
    return started(training(PSS, evaluator=1, **changes), cluster or Cluster(4))


def test_a_failed_process_is_started_again_in_its_container():
    scheduler = a_job()
    before = task_ids(scheduler)
    fail_process(scheduler, "evaluator-0")
    scheduler.run(10)
    assert task_ids(scheduler) == before
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"evaluator-0"}
    assert scheduler.state.job.incidents == ()
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_process_that_keeps_failing_is_given_up_and_the_job_goes_on():
    scheduler = a_job(retry=RetrySpec(limit=2))
    for _ in range(3):
        if not scheduler.state.tasks["evaluator-0"].terminal:
            fail_process(scheduler, "evaluator-0")
        scheduler.run(60)
    assert scheduler.state.tasks["evaluator-0"].terminal
    assert scheduler.state.job.phase is JobPhase.RUNNING
    seen = len(scheduler.cluster.launch_history)
    scheduler.run(600, tick=10.0)
    assert len(scheduler.cluster.launch_history) == seen
    assert scheduler.cluster.suppressed


def test_a_container_that_died_is_placed_again_alone():
    scheduler = a_job()
    before = task_ids(scheduler)
    fail(scheduler, "evaluator-0")
    recover(scheduler, 30)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == {"evaluator-0"}
    assert {c for n, c in starts(scheduler).items()} == {1}


def test_containers_that_keep_dying_are_given_up_and_the_job_goes_on():
    scheduler = a_job()
    for _ in range(4):
        if not scheduler.state.tasks["evaluator-0"].terminal:
            fail(scheduler, "evaluator-0")
        recover(scheduler)
    assert scheduler.state.tasks["evaluator-0"].state is TaskState.FAILED
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.suppressed


def test_an_evaluator_on_a_lost_machine_is_placed_on_another():
    scheduler = a_job(room_for_one_each(8))
    before = task_ids(scheduler)
    lose_agent_of(scheduler, "evaluator-0")
    recover(scheduler, 30)
    after = task_ids(scheduler)
    assert {n for n in after if after[n] != before[n]} == {"evaluator-0"}


def test_no_evaluator_starts_beside_an_old_one_whose_agent_is_back_only_to_be_taken_down():
    scheduler = a_job(room_for_one_each(7))
    cluster = scheduler.cluster
    spare = next(agent for agent in cluster.agents.values() if agent.free.cpus > 1)
    spare.reachable = False
    old = task_ids(scheduler)["evaluator-0"]
    agent = cluster.agents[lose_agent_of(scheduler, "evaluator-0")]
    scheduler.run(30)
    # Its offer is the only word of it: the update that its task runs is late.
    agent.reachable = spare.reachable = True
    agent.unavailable_from = cluster.now + 60
    agent.free += Resources(cpus=1)
    launched = len(cluster.launch_history)
    while len(cluster.launch_history) == launched:
        assert cluster.now < agent.unavailable_from, "it was never placed again"
        scheduler.run(1)
    assert not cluster.tasks[old].alive


def test_a_restart_of_the_gang_leaves_the_evaluator_alone():
    scheduler = started(training(MWMS, ps=0, evaluator=1))
    fail_process(scheduler, "worker-0", "interrupted", 137)
    scheduler.run(10)
    assert starts(scheduler)["evaluator-0"] == 1
    assert scheduler.cluster.runner("evaluator-0").state == "running"


def test_an_evaluator_is_paused_and_resumed_alone():
    scheduler = a_job()
    scheduler.handle(events.PodCommand(events.PodVerb.PAUSE, ("evaluator-0",)))
    scheduler.run(5)
    assert scheduler.cluster.runner("evaluator-0").state == "held"
    scheduler.handle(events.PodCommand(events.PodVerb.RESUME, ("evaluator-0",)))
    scheduler.run(5)
    assert scheduler.cluster.runner("evaluator-0").state == "running"
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"evaluator-0"}


def test_pod_restart_starts_an_evaluator_again_in_its_container():
    scheduler = a_job()
    before = task_ids(scheduler)
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("evaluator-0",)))
    scheduler.run(10)
    assert task_ids(scheduler) == before
    assert starts(scheduler)["evaluator-0"] == 2


def given_up():
    """Return a scheduler whose evaluator failed once too often."""
    scheduler = a_job(retry=RetrySpec(limit=0))
    fail_process(scheduler, "evaluator-0")
    scheduler.run(10)
    assert scheduler.state.tasks["evaluator-0"].terminal
    return scheduler


def test_an_evaluator_that_was_given_up_is_tried_again_with_other_options():
    scheduler = given_up()
    spec = scheduler.state.spec
    roles = tuple(replace(r, env={"A": "1"}) if r.role == "evaluator" else r for r in spec.roles)
    scheduler.handle(events.ConfigurationChanged(replace(spec, roles=roles)))
    recover(scheduler, 10)
    assert scheduler.cluster.runner("evaluator-0").state == "running"


@pytest.mark.parametrize("verb", [events.PodVerb.RESTART, events.PodVerb.REPLACE])
def test_an_evaluator_that_was_given_up_is_tried_again_on_request(verb):
    scheduler = given_up()
    scheduler.handle(events.PodCommand(verb, ("evaluator-0",)))
    recover(scheduler, 10)
    assert scheduler.cluster.runner("evaluator-0").state == "running"


def test_an_evaluator_that_can_never_run_is_not_tried_again():
    scheduler = a_job()
    fail(scheduler, "evaluator-0", "Command exited with status 78")
    seen = len(scheduler.cluster.launch_history)
    scheduler.run(300)
    assert len(scheduler.cluster.launch_history) == seen


def test_an_interrupted_evaluator_starts_again_at_once():
    scheduler = a_job(retry=RetrySpec(limit=0))
    scheduler.run(30)
    for _ in range(5):
        fail_process(scheduler, "evaluator-0", "interrupted", 137)
        scheduler.run(1)
        assert scheduler.cluster.runner("evaluator-0").state == "running"
        scheduler.run(30)


def test_an_evaluator_that_is_interrupted_at_each_start_is_given_up():
    scheduler = a_job(retry=RetrySpec(fruitless_limit=3))
    for _ in range(5):
        if not scheduler.state.tasks["evaluator-0"].terminal:
            fail_process(scheduler, "evaluator-0", "interrupted", 137)
        while not scheduler.state.tasks["evaluator-0"].terminal:
            scheduler.run(1)
            if scheduler.cluster.runner("evaluator-0").state == "running":
                break
    assert scheduler.state.tasks["evaluator-0"].terminal
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_failures_that_are_far_apart_are_each_a_first_one():
    scheduler = a_job(retry=RetrySpec(limit=1, window_seconds=60.0))
    for _ in range(4):
        scheduler.run(100)
        fail_process(scheduler, "evaluator-0")
    scheduler.run(10)
    assert scheduler.cluster.runner("evaluator-0").state == "running"


def test_an_evaluator_has_a_limit_of_its_own():
    spec = training(PSS, evaluator=1, retry=RetrySpec(limit=9))
    roles = tuple(replace(r, retry_limit=0) if r.role == "evaluator" else r for r in spec.roles)
    scheduler = started(replace(spec, roles=roles), Cluster(4))
    fail_process(scheduler, "evaluator-0")
    scheduler.run(10)
    assert scheduler.state.tasks["evaluator-0"].terminal
