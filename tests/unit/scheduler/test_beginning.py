"""What a scheduler begins with, by what is stored and what it was told."""

import json
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

from dcos_tensorflow.capacity.ledger import Account
from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore, stored_spec
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Kill, Reconcile
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import (
    Disconnected,
    FormerLifeKnown,
    Registered,
    Tick,
    UninstallRequested,
)
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import (
    LaunchSettings,
    Maintenance,
    Reconciliation,
    ServiceState,
    Uninstall,
)
from dcos_tensorflow.core.model.task import TaskState, mesos_task_id
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import PAGE, UnitRun, UnitState, UnitTable
from dcos_tensorflow.core.operator.renewal import refusal, renewed
from dcos_tensorflow.core.plans.standing import on_its_way
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.service_spec import RetrySpec, ServiceSpec, UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.volume_spec import Reservation, VolumeSpec
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.beginning import NothingInForce, UninstallGoesOn, begin
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.machines.ledger_records import ACCOUNT, ledger_of
from dcos_tensorflow.state.layout import erase_order
from jobs.scheduled_jobs import command_job
from samples.states import a_record, with_job, with_records
from simulated.scheduler import small_job

SETTINGS = LaunchSettings()
SPEC = command_job("true")
OTHER = replace(SPEC, kill_grace_seconds=7.0)
OF_0_1_0 = Path(__file__).parents[1] / "core" / "golden" / "state_of_0_1_0.json"


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
        with_job(state, **job),
        framework_id=framework_id,
        uninstall=Uninstall(bool(uninstalling)),
        seeks_former_life=False,
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


def test_a_job_that_is_done_answers_questions(store):
    stored(store, phase=JobPhase.DONE)
    assert begin(store, SPEC, SETTINGS).state.job.phase is JobPhase.DONE


@pytest.mark.parametrize(("spec", "fresh"), [(OTHER, False), (SPEC, True)])
def test_a_job_that_is_done_is_followed_by_a_new_one_of_the_same_framework(store, spec, fresh):
    stored(store, phase=JobPhase.DONE)
    state = begin(store, spec, SETTINGS, fresh=fresh).state
    assert (state.job, state.framework_id, state.spec) == (JobState(), "f-1", spec)


def test_pauses_end_with_the_job_that_they_were_for(store):
    before = stored(store, phase=JobPhase.DONE)
    held = replace(before, controls=Controls(paused=("deploy",), paused_tasks=("worker-0",)))
    store.commit(writes_between(before, held))
    assert begin(store, SPEC, SETTINGS, fresh=True).state.controls == Controls()
    assert begin(store, SPEC, SETTINGS).state.controls == Controls()


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


def test_a_scheduler_that_is_to_finish_uninstalls_goes_on_with_one(store):
    stored(store, uninstalling=True)
    beginning = begin(store, SPEC, SETTINGS, refused="wrong", finish_uninstall=True)
    assert [type(event) for event in beginning.events] == [UninstallRequested]


def test_a_scheduler_that_is_to_finish_uninstalls_begins_none(store):
    assert begin(store, SPEC, SETTINGS, finish_uninstall=True).events == ()


def test_an_uninstall_without_a_framework_asks_nothing_of_mesos(store):
    stored(store, framework_id="")
    assert not begin(store, SPEC, SETTINGS, uninstall=True).subscribe


def test_an_uninstall_of_nothing_writes_nothing_of_a_new_service(store):
    beginning = begin(store, SPEC, SETTINGS, uninstall=True)
    assert (beginning.state.seeks_former_life, store.values) == (True, {})


def test_an_uninstall_of_nothing_ends_when_mesos_knows_nothing_either(store):
    beginning = begin(store, SPEC, SETTINGS, uninstall=True)
    asked = step(beginning.state, beginning.events, steady_time()).state
    assert not asked.removal.erased
    after = step(asked, (FormerLifeKnown(),), steady_time()).state
    assert after.removal.erased


def test_whether_mesos_knows_a_new_service_is_asked_until_it_is_known(store):
    assert begin(store, SPEC, SETTINGS).state.seeks_former_life
    again = begin(store, SPEC, SETTINGS).state
    assert again.seeks_former_life
    store.commit(step(again, (FormerLifeKnown(),), steady_time()).writes)
    assert not begin(store, SPEC, SETTINGS).state.seeks_former_life


def test_a_service_that_seeks_its_former_life_says_so(store):
    state = begin(store, SPEC, SETTINGS).state
    unknown = Disconnected("whether it has run before is not known yet: h:5050 does not answer")
    told = step(state, (unknown,), steady_time()).state
    for name in told.view().roster.names:
        assert "whether it has run before is not known yet" in on_its_way(told.view(), name)[1]


