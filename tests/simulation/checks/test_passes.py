"""Each pass of a step changes and asks for what the table of passes says, and nothing else."""

import sys
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulate import KINDS

from dcos_tensorflow.core import step
from dcos_tensorflow.core.model.service_state import ServiceState

SEEDS = range(500, 503)


def watched(each: step.Pass) -> step.Pass:
    """Return a pass that fails where it does what is not its own."""

    def run(draft):
        # These two are changed in place, for speed.
        before = replace(draft.state, gangs=dict(draft.state.gangs), at_rest={*draft.state.at_rest})
        asked = len(draft.actions)
        each.run(draft)
        changed = {
            field.name
            for field in fields(ServiceState)
            if getattr(before, field.name) != getattr(draft.state, field.name)
        }
        assert changed <= {*each.changes.split()}, each.run
        assert {type(action) for action in draft.actions[asked:]} <= {*each.actions}, each.run

    return replace(each, run=run)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_pass_does_what_the_table_says(monkeypatch, kind):
    monkeypatch.setattr(step, "PASSES", tuple(map(watched, step.PASSES)))
    for seed in SEEDS:
        kind(seed).play()


def test_every_action_is_asked_for_by_one_pass():
    asked = Counter(action for each in step.PASSES for action in each.actions)
    assert set(asked.values()) == {1}
