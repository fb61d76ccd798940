"""What is kept of a service and cannot be read stops a start, and stays as it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dcos_tensorflow.core.kept.restore import StateUnreadable, restore
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.scheduler.beginning import begin
from samples.states import running

if TYPE_CHECKING:
    from .conftest import Backend

SETTINGS = LaunchSettings()


def a_service() -> dict[str, bytes]:
    return {w.path: w.value for w in first_writes(running()) if w.value is not None}


#: By what happened: what was there, and a word of the sentence about it.
DAMAGED = {
    "a torn record": ({**a_service(), "Gangs/main/Job": b'{"phase": "run'}, "Gangs/main/Job"),
    "a lost configuration": (
        {k: v for k, v in a_service().items() if not k.startswith("Configurations/")},
        "which is not there",
    ),
    "a lost target": (
        {k: v for k, v in a_service().items() if k != "ConfigTarget"} | {"FrameworkID": b"F-1"},
        "and no ConfigTarget",
    ),
    "another program's": ({"election/n_0000": b"x", "data": b"y"}, "another program"),
    "a service of the DC/OS SDK": (
        {"FrameworkID": b"F", "ConfigTarget": b"uuid", "Configurations/uuid": b'{"name": "hdfs"}'},
        "Configurations/uuid",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_what_cannot_be_read_stops_the_start_and_is_not_overwritten(
    backend: Backend, what: str
) -> None:
    values, word = DAMAGED[what]
    store = backend.leader()
    store.commit([Write(path, value) for path, value in values.items()])
    with pytest.raises(StateUnreadable, match=word):
        begin(store, running().spec, SETTINGS)
    assert store.load() == values


def test_a_start_that_was_cut_short_begins_anew(backend: Backend) -> None:
    store = backend.leader()
    first = first_writes(running())
    store.commit(first[:-1])
    begun = begin(store, running().spec, SETTINGS)
    assert restore(store.load(), SETTINGS, time.time()) is not None
    assert begun.state.spec == running().spec


def test_what_is_damaged_can_be_removed(backend: Backend) -> None:
    store = backend.leader()
    store.commit([Write("FrameworkID", b"F-1")])
    assert begin(store, running().spec, SETTINGS, uninstall=True).events
