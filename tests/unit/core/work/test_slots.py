"""Slots take units of work, one after the other, in containers that outlive them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, UnitEnded
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.operator.requests import refusal
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    MAIN,
    Addressing,
    ConstraintOperator,
    Fitness,
    GangSpec,
    PlacementConstraint,
    PlacementSpec,
    RetrySpec,
    RoleSpec,
    Strategy,
    TaskRole,
    UnitKind,
)
from dcos_tensorflow.core.spec.workload_spec import Goal, Parameter, ParameterKind, SweepSpec
from dcos_tensorflow.core.work.slots import SHARDS_AHEAD
from simulated.mesos import Cluster
from simulated.runner import Runner
from simulated.scheduler import room_for_one_each
from simulated.work import A_FEW, ONE_TASK, PAIR, SMALL, Work, accepts


def test_a_runner_in_a_slot_is_told_that_its_starts_are_for_units():
    (task,) = Work(1, Cluster(1)).cluster.tasks.values()
    assert json.loads(task.launch.env[contract.RUNNER_SPEC_VARIABLE])["takes_units"] is True


# -- how many slots there are ----------------------------------------------------------------------


def test_there_are_as_many_slots_as_there_is_room_for():
    work = Work(100, Cluster(2))
    assert len(work.runs) == 8
    assert sorted(work.runs.values()) == list(range(8))


def test_there_are_more_slots_when_there_is_more_room():
    work = Work(100, Cluster(1))
    assert len(work.runs) == 4
    work.cluster.agents["S1"] = Cluster(2).agents["S1"]
    work.go(8)
    assert len(work.runs) == 8


def test_there_are_no_more_slots_than_asked_for_nor_than_units():
    assert len(Work(100, Cluster(2), parallelism=3).runs) == 3
    assert len(Work(2, Cluster(2)).runs) == 2


@pytest.mark.parametrize(("share", "slots"), [(1.0, 8), (0.5, 4), (0.3, 2), (0.01, 1)])
def test_slots_have_no_more_than_their_share_of_what_is_offered(share: float, slots: int):
    work = Work(100, Cluster(2), share=share)
    work.go(20)
    assert len(work.runs) == slots


def test_a_share_grows_with_the_cluster():
    work = Work(100, Cluster(2), share=0.5)
    assert len(work.runs) == 4
    more = Cluster(4).agents
    work.cluster.agents.update({name: more[name] for name in ("S2", "S3")})
    work.go(10)
    assert len(work.runs) == 8


def test_a_share_is_the_same_after_a_crash():
    work = Work(100, Cluster(2), share=0.5)
    before = work.runs
    work.scheduler.restart()
    work.finish("slot-0")
    work.go(5)
    assert work.runs.keys() == before.keys()


def test_a_share_is_one_of_what_is_left_when_an_agent_is_gone():
    work = Work(100, Cluster(2), share=0.5)
    free = next(a for a in work.cluster.agents.values() if a.free.cpus == 4)
    work.cluster.lose(free.agent_id)
    work.scheduler.handle(events.AgentFailed(free.agent_id))
    work.finish_all()
    work.go(5)
    assert len(work.runs) == 2


def test_a_share_is_one_of_a_quota_where_that_is_less():
    work = Work(100, Cluster(2), share=0.5)
    work.scheduler.handle(events.QuotaSeen(Quota("*", {"cpus": 4.0}, {"cpus": 4.0})))
    work.finish_all()
    work.go(5)
    assert len(work.runs) == 2
    assert "2 slots are allowed by max_share 0.5" in work.scheduler.state.job.why


def test_slots_give_back_what_is_used_beyond_a_quota_as_their_units_are_done():
    work = Work(100, Cluster(2))
    quota = Quota("team", {"cpus": 5.0}, {"cpus": 8.0})
    work.scheduler.handle(events.QuotaSeen(quota))
    work.go(5)
    assert len(work.runs) == 8, "no unit is interrupted for it"
    work.finish_all()
    work.go(5)
    assert len(work.cluster.alive()) == 5
    assert "5 slots are allowed: more of team is used" in work.scheduler.state.job.why
    assert not any(unit.interruptions for unit in work.scheduler.state.units)
    work.scheduler.handle(events.QuotaSeen(replace(quota, consumed={"cpus": 5.0})))
    work.go(10)
    assert len(work.runs) == 8


def test_a_quota_that_is_nothing_leaves_one_slot():
    work = Work(100, Cluster(2))
    work.scheduler.handle(events.QuotaSeen(Quota("team", {"cpus": 0.0}, {"cpus": 8.0})))
    work.finish_all()
    work.go(5)
    assert len(work.runs) == 1


def test_the_work_says_why_there_are_fewer_slots_than_asked_for():
    why = Work(100, Cluster(2), parallelism=10).scheduler.state.job.why
    assert "8 slots of 10 have a place: slot-8-worker-0" in why


@pytest.mark.parametrize(
    ("fitness", "agents"), [("pack_gpu", 1), ("pack_cpu_mem", 1), ("spread", 3), ("weighted", 1)]
)
def test_slots_share_few_agents_or_many_as_is_preferred(fitness: str, agents: int):
    work = Work(100, Cluster(3), parallelism=3, placement=PlacementSpec(Fitness(fitness)))
    hosts = {work.record(f"slot-{number}-worker-0").agent_id for number in range(3)}
    assert len(work.runs) == 3
    assert len(hosts) == agents


def test_what_slots_launch_on_an_agent_is_one_accept():
    found = accepts(Work(100, Cluster(2)).scheduler)
    assert sorted(len(accept.launches) for accept in found) == [4, 4]


def test_a_slot_of_several_tasks_is_placed_as_a_whole():
    work = Work(100, Cluster(1, Resources(cpus=5, mem=10000, disk=10000)), roles=A_FEW)
    assert list(work.runs) == ["slot-0"]
    assert work.scheduler.state.epoch is not None
    assert work.scheduler.state.gangs["slot-0"].epoch.names == {
        "slot-0-ps-0", "slot-0-chief-0", "slot-0-worker-0",
    }  # fmt: skip
    assert "slot-1" in work.scheduler.state.gangs
    assert not work.scheduler.state.gangs["slot-1"].tasks


def test_a_slot_that_finds_no_place_takes_no_unit():
    work = Work(100, room_for_one_each(2))
    gangs = work.scheduler.state.gangs
    assert list(gangs) == [MAIN, "slot-0", "slot-1", "slot-2"]
    assert gangs["slot-2"].unit is None
    assert "slot-2-worker-0" in gangs["slot-2"].why


# -- from unit to unit -----------------------------------------------------------------------------


def test_the_next_unit_is_started_in_the_same_container():
    work = Work(100, room_for_one_each(1))
    launched = list(work.cluster.launch_history)
    work.finish("slot-0", result={"rows": 5})
    work.go(2)
    assert work.runs == {"slot-0": 1}
    assert work.cluster.launch_history == launched
    assert work.cluster.runner("slot-0-worker-0").unit == {"number": 1, "attempt": 1}
    assert (work.unit(0).state, work.unit(0).result) == (UnitState.SUCCEEDED, {"rows": 5})
    assert work.ended == [0]


def test_a_unit_of_a_slot_that_runs_costs_one_commit():
    work = Work(100, room_for_one_each(1))
    before = len(work.scheduler.decisions)
    work.finish("slot-0")
    work.go(3)
    assert work.runs == {"slot-0": 1}
    assert work.scheduler.state.gangs["slot-0"].job.phase is JobPhase.RUNNING
    assert sum(bool(d.writes) for d in work.scheduler.decisions[before:]) == 1


def test_a_next_unit_that_never_begins_is_given_up(monkeypatch: pytest.MonkeyPatch):
    work = Work(100, room_for_one_each(1), gang=GangSpec(start_seconds=20.0))
    # Whatever it is ordered to start, it waits for a peer.
    monkeypatch.setattr(Runner, "_go", lambda runner: runner.wait_for("10.0.0.9:2222", "command"))
    work.finish("slot-0")
    work.go(15)
    assert not work.unit(1).failures
    work.go(15)
    assert work.unit(1).failures


def test_a_runner_is_told_what_its_unit_is():
    work = Work(100, room_for_one_each(1))
    order = work.cluster.runner("slot-0-worker-0").order_taken
    assert order is not None
    assert order["unit"] == {"number": 0, "attempt": 1, "payload": {"shard": 0}}


def test_a_task_left_of_a_unit_is_stopped_before_the_next_one_starts():
    room = Cluster(1, Resources(cpus=4, mem=10000, disk=10000))
    work = Work(100, room, roles=A_FEW, strategy=Strategy.PARAMETER_SERVER)
    ps = work.cluster.runner("slot-0-ps-0")
    ps.stop_seconds = 3.0
    work.finish("slot-0", "chief-0")
    assert work.runs == {}
    assert work.scheduler.state.gangs["slot-0"].job.phase is JobPhase.STOPPING
    work.go(6)
    assert work.runs == {"slot-0": 1}
    assert ps.unit == {"number": 1, "attempt": 1}


def test_units_are_asked_for_before_those_that_wait_are_all_taken():
    work = Work(1000, room_for_one_each(1))
    assert [(a.first, a.count) for a in work.asked] == [(0, SHARDS_AHEAD)]
    for _ in range(SHARDS_AHEAD // 2 + 2):
        work.finish("slot-0")
        work.go(1)
    assert work.asked[1].first == SHARDS_AHEAD


def test_units_that_are_given_twice_are_taken_once():
    work = Work(1000, room_for_one_each(1))
    known = len(work.scheduler.state.units)
    twice = events.UnitsGiven(0, tuple({"shard": n} for n in range(known + 1)))
    work.scheduler.handle(twice)
    work.scheduler.handle(twice)
    assert len(work.scheduler.state.units) == known + 1


def test_only_the_pages_that_changed_are_written():
    work = Work(2 * SHARDS_AHEAD, room_for_one_each(1))
    assert len(work.scheduler.state.units.pages) > 2
    before = len(work.scheduler.decisions)
    work.finish("slot-0")
    written = [w.path for d in work.scheduler.decisions[before:] for w in d.writes]
    assert [p for p in written if p.startswith(paths.UNITS)] == [paths.units_state(0)]


# -- a crash ---------------------------------------------------------------------------------------


def test_a_unit_that_was_done_without_a_scheduler_is_not_run_again():
    work = Work(100, room_for_one_each(1))
    work.cluster.disconnect()
    work.cluster.runner("slot-0-worker-0").finish({"rows": 5})
    work.scheduler.restart()
    work.go(3)
    assert work.unit(0).result == {"rows": 5}
    assert work.cluster.runner("slot-0-worker-0").unit == {"number": 1, "attempt": 1}


def test_the_producer_hears_of_a_unit_once_its_end_is_kept():
    work = Work(100, room_for_one_each(1))
    kept = []

    def hear(action: Action) -> None:
        if isinstance(action, UnitEnded):
            page = json.loads(work.scheduler.store[paths.units_state(0)])
            kept.append(page[action.number]["state"])

    work.cluster.producer = hear
    work.finish("slot-0")
    assert kept == ["succeeded"]


# -- failures --------------------------------------------------------------------------------------


def test_a_unit_whose_container_is_gone_is_taken_next_and_costs_nothing():
    work = Work(100, room_for_one_each(2))
    gone = work.record("slot-0-worker-0").task_id
    work.cluster.report(gone, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")
    work.scheduler.run(1)
    assert work.unit(0).failures == ()
    work.finish("slot-1")
    work.go(2)
    assert 0 in work.runs.values()
    work.go(10)
    assert sorted(work.runs.values()) == [0, 2]


def test_a_unit_that_fails_the_same_way_on_two_machines_has_failed():
    work = Work(100, room_for_one_each(2))
    work.fail("slot-0")
    assert work.unit(0).state is UnitState.WAITING
    work.go(3)
    assert work.runs["slot-0"] == 2, "it is not tried again where it failed while others wait"
    work.finish("slot-1")
    work.go(2)
    assert work.runs["slot-1"] == 0
    work.fail("slot-1")
    assert work.unit(0).state is UnitState.FAILED
    assert "2 machines" in work.unit(0).why
    assert work.ended == [1, 0]


def test_the_last_attempt_of_a_unit_is_left_to_another_machine():
    work = Work(2, room_for_one_each(2))
    bad, good = "slot-0", "slot-1"
    for _ in range(2):
        work.fail(bad)
        work.go(30)
    assert work.runs == {good: 1}
    assert len(work.unit(0).failures) == 2
    work.finish(good)
    work.go(3)
    assert work.runs == {good: 0}
    work.finish(good)
    assert work.unit(0).state is UnitState.SUCCEEDED


def test_other_failures_on_other_machines_are_not_the_same():
    work = Work(100, room_for_one_each(2))
    work.fail("slot-0", line=1)
    work.finish("slot-1")
    work.go(2)
    work.fail("slot-1", line=2)
    assert work.unit(0).state is UnitState.WAITING


def test_the_newest_failure_is_known_while_its_unit_is_tried_again():
    work = Work(100, room_for_one_each(2))
    assert work.scheduler.state.units.newest_failure is None
    work.fail("slot-0")
    found = work.scheduler.state.units.newest_failure
    assert found is not None
    assert found[1] == 0
    assert "bad shard" in found[2]


def test_a_unit_that_fails_often_has_failed_and_the_others_are_done_all_the_same():
    work = Work(5, room_for_one_each(1))
    while work.unit(0).state is UnitState.WAITING:
        work.go(10)
        work.fail("slot-0") if work.runs.get("slot-0") == 0 else work.finish("slot-0")
    assert len(work.unit(0).failures) == 3
    assert work.unit(0).why.endswith("(3 attempts failed)")
    assert work.scheduler.state.units.count(UnitState.SUCCEEDED) == 4
    work.go(30)
    assert "4 of 5 shards have succeeded, 1 has failed" in work.scheduler.state.job.why


def fail_all(work: Work, times: int, line: Callable[[int], int] = lambda _: 7) -> None:
    """Let the units fail that run, so many of them, one after the other."""
    for _ in range(times):
        while not work.runs and work.scheduler.state.job.verdict is None:
            work.go(1)
        for slot, number in list(work.runs.items())[:1]:
            work.fail(slot, line(number))
            work.go(1)


@pytest.mark.parametrize("machines", [1, 2])
def test_a_batch_whose_first_shards_all_fail_alike_has_failed(machines: int):
    work = Work(100, room_for_one_each(machines))
    fail_all(work, 2)
    assert work.scheduler.state.job.verdict is None
    fail_all(work, 10)
    work.go(3)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, 1)
    assert verdict.summary.startswith("3 shards failed alike and none has succeeded: ")
    assert "retry.same_failure_limit" in verdict.summary


@pytest.mark.parametrize(("kind", "line", "changes"), [
    (UnitKind.SHARD, lambda number: number, {}),
    (UnitKind.SHARD, lambda _: 7, {"retry": RetrySpec(same_failure_limit=20)}),
    (UnitKind.SHARD, lambda _: 7, {"are_the_rest": True}),
    (UnitKind.TRIAL, lambda number: number, {}),
    (UnitKind.TRIAL, lambda _: 7, {"retry": RetrySpec(same_failure_limit=20)}),
])  # fmt: skip
def test_units_go_on_that_fail_otherwise_or_are_the_rest_or_are_asked_to(
    kind: UnitKind, line: Callable[[int], int], changes: dict[str, Any]
):
    work = Work(100, room_for_one_each(2), kind, **changes)
    fail_all(work, 10, line)
    assert work.scheduler.state.job.verdict is None


@pytest.mark.parametrize("machines", [1, 2])
def test_a_sweep_whose_first_trials_all_fail_alike_before_a_step_tries_none_twice(machines: int):
    work = Work(100, room_for_one_each(machines), UnitKind.TRIAL)
    fail_all(work, 10)
    work.go(3)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, 1)
    told = "3 trials failed alike before their first step and none has succeeded: "
    assert verdict.summary.startswith(told)
    assert [len(work.unit(number).failures) for number in range(4)] == [1, 1, 1, 0]


def test_trials_go_on_that_fail_alike_after_a_step():
    work = Work(100, room_for_one_each(1), UnitKind.TRIAL)
    for _ in range(6):
        while not work.runs:
            work.go(1)
        work.cluster.runner("slot-0-worker-0").step = 5
        work.fail("slot-0")
        work.go(1)
    assert work.scheduler.state.job.verdict is None


class Sweep(Work):
    """Trials of which the first ones have the same optimizer."""

    def payload(self, number: int) -> dict[str, object]:
        return {"context": {"optimizer": "bad", "rate": number / 100}}


@pytest.mark.parametrize(("choices", "ends"), [(("bad", "good"), False), (("bad",), True)])
def test_trials_go_on_that_share_a_value_which_others_may_not_have(
    choices: tuple[str, ...], ends: bool
):
    parameters = (
        Parameter("optimizer", ParameterKind.CHOICE, choices=choices),
        Parameter("rate", ParameterKind.FLOAT, 0, 1),
    )
    sweep = SweepSpec(parameters, "acc", Goal.MAXIMIZE, trials=100)
    work = Sweep(100, room_for_one_each(1), UnitKind.TRIAL, workload=sweep)
    fail_all(work, 5)
    work.go(3)
    assert (work.scheduler.state.job.verdict is not None) is ends


def test_a_batch_goes_on_as_long_as_another_machine_or_a_longer_start_may_do_better():
    work = Work(100, room_for_one_each(2))
    lasting = work.runs["slot-1"]
    for _ in range(5):
        work.go(10)
        if "slot-0" in work.runs:
            work.fail("slot-0")
    assert work.scheduler.state.job.verdict is None
    assert work.runs["slot-1"] == lasting
    work.fail("slot-1")
    work.go(3)
    assert work.scheduler.state.job.verdict is not None


def test_one_shard_that_has_succeeded_is_enough_to_go_on():
    work = Work(100, room_for_one_each(2))
    work.finish("slot-0")
    fail_all(work, 10)
    assert work.scheduler.state.job.verdict is None


def test_a_machine_on_which_units_fail_that_do_well_elsewhere_is_left():
    work = Work(100, room_for_one_each(3))
    bad = next(iter(work.runs))
    agent = work.record(f"{bad}-worker-0").agent_id
    for _ in range(40):
        for slot in list(work.runs):
            if work.record(f"{slot}-worker-0").agent_id == agent:
                work.fail(slot, line=3)
            else:
                work.finish(slot)
        work.go(1)
        if len(work.scheduler.state.agent_failures.get(agent, ())) >= 3:
            break
    assert len(work.scheduler.state.agent_failures[agent]) >= 3
    assert not any(unit.state is UnitState.FAILED for unit in work.scheduler.state.units)


def test_what_can_never_run_ends_all():
    work = Work(100, room_for_one_each(2))
    work.cluster.runner("slot-0-worker-0").fail("user_error", 78, "no module named shard")
    work.go(15)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, 78)
    assert work.scheduler.state.job.phase is JobPhase.DONE


# -- stopping units, slots, and all ----------------------------------------------------------------


def test_a_pruned_unit_is_stopped_and_its_slot_takes_the_next():
    work = Work(100, room_for_one_each(1), UnitKind.TRIAL)
    work.scheduler.handle(events.UnitPruned(0, "worse than the others", {"accuracy": 0.1}))
    work.go(3)
    assert work.runs == {"slot-0": 1}
    assert (work.unit(0).state, work.unit(0).result) == (UnitState.PRUNED, {"accuracy": 0.1})
    work.scheduler.handle(events.UnitPruned(0, "again"))
    assert work.unit(0).why == "worse than the others"


def test_a_unit_is_in_no_other_slot_before_its_process_has_stopped():
    work = Work(100, room_for_one_each(2))
    work.cluster.runner("slot-0-worker-0").stop_seconds = 6.0
    work.scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("slot-0-worker-0",)))
    work.scheduler.run(2)
    work.finish("slot-1")
    assert work.runs == {"slot-0": 0, "slot-1": 2}
    work.go(8)
    assert work.runs == {"slot-0": 0, "slot-1": 2}
    assert work.scheduler.state.gangs["slot-0"].unit.attempt == 2


def test_a_slot_on_a_machine_that_is_to_go_gives_its_unit_back_in_time():
    work = Work(100, room_for_one_each(2), maintenance_lead_seconds=30.0)
    agent = work.record("slot-0-worker-0").agent_id
    start = work.cluster.now + 60
    work.cluster.agents[agent].unavailable_from = start
    offer = events.InverseOffer("i1", agent, start, None)
    work.scheduler.handle(events.InverseOffersReceived((offer,)))
    work.go(25)
    assert work.runs["slot-0"] == 0
    work.go(20)
    assert work.cluster.now < start
    assert not any(t.alive and t.launch.agent_id == agent for t in work.cluster.tasks.values())
    work.finish("slot-1")
    work.go(2)
    assert work.runs["slot-1"] == 0
    assert work.unit(0).failures == ()


def test_a_unit_whose_agent_drains_waits_again_and_has_not_failed():
    work = Work(100, room_for_one_each(2))
    gone = work.record("slot-0-worker-0")
    work.cluster.agents[gone.agent_id].reachable = False
    work.cluster.report(gone.task_id, TaskState.KILLED, "", "REASON_SLAVE_DRAINING")
    work.finish("slot-1")
    work.go(2)
    assert work.runs == {"slot-1": 0}
    assert work.unit(0).failures == ()
    assert not work.scheduler.state.agent_failures


def test_a_shard_that_takes_long_is_run_once_more_and_the_first_success_counts():
    work = Work(30, room_for_one_each(2))
    while work.scheduler.state.units.count(UnitState.SUCCEEDED) < 29:
        work.finish("slot-1")
        work.go(1)
    work.go(8)
    assert work.runs == {"slot-0": 0, "slot-1": 0}
    assert work.scheduler.state.gangs["slot-1"].unit.attempt == 2
    work.finish("slot-1", result={"by": "the second"})
    assert work.unit(0).result == {"by": "the second"}
    work.go(20)
    assert work.scheduler.state.job.phase is JobPhase.DONE
    assert work.ended.count(0) == 1


def test_a_shard_that_takes_long_is_not_run_once_more_where_it_has_failed():
    work = Work(30, room_for_one_each(2))
    work.fail("slot-1")
    work.finish("slot-0")
    work.go(5)
    assert work.runs["slot-0"] == 1
    while work.scheduler.state.units.count(UnitState.SUCCEEDED) < 29:
        work.finish("slot-1")
        work.go(1)
    work.go(20)
    assert work.runs == {"slot-0": 1}


def test_a_trial_is_never_run_twice_at_once():
    work = Work(30, room_for_one_each(2), UnitKind.TRIAL)
    while work.scheduler.state.units.count(UnitState.SUCCEEDED) < 29:
        work.finish("slot-1")
        work.go(1)
    work.go(100)
    assert work.runs == {"slot-0": 0}


def test_slots_end_when_no_unit_is_left_for_them():
    work = Work(3, room_for_one_each(3), UnitKind.TRIAL)
    work.finish("slot-0")
    work.go(20)
    assert sorted(work.scheduler.state.gangs) == [MAIN, "slot-1", "slot-2"]
    assert len(work.cluster.alive()) == 2
    assert not any("slot-0" in path for path in work.scheduler.store)


@pytest.mark.parametrize(("kind", "failures", "outcome"), [
    (UnitKind.SHARD, 0, Outcome.SUCCEEDED),
    (UnitKind.SHARD, 1, Outcome.FAILED),
    (UnitKind.TRIAL, 1, Outcome.SUCCEEDED),
    (UnitKind.TRIAL, 4, Outcome.FAILED),
])  # fmt: skip
def test_the_verdict_counts_units(kind: UnitKind, failures: int, outcome: Outcome):
    work = Work(4, room_for_one_each(2), kind)
    state = work.scheduler.state
    units = state.units
    for number in range(failures):
        failed = replace(units[number], state=UnitState.FAILED, why="it was made to")
        units = units.put(failed)
    work.scheduler.state = replace(state, units=units)
    work.finish_everything()
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert verdict.outcome is outcome
    assert f"{4 - failures} of 4 {kind}s have succeeded" in verdict.summary


def test_trials_that_never_tell_their_objective_end_a_sweep():
    work = Work(100, Cluster(1), UnitKind.TRIAL, parallelism=1, objective="acc")
    for _ in range(3):
        assert work.scheduler.state.job.verdict is None
        work.finish("slot-0", result={"metrics": {"loss": 0.5}, "result": {"acc": "high"}})
        work.go(2)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, 1)
    told = "3 trials have ended without the objective's metric acc, and told acc, loss"
    assert verdict.summary == told


@pytest.mark.parametrize("told", ["NaN", "Infinity", "-Infinity"])
def test_trials_that_diverge_have_told_their_objective(told: str):
    work = Work(9, Cluster(1), UnitKind.TRIAL, parallelism=1, objective="loss")
    for _ in range(4):
        work.finish("slot-0", result={"metrics": {"loss": told}, "result": {"loss": told}})
        work.go(2)
    assert work.scheduler.state.job.verdict is None


def test_one_trial_that_tells_its_objective_is_enough_to_go_on():
    work = Work(6, Cluster(1), UnitKind.TRIAL, parallelism=1, objective="acc")
    for number in range(5):
        result = {"acc": 0.5} if number == 1 else {}
        work.finish("slot-0", result={"metrics": result})
        work.go(2)
    assert work.scheduler.state.job.verdict is None


def test_a_sweep_of_few_trials_without_an_objective_has_failed_in_the_end():
    work = Work(1, Cluster(1), UnitKind.TRIAL, objective="acc")
    work.finish("slot-0", result={"metrics": {}})
    work.go(2)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    told = "1 trial has ended without the objective's metric acc, and told no number"
    assert (verdict.outcome, verdict.summary) == (Outcome.FAILED, told)


def test_the_work_begins_with_its_first_slot():
    work = Work(9, Cluster(1), parallelism=2)
    slots = (gang for name, gang in work.scheduler.state.gangs.items() if name != MAIN)
    assert work.scheduler.state.job.started_at == min(gang.job.started_at for gang in slots) > 0


def test_no_units_at_all_are_soon_done():
    work = Work(0, Cluster(1))
    work.go(3)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert verdict.outcome is Outcome.SUCCEEDED
    assert not work.cluster.launch_history


@pytest.mark.parametrize("ask", [
    events.StopRequested("asked to"),
    events.UninstallRequested("asked to"),
])  # fmt: skip
def test_a_stop_or_an_uninstall_ends_every_slot(ask: events.Event):
    work = Work(100, Cluster(2))
    work.scheduler.handle(ask)
    work.go(30)
    assert work.scheduler.state.job.phase is JobPhase.DONE
    assert not work.cluster.alive()


def test_paused_work_hands_out_no_unit_and_gives_its_places_back_until_it_is_resumed():
    work = Work(100, room_for_one_each(2))
    work.scheduler.handle(events.PlanCommand("deploy", events.PlanVerb.PAUSE))
    work.finish("slot-0")
    work.go(5)
    assert work.runs == {"slot-1": 1}
    assert len(work.cluster.alive()) == 1
    assert "paused" in work.scheduler.state.job.why
    work.scheduler.handle(events.PlanCommand("deploy", events.PlanVerb.RESUME))
    work.go(8)
    assert sorted(work.runs.values()) == [1, 2]


# -- gangs in turn ---------------------------------------------------------------------------------


def test_a_slot_that_has_lost_its_container_comes_before_new_ones():
    work = Work(100, room_for_one_each(2), gang=GangSpec(wait_seconds=40.0))
    gone = work.record("slot-1-worker-0")
    work.cluster.report(gone.task_id, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")
    work.go(10)
    assert "slot-1" in work.runs
    assert not work.scheduler.state.gangs["slot-2"].tasks


def test_slots_that_hold_half_of_what_another_needs_do_not_wait_for_each_other_for_ever():
    work = Work(100, room_for_one_each(4), roles=PAIR, gang=GangSpec(wait_seconds=40.0))
    assert sorted(work.runs) == ["slot-0", "slot-1"]
    for name in ("slot-0-worker-1", "slot-1-worker-1"):
        work.cluster.lose(work.record(name).agent_id)
    work.go(30)
    assert len(work.cluster.alive()) == 4, "each holds what it has left"
    assert work.runs == {}
    work.go(120)
    assert len(work.runs) == 1


@pytest.mark.parametrize(("of_service", "slots"), [(False, 4), (True, 1)])
def test_a_rule_counts_the_tasks_of_a_slot_or_where_it_says_so_those_of_the_service(
    of_service: bool, slots: int
):
    rule = PlacementConstraint("hostname", ConstraintOperator.UNIQUE, of_service=of_service)
    work = Work(100, Cluster(2), roles=(replace(PAIR[0], constraints=(rule,)),))
    assert len(work.runs) == slots
    for slot in work.runs:
        assert len({work.record(f"{slot}-worker-{n}").agent_id for n in (0, 1)}) == 2


def test_slots_that_wait_are_placed_in_the_order_in_which_they_came():
    work = Work(100, room_for_one_each(3))
    for name in ("slot-1", "slot-2", "slot-0"):
        gone = work.record(f"{name}-worker-0")
        work.cluster.agents[gone.agent_id].free = Resources()
        work.cluster.report(gone.task_id, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")
        work.cluster.agents[gone.agent_id].free = Resources()
        work.go(20)
    for agent, name in zip(work.cluster.agents.values(), ("slot-1", "slot-2"), strict=False):
        agent.free = Resources(cpus=1.5, mem=2000, disk=1000)
        work.go(90)
        assert name in work.runs


def test_tensorboard_is_beside_all_slots():
    roles = (*ONE_TASK, RoleSpec(TaskRole.TENSORBOARD, 1, SMALL))
    work = Work(100, room_for_one_each(3), parallelism=2, roles=roles)
    work.go(5)
    assert sorted(work.scheduler.state.tasks) == [
        "slot-0-worker-0", "slot-1-worker-0", "tensorboard-0",
    ]  # fmt: skip


# -- what people see and ask for -------------------------------------------------------------------


def test_the_plan_has_a_step_for_each_slot_that_says_what_it_waits_for():
    work = Work(100, room_for_one_each(1))
    plan = plans(work.scheduler.state.view())["deploy"]
    steps = {step.name: step for phase in plan.phases for step in phase.steps}
    assert steps["slot-0"].status is Status.COMPLETE
    assert steps["slot-1"].status is Status.PENDING
    assert "slot-1-worker-0" in steps["slot-1"].message


def test_where_no_slot_has_a_place_the_work_says_why():
    work = Work(100, Cluster(1, Resources(cpus=0.5, mem=100, disk=100)))
    assert "no slot has a place yet: slot-0-worker-0" in work.scheduler.state.job.why


@pytest.mark.parametrize("verb", events.PlanVerb)
@pytest.mark.parametrize("step", ["", "slot-0"])
def test_every_verb_has_an_answer(verb: events.PlanVerb, step: str):
    work = Work(100, room_for_one_each(1))
    for gang in (MAIN, "slot-0"):
        phase = "slots" if step and gang == MAIN else ""
        name = step if phase else ""
        work.scheduler.handle(events.PlanCommand("deploy", verb, phase, name, gang))
    work.go(2)
    assert work.scheduler.state.job.phase is JobPhase.RUNNING


def test_a_sweep_does_not_become_a_batch():
    work = Work(100, room_for_one_each(1))
    spec = work.scheduler.state.spec
    assert spec.units is not None
    other = replace(spec, units=replace(spec.units, kind=UnitKind.TRIAL))
    assert "from shard to trial" in refusal(work.scheduler.state, other)
    assert refusal(work.scheduler.state, replace(spec, units=None))


def test_more_slots_may_be_asked_for_later():
    work = Work(100, Cluster(2), parallelism=2)
    spec = work.scheduler.state.spec
    assert spec.units is not None
    more = replace(spec, units=replace(spec.units, parallelism=5))
    work.scheduler.handle(events.ConfigurationChanged(more))
    work.go(10)
    assert len(work.runs) == 5


def test_fewer_slots_are_left_as_their_units_are_done():
    work = Work(100, Cluster(2), parallelism=5)
    spec = work.scheduler.state.spec
    assert spec.units is not None
    fewer = replace(spec, units=replace(spec.units, parallelism=2))
    work.scheduler.handle(events.ConfigurationChanged(fewer))
    work.go(5)
    assert len(work.runs) == 5
    for slot in list(work.runs):
        work.finish(slot)
    work.go(20)
    assert len(work.runs) == 2
    assert len(work.cluster.alive()) == 2


def test_slots_that_never_come_up_end_the_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Cluster, "run_everything", lambda cluster: None)
    retry = RetrySpec(limit=1, max_backoff_seconds=1.0)
    work = Work(100, room_for_one_each(1), gang=GangSpec(start_seconds=20.0), retry=retry)
    work.go(120)
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert verdict.outcome is Outcome.FAILED
    assert "does not come up" in verdict.summary


def test_by_dns_each_slot_has_names_of_its_own():
    roles = (replace(ONE_TASK[0], port=31010),)
    work = Work(100, Cluster(2), parallelism=2, roles=roles, addressing=Addressing.DNS)
    state = work.scheduler.state
    for slot in ("slot-0", "slot-1"):
        name = f"{slot}-worker-0"
        assert dict(state.gangs[slot].epoch.addresses) == {
            name: f"{name}.mnist.{state.spec.dns_domain}:31010"
        }


# -- when no units come ----------------------------------------------------------------------------


class NoUnits(Work):
    """Work whose producer gives nothing."""

    def hear(self, action: Action) -> None:
        pass


def test_work_without_units_fails_with_what_the_producer_says():
    work = NoUnits(1, Cluster(1))
    work.scheduler.handle(events.UnitsRefused("part-3 is there already", is_final=True))
    verdict = work.scheduler.state.job.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.summary) == (Outcome.FAILED, "part-3 is there already")
    work.go(20)
    assert work.scheduler.state.job.phase is JobPhase.DONE


def test_work_whose_producer_is_away_waits_and_says_so():
    work = NoUnits(1, Cluster(1))
    work.scheduler.handle(events.UnitsRefused("S3 does not answer", is_final=False))
    assert work.scheduler.state.job.verdict is None
    assert "S3 does not answer" in work.scheduler.state.only_gang.why
    work.scheduler.handle(events.UnitsGiven(0, ({"shard": 0},), last=True, total=1))
    work.go(4)
    assert "S3" not in work.scheduler.state.only_gang.why
