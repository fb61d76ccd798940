"""The simulation finds bugs: some that others have made, put into the scheduler on purpose.

Each search begins at the seed that has found the bug, so that it takes a moment; where that seed
does not find it any more, because the histories are others now, all seeds are searched. Then the
first one of them is the new place to begin.
"""

import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from evaluator_history import EvaluatorHistory
from history import FaultyScheduler, History
from history_jobs import SMALL, Job
from runs_history import RunsHistory
from simulate import broken_rule
from single_incident import SingleIncident
from slot_history import MOST_ATTEMPTS, SlotHistory
from volume_history import VolumeHistory
from waiting_history import WaitingHistory

from dcos_tensorflow.core import absorb, advance, contract
from dcos_tensorflow.core.failures import causes, clean_ends, incidents, own_errors, waits
from dcos_tensorflow.core.kept import writes
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model import events, task_table
from dcos_tensorflow.core.model.actions import Accept, Acknowledge
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import UnitTable
from dcos_tensorflow.core.offers import desk, reservations
from dcos_tensorflow.core.operator import renewal
from dcos_tensorflow.core.restarts import gang_queries, restarts
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, Strategy, TaskRole, UnitKind, UnitsSpec
from dcos_tensorflow.core.work import assignment as units
from dcos_tensorflow.core.work import shares, slots
from dcos_tensorflow.scheduler import beginning
from simulated.mesos import Cluster

SEEDS = 1000


def broken_seed(kind: type[History] = History, known: int = 0) -> int | None:
    """Return a seed whose history breaks a rule, or the model itself; tries ``known`` first."""
    seeds = chain([known], range(SEEDS))
    return next((seed for seed in seeds if broken_rule(kind, seed)), None)


def test_acknowledging_before_the_commit_is_found(monkeypatch):
    original = FaultyScheduler.handle

    def acknowledge_first(self, *together):
        for event in together:
            if getattr(event, "uuid", ""):
                self.cluster.perform(Acknowledge(event.agent_id, event.task_id, event.uuid))
        return original(self, *together)

    monkeypatch.setattr(FaultyScheduler, "handle", acknowledge_first)
    assert broken_seed(known=251) is not None


def test_counting_one_failure_of_the_code_twice_is_found(monkeypatch):
    monkeypatch.setattr(own_errors, "repetitions", lambda incidents: 1 + len(incidents))
    assert broken_seed(known=7) is not None


def test_destroying_the_volume_of_a_task_that_has_ended_is_found(monkeypatch):
    original = reservations.kept

    def nothing_without_a_task(state, reservation):
        record = state.tasks.get(reservation.task)
        ended = record is not None and record.terminal
        return reservations.Kept.NOTHING if ended else original(state, reservation)

    monkeypatch.setattr(reservations, "kept", nothing_without_a_task)
    assert broken_seed(VolumeHistory) is not None


def test_believing_that_a_reservation_was_made_is_found(monkeypatch):
    original = reservations._learn

    def believe(draft, found):
        reservations._put(draft, replace(found, confirmed=True))
        original(draft, draft.state.reservations[found.resource_id])

    monkeypatch.setattr(reservations, "_learn", believe)
    assert broken_seed(VolumeHistory, known=36) is not None


def test_forgetting_a_reservation_before_it_is_given_back_is_found(monkeypatch):
    def forget(draft, found):
        if found.given_up:
            reservations._drop(draft, found)

    monkeypatch.setattr(reservations, "_give_back", lambda draft, offer: None)
    monkeypatch.setattr(reservations, "_forget", forget)
    assert broken_seed(VolumeHistory) is not None


def test_making_the_state_of_the_next_run_from_scratch_is_found(monkeypatch):
    def from_scratch(store, spec, stored):
        state = replace(
            ServiceState.of_one_gang(spec, "another", stored.settings),
            framework_id=stored.framework_id,
            run=stored.run + 1,
            abandoned={record.task_id: record.agent_id for record in stored.live_tasks},
        )
        store.commit(first_writes(state))
        return state

    monkeypatch.setattr(beginning, "_renewed", from_scratch)
    assert broken_seed(RunsHistory) is not None


@pytest.mark.parametrize("owned", ["reservations", "capacity"])
def test_resetting_what_the_service_owns_for_the_next_run_is_found(monkeypatch, owned):
    original = renewal.renewed

    def forgetting(state, spec):
        return replace(original(state, spec), **{owned: {}})

    monkeypatch.setattr(renewal, "renewed", forgetting)
    assert broken_seed(RunsHistory) is not None


def test_sending_an_accept_again_is_found(monkeypatch):
    original = Cluster.perform

    def twice(self, action):
        original(self, action)
        if isinstance(action, Accept):
            original(self, action)

    monkeypatch.setattr(Cluster, "perform", twice)
    assert broken_seed() is not None


