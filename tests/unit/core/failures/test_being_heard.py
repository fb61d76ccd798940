"""No answer is late that could not be heard: without a master, and after a pause of our own."""

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.scheduler import (
    fail_process,
    recover,
    room_for_one_each,
    started,
    task_ids,
    training,
)


def a_gang_that_is_being_stopped():
    gang = started(training(Strategy.MULTI_WORKER, ps=0), room_for_one_each(8))
    gang.cluster.runner("worker-0").stop_seconds = 1.5
    fail_process(gang, "worker-1", "interrupted", 137)
    assert gang.state.job.phase is JobPhase.STOPPING
    return gang


def test_a_scheduler_that_has_not_yet_registered_gives_no_container_up():
    gang = a_gang_that_is_being_stopped()
    before = task_ids(gang)
    gang.cluster.now += 600
    gang.restart()
    gang.handle(events.Tick())
    gang.run(10)
    assert task_ids(gang) == before
    assert gang.state.job.phase is JobPhase.RUNNING


def test_while_there_is_no_master_no_task_is_late():
    gang = a_gang_that_is_being_stopped()
    before = task_ids(gang)
    gang.handle(events.Disconnected("it fell"))
    gang.cluster.now += 600
    gang.handle(events.Tick())
    gang.cluster.subscribe()
    gang.run(10)
    assert task_ids(gang) == before
    assert gang.state.job.phase is JobPhase.RUNNING


def test_after_a_pause_of_our_own_runners_are_heard_before_they_are_judged():
    gang = a_gang_that_is_being_stopped()
    before = task_ids(gang)
    gang.cluster.now += 60
    gang.handle(events.Tick())
    gang.run(10)
    assert task_ids(gang) == before
    assert gang.state.job.phase is JobPhase.RUNNING


def test_a_runner_that_does_not_obey_is_found_after_a_pause_of_our_own_too():
    gang = a_gang_that_is_being_stopped()
    before = task_ids(gang)
    gang.cluster.runner("worker-0").obeys = False
    gang.cluster.runner("worker-0").stop_seconds = 1000.0
    gang.cluster.runner("worker-0").state = "running"
    gang.cluster.now += 60
    gang.run(60)
    recover(gang, 20)
    after = task_ids(gang)
    assert {n for n in after if after[n] != before[n]} == {"worker-0"}
