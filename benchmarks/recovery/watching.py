"""Waits until a training is whole again, while it collects what is not in its journal.

It reads only what is new at each look: whatever it costs is taken from the training that it
measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks.recovery import evidence
from benchmarks.recovery.cases import Training
from benchmarks.recovery.evidence import Entry

_LOOK_SECONDS = 0.1


class Watch:
    """Follows one training: its journal, and the files that workers of a coordinator touch.

    ``directory_of`` says where a task's process runs now, None when there is none.
    """

    def __init__(
        self, training: Training, journal: Path, directory_of: Callable[[str], Path | None]
    ) -> None:
        self.training = training
        #: The newest step that the deciding task has noted.
        self.step = 0
        self._journal = journal
        self._directory_of = directory_of
        self._offset = 0
        self._entries: list[Entry] = []
        self._disregarded: dict[int, float] = {}
        self._touched: Mapping[str, float] = {}
        #: When each task took part at last.
        self._last: dict[str, float] = {}
        self._clock = time.time() - time.monotonic()

    def look(self) -> None:
        """Read what is new."""
        if self._journal.exists():
            with self._journal.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            whole, _, _ = data.rpartition(b"\n")
            self._offset += len(whole) + 1 if whole else 0
            for entry in evidence.parse(whole.decode()):
                self._take(entry)
        touched = dict(self._touched)
        for task in self.training.touching:
            at = _touched_at(self._directory_of(task))
            if at > touched.get(task, 0.0):
                touched[task] = at
                self._take(Entry(at - self._clock, task, 0, "trained"))
        self._touched = touched

    def _take(self, entry: Entry) -> None:
        if entry.at >= self._disregarded.get(entry.pid, float("inf")):
            return
        self._entries.append(entry)
        if entry.event in evidence.TAKES_PART:
            self._last[entry.task] = max(entry.at, self._last.get(entry.task, 0.0))
        if entry.event == "step" and entry.task == self.training.trainers[0]:
            self.step = entry.step or 0

    def entries(self) -> list[Entry]:
        """Return everything that is known by now, in the order of time."""
        self.look()
        return sorted(self._entries, key=lambda entry: entry.at)

    def disregard(self, pids: Iterable[int]) -> None:
        """Let nothing count that these processes do from now on."""
        self.look()
        self._disregarded.update(dict.fromkeys(pids, time.monotonic()))

    def disregards(self, pid: int) -> bool:
        """Say whether nothing counts that a process does."""
        return pid in self._disregarded

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Look until the condition holds; False when it did not within ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            if condition():
                return True
            time.sleep(_LOOK_SECONDS)
        return False

    def whole(self, since: float, victims: tuple[str, ...]) -> bool:
        """Say whether everybody takes part, and each victim has since ``since``."""
        now = time.monotonic()
        return all(
            now - self._last.get(task, 0.0) < evidence.pause_of(task)
            and (task not in victims or self._last[task] > since)
            for task in self.training.participants
        )

    @property
    def saved(self) -> bool:
        """Say whether there is a checkpoint."""
        return any(entry.event == "saved" for entry in self._entries)


def _touched_at(directory: Path | None) -> float:
    try:
        return (directory / "trained").stat().st_mtime if directory else 0.0
    except OSError:
        return 0.0  # It has not trained yet.
