"""The scheduler's clock: a change of the machine's clock changes no duration."""

import time
from dataclasses import dataclass

from dcos_tensorflow.scheduler.loop.clock import steady, steady_time

DAY = 86_400.0


@dataclass
class Machine:
    """A machine whose clock can be set."""

    wall: float = 1_800_000_000.0
    up: float = 5_000.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds


def test_at_first_it_shows_the_time_of_day() -> None:
    assert abs(steady_time() - time.time()) < 60.0


def test_a_clock_set_ahead_a_day_and_back_changes_nothing() -> None:
    machine = Machine()
    clock = steady(lambda: machine.wall, lambda: machine.up)
    began = clock()
    seen = []
    for set_by in (DAY, -DAY, -DAY):
        machine.wall += set_by
        machine.pass_by(10.0)
        seen.append(clock() - began)
    assert seen == [10.0, 20.0, 30.0]


def test_the_next_process_shows_the_time_of_day_again() -> None:
    machine = Machine()
    machine.wall += DAY
    before = steady(lambda: machine.wall, lambda: machine.up)()
    machine.wall -= DAY
    assert before - steady(lambda: machine.wall, lambda: machine.up)() == DAY
