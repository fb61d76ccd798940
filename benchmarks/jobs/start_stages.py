"""From a job's journal to the stages of its start: pure.

Used by ``start.py``; ``report.py`` draws the stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.recovery.evidence import Entry

#: In the order in which they come, and what each is, for the picture.
NAMES = {
    "launch": "to the user's process",
    "python": "Python",
    "load": "import TensorFlow",
    "connect": "to the first step",
    "train": "train",
    "end": "to the end",
}


@dataclass(frozen=True)
class Stages:
    """Seconds of each stage of one run, as the deciding task saw it."""

    #: From the command to its process.
    launch: float
    #: From there to the first line of the user's code.
    python: float
    #: From there until TensorFlow is imported.
    load: float
    #: From there to the first printed step: servers, peers, graph.
    connect: float
    #: From the first step to the last.
    train: float
    #: From the last step to the end of the command.
    end: float

    def until(self, stage: str) -> float:
        """Return the seconds from the command to the end of a stage."""
        names = list(NAMES)
        return sum(float(getattr(self, name)) for name in names[: names.index(stage) + 1])


def of_journal(entries: Iterable[Entry], task: str, began: float, ended: float) -> Stages:
    """Return the stages of a task's run whose command ran from ``began`` to ``ended``.

    A function is called when TensorFlow is imported, and cannot tell the two apart: all of it is
    ``python`` then, and ``load`` is 0. Raises ValueError where the task has made no step.
    """
    first: dict[str, float] = {}
    last = began
    for entry in entries:
        if entry.task == task:
            first.setdefault(entry.event, entry.at)
            last = entry.at if entry.event == "step" else last
    if "step" not in first:
        raise ValueError(f"{task} has made no step")
    imported = first.get("imported", first["started"])
    times = (began, first["process"], first["started"], imported, first["step"], last, ended)
    return Stages(*(later - earlier for earlier, later in pairwise(times)))
