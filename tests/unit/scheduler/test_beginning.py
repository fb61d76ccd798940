"""What a scheduler begins with, by what is stored and what it was told."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Kill, Reconcile
from dcos_tensorflow.core.model.capacity import CapacityRecord
from dcos_tensorflow.core.model.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    Registered,
    Tick,
    UninstallRequested,
)
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.service_state import (
    LaunchSettings,
    Reconciliation,
    ServiceState,
    Uninstall,
)
from dcos_tensorflow.core.model.spec import RetrySpec, ServiceSpec
from dcos_tensorflow.core.model.task import TaskState, mesos_task_id
from dcos_tensorflow.core.model.volume_spec import Reservation, VolumeSpec
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.beginning import NothingInForce, UninstallGoesOn, begin
from dcos_tensorflow.scheduler.clock import steady_time
from dcos_tensorflow.state.paths import erase_order
from sample_states import a_record, with_job, with_records
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


def test_the_master_is_asked_for_a_former_life_of_each_service_without_a_framework_id(store):
    assert begin(store, SPEC, SETTINGS).asks
    assert begin(store, SPEC, SETTINGS).asks, "a crash before the answer asks again"
    known = Values()
    stored(known, framework_id="f-1")
    assert not begin(known, SPEC, SETTINGS).asks


def test_every_service_has_a_key_of_its_own(store):
    other = begin(Values(), SPEC, SETTINGS).state.settings.token_key
    assert begin(store, SPEC, SETTINGS).state.settings.token_key != other


def test_a_job_with_the_same_options_goes_on(store):
    before = stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, SPEC, SETTINGS)
    assert (beginning.state.job, beginning.events, beginning.uninstall) == (before.job, (), False)


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


VOLUMES = replace(
    SPEC,
    roles=tuple(replace(role, volume=VolumeSpec(100.0, "tf")) for role in SPEC.roles),
)


def owning(store: Values, spec: ServiceSpec = VOLUMES) -> ServiceState:
    """Let the store hold a service whose job is done, with all that a service may own."""
    before = stored(store, spec, phase=JobPhase.DONE)
    name = spec.task_names()[0]
    after = replace(
        before,
        attempt=7,
        reservations={"r-1": Reservation("r-1", "f-1", name, "t-1", "agent-1", "node1", "*")},
        capacity={
            "p-1": CapacityRecord(machines=2, body={"purchase_id": "p-1"}),
            "account": CapacityRecord(body={"purchases": 1, "began_at": 5.0}),
        },
        abandoned={"old-attempt": "agent-2"},
        agent_failures={"agent-3": (1.0,)},
    )
    store.commit(writes_between(before, after))
    return after


def test_what_a_service_owns_outlives_each_of_its_runs(store):
    before = owning(store)
    state = begin(store, VOLUMES, SETTINGS, fresh=True).state
    assert state.run == before.run + 1
    for part in ("instance", "framework_id", "attempt", "reservations", "abandoned"):
        assert getattr(state, part) == getattr(before, part), part
    assert state.agent_failures == before.agent_failures
    assert state.capacity["p-1"] == before.capacity["p-1"]


def test_a_deadline_counts_from_the_run(store):
    owning(store)
    state = begin(store, VOLUMES, SETTINGS, fresh=True).state
    assert state.capacity["account"].body == {"purchases": 1, "began_at": 0.0}


def test_another_volume_is_refused_while_the_runs_before_have_left_one(store):
    owning(store)
    before = dict(store.values)
    with pytest.raises(NothingInForce, match="volume"):
        begin(store, SPEC, SETTINGS, fresh=True)
    assert store.values == before


def test_another_provider_is_refused_while_machines_of_the_runs_before_are_left(store):
    bought = replace(SPEC, capacity=CapacitySpec(CommandSpec(("rack",))))
    owning(store, bought)
    with pytest.raises(NothingInForce, match="provider"):
        begin(
            store,
            replace(SPEC, capacity=CapacitySpec(CommandSpec(("other",)))),
            SETTINGS,
            fresh=True,
        )


def test_a_daemon_stays_with_options_whose_followers_it_cannot_have(store):
    owning(store)
    beginning = begin(store, SPEC, SETTINGS)
    assert beginning.state.spec == VOLUMES
    assert "volume" in beginning.state.told.refused_configuration


@pytest.mark.parametrize("start", ["new", "carried on", "renewed", "refused"])
def test_memory_and_store_are_the_same_after_any_start(store, start):
    if start in ("renewed", "refused"):
        owning(store)
    elif start == "carried on":
        stored(store, phase=JobPhase.RUNNING)
    spec = {"renewed": VOLUMES, "refused": replace(VOLUMES, user="other")}.get(start, SPEC)
    state = begin(store, spec, SETTINGS, fresh=start == "renewed").state
    kept = restore(store.values, SETTINGS, time.time())
    assert writes_between(kept, state) == ()


def test_pauses_end_with_the_job_that_they_were_for(store):
    stored(store, phase=JobPhase.DONE)
    store.values["Plans"] = b"{}"
    begin(store, SPEC, SETTINGS, fresh=True)
    assert "Plans" not in store.values


def test_runs_are_counted_one_after_the_other(store):
    assert begin(store, SPEC, SETTINGS, first_run=4).state.run == 4
    assert begin(store, SPEC, SETTINGS).state.run == 4
    store.values[paths.job("main")] = codec.encode(JobState(phase=JobPhase.DONE))
    assert begin(store, SPEC, SETTINGS, fresh=True).state.run == 5
    assert begin(store, SPEC, SETTINGS).state.run == 5


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


def test_a_scheduler_that_is_to_finish_uninstalls_goes_on_with_one(store):
    stored(store, uninstalling=True)
    beginning = begin(store, SPEC, SETTINGS, refused="wrong", finish_uninstall=True)
    assert [type(event) for event in beginning.events] == [UninstallRequested]


def test_a_scheduler_that_is_to_finish_uninstalls_begins_none(store):
    assert begin(store, SPEC, SETTINGS, finish_uninstall=True).events == ()


def test_an_uninstall_is_asked_of_the_core(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, OTHER, SETTINGS, fresh=True, uninstall=True)
    assert beginning.state.spec == SPEC
    assert [type(event) for event in beginning.events] == [UninstallRequested]
    assert (beginning.uninstall, beginning.asks) == (True, False)


def test_an_uninstall_without_a_framework_asks_nothing_of_mesos(store):
    stored(store, framework_id="")
    assert not begin(store, SPEC, SETTINGS, uninstall=True).asks


def test_an_uninstall_of_nothing_writes_nothing_of_a_new_service(store):
    beginning = begin(store, SPEC, SETTINGS, uninstall=True)
    assert (beginning.uninstall, beginning.asks, store.values) == (True, True, {})


def test_an_erase_that_was_cut_short_makes_no_new_service(store):
    stored(store, uninstalling=True)
    order = sorted(store.values, key=erase_order)
    assert order[-1] == paths.SERVICE
    for path in order[:-1]:
        del store.values[path]
        with pytest.raises(UninstallGoesOn):
            begin(store, SPEC, SETTINGS)
    assert begin(store, SPEC, SETTINGS, uninstall=True).uninstall


def test_a_job_record_that_cannot_be_read_is_told_with_its_path(store):
    stored(store)
    store.values[paths.job("main")] = b"{"
    with pytest.raises(StateUnreadable, match=paths.job("main")):
        begin(store, SPEC, SETTINGS)


# A clock that was a day ahead when the state was written, and is right again

DAY = 86_400.0


def stored_a_day_ahead(store: Values, record: dict[str, object], **job: object):
    """Let the store hold a job whose every time lies a day ahead; return what is begun with."""
    spec = replace(SPEC, retry=RetrySpec(max_backoff_seconds=100.0))
    before = stored(store, spec)
    ahead = time.time() + DAY
    times = dict.fromkeys(("launched_at", "changed_at", "ordered_at"), ahead)
    workers = [
        a_record(name, **{"task_id": mesos_task_id(spec.name, name, "unique"), **times, **record})
        for name in ("worker-0", "worker-1")
    ]
    job = {"phase_since": ahead, "started_at": ahead, "deployed": True, **job}
    due = {"restart_at": ahead + 90.0} if job["phase"] is JobPhase.BACKING_OFF else {}
    store.commit(writes_between(before, with_records(with_job(before, **job, **due), *workers)))
    return begin(store, spec, SETTINGS).state


def actions_after(state: ServiceState, *seconds: float):
    """Return what the real step does as time passes, and the state that it comes to."""
    began, actions = steady_time(), []
    for event, at in ((Registered("f-1", "127.0.0.1:5050"), 0.0), *((Tick(), s) for s in seconds)):
        decision = step(state, (event,), began + at)
        state = decision.state
        actions += decision.actions
    return actions, state


def test_a_wrong_clock_of_before_holds_up_no_back_off(store):
    held = {"start": 2, "held": True}
    state = stored_a_day_ahead(
        store, held, phase=JobPhase.BACKING_OFF, restarting=("worker-0", "worker-1")
    )
    assert actions_after(state, 1.0)[1].job.phase is JobPhase.BACKING_OFF
    # No back-off is longer than the longest with its jitter.
    assert actions_after(state, 201.0)[1].job.phase is not JobPhase.BACKING_OFF


def test_a_wrong_clock_of_before_holds_up_no_kill(store):
    ordered = {"killed_at": time.time() + DAY, "kill_reason": "the job is ending"}
    state = stored_a_day_ahead(store, ordered, phase=JobPhase.ENDING)
    actions, _ = actions_after(state, 60.0)
    killed = {action.task_id for action in actions if isinstance(action, Kill)}
    assert killed == {record.task_id for record in state.tasks.values()}


def test_a_wrong_clock_of_before_holds_up_no_reconciliation(store):
    state = stored_a_day_ahead(store, {"state": TaskState.LAUNCHING}, phase=JobPhase.STAGING)
    everybody = {(record.task_id, record.agent_id) for record in state.tasks.values()}
    actions, registered = actions_after(state)
    assert asked_by(actions) == everybody
    # Later, when nobody owes an answer, silence after a launch is noticed by the stored time.
    settled = replace(registered, reconciliation=Reconciliation(implicit_at=float("inf")))
    assert asked_by(step(settled, (Tick(),), steady_time() + 60.0).actions) == everybody


def asked_by(actions) -> set[tuple[str, str]]:
    return {pair for action in actions if isinstance(action, Reconcile) for pair in action.tasks}


def test_options_that_the_job_cannot_go_over_to_are_refused_from_the_first_moment_on(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, replace(SPEC, user="somebody"), SETTINGS)
    assert "the user" in beginning.state.told.refused_configuration
    assert (beginning.state.spec, beginning.events) == (SPEC, ())


@pytest.mark.parametrize("phase", [JobPhase.RUNNING, JobPhase.DONE])
def test_options_that_cannot_be_read_leave_those_of_before_in_force(store, phase):
    stored(store, phase=phase)
    state = begin(store, OTHER, SETTINGS, refused="worker.count: is too small", fresh=True).state
    assert state.told.refused_configuration == "worker.count: is too small"
    assert (state.spec, state.job.phase) == (SPEC, phase)


def test_what_keeps_the_options_in_force_from_a_launch_refuses_nothing(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, SPEC, SETTINGS, refused="s3.credentials: there is no secret")
    assert beginning.state.told.refused_configuration == ""


def test_a_new_service_has_nothing_to_go_on_with(store):
    with pytest.raises(NothingInForce, match=r"worker\.count"):
        begin(store, SPEC, SETTINGS, refused="worker.count: is too small")
    assert store.values == {}


def test_an_uninstall_does_not_ask_what_is_wrong_with_the_options(store):
    stored(store, phase=JobPhase.RUNNING)
    beginning = begin(store, OTHER, SETTINGS, refused="all is wrong", uninstall=True)
    assert [type(event) for event in beginning.events] == [UninstallRequested]
