"""Whatever comes through a door is taken or refused in words: a few inputs here, more in the soak.

``python -m tests.fuzz`` tries for as long as one likes, and with atheris.
"""

import time

import pytest

from fuzz.doors import DOORS
from fuzz.engine import Tried, by_chance


def shown(tried: Tried) -> str:
    return "\n".join(f"{crash.data!r}\n{crash.traceback}" for crash in tried.crashes)


@pytest.mark.parametrize("door", DOORS)
def test_whatever_comes_is_taken_or_refused(door: str) -> None:
    tried = by_chance(door, seconds=20, seed=18, most_inputs=150)
    assert not tried.crashes, shown(tried)


# Other inputs each time: what it finds is new.
@pytest.mark.soak
@pytest.mark.parametrize("door", DOORS)
def test_whatever_comes_for_half_a_minute_is_taken_or_refused(door: str) -> None:
    seed = time.time_ns() % 2**31
    tried = by_chance(door, seconds=30, seed=seed)
    assert not tried.crashes, f"seed {seed}\n{shown(tried)}"


@pytest.mark.parametrize("door", DOORS)
def test_what_a_door_begins_with_goes_through_it(door: str) -> None:
    for data in DOORS[door].seeds:
        DOORS[door].enter(data)