def test_not_fencing_an_old_attempt_is_found(monkeypatch):
    monkeypatch.setattr(advance, "_kill_strays", lambda draft: None)
    assert broken_seed() is not None


def test_starting_before_everybody_has_stopped_is_found(monkeypatch):
    monkeypatch.setattr(task_table, "tells_stopped", lambda record, report: record.held)
    assert broken_seed(known=1) is not None


def test_restarting_only_the_failed_tasks_is_found(monkeypatch):
    def only_the_lost(strategy, decider, everybody, losses):
        return tuple(name for name in everybody if name in losses)

    monkeypatch.setattr(gang_queries, "restart_set", only_the_lost)
    assert broken_seed(SingleIncident, known=5) is not None


def test_restarting_everybody_is_found(monkeypatch):
    monkeypatch.setattr(
        gang_queries, "restart_set", lambda strategy, decider, everybody, losses: tuple(everybody)
    )
    assert broken_seed(SingleIncident) is not None


def test_losing_a_cause_that_is_seen_after_its_effect_is_found(monkeypatch):
    monkeypatch.setattr(incidents, "see_cause", lambda draft: None)
    assert broken_seed(SingleIncident, known=8) is not None


def test_forgetting_who_comes_back_after_it_was_given_up_is_found(monkeypatch):
    monkeypatch.setattr(absorb, "_was_given_up", lambda draft, record: False)
    assert broken_seed() is not None


def test_launching_while_old_attempts_may_live_is_found(monkeypatch):
    monkeypatch.setattr(desk, "_old_attempts_may_live", lambda *_: "")
    assert broken_seed(known=3) is not None


def test_launching_a_sidecar_while_its_old_attempt_may_live_is_found(monkeypatch):
    original = desk._old_attempts_may_live

    def of_members_only(draft, reachable):
        jobs = [gang.job for gang in draft.gangs()]
        waits = any(job.phase is JobPhase.PLACING or job.membership.absent for job in jobs)
        return original(draft, reachable) if waits else {}

    monkeypatch.setattr(desk, "_old_attempts_may_live", of_members_only)
    assert broken_seed(EvaluatorHistory, known=33) is not None


def test_charging_for_peers_that_died_of_a_failure_is_found(monkeypatch):
    charged = causes.Cause(causes.PEER_LOST, charged=True)
    monkeypatch.setitem(causes.EXIT_CLASSES, contract.EXIT_CLASS_PEER_LOST, charged)
    assert broken_seed(known=2) is not None


def test_starting_before_those_who_leave_have_ended_is_found(monkeypatch):
    monkeypatch.setattr(restarts, "_waits_for_old_peers", lambda gang: False)
    assert broken_seed(known=70) is not None


def test_taking_a_peers_clean_end_for_no_cause_is_found(monkeypatch):
    monkeypatch.setattr(clean_ends, "cause_of", lambda view, effects: None)
    assert broken_seed(WaitingHistory) is not None


def test_waiting_for_a_server_that_has_left_is_found(monkeypatch):
    monkeypatch.setattr(waits, "_is_waited_for", lambda gang, server: False)
    assert broken_seed(WaitingHistory) is not None


def test_ending_a_job_that_goes_on_without_its_server_is_found(monkeypatch):
    monkeypatch.setattr(waits, "_is_waited_for", lambda gang, server: True)
    assert broken_seed(WaitingHistory, known=14) is not None


def test_leaving_a_server_away_that_left_after_the_chief_is_found(monkeypatch):
    monkeypatch.setattr(incidents, "add_server", lambda gang, server: False)
    monkeypatch.setattr(clean_ends, "finished_servers", lambda view: ())
    assert broken_seed(WaitingHistory, known=14) is not None


def test_silence_of_a_gang_that_does_nothing_is_found(monkeypatch):
    monkeypatch.setattr(waits, "_look_for_a_standstill", lambda gang: None)
    assert broken_seed(WaitingHistory) is not None


def test_ending_a_gang_that_computes_is_found(monkeypatch):
    original = waits.standstill

    def of_any(view):
        idle = view.tasks.having(task_table.Fact.IDLE)
        since = {n: view.report_of(view.tasks[n])["idle_since"] for n in idle}
        found = waits.Standstill(tuple(since), max(since.values())) if since else None
        return original(view) or found

    monkeypatch.setattr(waits, "standstill", of_any)
    assert broken_seed(WaitingHistory, known=176) is not None


def test_silence_of_who_waits_for_a_port_is_found(monkeypatch):
    monkeypatch.setattr(waits, "_for_peers", lambda view, now, told: ())
    assert broken_seed(WaitingHistory) is not None


def test_giving_a_unit_back_before_its_process_has_stopped_is_found(monkeypatch):
    monkeypatch.setattr(units, "stop", units.give_back)
    assert broken_seed(SlotHistory, known=12) is not None


