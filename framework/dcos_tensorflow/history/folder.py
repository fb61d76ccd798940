"""Where runs are kept on a disk: a folder for each.

In it are ``run.json``, ``points.jsonl`` and ``notes.json``.

Points are appended; a line that a crash has torn is no point, and goes when the file is next opened
to be written. Everything else is replaced at once. All methods may raise OSError.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcos_tensorflow.history.points import Point, points_in
from dcos_tensorflow.history.record import NONE, Notes, Record, known, notes_of
from dcos_tensorflow.records import dataclass
from untrusted_input import trees
from untrusted_input.json_text import read_json

#: Of a service so many runs are kept, the newest.
MOST_RUNS = 50
#: So much is appended with one write; bytes.
_PIECE_BYTES = 64 * 1024
#: No record of ours is larger, nor are the points of a run; bytes.
_MOST_RECORD, _MOST_POINTS = 4 << 20, 64 << 20

_NAME = re.compile(r"(\d{1,9})-[0-9a-zA-Z]{1,8}")


@dataclass(frozen=True)
class RunFolder:
    """What is kept of one run."""

    path: Path

    @property
    def record_file(self) -> Path:
        """Return the file of what is known of the run."""
        return self.path / "run.json"

    @property
    def points_file(self) -> Path:
        """Return the file of its points."""
        return self.path / "points.jsonl"

    @property
    def tracking_file(self) -> Path:
        """Return the file of what a tracking server has been told."""
        return self.path / "tracking.json"

    def tracking(self) -> dict[str, Any]:
        """Return what a tracking server has been told; empty where that cannot be read."""
        try:
            found = read_json(_text(self.tracking_file, _MOST_RECORD))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def keep_tracking(self, told: Mapping[str, Any]) -> None:
        """Replace what a tracking server has been told."""
        self._replace(self.tracking_file, [json.dumps(told) + "\n"])

    @property
    def notes_file(self) -> Path:
        """Return the file of what a person says of it, which no scheduler writes by itself."""
        return self.path / "notes.json"

    def record(self) -> Record:
        """Return what is known of the run, with its notes; empty where that cannot be read."""
        try:
            found = read_json(_text(self.record_file, _MOST_RECORD))
        except (OSError, ValueError):
            return {}
        record = known(found)
        return {**record, **self._notes(record)} if record else {}

    def _notes(self, record: Record) -> Notes:
        """Return its notes: its own, else those that a copy of its record has brought."""
        try:
            return notes_of(read_json(_text(self.notes_file, _MOST_RECORD)))
        except (OSError, ValueError):
            pass
        try:
            return notes_of(dict(record))
        except ValueError:
            return NONE

    def keep_notes(self, notes: Notes) -> None:
        """Replace what a person says of the run."""
        self._replace(self.notes_file, [json.dumps(dict(notes)) + "\n"])

    def points(self) -> dict[str, list[Point]]:
        """Return the points by task, each task's in the order in which they were told."""
        try:
            return points_in(_text(self.points_file, _MOST_POINTS).splitlines())
        except FileNotFoundError:
            return {}

    def keep_record(self, record: Mapping[str, Any]) -> None:
        """Replace what is known of the run."""
        self._replace(self.record_file, [json.dumps(record, indent=2) + "\n"])

    def begin_with_notes(self, record: Record) -> None:
        """Take over the notes of a record of the same run, where it has none of its own."""
        if not self.notes_file.exists():
            try:
                self.keep_notes(notes_of(dict(record)))
            except ValueError:
                return

    def append(self, lines: Sequence[str]) -> None:
        """Append points, in pieces."""
        make(self.path)
        handle = os.open(self.points_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(handle, "ab") as file:
            file.writelines(_pieces(lines))

    def replace_points(self, lines: Iterable[str]) -> None:
        """Put these in the place of all points."""
        self._replace(self.points_file, lines)

    def _replace(self, file: Path, lines: Iterable[str]) -> None:
        make(self.path)
        partial = file.with_name(f".{file.name}.new")
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
            new.writelines(_pieces(lines))
            new.flush()
            os.fsync(new.fileno())
        os.replace(partial, file)


def runs_in(history: Path) -> list[RunFolder]:
    """Return the runs of a service, the newest first."""
    found = []
    try:
        names = os.listdir(history)
    except (FileNotFoundError, NotADirectoryError):
        return []
    for name in names:
        path, number = history / name, number_of(name)
        if number is not None and path.is_dir() and not path.is_symlink():
            found.append((_begun(path), number, RunFolder(path)))
    return [run for *_, run in sorted(found, key=lambda each: each[:2], reverse=True)]


def run_called(history: Path, name: str) -> RunFolder | None:
    """Return a service's run by its id, or the newest one by its number; None without one."""
    names = (lambda each: each, lambda each: str(number_of(each)))
    runs = runs_in(history)
    return next((run for called in names for run in runs if called(run.path.name) == name), None)


def number_of(name: str) -> int | None:
    """Return the number of the run whose folder has this name; None where it is no run's."""
    found = _NAME.fullmatch(name)
    return int(found.group(1)) if found is not None else None


def remove_oldest(history: Path, most: int = MOST_RUNS) -> None:
    """Remove all runs of a service but the newest."""
    for run in runs_in(history)[most:]:
        trees.remove(run.path)


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    if not folder.is_dir():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def _begun(path: Path) -> float:
    """Return when a run began, as well as that is known; unix seconds."""
    started = RunFolder(path).record().get("started_at")
    return started if isinstance(started, int | float) else path.stat().st_mtime


def _text(file: Path, most: int) -> str:
    with file.open("rb") as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise ValueError(f"{file} is too large to be ours")
    return data.decode("utf-8", "replace")


def _pieces(lines: Iterable[str]) -> Iterator[bytes]:
    piece = b""
    for line in lines:
        piece += line.encode()
        if len(piece) >= _PIECE_BYTES:
            yield piece
            piece = b""
    if piece:
        yield piece