def test_the_tasks_of_a_former_life_are_given_up_and_the_framework_goes_on(store):
    state = begin(store, SPEC, SETTINGS).state
    after = step(state, (FormerLifeKnown("f-9", {"t-9": "a9"}),), steady_time()).state
    assert (after.framework_id, after.abandoned) == ("f-9", {"t-9": "a9"})
    assert [incident.kind for incident in after.job.incidents] == ["state lost"]
    # Told once more, it is no news.
    assert step(after, (FormerLifeKnown("f-8"),), steady_time()).state.framework_id == "f-9"


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


# What the service owns outlives its runs

VOLUME = VolumeSpec(100.0, "tf-volume")
RACK, OTHER_RACK = (CapacitySpec(CommandSpec((program,))) for program in ("rack", "other-rack"))


def with_volumes(volume: VolumeSpec | None = VOLUME) -> ServiceSpec:
    return replace(SPEC, roles=tuple(replace(role, volume=volume) for role in SPEC.roles))


def after_a_run(store: Values, spec: ServiceSpec = SPEC):
    """Let the store hold a service whose first run is over, and which owns something of each kind.

    An attempt of before is abandoned and let go of, one more has outlived the job; there is a
    volume, a bought machine, a machine to be taken down, and an older configuration.
    """
    done = stored(store, spec, phase=JobPhase.DONE)
    volume = Reservation("r-1", "f-1", "worker-0", "t-1", "a1", "node1", "role", confirmed=True)
    account = CapacityRecord(body=codec.to_plain(Account(purchases=3, began_at=5.0)))
    bought = CapacityRecord(3, body={"purchase_id": "p-1"})
    owning = replace(
        with_records(done, a_record("worker-0", TaskState.UNREACHABLE), a_record("worker-1")),
        attempt=7,
        abandoned={"t-old": "a9"},
        controls=Controls(paused=("deploy",), let_go=("t-old", "t-ended")),
        reservations={"r-1": volume},
        capacity={ACCOUNT: account, "p-1": bought},
        maintenance=Maintenance(starts={"a3": 9.0}),
        agent_failures={"a1": (1.0,)},
    )
    store.commit(writes_between(done, owning))
    store.values["Configurations/older"] = codec.encode(OTHER)
    return owning


def test_a_new_run_keeps_what_the_service_owns(store):
    before = after_a_run(store)
    after = begin(store, OTHER, SETTINGS).state
    assert (after.run, after.spec, after.job) == (before.run + 1, OTHER, JobState())
    owned = ("instance", "framework_id", "attempt", "reservations", "maintenance", "uninstall")
    for name in owned:
        assert getattr(after, name) == getattr(before, name), name
    live = {record.task_id: record.agent_id for record in before.live_tasks}
    assert after.abandoned == {"t-old": "a9", **live}
    assert after.capacity["p-1"] == before.capacity["p-1"]
    assert ledger_of({ACCOUNT: after.capacity[ACCOUNT]}).account == Account(purchases=3)


def test_a_new_run_waits_no_more_than_the_one_before_for_what_an_operator_let_go_of(store):
    after_a_run(store)
    assert begin(store, SPEC, SETTINGS, fresh=True).state.controls == Controls(let_go=("t-old",))


def test_nothing_but_named_things_is_reset_for_a_new_run(store):
    before = after_a_run(store)
    after = renewed(before, OTHER)
    changed = {
        f.name for f in fields(ServiceState) if getattr(before, f.name) != getattr(after, f.name)
    }
    assert changed == {
        *("spec", "gangs", "run", "abandoned", "controls", "agent_failures"),
        *("former_options", "configurations"),
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (with_volumes(), with_volumes(replace(VOLUME, size=200.0))),
        (with_volumes(), SPEC),
        (replace(SPEC, capacity=RACK), SPEC),
        (
            replace(SPEC, capacity=RACK),
            replace(SPEC, capacity=OTHER_RACK),
        ),
        (SPEC, replace(SPEC, mesos_role="another")),
    ],
)
def test_a_new_run_is_refused_what_would_lose_what_the_service_owns(store, before, after):
    owning = after_a_run(store, before)
    state = begin(store, after, SETTINGS, fresh=True).state
    assert state.told.refused_configuration == refusal(owning, after) != ""
    assert (state.spec, state.run, state.job.phase) == (before, owning.run, JobPhase.DONE)


def test_a_new_run_may_have_other_volumes_where_the_service_has_none(store):
    stored(store, with_volumes(), phase=JobPhase.DONE)
    assert begin(store, SPEC, SETTINGS).state.spec == SPEC


