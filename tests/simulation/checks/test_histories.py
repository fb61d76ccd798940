"""Random histories: whatever goes wrong in whatever order, the rules hold and the job ends well."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from history import History, story
from simulate import KINDS, broken_rule, play_many
from single_incident import SingleIncident
from slot_history import SlotHistory
from volume_history import VolumeHistory
from waiting_history import WaitingHistory

#: ``make soak`` and ``make simulate`` play 10,000.
SEEDS = int(os.environ.get("SEEDS", "100"))
#: The gate plays the same histories each time, ``make soak`` others.
FIRST_SEED = int(os.environ.get("FIRST_SEED", "0"))


@pytest.mark.timeout(3600)
def test_no_history_breaks_a_rule():
    broken = play_many(SEEDS, FIRST_SEED)
    for seed, what in broken.items():
        kind = KINDS.get(what.partition(":")[0], History)
        pytest.fail(f"seed {seed}: {what}; {len(broken)} of {SEEDS} broken\n{story(kind, seed)}")


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_one_failure_restarts_exactly_whom_it_must_and_costs_what_it_should(first):
    for seed in range(first, first + 20):
        broken = broken_rule(SingleIncident, seed)
        assert not broken, f"seed {seed}: {broken}\n{story(SingleIncident, seed)}"


def test_a_task_that_waits_in_vain_is_told_of_and_none_is_ended_that_does_something():
    for seed in range(40):
        broken = broken_rule(WaitingHistory, seed)
        assert not broken, f"seed {seed}: {broken}\n{story(WaitingHistory, seed)}"


def test_volumes_are_given_back_in_histories_with_volumes():
    for seed in range(4):
        history = VolumeHistory(seed)
        history.play()
        assert history.released


def test_every_unit_is_decided_once_whatever_goes_wrong():
    told = []
    for seed in range(24):
        history = SlotHistory(seed)
        history.play()
        told += history.lines
    text = "\n".join(told)
    for what in (
        "waits again", "is run once more", "attempts failed", "is stopped early", "lost: units",
        "is to be taken down", "and its container ends",
    ):  # fmt: skip
        assert what in text, what


def test_the_faults_happen_at_all():
    crashes = waits = restarts = lost = charged = 0
    for seed in range(30):
        history = History(seed)
        history.play()
        crashes += history.scheduler.crashes
        waits += history.scheduler.waits
        restarts += history.scheduler.state.job.restart.count
        charged += history.rules.charged
        lost += sum("lost:" in line for line in history.lines)
    assert min(crashes, waits, restarts, lost, charged) > 10


def test_the_same_seed_is_the_same_history():
    first, second = History(7), History(7)
    first.play()
    second.play()
    assert first.lines == second.lines
