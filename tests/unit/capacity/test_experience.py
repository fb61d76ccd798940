"""What a market has shown, and what is taken from it."""

from __future__ import annotations

from dcos_tensorflow.capacity.experience import HOUR, Experience


def after(*looks: tuple[float, int], machines: int = 2) -> Experience:
    """Return the experience of looks at these times."""
    (began, available), *rest = looks
    found = Experience.first(began, available, machines)
    for now, available in rest:
        found = found.seen(now, available)
    return found


def test_one_machine_that_nobody_knows_is_taken_to_stay_for_an_hour() -> None:
    assert after((0, 1)).life(1, 0.0) == HOUR


def test_two_machines_that_nobody_knows_are_taken_to_stay_for_half_of_it() -> None:
    assert after((0, 2)).life(2, 0.0) == HOUR / 2


def test_what_has_stayed_for_long_is_taken_to_stay_for_as_long_again() -> None:
    found = after((0, 1), (100, 0), (200, 1), (300, 0), (400, 1))
    assert found.life(1, 400 + 10 * HOUR) == 10 * HOUR


def test_what_goes_again_and_again_is_taken_to_go_soon() -> None:
    looks = [(100.0 * n, (n + 1) % 2) for n in range(41)]
    assert after(*looks).life(1, 4000.0) < 300


def test_fewer_machines_may_stay_while_one_goes() -> None:
    found = after((0, 2), (600, 1), (1200, 2), (1800, 1))
    assert found.life(1, 1800.0) > found.life(2, 1800.0)


def test_the_share_of_time_comes_nearer_to_what_was_seen() -> None:
    found = after((0, 1), (10 * HOUR, 0))
    assert 0.4 < found.share(1, 20 * HOUR) < 0.6


def test_a_look_that_shows_nothing_new_changes_nothing() -> None:
    found = after((0, 1))
    assert found.seen(50.0, 1) is found