def kept_of(state: ServiceState) -> dict[str, bytes]:
    """Return everything that is to be kept of a state, by its path; options by their id."""
    nothing = replace(
        state,
        framework_id="",
        gangs={},
        units=UnitTable(),
        reservations={},
        capacity={},
        abandoned={},
    )
    everything = (*first_writes(state), *writes_between(nothing, state))
    specs = (state.spec, *state.former_options.values())
    return {
        **{write.path: write.value for write in everything if write.value is not None},
        **{paths.configuration(key): b"" for key in state.former_options},
        **{paths.configuration(key): b"" for key in map(configuration_id, specs)},
        paths.CONTROLS: codec.encode(state.controls),
    }


def starts() -> dict[str, Callable[[Values], ServiceState]]:
    """Return every way in which a scheduler begins."""

    def carried_on(store: Values) -> ServiceState:
        stored(store, phase=JobPhase.RUNNING)
        return begin(store, OTHER, SETTINGS).state

    def upgraded(store: Values) -> ServiceState:
        kept = json.loads(OF_0_1_0.read_text())
        store.values = {path: text.encode() for path, text in next(iter(kept.values())).items()}
        return begin(store, stored_spec(store.values), SETTINGS).state

    def of_a_former_life(store: Values) -> ServiceState:
        state = begin(store, SPEC, SETTINGS).state
        decision = step(state, (FormerLifeKnown("f-9", {"t-9": "a9"}),), steady_time())
        store.commit(decision.writes)
        return begin(store, SPEC, SETTINGS).state

    def renewed_with(spec: ServiceSpec) -> Callable[[Values], ServiceState]:
        def begun(store: Values) -> ServiceState:
            after_a_run(store)
            return begin(store, spec, SETTINGS, fresh=True).state

        return begun

    def renewed_units(store: Values) -> ServiceState:
        spec = replace(SPEC, units=UnitsSpec(UnitKind.SHARD, 2))
        before = stored(store, spec, phase=JobPhase.DONE)
        many = before.units.given(({"n": number} for number in range(PAGE + 1)), last=True)
        slot = Gang("slot-0", TaskTable(Roster.of(spec, gang="slot-0")), unit=UnitRun(1, 1, 1.0))
        gangs = {**before.gangs, slot.name: slot}
        store.commit(writes_between(before, replace(before, units=many, gangs=gangs)))
        return begin(store, spec, SETTINGS, fresh=True).state

    return {
        "new": lambda store: begin(store, SPEC, SETTINGS).state,
        "carried on": carried_on,
        "upgraded": upgraded,
        "of a former life": of_a_former_life,
        "renewed": renewed_with(SPEC),
        "renewed with other options": renewed_with(OTHER),
        "renewed with units": renewed_units,
    }


@pytest.mark.parametrize("how", starts())
def test_after_any_start_the_store_holds_what_is_in_memory_and_nothing_else(store, how):
    state = starts()[how](store)
    again = restore(store.values, SETTINGS, steady_time())
    assert kept_of(again) == kept_of(state)
    assert store.values.keys() <= kept_of(state).keys()


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
    # Later, when no answer is owed, silence after a launch is noticed by the stored time.
    settled = replace(registered, reconciliation=Reconciliation(implicit_at=float("inf")))
    assert asked_by(step(settled, (Tick(),), steady_time() + 60.0).actions) == everybody


def asked_by(actions) -> set[tuple[str, str]]:
    return {pair for action in actions if isinstance(action, Reconcile) for pair in action.tasks}


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


def test_a_sweep_that_goes_on_keeps_the_trials_that_are_done_and_runs_the_others_again() -> None:
    trials = UnitsSpec(UnitKind.TRIAL, 2, 3)
    before = ServiceState.of_one_gang(small_job(units=trials), "instance", LaunchSettings())
    states = (UnitState.SUCCEEDED, UnitState.FAILED, UnitState.PRUNED, UnitState.WAITING)
    table = UnitTable().given([{"context": {"rate": n}} for n in range(4)], last=True)
    for number, state in enumerate(states):
        table = table.put(replace(table[number], state=state, tries=number))
    before = replace(before, units=table)
    goes_on = small_job(units=replace(trials, are_the_rest=True))
    after = renewed(before, goes_on).units
    assert [unit.state for unit in after] == [
        UnitState.SUCCEEDED,
        UnitState.WAITING,
        UnitState.PRUNED,
        UnitState.WAITING,
    ]
    assert [after.payload(n) for n in range(4)] == [table.payload(n) for n in range(4)]
    assert (after.last, after.waiting, after[1].tries) == (False, 2, 0)
    assert len(renewed(before, small_job(units=trials)).units) == 0
