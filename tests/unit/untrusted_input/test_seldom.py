"""The same thing is said once a minute, and what was left out is counted."""

import logging
from collections.abc import Iterator

import pytest

from untrusted_input.seldom import SECONDS, Seldom, SeldomFilter


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_kind_is_said_once_in_its_time() -> None:
    clock = Clock()
    seldom = Seldom(clock)
    assert [seldom.may_say("a") for _ in range(4)] == [0, None, None, None]
    clock.now += SECONDS
    assert [seldom.may_say("a"), seldom.may_say("a")] == [3, None]


def test_another_kind_does_not_wait_for_it() -> None:
    seldom = Seldom(Clock())
    assert [seldom.may_say(kind) for kind in ("a", "b", "a")] == [0, 0, None]


def test_kinds_without_number_are_not_remembered() -> None:
    seldom = Seldom(Clock())
    for kind in range(100_000):
        seldom.may_say(kind)
    assert len(seldom._said) <= 100


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def kept() -> Iterator[Kept]:
    """What a handler writes of which the loggers below ``noisy`` are heard seldom."""
    handler = Kept()
    handler.addFilter(SeldomFilter("noisy"))
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_what_differs_by_its_arguments_alone_is_the_same(kept: Kept) -> None:
    for number in range(50):
        logging.getLogger("noisy.below").error("%s failed", number)
        logging.getLogger("noisy.below").error("%s failed otherwise", number)
    assert kept.lines == ["0 failed", "0 failed otherwise"]


def test_other_loggers_are_heard_always(kept: Kept) -> None:
    for number in range(3):
        logging.getLogger("noisy_too").error("%s failed", number)
    assert len(kept.lines) == 3
