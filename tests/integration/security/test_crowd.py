"""Fifty clients, five of them hostile, while a job's processes are killed: no client is held up.

``benchmarks/scheduler/held_up.py`` plays the same with 200.
"""

from typing import Any

import pytest

from benchmarks.scheduler import held_up

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def found() -> Any:
    """What the benchmark has found, and its module."""
    return held_up.measured(45, 5, 15.0), held_up


def test_every_friendly_client_is_answered(found: Any) -> None:
    measured, _ = found
    assert len(measured.answers) > 45
    assert measured.failed == {}


def test_no_step_and_no_failure_is_lost(found: Any) -> None:
    measured, _ = found
    assert measured.lost_steps == 0
    assert measured.told_failures == measured.quiet.kills + measured.crowded.kills > 0


def test_every_follower_of_the_events_knows_of_every_failure(found: Any) -> None:
    measured, _ = found
    assert set(measured.known_failures) == {measured.told_failures}


def test_the_event_loop_is_not_held_up(found: Any) -> None:
    measured, held_up = found
    # Without the clients it is as late as the machine makes it.
    late = [held_up.percentile(p.late, 0.99) for p in (measured.quiet, measured.crowded)]
    assert late[1] - late[0] < 0.1, late


def test_the_training_goes_on_as_fast(found: Any) -> None:
    measured, _ = found
    # Clients, cluster and workers share the cores of this machine.
    speeds = (measured.quiet.steps_a_second, measured.crowded.steps_a_second)
    assert speeds[1] > 0.6 * speeds[0], speeds
