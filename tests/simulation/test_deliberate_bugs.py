"""The simulation finds bugs: three that others have made, put into the scheduler on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from history import FaultyScheduler, History, RuleBroken

from dcos_tensorflow.core import advance, offer_use
from dcos_tensorflow.core.actions import Accept, Acknowledge
from simulated_mesos import Cluster

SEEDS = 1000


def first_broken_seed() -> int | None:
    """Return the first seed whose history breaks a rule, or the model itself."""
    for seed in range(SEEDS):
        try:
            History(seed).play()
        except (RuleBroken, AssertionError):
            return seed
    return None


def test_acknowledging_before_the_commit_is_found(monkeypatch):
    original = FaultyScheduler.before_commit

    def acknowledge_first(self):
        for event in self.acknowledged_early:
            self.cluster.perform(Acknowledge(event.agent_id, event.task_id, event.uuid))
        original(self)

    def handle(self, event):
        self.acknowledged_early = [event] if getattr(event, "uuid", "") else []
        return super(FaultyScheduler, self).handle(event)

    monkeypatch.setattr(FaultyScheduler, "before_commit", acknowledge_first)
    monkeypatch.setattr(FaultyScheduler, "handle", handle, raising=False)
    assert first_broken_seed() is not None


def test_sending_an_accept_again_is_found(monkeypatch):
    original = Cluster.perform

    def twice(self, action):
        original(self, action)
        if isinstance(action, Accept):
            original(self, action)

    monkeypatch.setattr(Cluster, "perform", twice)
    assert first_broken_seed() is not None


@pytest.mark.parametrize("what", ["killed", "waited for"])
def test_not_fencing_an_old_attempt_is_found(monkeypatch, what):
    if what == "killed":
        monkeypatch.setattr(advance, "_kill_strays", lambda draft: None)
    else:
        monkeypatch.setattr(offer_use, "_old_attempts_may_live", lambda draft: False)
    assert first_broken_seed() is not None
