"""Waits until a training is whole again, while it collects what is not in its journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.recovery import evidence
from benchmarks.recovery.cases import Training
from benchmarks.recovery.evidence import Entry

_LOOK_SECONDS = 0.05


class Watch:
    """Follows one training: its journal, and the files that workers of a coordinator touch.

    ``directory_of`` says where a task's process runs now, None when there is none.
    """

    def __init__(
        self, training: Training, journal: Path, directory_of: Callable[[str], Path | None]
    ) -> None:
        self.training = training
        self._journal = journal
        self._directory_of = directory_of
        self._offset = 0
        self._entries: list[Entry] = []
        self._disregarded: dict[int, float] = {}
        self._touched: Mapping[str, float] = {}
        self._clock = time.time() - time.monotonic()

    def look(self) -> list[Entry]:
        """Return everything that is known by now, in the order of time."""
        entries = evidence.read(self._journal)
        self._entries += entries[self._offset :]
        self._offset = len(entries)
        touched = dict(self._touched)
        for task in self.training.touching:
            directory = self._directory_of(task)
            try:
                at = (directory / "trained").stat().st_mtime if directory else 0.0
            except OSError:
                at = 0.0
            if at > touched.get(task, 0.0):
                touched[task] = at
                self._entries.append(Entry(at - self._clock, task, 0, "trained"))
        self._touched = touched
        return sorted(filter(self._counts, self._entries), key=lambda entry: entry.at)

    def disregard(self, pids: Iterable[int]) -> None:
        """Let nothing count that these processes do from now on."""
        self._disregarded.update(dict.fromkeys(pids, time.monotonic()))

    def _counts(self, entry: Entry) -> bool:
        return entry.at < self._disregarded.get(entry.pid, float("inf"))

    def wait_until(
        self, condition: Callable[[list[Entry]], bool], seconds: float
    ) -> list[Entry] | None:
        """Look until the condition holds; None when it did not within ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            entries = self.look()
            if condition(entries):
                return entries
            time.sleep(_LOOK_SECONDS)
        return None

    def whole(self, entries: list[Entry], since: float, victims: tuple[str, ...]) -> bool:
        """Say whether everybody takes part, and each victim has since ``since``."""
        participants = self.training.participants
        return evidence.busy(entries, participants, time.monotonic()) and all(
            evidence.active_since(entries, task, since) for task in victims if task in participants
        )
