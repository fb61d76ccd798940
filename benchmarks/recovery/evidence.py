"""What a training's journal says about a fault: pure, reads entries and answers.

The journal (``jobs/journal.py``) is what the training's own processes wrote; ``measured`` turns it
into the figures of the table. Times are seconds of the machine's monotonic clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

#: A pause between two steps that is longer is an interruption; a round is due each 0.1 s.
PAUSE_SECONDS = 1.0
#: The same for an evaluator, which sees a new checkpoint every few seconds.
EVALUATOR_PAUSE_SECONDS = 6.0

#: What shows that a task takes part.
TAKES_PART = ("step", "trained", "evaluated")


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    at: float
    task: str
    pid: int
    event: str
    step: int | None = None


@dataclass(frozen=True)
class Figures:
    """What a fault cost.

    ``training_seconds`` is from the fault to the first step of the job after its longest pause, 0
    where there was none. ``whole_seconds`` is from the fault until every task took part again.
    ``repeated_steps`` were done before the fault and had to be done again; ``lost_steps`` of them
    were in a finished checkpoint. None: it was never so.
    """

    training_seconds: float | None
    whole_seconds: float | None
    repeated_steps: int
    lost_steps: int


def parse(text: str) -> list[Entry]:
    """Return the entries of whole lines of a journal."""
    return [Entry(**json.loads(line)) for line in text.split("\n") if line]


def activity(entries: Iterable[Entry]) -> dict[str, list[float]]:
    """Return when each task trained, or evaluated."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        if entry.event in TAKES_PART:
            found.setdefault(entry.task, []).append(entry.at)
    return found


def pause_of(task: str) -> float:
    """Return how long a task may be silent while it takes part."""
    return EVALUATOR_PAUSE_SECONDS if task.startswith("evaluator") else PAUSE_SECONDS


def after_longest_pause(times: Sequence[float], fault_at: float, pause: float) -> float:
    """Return when the longest pause that ends after the fault ended, from the fault; 0 for none."""
    pauses = [
        (later - max(earlier, fault_at), later)
        for earlier, later in pairwise(times)
        if later > fault_at
    ]
    length, end = max(pauses, default=(0.0, fault_at))
    return end - fault_at if length > pause else 0.0


def figures(
    entries: Sequence[Entry], fault_at: float, tasks: Sequence[str], trainers: Sequence[str]
) -> Figures:
    """Return what the fault at ``fault_at`` cost a training that is whole again.

    ``tasks`` take part; ``trainers`` of them note steps, the deciding one first. An evaluator that
    goes on has nothing to do before the next checkpoint: that is the training's pause, not its own.
    """
    times = activity(entries)
    steps = sorted(at for task in trainers for at in times.get(task, []))
    paused = {
        task: after_longest_pause(times.get(task, []), fault_at, PAUSE_SECONDS)
        for task in tasks
        if not task.startswith("evaluator")
    }
    whole = [max(paused.get(task, 0.0), _new_process(entries, fault_at, task)) for task in tasks]
    repeated, lost = _steps_back(entries, fault_at, trainers[0])
    return Figures(
        training_seconds=after_longest_pause(steps, fault_at, PAUSE_SECONDS),
        whole_seconds=max(whole),
        repeated_steps=repeated,
        lost_steps=lost,
    )


def _new_process(entries: Sequence[Entry], fault_at: float, task: str) -> float:
    """Return when the task's newest process first took part, from the fault; 0 if it is no new one.

    An evaluator is silent between two checkpoints: its pauses tell less than its process ids.
    """
    own = [e for e in entries if e.task == task and e.pid and e.event in TAKES_PART]
    if not own or own[-1].pid in {entry.pid for entry in own if entry.at <= fault_at}:
        return 0.0
    return next(entry.at for entry in own if entry.pid == own[-1].pid) - fault_at


def _steps_back(entries: Sequence[Entry], fault_at: float, decider: str) -> tuple[int, int]:
    """Return how many steps the training fell back, and how many of them had been saved."""
    repeated = lost = 0
    newest: int | None = None
    saved = 0
    for entry in entries:
        if entry.step is None:
            continue
        if entry.event == "saved":
            saved = max(saved, entry.step)
        if entry.task != decider or entry.event not in ("step", "resumed"):
            continue
        # After a step, the model is at it; resumed, too, but then nothing was done in between.
        reached = entry.step - 1 if entry.event == "step" else entry.step
        if entry.at > fault_at and newest is not None and reached < newest:
            repeated = max(repeated, newest - reached)
            lost = max(lost, min(saved, newest) - reached)
        newest = entry.step
    return repeated, max(0, lost)
