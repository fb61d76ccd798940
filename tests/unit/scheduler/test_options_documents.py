"""The options of each stored configuration, kept to be shown."""

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.scheduler.options_documents import OptionsDocuments
from dcos_tensorflow.state.errors import StateUnavailable
from jobs.scheduled_jobs import command_job

SPEC = command_job("true")
OTHER = replace(SPEC, kill_grace_seconds=7.0)
STATE = ServiceState.of_one_gang(SPEC, "instance")
LATER = replace(STATE, spec=OTHER, configurations=(configuration_id(SPEC),))


class Store(dict[str, bytes]):
    def commit(self, writes: Any) -> None:
        for write in writes:
            assert isinstance(write, Write)
            if write.value is None:
                del self[write.path]
            else:
                self[write.path] = write.value


def test_a_later_process_knows_the_options_in_force_and_those_to_go_back_to() -> None:
    store, first, second = Store(), OptionsDocuments(), OptionsDocuments()
    first.note(SPEC, {"worker": {"count": 1}})
    first.keep(STATE, store.commit)
    first.note(OTHER, {"worker": {"count": 2}})
    first.keep(LATER, store.commit)
    second.load(store)
    assert (second.of(SPEC), second.of(OTHER)) == (
        {"worker": {"count": 1}},
        {"worker": {"count": 2}},
    )


def test_what_was_asked_for_and_refused_is_not_kept() -> None:
    store, documents = Store(), OptionsDocuments()
    documents.note(OTHER, {"worker": {"count": 2}})
    documents.keep(STATE, store.commit)
    assert store == {}


def test_the_options_of_a_forgotten_configuration_are_forgotten() -> None:
    store, documents = Store(), OptionsDocuments()
    documents.note(SPEC, {"worker": {"count": 1}})
    documents.keep(STATE, store.commit)
    documents.keep(replace(LATER, configurations=()), store.commit)
    assert store == {}


def test_a_store_that_is_away_is_tried_again() -> None:
    def away(_: Any) -> None:
        raise StateUnavailable("away")

    store, documents = Store(), OptionsDocuments()
    documents.note(SPEC, {"worker": {"count": 1}})
    with pytest.raises(StateUnavailable):
        documents.keep(STATE, away)
    documents.keep(STATE, store.commit)
    assert len(store) == 1


def test_what_cannot_be_read_is_of_no_use_and_does_no_harm() -> None:
    documents = OptionsDocuments()
    documents.load({"Options/a": b"{", "Options/b": b"[]", "Tasks/x/TaskInfo": b"?"})
    assert documents.of(SPEC) == {}
