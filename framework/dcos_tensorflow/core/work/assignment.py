"""The next unit of work of a slot, and the way of a unit that fails or is interrupted.

Called by ``core.restarts.restarts`` and ``core.failures.incidents`` as a slot stops and starts, by
``core.work.slots`` when a unit is done, and by ``core.absorb`` with the producer's words. A
unit is in one slot at a time, but for a shard that takes too long: of that the first success wins.
An end of a slot's process without any fault of the unit gives the unit back, to the slot that comes
next; an end that may be its fault is noted with the machine: the same on two machines is its fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model import bounds, events
from dcos_tensorflow.core.model.actions import UnitEnded
from dcos_tensorflow.core.model.controls import DEPLOY
from dcos_tensorflow.core.model.job import ENDED_PHASES
from dcos_tensorflow.core.model.service_state import GangView, ServiceState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.model.units import Unit, UnitFailure, UnitRun, UnitState
from dcos_tensorflow.core.restarts.outcome import deciders_of
from dcos_tensorflow.core.spec.service_spec import Shape, UnitKind
from dcos_tensorflow.core.work import shares

#: So many of those that wait are looked through for one that has not failed on the same machine.
_LOOKED_THROUGH = 50


def is_slot(view: GangView) -> bool:
    """Say whether a gang takes units of work."""
    return view.roster.is_of_slot


# -- what the producer says ------------------------------------------------------------------------


def given(draft: Draft, event: events.UnitsGiven) -> None:
    """Take the units that the producer gives; those that are known were told twice.

    Of what is no one work, another unit may have the place of one that is decided, so the table is
    no longer than so many were there at a time; and one that waits may be given otherwise.
    """
    spec, table = draft.state.spec.units, draft.state.units
    known = len(table)
    if spec is None or table.last or event.first > known:
        return
    for number, payload in enumerate(event.payloads[: known - event.first], event.first):
        if not spec.is_one_work and number not in table.running:
            table = table.renewed(number, payload)
            draft.reasons.append(f"unit {number} is given anew")
    payloads = event.payloads[known - event.first :]
    after = replace(table.given(payloads, last=event.last), total=event.total or table.total)
    draft.state = replace(draft.state, units=after)
    if payloads or event.last:
        more = "; these are all" if event.last else ""
        draft.reasons.append(f"{counted(len(after), 'unit')} of work known{more}")


def pruned(draft: Draft, event: events.UnitPruned) -> None:
    """Decide that a unit is not gone on with; its slot takes another one."""
    table = draft.state.units
    if not 0 <= event.number < len(table) or table[event.number].is_decided:
        return
    unit = table[event.number]
    runs = [draft.state.gangs[name].unit for name in table.running.get(event.number, ())]
    begun_at = min((run.begun_at for run in runs if run is not None), default=draft.now)
    slot = next(iter(table.running.get(event.number, ())), "")
    stopped = replace(unit, result=event.result, begun_at=begun_at, slot=slot)
    _decide(draft, stopped, UnitState.PRUNED, event.why)


# -- taking one ------------------------------------------------------------------------------------


def take(gang: GangDraft) -> bool:
    """Give a slot its next unit, if it has none; say whether it has one, or needs none."""
    if not is_slot(gang.view):
        return True
    if gang.unit is not None and gang.unit.is_over:
        # All tasks have stopped.
        give_back(gang)
    if gang.unit is not None:
        return True
    draft = gang.service
    if may_go_on(draft) and not shares.surplus(draft):
        number = _next(gang)
        if number is not None:
            run(gang, number)
    return gang.unit is not None


def may_go_on(draft: Draft) -> bool:
    """Say whether units are handed out: the work is not over, and no operator has paused it."""
    state = draft.state
    return state.job.phase not in ENDED_PHASES and not state.controls.holds(DEPLOY)


def run(gang: GangDraft, number: int) -> None:
    """Let a slot run a unit from its next start on."""
    draft = gang.service
    table = draft.state.units
    attempt = table[number].tries + len(table.running.get(number, ())) + 1
    draft.state = replace(draft.state, units=table.taken(number, gang.name))
    gang.unit = UnitRun(number, attempt, gang.now)
    gang.gang = replace(gang.gang, former_unit=None)
    # Steps are those of the unit.
    gang.job = replace(gang.job, best_step=None)
    gang.say(f"{gang.name} takes unit {number} (attempt {attempt})")


def _next(gang: GangDraft) -> int | None:
    """Return the unit of its shape that waits longest; rather one that failed on no machine here.

    The last attempt of one that has failed here alone is left to a slot elsewhere. While no trial
    has got anywhere, one that has failed comes after all that have not been tried: where they fail
    alike, none is tried twice (``own_errors.why_no_more_units``).
    """
    table, first = gang.service.state.units, None
    untried_first = not table.count(UnitState.SUCCEEDED) and _are_trials(gang)
    agents = {record.agent_id for record in gang.tasks.values() if not record.terminal}
    mine = (n for n in table.numbers_waiting() if table.shape(n) == gang.job.shape)
    for number in islice(mine, _LOOKED_THROUGH):
        failed_on = [failure.agent_id for failure in table[number].failures]
        if agents.isdisjoint(failed_on) and not (untried_first and failed_on):
            return number
        times = len(failed_on) + table[number].more_failures
        last = times + 1 >= _most_attempts(gang) and agents.issuperset(failed_on)
        if first is None and not (
            last and is_elsewhere(gang.service.state, agents, gang.job.shape)
        ):
            first = number
    return first


def has_failed_on(gang: GangDraft, number: int) -> bool:
    """Say whether a unit has failed on a machine of a slot."""
    failed_on = {failure.agent_id for failure in gang.service.state.units[number].failures}
    return any(r.agent_id in failed_on for r in gang.tasks.values() if not r.terminal)


def is_elsewhere(state: ServiceState, agents: Collection[str], shape: Shape = ()) -> bool:
    """Say whether a slot of this shape has its containers on none of these machines."""
    return any(
        (there := view.tasks.records_of(view.tasks.having(Fact.CONTAINED)))
        and all(record.agent_id not in agents for record in there)
        for view in state.views()
        if is_slot(view) and view.job.phase not in ENDED_PHASES and view.job.shape == shape
    )


def _are_trials(gang: GangDraft) -> bool:
    return gang.spec.units is not None and gang.spec.units.kind is UnitKind.TRIAL


def _most_attempts(gang: GangDraft) -> int:
    return gang.spec.units.max_attempts if gang.spec.units is not None else 1


# -- the end of an attempt -------------------------------------------------------------------------


def succeed(gang: GangDraft, result: Mapping[str, Any]) -> None:
    """Note the result of the unit that a slot has done. A second slot that runs it is to stop."""
    run_now = gang.unit
    if run_now is None:
        raise AssertionError(f"{gang.name} has done a unit and has none")
    draft = gang.service
    unit = draft.state.units[run_now.number]
    mine = {record.agent_id for record in gang.tasks.values()}
    for failure in unit.failures:
        if failure.agent_id not in mine:
            # It was not the unit, then.
            avoidance.count(draft, failure.agent_id)
    done = replace(unit, result=result, begun_at=run_now.begun_at, slot=gang.name)
    # What has failed in this slot before was not for ever.
    gang.job = replace(gang.job, incidents=(), fruitless=0)
    _decide(draft, done, UnitState.SUCCEEDED, "")


def give_back(gang: GangDraft) -> None:
    """Let a unit wait again: its attempt ends by no fault of its own, as far as is known."""
    run_now = gang.unit
    if run_now is None:
        return
    draft = gang.service
    _release(gang)
    unit = draft.state.units[run_now.number]
    if unit.is_decided:
        return
    limit = gang.spec.retry.fruitless_limit
    times = unit.interruptions + 1
    unit = replace(unit, tries=unit.tries + 1, interruptions=times)
    if times > limit and run_now.number not in draft.state.units.running:
        why = f"{times} times in a row it was interrupted"
        told = replace(unit, tries=unit.tries - 1, slot=gang.name)
        _decide(draft, told, UnitState.FAILED, why)
        return
    draft.state = replace(draft.state, units=draft.state.units.put(unit))
    gang.say(f"unit {run_now.number} waits again: {gang.name} could not go on with it")


def stopped_with(gang: GangDraft, names: Iterable[str]) -> set[str]:
    """Return the tasks that stop with these: all, where the slot does not go on with its unit.

    It does as long as the task that decides about the unit does.
    """
    chosen = set(names)
    if not is_slot(gang.view):
        return chosen
    if not chosen.isdisjoint(deciders_of(gang.view)):
        stop(gang)
    goes_on = gang.unit is not None and not gang.unit.is_over
    return chosen if goes_on else {*chosen, *gang.roster.names}


def stop(gang: GangDraft) -> None:
    """Note that a slot gives up its unit: no other slot has it before all have stopped."""
    if gang.unit is not None and not gang.unit.is_over:
        gang.gang = replace(gang.gang, unit=replace(gang.unit, is_over=True))


def fail(gang: GangDraft, failure: UnitFailure, *, permanent: bool) -> None:
    """Note a failure that may be the unit's own; decide whether it is.

    It is when the same has happened on two machines, and when it has failed often enough. A failure
    whose effect was seen first is that of the unit which the slot had then.
    """
    run_now = gang.unit or gang.gang.former_unit
    draft = gang.service
    table = draft.state.units
    if run_now is None or table[run_now.number].is_decided:
        return
    unit = table[run_now.number]
    seconds = max(failure.at - run_now.begun_at, 0.0)
    summary = bounds.cut(failure.summary, bounds.UNIT_TEXT_BYTES)
    failure = replace(failure, summary=summary, seconds=seconds)
    failures = (*unit.failures, failure)
    kept = failures[-bounds.FAILURES_OF_A_UNIT :]
    more = unit.more_failures + len(failures) - len(kept)
    unit = replace(unit, failures=kept, more_failures=more, interruptions=0)
    times = len(kept) + more
    machines = {f.agent_id for f in failures if f.is_like(failure)}
    if permanent:
        why = f"{failure.summary} (it can never run)"
    elif len(machines) > 1:
        why = f"{failure.summary} (the same on {counted(len(machines), 'machine')}: the unit's own)"
    elif times >= _most_attempts(gang):
        why = f"{failure.summary} ({counted(times, 'attempt')} failed)"
    else:
        draft.state = replace(draft.state, units=table.put(unit))
        return
    begun_at = run_now.begun_at
    _decide(draft, replace(unit, begun_at=begun_at, slot=gang.name), UnitState.FAILED, why)


def _release(gang: GangDraft) -> None:
    run_now = gang.unit
    if run_now is not None:
        draft = gang.service
        units = draft.state.units.released(run_now.number, gang.name)
        draft.state = replace(draft.state, units=units)
        gang.unit = None


def drop(gang: GangDraft) -> None:
    """Take from a slot a unit that is decided."""
    _release(gang)


def _decide(draft: Draft, unit: Unit, state: UnitState, why: str) -> None:
    told, tries = bounds.cut(why, 2 * bounds.UNIT_TEXT_BYTES), unit.tries + 1
    decided = replace(unit, state=state, why=told, ended_at=draft.now, tries=tries)
    slots = draft.state.units.running.get(unit.number, ())
    draft.state = replace(draft.state, units=draft.state.units.put(decided))
    what = "is stopped early" if state is UnitState.PRUNED else f"has {state}"
    because = f": {why}" if why else ""
    draft.act(UnitEnded(unit.number), f"unit {unit.number} {what}{because}")
    for name in slots:
        # It is looked at again: what it runs is of no use any more.
        gang = draft.gang(name)
        gang.gang = replace(gang.gang)
