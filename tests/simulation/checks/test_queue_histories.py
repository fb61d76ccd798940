"""Random histories of a queue keep its rules, and a queue with a planted bug is caught."""

from __future__ import annotations

import pytest

from dcos_tensorflow.queue.line import Entry, Queue
from dcos_tensorflow.queue.model import Admission
from simulation.queue_history import BrokenRule, World

#: In the last one two jobs at once waited for slots of one sweep.
SEEDS = (1, 2, 3, 4, 5, 1162)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_keeps_the_rules(seed: int) -> None:
    World(seed).play()


def broken_by_some_history() -> bool:
    for seed in SEEDS:
        try:
            World(seed).play()
        except BrokenRule:
            return True
    return False


def test_a_promise_that_is_kept_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Queue._keep_promises

    def too_early(self: Queue, now: float) -> list[Admission]:
        for job in self._promised:
            self.entries[job].awaits.clear()
        return kept(self, now)

    monkeypatch.setattr(Queue, "_keep_promises", too_early)
    assert broken_by_some_history()


def test_a_job_that_is_forgotten_when_it_gives_way_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def enter(self: Queue, entry: Entry, now: float) -> None:
        if not entry.times_given_way:
            self._lines[entry.job.team].add(entry.job, entry.number)

    monkeypatch.setattr(Queue, "_enter", enter)
    assert broken_by_some_history()
