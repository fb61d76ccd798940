"""Workers join and leave while the chief of a ParameterServerStrategy trains on."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.restarts.planned_changes import TAKE_SECONDS, announced
from dcos_tensorflow.core.spec.service_spec import GangSpec, Strategy, TaskRole
from simulated.scheduler import lose_agent_of, room_for_one_each, started, starts, training

CHIEF = "chief-0"


def a_gang(*, agents=8, refuses=False, takes=True, **changes):
    scheduler = started(training(Strategy.PARAMETER_SERVER, **changes), room_for_one_each(agents))
    runner = scheduler.cluster.runner(CHIEF)
    runner.takes_workers, runner.refuses = takes, refuses
    settle(scheduler, 5)
    return scheduler


def settle(scheduler, seconds=40):
    for _ in range(int(seconds / 5)):
        scheduler.run(5)
        scheduler.cluster.run_everything()
    scheduler.run(5)


def with_workers(scheduler, count):
    spec = scheduler.state.spec
    roles = (replace(r, count=count) if r.role is TaskRole.WORKER else r for r in spec.roles)
    return replace(spec, roles=tuple(roles))


def scale(scheduler, count):
    scheduler.handle(events.ConfigurationChanged(with_workers(scheduler, count)))


def is_at_rest_with(scheduler, workers):
    known = scheduler.state.epoch.addresses
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert {n for n in known if n.startswith("worker")} == {f"worker-{i}" for i in range(workers)}
    assert scheduler.cluster.runner(CHIEF).epoch == scheduler.state.epoch.epoch


def test_more_workers_join_and_no_process_starts_again():
    scheduler = a_gang()
    before = starts(scheduler)
    scale(scheduler, 4)
    settle(scheduler)
    is_at_rest_with(scheduler, 4)
    after = starts(scheduler)
    assert {name: after[name] for name in before} == before


def test_a_worker_that_leaves_ends_when_the_chief_has_let_it_go():
    scheduler = a_gang()
    before, runner = starts(scheduler), scheduler.cluster.runner(CHIEF)
    task_id = scheduler.state.tasks["worker-1"].task_id
    runner.obeys = False
    scale(scheduler, 1)
    settle(scheduler)
    assert scheduler.cluster.tasks[task_id].alive
    runner.obeys = True
    settle(scheduler)
    assert not scheduler.cluster.tasks[task_id].alive
    is_at_rest_with(scheduler, 1)
    assert starts(scheduler) == {name: before[name] for name in before if name != "worker-1"}


@pytest.mark.parametrize("count", [1, 4])
def test_a_chief_that_finds_that_it_cannot_starts_again(count):
    scheduler = a_gang(refuses=True)
    before = starts(scheduler)
    scale(scheduler, count)
    settle(scheduler)
    is_at_rest_with(scheduler, count)
    after = starts(scheduler)
    assert {n for n in before if n in after and after[n] != before[n]} == {CHIEF}
    assert scheduler.state.job.incidents == ()


def test_a_chief_that_never_says_that_it_has_taken_them_starts_again():
    scheduler = a_gang()
    runner = scheduler.cluster.runner(CHIEF)
    runner.obeys = False
    scale(scheduler, 3)
    settle(scheduler, TAKE_SECONDS + 60)
    runner.obeys = True
    settle(scheduler)
    is_at_rest_with(scheduler, 3)
    # It did not even stop when it was told: it has another container.
    assert scheduler.cluster.runner(CHIEF) is not runner


def test_a_chief_that_takes_none_starts_again_with_the_new_worker():
    scheduler = a_gang(takes=False)
    scale(scheduler, 3)
    settle(scheduler)
    is_at_rest_with(scheduler, 3)
    assert starts(scheduler)[CHIEF] == 2


def test_a_lost_worker_that_is_done_without_costs_the_chief_a_start():
    """It cannot do its last step: the chief's process would wait for it."""
    gang = GangSpec(wait_seconds=60.0, grow_seconds=120.0)
    scheduler = a_gang(agents=5, gang=gang, min_count=1)
    lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 90)
    is_at_rest_with(scheduler, 1)
    assert starts(scheduler)[CHIEF] == 2


def test_a_worker_that_costs_no_restart_comes_back_as_soon_as_there_is_room():
    gang = GangSpec(wait_seconds=60.0, grow_seconds=10_000.0)
    scheduler = a_gang(agents=5, gang=gang, min_count=1)
    agent = lose_agent_of(scheduler, "worker-1")
    settle(scheduler, 90)
    scheduler.cluster.runner(CHIEF).takes_workers = True
    scheduler.cluster.bring_back(agent)
    settle(scheduler, 60)
    is_at_rest_with(scheduler, 2)
    assert starts(scheduler)[CHIEF] == 2


def test_what_an_update_is_announced_to_cost_is_what_it_costs():
    scheduler = a_gang()
    view = scheduler.state.view("main")
    assert announced(view, with_workers(scheduler, 4)).along == ()
    assert announced(view, with_workers(scheduler, 1)).along == ()


def test_a_scheduler_that_dies_while_workers_join_goes_on_with_them():
    scheduler = a_gang()
    runner = scheduler.cluster.runner(CHIEF)
    runner.obeys = False
    scale(scheduler, 3)
    settle(scheduler, 20)
    scheduler.restart()
    runner.obeys = True
    settle(scheduler)
    is_at_rest_with(scheduler, 3)
    assert len(scheduler.cluster.runner(CHIEF).starts) == 1
