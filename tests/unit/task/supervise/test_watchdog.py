"""When the watchdog gives a process up, played with looks a quarter of a second apart."""

import pytest

from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.supervise.watchdog import (
    MAX_LOOK_SECONDS,
    Activity,
    ProcessSight,
    Watch,
    WatchdogLimits,
    examine,
    rest,
)

LOOK = 0.25


def watched(*spans, limits, watch=None):
    """Look during each (seconds, sight); return (class, seconds from the start) or None."""
    watch, passed = watch or Watch(), 0.0
    for seconds, sight in spans:
        for _ in range(round(seconds / LOOK)):
            passed += LOOK
            watch, verdict = examine(watch, sight, limits, LOOK)
            if verdict:
                return verdict.exit_class, passed
    return None


def steps(*seconds_each):
    spans = enumerate(seconds_each, 1)
    return [(seconds, ProcessSight(step=number, steps=number)) for number, seconds in spans]


FREEZE = WatchdogLimits(freeze_seconds=10)
STOPPED = ProcessSight(stopped=True)
OPEN, CLOSED = (ProcessSight(port=1, port_open=state) for state in (True, False))
STALL = WatchdogLimits(stall_seconds=5, freeze_seconds=0)


def test_a_process_that_is_stopped_is_given_up_after_the_limit():
    assert watched((3, ProcessSight()), (60, STOPPED), limits=FREEZE) == (ExitClass.FROZEN, 13)


def test_a_process_that_goes_on_in_time_is_left_alone():
    spans = [(9, STOPPED), (1, ProcessSight()), (9, STOPPED), (60, ProcessSight())]
    assert watched(*spans, limits=FREEZE) is None


def test_a_port_that_was_open_and_is_closed_is_given_up_after_the_limit():
    assert watched((5, OPEN), (60, CLOSED), limits=FREEZE) == (ExitClass.FROZEN, 15)


def test_a_port_that_was_never_open_is_no_sign():
    assert watched((60, CLOSED), limits=FREEZE) is None


def test_a_port_whose_owner_has_left_is_no_sign():
    spans = [(5, OPEN), (5, CLOSED), (1, ProcessSight(port=1)), (60, CLOSED)]
    assert watched(*spans, limits=FREEZE) is None


def test_a_limit_of_0_turns_freezing_off():
    limits = WatchdogLimits(freeze_seconds=0)
    assert watched((60, STOPPED), (1, OPEN), (60, CLOSED), limits=limits) is None


def test_without_a_limit_nothing_stalls():
    assert watched(*steps(0.5, 0.5, 999), limits=WatchdogLimits()) is None


def test_a_step_that_does_not_move_has_stalled():
    assert watched(*steps(0.25, 0.25, 60), limits=STALL) == (ExitClass.STALLED, 5.75)


@pytest.mark.parametrize("told", [(), (60,)], ids=["no step", "one step"])
def test_a_task_without_two_steps_is_never_stalled(told):
    assert (
        watched(
            (600, ProcessSight()), *steps(*told), (600, ProcessSight(step=1, steps=1)), limits=STALL
        )
        is None
    )


def test_steps_that_came_between_two_looks_count():
    spans = [(0.25, ProcessSight()), (60, ProcessSight(step=5, steps=5))]
    assert watched(*spans, limits=STALL) == (ExitClass.STALLED, 5.5)


def test_steps_that_take_long_are_given_ten_times_as_long():
    at_2_seconds_a_step = steps(2, 2, 19)
    assert watched(*at_2_seconds_a_step, limits=STALL) is None
    assert watched(*steps(2, 2, 60), limits=STALL) == (ExitClass.STALLED, 24.25)


def test_the_time_before_the_first_step_is_no_gap():
    assert watched((300, ProcessSight()), *steps(0.25, 60), limits=STALL) == (
        ExitClass.STALLED,
        305.5,
    )


def test_a_look_that_comes_late_stands_for_little_time():
    watch, verdict = examine(Watch(), STOPPED, FREEZE, 3600)
    assert (watch.frozen_seconds, verdict) == (MAX_LOOK_SECONDS, None)


def test_the_verdict_tells_the_last_step():
    watch = Watch(step=7, still_seconds=9, longest_gap=0.5)
    _, verdict = examine(watch, ProcessSight(step=7, steps=2), STALL, LOOK)
    assert "No step after step 7 for 9 s" in verdict.summary


def rested(*looks, seconds=10.0):
    """Return for how long a process does nothing, after looks that saw (used, waited, told)."""
    known = Activity()
    for used, waited, told in looks:
        known = rest(known, (used, waited), told, seconds)
    return known.idle


def test_a_process_that_uses_no_cpu_and_says_nothing_does_nothing():
    assert rested((5.0, 1.0, 1), (5.0, 1.3, 1), (5.1, 1.3, 1), (5.2, 1.9, 1)) == 30.0


@pytest.mark.parametrize(
    "last",
    [(6.0, 1.0, 1), (5.0, 9.0, 1), (5.0, 1.0, 2), (4.0, 1.0, 1)],
    ids=["cpu", "no cpu, though it wants one", "a line or a step", "a process ended"],
)
def test_a_process_that_does_anything_has_to_rest_anew(last):
    assert rested((5.0, 1.0, 1), (5.0, 1.0, 1), last) == 0.0
    assert rested((5.0, 1.0, 1), last, last) == 10.0


def test_the_first_look_says_nothing_of_what_was_before():
    assert rested((5.0, 1.0, 1)) == 0.0
