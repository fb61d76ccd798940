"""Units that the release before has stored, in pages of 200, are read, and become small pages."""

import itertools
import json

import pytest

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore, upgrade
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from samples.states import NOW, a_spec

#: So many units were a page then.
THEN = 200


def stored(count: int) -> dict[str, bytes]:
    """Return what the release before kept of so many units, every third of which has succeeded."""
    spec = a_spec(units=UnitsSpec(UnitKind.SHARD))
    values = {w.path: w.value for w in first_writes(ServiceState.of_one_gang(spec, "an-instance"))}
    for page, first in enumerate(range(0, count, THEN)):
        numbers = range(first, min(first + THEN, count))
        state = [{"number": n, **({} if n % 3 else {"state": "succeeded"})} for n in numbers]
        values[f"Units/{page:04}/Given"] = json.dumps([{"shard": n} for n in numbers]).encode()
        values[f"Units/{page:04}/State"] = json.dumps(state).encode()
    return values


@pytest.mark.parametrize("count", [0, 1, 16, THEN, 2 * THEN + 7])
def test_every_unit_is_as_it_was(count: int) -> None:
    state = restore(stored(count), LaunchSettings(), NOW)
    assert state is not None
    assert [unit.number for unit in state.units] == list(range(count))
    assert [state.units.payload(n)["shard"] for n in range(count)] == list(range(count))
    assert state.units.count(UnitState.SUCCEEDED) == len(range(0, count, 3))


def test_a_change_of_the_format_that_is_cut_short_anywhere_loses_nothing() -> None:
    before = stored(2 * THEN + 7)
    writes = upgrade(before)[1]
    for done in range(len(writes) + 1):
        values = dict(before)
        for write in itertools.islice(writes, done):
            if write.value is None:
                values.pop(write.path)
            else:
                values[write.path] = write.value
        state = restore(values, LaunchSettings(), NOW)
        assert state is not None
        assert len(state.units) == 2 * THEN + 7
    assert not any(path.startswith("Units/") for path in values)
    assert upgrade(values)[1] == ()


def test_attempts_that_were_given_up_stay_so() -> None:
    given_up = {f"t-{n}": f"a{n}" for n in range(50)}
    values = {**stored(3), "Properties/abandoned": codec.encode(given_up)}
    state = restore(values, LaunchSettings(), NOW)
    assert state is not None
    assert state.abandoned == given_up
    assert Write("Properties/abandoned", None) in upgrade(values)[1]


def test_pages_that_do_not_fit_each_other_are_told() -> None:
    broken = {**stored(3), "Units/0000/Given": codec.encode([{}])}
    with pytest.raises(StateUnreadable, match="1 units were given, and 3 are kept"):
        restore(broken, LaunchSettings(), NOW)


def test_a_unit_that_changes_writes_little_of_the_others() -> None:
    state = restore(stored(THEN), LaunchSettings(), NOW)
    assert state is not None
    assert paths.units_state(0) in {write.path for write in upgrade(stored(THEN))[1]}
    assert max(len(page.units) for page in state.units.pages) <= 16
