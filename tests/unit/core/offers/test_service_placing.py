"""The step function: what is wanted, placed, launched and handed back."""

import dataclasses

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import Accept, Decline
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import GangSpec
from samples.states import with_job
from simulated.mesos import Cluster
from simulated.scheduler import begun, small_job, started, with_evaluator


def test_a_gang_that_fits_is_launched_whole_in_one_step():
    scheduler = begun(small_job(), Cluster())
    accepts = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Accept)]
    assert sorted(t.name for a in accepts for t in a.launches) == ["ps-0", "worker-0", "worker-1"]


def test_a_gang_that_does_not_fit_launches_nothing_and_says_why():
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = begun(small_job(), cluster, seconds=30)
    assert cluster.launch_history == []
    assert " 1 cpu, " in scheduler.state.job.why


def test_offers_are_not_held_longer_than_the_gang_may_hold_them():
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = begun(small_job(gang=GangSpec(hold_seconds=5)), cluster, seconds=8)
    held = [a for d in scheduler.decisions for a in d.actions if isinstance(a, Decline)]
    assert held
    assert cluster.offers == {}


def test_offers_of_agents_too_small_for_any_task_go_back_at_once():
    cluster = Cluster(agents=2, resources=Resources(cpus=0.5, mem=8192, disk=10000))
    begun(small_job(), cluster, seconds=1)
    assert cluster.offers == {}


def test_a_gang_completed_by_later_offers_is_launched():
    cluster = Cluster(agents=2, resources=Resources(cpus=2, mem=8192, disk=10000))
    cluster.agents["S1"].reachable = False
    scheduler = begun(small_job(), cluster, seconds=3)
    cluster.agents["S1"].reachable = True
    scheduler.run(30)
    assert len(cluster.launch_history) == 3


def test_once_everything_runs_offers_are_suppressed():
    scheduler = started()
    assert scheduler.cluster.suppressed
    assert scheduler.cluster.offers == {}


def test_the_runner_token_is_in_no_visible_environment():
    scheduler = started()
    for task in scheduler.cluster.tasks.values():
        token = task.launch.secret_env[contract.RUNNER_TOKEN_VARIABLE]
        assert token not in str(task.launch.env) + task.launch.command + str(task.launch.labels)


def test_an_evaluator_that_finds_no_room_says_why_and_does_not_hold_up_the_gang():
    cluster = Cluster(agents=1, resources=Resources(cpus=3, mem=8192, disk=10000))
    scheduler = begun(with_evaluator(), cluster)
    assert sorted(scheduler.state.tasks) == ["ps-0", "worker-0", "worker-1"]
    assert [m.task for m in scheduler.state.only_gang.placing.misfits] == ["evaluator-0"]


def test_a_sidecar_is_not_placed_while_an_old_gang_is_still_being_stopped():
    scheduler = started(with_evaluator())
    evaluator = scheduler.cluster.id_of("evaluator-0")
    scheduler.cluster.report(evaluator, TaskState.FAILED, "Command exited with status 1")
    scheduler.drain()
    # What a crash in the middle of a split commit leaves: members, but neither epoch nor phase.
    broken = with_job(scheduler.state, phase=JobPhase.PLACING)
    gang = dataclasses.replace(broken.only_gang, epoch=None)
    scheduler.state = dataclasses.replace(broken, gangs={gang.name: gang})
    scheduler.cluster.now += 100
    scheduler.cluster.make_offers()
    launched = len(scheduler.cluster.launch_history)
    scheduler.handle(scheduler.cluster.outbox.pop())
    assert len(scheduler.cluster.launch_history) == launched


def test_an_evaluator_follows_when_room_appears():
    cluster = Cluster(agents=1, resources=Resources(cpus=3, mem=8192, disk=10000))
    scheduler = begun(with_evaluator(), cluster)
    cluster.run_everything()
    cluster.agents["S0"].free = Resources(cpus=1, mem=4096, disk=5000)
    scheduler.run(30)
    assert "evaluator-0" in scheduler.state.tasks
