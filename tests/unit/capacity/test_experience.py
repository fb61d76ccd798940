"""What a market has shown, and what is taken from it."""

from dcos_tensorflow.capacity.experience import HOUR, Experience, Margin


def after(*looks: tuple[float, int], machines: int = 2) -> Experience:
    """Return the experience of looks at these times."""
    (began, available), *rest = looks
    found = Experience.first(began, available, machines)
    for now, available in rest:
        found = found.seen(now, available)
    return found


def test_one_unknown_machine_is_taken_to_stay_for_an_hour() -> None:
    assert after((0, 1)).life(1, 0.0) == HOUR


def test_two_unknown_machines_are_taken_to_stay_for_half_of_it() -> None:
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


def test_machines_that_others_have_shielded_are_not_taken_to_stay_like_them() -> None:
    shrinking = after(*((600.0 * n, 10 - n) for n in range(6)), machines=10)
    steady = after((0, 5), machines=10)
    assert shrinking.life(5, 3000.0) < steady.life(5, 3000.0) / 2


def test_machines_that_always_stay_are_known_though_others_come_and_go() -> None:
    found = after(*((300.0 * n, 8 if n % 2 else 4) for n in range(40)), machines=8)
    assert found.life(4, 11_700.0) > 4 * found.life(8, 11_700.0)


def test_a_margin_is_lost_when_more_machines_have_gone_than_it_has() -> None:
    margin = Margin().seen(0.0, 5, 2).seen(100.0, 3, 2).seen(200.0, 6, 2)
    assert margin.stay.ends == 0
    assert margin.seen(300.0, 3, 2).stay.ends == 1


def test_the_share_of_time_comes_nearer_to_what_was_seen() -> None:
    found = after((0, 1), (10 * HOUR, 0))
    assert 0.4 < found.share(1, 20 * HOUR) < 0.6


def test_a_look_that_shows_nothing_new_changes_nothing() -> None:
    found = after((0, 1))
    assert found.seen(50.0, 1) is found
