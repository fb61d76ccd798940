"""Units that differ in what their roles have: each goes into a slot of its size."""

from dataclasses import replace

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, UnitsWanted
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, TaskRole, UnitKind
from simulated.mesos import Cluster
from simulated.work import PAIR, SMALL, Work

LITTLE, LARGE = [["worker", "cpus", 0.5]], [["worker", "cpus", 3.0]]
LARGEST = (RoleSpec(TaskRole.WORKER, 1, replace(SMALL, cpus=3)),)


def trials(total: int, cluster: Cluster, shapes: object, **more: object) -> Work:
    return Work(total, cluster, UnitKind.TRIAL, shapes=shapes, **{"roles": LARGEST, **more})


class Withheld(Work):
    """A producer that gives two units, and no more before it is known what became of them."""

    def hear(self, action: Action) -> None:
        if not isinstance(action, UnitsWanted) or action.first < 2 or len(self.ended) > 1:
            super().hear(action)


def cpus(work: Work) -> dict[str, float]:
    """Return how large the live tasks are on agents that answer."""
    agents = work.cluster.agents
    live = (t.launch for t in work.cluster.tasks.values() if t.alive)
    return {one.name: one.resources.cpus for one in live if agents[one.agent_id].reachable}


def test_each_unit_is_run_in_a_slot_of_its_size():
    work = trials(4, Cluster(2), [LITTLE, LARGE, LARGE, LITTLE])
    assert cpus(work) == {
        "slot-0-worker-0": 0.5,
        "slot-1-worker-0": 3.0,
        "slot-2-worker-0": 3.0,
        "slot-3-worker-0": 0.5,
    }
    assert work.runs == {"slot-0": 0, "slot-1": 1, "slot-2": 2, "slot-3": 3}


def test_units_may_differ_in_how_many_tasks_they_have():
    work = trials(2, Cluster(2), [[["worker", "count", 1]], [["worker", "count", 2]]], roles=PAIR)
    assert sorted(cpus(work)) == ["slot-0-worker-0", "slot-1-worker-0", "slot-1-worker-1"]


def test_a_slot_takes_the_next_unit_of_its_size_before_one_that_has_waited_longer():
    work = trials(4, Cluster(2), [LITTLE, LARGE, LARGE, LITTLE], parallelism=2)
    assert work.runs == {"slot-0": 0, "slot-1": 1}
    work.finish("slot-0")
    work.go(2)
    assert work.runs == {"slot-0": 3, "slot-1": 1}


def test_a_slot_gives_its_place_to_a_unit_of_another_size_when_it_has_none_left():
    work = trials(2, Cluster(1, Resources(3.2, 8192, 10000)), [LITTLE, LARGE])
    assert cpus(work) == {"slot-0-worker-0": 0.5}
    work.finish("slot-0")
    work.go(30)
    assert list(cpus(work).values()) == [3.0]
    assert list(work.runs.values()) == [1]


def test_a_slot_gives_its_place_to_one_of_another_size_that_has_lost_its_own():
    cluster, shapes = Cluster(2, Resources(3.2, 8192, 10000)), [LITTLE, LARGE]
    work = Withheld(3, cluster, UnitKind.TRIAL, roles=LARGEST, shapes=shapes, parallelism=2)
    cluster.lose(work.record("slot-0-worker-0").agent_id)
    work.finish("slot-1")
    work.go(60)
    assert cpus(work) == {"slot-0-worker-0": 0.5}


def test_a_slot_that_finds_no_place_keeps_those_of_another_size_from_none():
    work = trials(4, Cluster(1, Resources(2, 8192, 10000)), [LARGE, LITTLE])
    work.go(10)
    assert sorted(cpus(work).values()) == [0.5, 0.5, 0.5]
    assert sorted(work.runs.values()) == [1, 2, 3]
    assert "needs 3 cpus" in work.scheduler.state.job.why


def test_a_crash_changes_no_slot():
    work = trials(2, Cluster(2), [LITTLE, LARGE])
    before = cpus(work)
    work.scheduler.restart()
    work.go(5)
    assert cpus(work) == before
    assert work.runs == {"slot-0": 0, "slot-1": 1}
    assert len(work.cluster.launch_history) == 2


def test_what_has_other_options_is_launched_again_as_large_as_it_was():
    work = trials(2, Cluster(2), [LITTLE, LARGE])
    spec = work.scheduler.state.spec
    other = replace(spec, roles=tuple(replace(role, env={"A": "1"}) for role in spec.roles))
    work.scheduler.handle(events.ConfigurationChanged(other))
    work.go(60)
    assert sorted(cpus(work).values()) == [0.5, 3.0]
    assert len(work.cluster.launch_history) == 4


def test_the_last_attempt_of_a_unit_is_left_to_no_slot_of_another_size():
    work = trials(2, Cluster(2, Resources(3.2, 8192, 10000)), [LITTLE, LARGE])
    for line in range(3):
        work.fail(next(slot for slot, number in work.runs.items() if number == 0), line)
        work.go(30)
    assert len(work.unit(0).failures) == 3


def test_a_slot_comes_back_as_large_as_it_was_when_it_has_lost_its_container():
    work = trials(1, Cluster(1), [LITTLE])
    task_id = work.record("slot-0-worker-0").task_id
    work.cluster.report(task_id, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")
    work.go(20)
    assert cpus(work) == {"slot-0-worker-0": 0.5}
