"""What a scheduler begins with, by what is stored and what it was told."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.events import ConfigurationChanged, UninstallRequested
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.service_state import LaunchSettings, Uninstall
from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.scheduler.beginning import UninstallGoesOn, begin
from dcos_tensorflow.state.paths import erase_order
from sample_states import with_job
from scheduled_jobs import command_job

SETTINGS = LaunchSettings()
SPEC = command_job("true")
OTHER = replace(SPEC, kill_grace_seconds=7.0)


class Values:
    """A state store that is a dict."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def load(self):
        return dict(self.values)

    def commit(self, writes):
        for write in writes:
            if write.value is None:
                self.values.pop(write.path, None)
            else:
                self.values[write.path] = write.value


@pytest.fixture
def store():
    return Values()


def stored(store: Values, spec: ServiceSpec = SPEC, framework_id: str = "f-1", **job: object):
    """Let the store hold a service whose job is in this state."""
    begin(store, spec, SETTINGS)
    state = restore(store.values, SETTINGS, time.time())
    uninstalling = job.pop("uninstalling", False)
    after = replace(
        with_job(state, **job), framework_id=framework_id, uninstall=Uninstall(bool(uninstalling))
    )
    store.commit(writes_between(state, after))
    return after


def test_a_new_service_is_written_before_anything_else(store):
    state = begin(store, SPEC, SETTINGS).state
    assert set(store.values) == {write.path for write in first_writes(state)}
    assert restore(store.values, SETTINGS, time.time()).spec == SPEC


def test_every_service_has_a_key_of_its_own(store):
    other = begin(Values(), SPEC, SETTINGS).state.settings.token_key
    assert begin(store, SPEC, SETTINGS).state.settings.token_key != other


def test_a_job_with_the_same_options_goes_on(store):
    before = stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, SPEC, SETTINGS)
    assert (beginning.state.job, beginning.events, beginning.subscribe) == (before.job, (), True)


def test_other_options_for_a_job_that_runs_are_the_cores_to_judge(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, OTHER, SETTINGS)
    assert beginning.state.spec == SPEC
    assert beginning.events == (ConfigurationChanged(OTHER),)


def test_a_job_that_is_done_answers_questions(store):
    stored(store, phase=JobPhase.DONE)
    assert begin(store, SPEC, SETTINGS).state.job.phase is JobPhase.DONE


@pytest.mark.parametrize(("spec", "fresh"), [(OTHER, False), (SPEC, True)])
def test_a_job_that_is_done_is_followed_by_a_new_one_of_the_same_framework(store, spec, fresh):
    stored(store, phase=JobPhase.DONE)
    state = begin(store, spec, SETTINGS, fresh=fresh).state
    assert (state.job, state.framework_id, state.spec) == (JobState(), "f-1", spec)


def test_pauses_end_with_the_job_that_they_were_for(store):
    stored(store, phase=JobPhase.DONE)
    store.values["Plans"] = b"{}"
    begin(store, SPEC, SETTINGS, fresh=True)
    assert "Plans" not in store.values


def test_every_stored_configuration_is_known(store):
    stored(store)
    store.values["Configurations/older"] = codec.encode(OTHER)
    store.values["Configurations/broken"] = b"{"
    known = begin(store, SPEC, SETTINGS).configurations
    assert known == {configuration_id(SPEC): SPEC, "older": OTHER}


def test_a_service_that_is_being_uninstalled_is_refused_to_others(store):
    stored(store, uninstalling=True)
    with pytest.raises(UninstallGoesOn, match="SDK_UNINSTALL"):
        begin(store, SPEC, SETTINGS)


def test_an_uninstall_is_asked_of_the_core(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, OTHER, SETTINGS, fresh=True, uninstall=True)
    assert beginning.state.spec == SPEC
    assert [type(event) for event in beginning.events] == [UninstallRequested]
    assert beginning.subscribe


def test_an_uninstall_without_a_framework_asks_nothing_of_mesos(store):
    stored(store, framework_id="")
    assert not begin(store, SPEC, SETTINGS, uninstall=True).subscribe


def test_an_uninstall_of_nothing_writes_nothing_of_a_new_service(store):
    beginning = begin(store, SPEC, SETTINGS, uninstall=True)
    assert (beginning.subscribe, store.values) == (False, {})


def test_an_erase_that_was_cut_short_makes_no_new_service(store):
    stored(store, uninstalling=True)
    order = sorted(store.values, key=erase_order)
    assert order[-1] == paths.SERVICE
    for path in order[:-1]:
        del store.values[path]
        with pytest.raises(UninstallGoesOn):
            begin(store, SPEC, SETTINGS)
    assert not begin(store, SPEC, SETTINGS, uninstall=True).subscribe


def test_a_job_record_that_cannot_be_read_is_told_with_its_path(store):
    stored(store)
    store.values[paths.job("main")] = b"{"
    with pytest.raises(StateUnreadable, match=paths.job("main")):
        begin(store, SPEC, SETTINGS)
