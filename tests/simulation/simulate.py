"""Many seeds at once, on all cores: ``make simulate SEEDS=10000``.

Every seed is a history, and by turns one more: a single incident, one with persistent volumes, one
of runs that follow each other, one with an evaluator that is lost often, one in which a task
waits, one in which members end with 0, one with slots that take units of work, one with slots of
different sizes, and one with a tf.data service.
Those that break a rule are named; ``history.py SEED``, or ``single_incident.py SEED`` and so on,
tells their story.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from data_history import DataHistory
from ending_history import EndingHistory
from evaluator_history import EvaluatorHistory
from history import History
from history_rules import RuleBroken
from runs_history import RunsHistory
from single_incident import SingleIncident
from slot_history import ShapedHistory, SlotHistory
from volume_history import VolumeHistory
from waiting_history import WaitingHistory

#: How what was found begins, by what was played.
KINDS: dict[str, type[History]] = {
    "single incident": SingleIncident,
    "volumes": VolumeHistory,
    "runs": RunsHistory,
    "evaluator": EvaluatorHistory,
    "waiting": WaitingHistory,
    "early ends": EndingHistory,
    "slots": SlotHistory,
    "shapes": ShapedHistory,
    "data": DataHistory,
}


def broken_rule(kind: type[History], seed: int) -> str:
    """Play a seed; return which rule it breaks, or which part of the model; empty when none."""
    try:
        kind(seed).play()
    except (RuleBroken, AssertionError) as broken:
        return f"{type(broken).__name__}: {broken}"
    return ""


def _broken(seed: int) -> str:
    found = broken_rule(History, seed)
    if found:
        return found
    name, kind = list(KINDS.items())[seed % len(KINDS)]
    broken = broken_rule(kind, seed)
    return f"{name}: {broken}" if broken else ""


def play_many(count: int, first: int = 0) -> dict[int, str]:
    """Play ``count`` seeds on all cores; return those that break a rule, and which."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        seeds = range(first, first + count)
        found = pool.map(_broken, seeds, chunksize=20)
        return {seed: broken for seed, broken in zip(seeds, found, strict=True) if broken}


def main(arguments: list[str]) -> int:
    """Play so many seeds, from the second argument on, and name those that break a rule."""
    began, count = time.monotonic(), int(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else 0
    broken = play_many(count, first)
    for seed, what in broken.items():
        print(f"seed {seed}: {what[:300]}")
    seconds = time.monotonic() - began
    print(f"{count} histories in {seconds:.0f} s, {len(broken)} with a broken rule")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