def test_telling_the_producer_of_what_is_not_kept_is_found(monkeypatch):
    monkeypatch.setattr(writes, "_units", lambda before, after: iter(()))
    assert broken_seed(SlotHistory) is not None


def test_taking_doubled_units_for_more_is_found(monkeypatch):
    original = units.given

    def take_all(draft, event):
        original(draft, replace(event, first=len(draft.state.units)))

    monkeypatch.setitem(absorb._MIRRORS, events.UnitsGiven, take_all)
    assert broken_seed(SlotHistory, known=19) is not None


def test_believing_an_old_report_of_a_done_unit_is_found(monkeypatch):
    def tells_done(record, report):
        return report.get("state") == contract.RUNNER_DONE

    monkeypatch.setattr(task_table, "tells_done", tells_done)
    monkeypatch.setattr(slots, "unit_of", lambda report: None)
    assert broken_seed(SlotHistory) is not None


def test_losing_a_unit_with_its_slot_is_found(monkeypatch):
    monkeypatch.setattr(slots, "forget", lambda gang: gang.service.drop_gang(gang.name))
    assert broken_seed(SlotHistory) is not None


def test_running_a_trial_twice_at_once_is_found(monkeypatch):
    monkeypatch.setattr(UnitTable, "numbers_waiting", lambda table: iter(_undecided(table)))
    assert broken_seed(SlotHistory) is not None


def _undecided(table):
    return [unit.number for unit in table if not unit.is_decided]


def test_not_asking_for_units_again_is_found(monkeypatch):
    monkeypatch.setattr(slots, "ASK_AGAIN_SECONDS", 1e9)
    assert broken_seed(SlotHistory) is not None


def test_making_more_slots_than_are_allowed_is_found(monkeypatch):
    original = slots.grow

    def grow(draft, most, besides=()):
        spec = draft.state.spec
        if spec.units is None:
            return ()
        endless = replace(spec, units=replace(spec.units, parallelism=0))
        draft.state = replace(draft.state, spec=endless)
        made = original(draft, most, besides)
        draft.state = replace(draft.state, spec=spec)
        return made

    monkeypatch.setattr(slots, "grow", grow)
    assert broken_seed(SlotHistory, known=8) is not None


def test_starting_a_slot_before_all_of_it_are_done_is_found(monkeypatch):
    def at_once(gang, why):
        members = [r for r in gang.tasks.values() if not r.terminal]
        if gang.job.phase in (JobPhase.STARTING, JobPhase.RUNNING) and units.take(gang):
            for record in members:
                again = replace(record, start=record.start + 1, held=False, ordered_at=gang.now)
                gang.put(again)
            gang.enter(JobPhase.STARTING, why)

    monkeypatch.setattr(slots, "_next", at_once)
    assert broken_seed(SlotHistory) is not None


def test_beginning_a_unit_where_a_machine_is_to_go_is_found(monkeypatch):
    monkeypatch.setattr(slots, "_has_to_leave", lambda gang: False)
    assert broken_seed(SlotHistory, known=32) is not None


def test_beginning_a_unit_while_the_work_is_paused_is_found(monkeypatch):
    monkeypatch.setattr(units, "may_go_on", lambda draft: True)
    assert broken_seed(SlotHistory, known=14) is not None


def test_keeping_places_that_a_quota_asks_for_is_found(monkeypatch):
    monkeypatch.setattr(shares, "surplus", lambda draft: 0)
    assert broken_seed(SlotHistory, known=12) is not None


class TwoUnits(SlotHistory):
    """Two units and two machines: on one of them each start fails, and one of the units is long."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.producer.total, self.slow = 2, 1

    def make_job(self) -> Job:
        job, one = super().make_job(), RoleSpec(TaskRole.WORKER, 1, SMALL)
        spec = replace(job.spec, roles=(one,), strategy=Strategy.INDEPENDENT)
        units_spec = UnitsSpec(UnitKind.SHARD, 2, MOST_ATTEMPTS)
        return Job(replace(spec, units=units_spec), Strategy.INDEPENDENT)

    def make_cluster(self) -> Cluster:
        return Cluster(2, Resources(1.5, 1500, 200))

    def _perhaps_finish(self, task_id: str) -> None:
        task = self.cluster.tasks[task_id]
        runs = self.decides(task) and task.runner.state == "running"
        if runs and self.scheduler.faulty and task.launch.agent_id == min(self.cluster.agents):
            line = len(self.lines)
            task.runner.fail("user_error", 1, "it fails here", ("OSError", line))
        else:
            super()._perhaps_finish(task_id)


def test_taking_the_last_attempt_of_a_unit_where_it_has_failed_is_found(monkeypatch):
    monkeypatch.setattr(units, "is_elsewhere", lambda state, agents, shape=(): False)
    assert broken_seed(TwoUnits, known=22) is not None
