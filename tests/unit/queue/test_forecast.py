"""When jobs are likely to begin: the queue played on by its own rules."""

from __future__ import annotations

from dcos_tensorflow.queue.forecast import Calibration, capture, forecast
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import (
    Host,
    Interval,
    JobProgress,
    JobState,
    QueuedJob,
    Rules,
    TaskNeed,
    Team,
)

NEED = TaskNeed(1_000, 1_024, 1_000)


def queue_with(*jobs: QueuedJob) -> Queue:
    queue = Queue(Rules(), (Team("red"), Team("blue")), 0.0)
    queue.hosts_are([Host("host", 8_000, 16_000, 1_000)], 0.0)
    for job in jobs:
        assert queue.submit(job, 0.0) is None
    queue.decide(0.0)
    return queue


def job(name: str, **more: float) -> QueuedJob:
    return QueuedJob(name, "red", ((NEED, 1),), 0.0, time_limit=more.get("limit"))


def test_a_job_begins_when_the_one_before_it_is_likely_to_end() -> None:
    queue = queue_with(job("first"), job("second"), job("third", limit=100.0))
    queue.told("first", JobProgress(10.0, Interval(50.0, 60.0, 90.0)))
    found = forecast(capture(queue, 10.0))
    assert found.ends["first"] == Interval(50.0, 60.0, 90.0)
    assert found.starts["second"] == Interval(50.0, 60.0, 90.0)
    assert found.starts["third"].low > found.starts["second"].low


def test_a_forecast_changes_nothing_of_the_queue() -> None:
    queue = queue_with(job("first"), job("second"))
    queue.take_changed()
    forecast(capture(queue, 10.0))
    assert queue.entries["second"].state is JobState.WAITING
    assert not queue.take_changed()


def test_a_job_that_is_held_is_told_no_time() -> None:
    queue = queue_with(job("first"), job("second"))
    queue.hold("second")
    assert "second" not in forecast(capture(queue, 10.0)).starts


def in_all(known: Calibration, now: float = 0.0) -> Interval:
    return known.told({"a": Interval(300.0, 600.0, 900.0)}, now)["a"]


def learned(known: Calibration, *late: float) -> Calibration:
    """Return what has learned of starts that came so late, in seconds, of ten minutes."""
    for number, seconds in enumerate(late):
        known.foretold({f"job-{number}": Interval(300.0, 600.0, 900.0)}, 0.0)
        known.began(f"job-{number}", 600.0 + seconds)
    return known


def test_before_a_start_has_come_its_interval_is_wide() -> None:
    told = in_all(Calibration())
    assert told.low < 300.0
    assert told.high > 900.0


def test_a_start_is_told_by_how_late_those_before_it_came() -> None:
    told = in_all(learned(Calibration(), *(6.0 * late for late in range(400))))
    assert 600.0 < told.low < 1_000.0 < told.likely < 2_500.0 < told.high < 3_100.0


def test_what_is_late_and_has_not_come_counts_as_well() -> None:
    known = learned(Calibration(), *([0.0] * 100))
    before = in_all(known)
    known.foretold({f"late-{n}": Interval(300.0, 600.0, 900.0) for n in range(100)}, 0.0)
    told = in_all(known, 6_000.0)
    assert told.high > 6_000.0 > before.high
    for number in range(100):
        known.left(f"late-{number}")
    assert in_all(known, 6_000.0) == before


def test_a_restart_knows_what_was_learned() -> None:
    known = learned(Calibration(), *(10.0 * late for late in range(1_000)))
    assert len(known.kept()) <= 400
    assert in_all(Calibration(known.kept())) == in_all(known)
