"""Back-off, and how work in progress is stopped."""

import time

import pytest

from dcos_tensorflow.task.storage.s3.errors import (
    Cancelled,
    ConditionFailed,
    S3Problem,
    StorageError,
)
from dcos_tensorflow.task.storage.s3.retry import Cancellation, Retrier, RetryBackoff

BUSY = StorageError(S3Problem("unavailable", True, "busy"))


class Request:
    """Fails with each of ``failures`` in turn, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def retrier(gate: Cancellation | None = None, **backoff: float) -> Retrier:
    settings = {"first": 0.0001, "longest": 0.001, "attempts": 4, **backoff}
    return Retrier(gate or Cancellation(), RetryBackoff(**settings), draw=lambda: 1.0)  # type: ignore[arg-type]


def test_delays_grow_to_the_longest():
    backoff = RetryBackoff(first=1.0, longest=5.0)
    assert [backoff.delay(attempt, 1.0) for attempt in (1, 2, 3, 4, 900)] == [1, 2, 4, 5, 5]


def test_jitter_takes_off_up_to_a_half():
    assert RetryBackoff(first=1.0).delay(1, 0.0) == 0.5


def test_what_passes_is_tried_again():
    assert retrier().call("x", Request(BUSY, BUSY)) == "answer"


def test_it_gives_up_after_so_many_attempts():
    request = Request(*[BUSY] * 9)
    with pytest.raises(StorageError):
        retrier().call("x", request)
    assert request.calls == 4


@pytest.mark.parametrize(
    "error",
    [
        StorageError(S3Problem("denied", False, "no")),
        ConditionFailed(S3Problem("condition", True, "no")),
    ],
)
def test_what_cannot_pass_is_tried_once(error):
    request = Request(error, error)
    with pytest.raises(StorageError):
        retrier().call("x", request)
    assert request.calls == 1


def test_each_failed_attempt_is_noticed():
    noticed: list[S3Problem] = []
    Retrier(Cancellation(), RetryBackoff(0.0001, 0.001), noticed.append).call("x", Request(BUSY))
    assert noticed == [BUSY.problem]


def test_a_closed_gate_stops_before_the_first_attempt():
    gate, request = Cancellation(), Request()
    gate.close()
    with pytest.raises(Cancelled):
        retrier(gate).call("x", request)
    assert request.calls == 0


def test_a_deadline_cuts_a_long_back_off_short():
    gate = Cancellation()
    gate.limit(0.05)
    began = time.monotonic()
    with pytest.raises(Cancelled):
        retrier(gate, first=60.0, longest=60.0).call("x", Request(BUSY))
    assert time.monotonic() - began < 5.0


def test_a_deadline_is_never_moved_away():
    gate = Cancellation()
    gate.limit(0.0)
    gate.limit(100.0)
    assert gate.closed
