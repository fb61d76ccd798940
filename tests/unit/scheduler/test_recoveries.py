"""A restart is followed from its cause to the first step after it."""

from collections.abc import Sequence
from typing import Any

import pytest

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.scheduler.recoveries import PLANNED, Recoveries, Recovery
from samples.states import NOW, an_incident
from samples.turns import restarted, standing, turns_of


def followed(states: Sequence[ServiceState]) -> list[Recovery]:
    recoveries = Recoveries()
    return [found for turn in turns_of(states) for found in recoveries.follow(turn)]


def test_a_restart_takes_from_its_cause_until_all_run() -> None:
    (found,) = followed(restarted(an_incident(at=NOW - 2)))
    assert found.seconds == 12


def test_its_cause_is_the_incidents() -> None:
    (found,) = followed(restarted(an_incident(at=NOW, kind="out of memory")))
    assert found.cause == "out of memory"


@pytest.mark.parametrize("incidents", [[], [an_incident(at=NOW - 500)]])
def test_what_no_failure_of_this_time_has_caused_was_planned(incidents: list[Any]) -> None:
    (found,) = followed(restarted(*incidents))
    assert found.cause == PLANNED


def test_it_tells_its_phases() -> None:
    (found,) = followed(restarted())
    assert [(p.phase, p.ended_at - p.began_at) for p in found.phases] == [
        ("stopping", 4.0),
        ("starting", 6.0),
    ]


def test_steps_that_are_trained_once_more_are_lost() -> None:
    (found,) = followed(restarted(steps=[100, 81, 82]))
    assert (found.lost_steps, found.step_before, found.step_after) == (19, 100, 81)


def test_what_was_told_before_is_no_first_step() -> None:
    assert followed(restarted(steps=[100])) == []


def test_a_job_that_ends_on_the_way_has_not_recovered() -> None:
    ends = ((JobPhase.STOPPING, NOW), (JobPhase.ENDING, NOW + 4))
    (found,) = followed(restarted(phases=ends))
    assert found.seconds is None


def test_the_next_restart_ends_the_one_before() -> None:
    again = standing(JobPhase.STOPPING, NOW + 60, step=100, trained_until=NOW + 60)
    (found,) = followed([*restarted(steps=[100]), again])
    assert (found.seconds, found.first_step_at) == (10, None)


def test_what_was_under_way_when_this_scheduler_began_is_left_out() -> None:
    assert followed(restarted()[1:]) == []


def test_no_more_phases_are_kept_than_anybody_reads() -> None:
    way = [JobPhase.STOPPING, *[JobPhase.PLACING, JobPhase.STAGING] * 100, JobPhase.RUNNING]
    (found,) = followed(restarted(phases=[(phase, NOW + i) for i, phase in enumerate(way)]))
    assert len(found.phases) == 50
