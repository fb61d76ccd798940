"""Units that are no one work: schedulers of a queue's jobs, which come and go one by one."""

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind
from simulated.scheduler import room_for_one_each
from simulated.work import Work


def schedulers(machines: int = 3) -> Work:
    return Work(0, room_for_one_each(machines), UnitKind.SCHEDULER)


def give(work: Work, number: int, job: str) -> None:
    work.scheduler.handle(events.UnitsGiven(number, ({"job": job},)))
    work.go(4)


def test_each_has_a_slot_as_it_comes():
    work = schedulers()
    for number in range(2):
        give(work, number, f"job-{number}")
    assert work.runs == {"slot-0": 0, "slot-1": 1}
    assert work.asked == []


def test_a_slot_ends_when_its_unit_is_done_and_the_work_goes_on():
    work = schedulers()
    give(work, 0, "first")
    work.finish("slot-0")
    work.go(10)
    assert list(work.scheduler.state.gangs) == ["main"]
    assert work.scheduler.state.job.phase is not JobPhase.DONE


def test_another_one_has_the_place_of_one_that_is_done():
    work = schedulers()
    give(work, 0, "first")
    work.finish("slot-0")
    work.go(10)
    before = len(work.scheduler.decisions)
    give(work, 0, "second")
    written = [w.path for d in work.scheduler.decisions[before:] for w in d.writes]
    assert paths.units_given(0) in written
    table = work.scheduler.state.units
    assert (len(table), table.payload(0), work.runs) == (1, {"job": "second"}, {"slot-0": 0})


def test_one_that_runs_keeps_its_place():
    work = schedulers()
    give(work, 0, "first")
    give(work, 0, "second")
    assert work.scheduler.state.units.payload(0) == {"job": "first"}


def test_those_that_fail_alike_end_nothing_but_themselves():
    work = schedulers()
    for number in range(4):
        give(work, number, f"job-{number}")
        while work.runs:
            work.fail(next(iter(work.runs)))
            work.go(20)
    table = work.scheduler.state.units
    assert {unit.state for unit in table} == {UnitState.FAILED}
    assert work.scheduler.state.job.phase is not JobPhase.DONE
