"""Random histories: whatever goes wrong in whatever order, the rules hold and the job ends well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from history import History, RuleBroken

#: ``make simulate SEEDS=10000`` plays more; a block of seeds is one test.
SEEDS = int(os.environ.get("SEEDS", "300"))
BLOCK = 50


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_no_history_breaks_a_rule(first):
    for seed in range(first, min(first + BLOCK, SEEDS)):
        history = History(seed)
        try:
            history.play()
        except RuleBroken as broken:
            story = "\n".join(history.lines)
            pytest.fail(f"seed {seed}: {broken}\n{story}")


def test_the_faults_happen_at_all():
    crashes, restarts, lost = 0, 0, 0
    for seed in range(30):
        history = History(seed)
        history.play()
        crashes += history.scheduler.crashes
        restarts += history.scheduler.state.job.restarts
        lost += sum("lost:" in line for line in history.lines)
    assert min(crashes, restarts, lost) > 20


def test_the_same_seed_is_the_same_history():
    first, second = History(7), History(7)
    first.play()
    second.play()
    assert first.lines == second.lines
