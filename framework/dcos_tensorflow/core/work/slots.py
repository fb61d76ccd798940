"""Slots: their number, the next step of each when its unit is over, and their end.

Called by ``core.advance``: ``take_next`` for each slot of which something may have changed; and by
``core.step``: ``scale``, once a step. A slot is placed once; its containers go on to the next unit,
and only the order of their runners differs (``core.cluster.orders``). Slots are
made one after the other as units wait and there is room (``core.offers.desk`` asks for more), and
end when no unit is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import count, islice

from dcos_tensorflow.core.agents.maintenance import agents, must_be_left
from dcos_tensorflow.core.counted import agreeing, counted, listed
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.failures import own_errors
from dcos_tensorflow.core.model.actions import UnitsWanted
from dcos_tensorflow.core.model.controls import DEPLOY
from dcos_tensorflow.core.model.events import UnitsRefused
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import ENDED_PHASES, JobPhase, JobState, Outcome, Verdict
from dcos_tensorflow.core.model.report import unit_of
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import parse_task_id
from dcos_tensorflow.core.model.task_table import Fact, TaskTable
from dcos_tensorflow.core.model.units import UnitState, UnitTable, number_told
from dcos_tensorflow.core.restarts import restarts
from dcos_tensorflow.core.restarts.gang_queries import contained, paused
from dcos_tensorflow.core.restarts.outcome import deciders_of
from dcos_tensorflow.core.spec.service_spec import (
    MAIN,
    Shape,
    UnitKind,
    UnitsSpec,
    gang_named,
    slot_name,
)
from dcos_tensorflow.core.work import assignment as units
from dcos_tensorflow.core.work import shares

#: So many trials are asked for ahead where the options do not say how many run at once.
AHEAD = 16
#: Of shards nothing is learned on the way: so many are known ahead at least.
SHARDS_AHEAD = 200
#: The producer is asked again when it has not answered within this time (seconds).
ASK_AGAIN_SECONDS = 10.0
#: What a shard usually takes is known when so many have succeeded ...
KNOWN_AFTER = 20
#: ... one that takes so many times as long is run once more elsewhere ...
STRAGGLES_AFTER = 2.0
#: ... but no sooner than after so long (seconds).
STRAGGLES_SECONDS = 5.0
#: When so many units are done and none has told the objective, no other one is begun.
SILENT = 3
#: So many more slots are tried at once when the one before has found a place.
GROWTH = 16
#: So many units are looked through for one of a shape that a slot may be made of.
_LOOKED_THROUGH = 50


# -- one slot --------------------------------------------------------------------------------------


def take_next(gang: GangDraft) -> None:
    """Go on to the next unit where the one before is done, or was decided without this slot."""
    draft, run = gang.service, gang.unit
    if _has_to_leave(gang):
        end(gang, "a machine of it is to be taken down")
        return
    if run is None:
        return
    if draft.state.units[run.number].is_decided:
        units.drop(gang)
        _next(gang, f"unit {run.number} is decided")
    elif _is_done(gang.view):
        decider = gang.tasks[deciders_of(gang.view)[0]]
        told = unit_of(gang.view.report_of(decider))
        units.succeed(gang, told[2] if told is not None else {})
        units.drop(gang)
        _next(gang, f"unit {run.number} is done")
    elif run.is_over and not _trains(gang.view):
        units.give_back(gang)


def _trains(view: GangView) -> bool:
    """Say whether a process of the slot may work on its unit, as far as can be known."""
    tasks = view.tasks
    still = tasks.having(Fact.STOPPED) | tasks.having(Fact.DONE)
    return any(
        not tasks[name].process_failed
        for name in (tasks.having(Fact.CONTAINED) & view.roster.members) - still
    )


def _is_done(view: GangView) -> bool:
    """Say whether the deciding task has done the unit, and says so of this attempt."""
    run, done = view.gang.unit, view.tasks.having(Fact.DONE)
    deciders = deciders_of(view)
    if run is None or not done or not done.issuperset(deciders):
        return False
    told = unit_of(view.report_of(view.tasks[deciders[0]]))
    return told is None or told[:2] == (run.number, run.attempt)


def _next(gang: GangDraft, why: str) -> None:
    """Start the next unit: at once where no task has to be stopped for it."""
    view = gang.view
    members = contained(view, view.roster.names)
    at_once = (
        gang.job.phase in (JobPhase.STARTING, JobPhase.RUNNING)
        and len(members) == len(view.roster)
        and view.tasks.having(Fact.DONE).issuperset(view.roster.names)
        and paused(view).isdisjoint(view.roster.names)
    )
    if at_once and units.take(gang):
        for record in members:
            gang.put(replace(record, start=record.start + 1, held=False, ordered_at=gang.now))
        gang.restart = replace(gang.restart, members=(), planned=False, restore_step=None, plan="")
        # A slot that runs goes on running: to note of each unit that it has begun costs a commit.
        gang.job = replace(gang.job, phase_since=gang.now)
        gang.say(f"{why}; the next one starts")
        return
    restarts.stop(gang, view.roster.names, why, planned=True)


def _has_to_leave(gang: GangDraft) -> bool:
    draft = gang.service
    return any(gang.tasks.on_agent(a) and must_be_left(draft, a) for a in agents(draft))


def end(gang: GangDraft, why: str) -> None:
    """Give a slot's containers back; its unit waits for another one when they have ended."""
    units.stop(gang)
    verdict = Verdict(Outcome.STOPPED, 0, why)
    gang.job = replace(gang.job, verdict=verdict, finished_at=gang.now)
    gang.enter(JobPhase.ENDING, f"{gang.name} ends: {why}")


def forget(gang: GangDraft) -> None:
    """Forget a slot that has ended; what cannot be reached of it is killed should it come back."""
    draft = gang.service
    units.give_back(gang)
    if draft.state.uninstall.asked:
        # What it leaves behind is told at the end of that.
        return
    # What was asked of its tasks is not asked of those of a slot that has its name later.
    draft.state = replace(draft.state, controls=draft.state.controls.without_tasks(gang.tasks))
    away = {r.task_id: r.agent_id for r in gang.tasks.values() if not r.terminal}
    if away:
        draft.state = replace(draft.state, abandoned={**draft.state.abandoned, **away})
    draft.drop_gang(gang.name)


# -- all of them -----------------------------------------------------------------------------------


def scale(draft: Draft) -> None:
    """Make slots, ask for units, and end what has nothing left to do."""
    spec, main = draft.state.spec.units, draft.gang(MAIN)
    if spec is None:
        return
    slots = [gang for gang in draft.awake() if units.is_slot(gang.view)]
    going = [gang for gang in slots if gang.job.phase not in ENDED_PHASES]
    if main.job.phase in ENDED_PHASES:
        for gang in draft.gangs():
            if units.is_slot(gang.view):
                _end_with_all(gang)
        return
    without = [gang for gang in going if gang.unit is None]
    if not units.may_go_on(draft):
        # Their places are for others until it goes on.
        for gang in without:
            end(gang, "the work is paused")
    for gang in without[: shares.surplus(draft)]:
        if gang.job.phase not in ENDED_PHASES:
            end(gang, "fewer slots are allowed now")
    table = draft.state.units
    if hopeless := _silence(spec, table) or own_errors.why_no_more_units(draft.state, draft.now):
        conclude(main, Verdict(Outcome.FAILED, 1, hopeless))
        scale(draft)
        return
    if table.is_complete:
        _conclude(main, spec.kind, table)
        scale(draft)
        return
    idle = [g for g in going if g.unit is None and g.job.phase not in ENDED_PHASES]
    main.explain(_why(draft, idle))
    _run_stragglers(draft, idle)
    idle = [gang for gang in idle if gang.unit is None]
    _end_idle(draft, idle)
    _ask(draft, spec)
    grow(draft, 1, besides=frozenset(g.job.shape for g in idle if _is_unplaced(g)))


def _why(draft: Draft, idle: Iterable[GangDraft]) -> str:
    """Return what the work as a whole does, or waits for: no sentence that changes often."""
    unplaced = [gang for gang in idle if _is_unplaced(gang)]
    trouble, spec = draft.state.units.trouble, draft.state.spec.units
    if not units.may_go_on(draft):
        return f"the work is paused: no unit is taken until the plan {DEPLOY} is resumed"
    if not len(draft.state.units):
        return f"no unit of work is known yet{f': {trouble}' if trouble else ''}"
    if trouble and not draft.state.units.waiting:
        return f"no more units of work for now: {trouble}"
    if unplaced and len(unplaced) == len(draft.state.gangs) - 1:
        return f"no slot has a place yet: {unplaced[0].gang.why}"
    if unplaced and spec is not None and spec.parallelism:
        placed = counted(len(draft.state.gangs) - 1 - len(unplaced), "slot")
        return f"{placed} of {spec.parallelism} have a place: {unplaced[0].gang.why}"
    limited = shares.why_no_more(draft) if draft.state.units.waiting else ""
    if not limited and unplaced and unplaced[0].job.shape:
        limited = f"one of another size has no place: {unplaced[0].gang.why}"
    return f"slots work on units{f'; {limited}' if limited else ''}"


def _end_with_all(gang: GangDraft) -> None:
    if gang.job.phase not in ENDED_PHASES:
        end(gang, "no unit is left to be done")


def _conclude(main: GangDraft, kind: UnitKind, table: UnitTable) -> None:
    good, bad = table.count(UnitState.SUCCEEDED), table.count(UnitState.FAILED)
    stopped = table.count(UnitState.PRUNED)
    told = f"{good} of {counted(len(table), str(kind))} {agreeing(good, 'have')} succeeded"
    told += f", {bad} {agreeing(bad, 'have')} failed" if bad else ""
    told += f", {stopped} {agreeing(stopped, 'were')} stopped early" if stopped else ""
    failed = bad > 0 if kind is UnitKind.SHARD else not good and len(table) > 0
    outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
    conclude(main, Verdict(outcome, int(failed), told))


def _silence(spec: UnitsSpec, table: UnitTable) -> str:
    """Return why going on is for nothing: no unit that is done has told its objective.

    The first one that has ends the search, and so do the first few that have not.
    """
    if not spec.objective or table.count(UnitState.PRUNED):
        return ""
    silent = []
    for unit in table if table.count(UnitState.SUCCEEDED) else ():
        if unit.state is UnitState.SUCCEEDED:
            if number_told(unit.result, spec.objective) is not None:
                return ""
            silent.append(unit)
            if len(silent) == SILENT:
                break
    if not silent or not (len(silent) == SILENT or table.is_complete):
        return ""
    parts = (part for unit in silent for part in unit.result.values() if isinstance(part, Mapping))
    others = sorted({str(name) for part in parts for name in part})
    told = f"told {listed(others)}" if others else "told no number"
    done = f"{counted(len(silent), str(spec.kind))} {agreeing(len(silent), 'have')} ended"
    return f"{done} without the objective's metric {spec.objective}, and {told}"


def refused(draft: Draft, event: UnitsRefused) -> None:
    """Note why no units come; end the work where none ever will."""
    main, table = draft.gang(MAIN), draft.state.units
    if draft.state.spec.units is None or table.last or main.job.phase in ENDED_PHASES:
        return
    if event.is_final:
        conclude(main, Verdict(Outcome.FAILED, 1, event.why))
    elif table.trouble != event.why:
        draft.state = replace(draft.state, units=replace(table, trouble=event.why))
        draft.reasons.append(f"no more units of work for now: {event.why}")


def conclude(main: GangDraft, verdict: Verdict) -> None:
    """End the work on all units with this verdict."""
    main.job = replace(main.job, verdict=verdict, finished_at=main.now)
    main.enter(JobPhase.ENDING, f"the work has {verdict.outcome}: {verdict.summary}")


def _is_unplaced(gang: GangDraft) -> bool:
    return gang.job.phase is JobPhase.PLACING and not gang.tasks


def _lacks_a_place(gang: GangDraft) -> bool:
    """Say whether a slot looks for places: it never had them, or has lost one."""
    return gang.job.phase is JobPhase.PLACING


def _is_ready(gang: GangDraft) -> bool:
    """Say whether a slot has everything but a unit."""
    if gang.job.phase not in (JobPhase.STAGING, JobPhase.BACKING_OFF):
        return False
    return gang.tasks.having(Fact.STOPPED).issuperset(gang.roster.names)


def _run_stragglers(draft: Draft, idle: list[GangDraft]) -> None:
    """Run shards that take much longer than usual once more, in slots that have nothing to do."""
    spec, table = draft.state.spec.units, draft.state.units
    ready = [gang for gang in idle if _is_ready(gang)]
    few = table.count(UnitState.SUCCEEDED) < KNOWN_AFTER
    if spec is None or spec.kind is not UnitKind.SHARD or not ready or few or table.waiting:
        return
    if not table.last or not units.may_go_on(draft):
        return
    limit = max(STRAGGLES_AFTER * table.usual_seconds, STRAGGLES_SECONDS)
    late = []
    for number, gangs in table.running.items():
        run = draft.state.gangs[gangs[0]].unit
        if len(gangs) == 1 and run is not None and draft.now - run.begun_at > limit:
            late.append((run.begun_at, number))
    waiting = [number for _, number in sorted(late)]
    for gang in ready:
        # What fails once more where it has failed would end a unit that runs well elsewhere.
        for number in [n for n in waiting if not units.has_failed_on(gang, n)][:1]:
            waiting.remove(number)
            units.run(gang, number)
            gang.say(f"unit {number} takes long: it is run once more")


def _end_idle(draft: Draft, idle: list[GangDraft]) -> None:
    """End slots that no unit will come for, or that keep those of another shape from a place."""
    spec, table = draft.state.spec.units, draft.state.units
    if spec is None or not idle:
        return
    ends_at_once = table.last or not spec.is_one_work
    if not ends_at_once and not any(gang.job.shape for gang in idle):
        return
    kept: Counter[Shape] = Counter({(): table.waiting})
    if spec.kind is not UnitKind.SHARD:
        kept = Counter(map(table.shape, table.numbers_waiting()))
    placed = Counter(gang.job.shape for gang in idle if not _lacks_a_place(gang))
    if not ends_at_once and not (kept - placed and _is_cramped(draft, idle)):
        return
    if spec.kind is UnitKind.SHARD and len(table) > KNOWN_AFTER:
        # Each of those that run may have to be run once more.
        kept[()] += sum(1 for gangs in table.running.values() if len(gangs) == 1)
    # Those first that have no place.
    for gang in sorted(idle, key=_lacks_a_place):
        kept[gang.job.shape] -= 1
        if kept[gang.job.shape] < 0:
            end(gang, "no unit is left for it" if ends_at_once else "units of another shape wait")


def _is_cramped(draft: Draft, idle: Iterable[GangDraft]) -> bool:
    """Say whether no slot more finds a place, or is allowed."""
    limit = shares.most_slots(draft.state)
    full = limit is not None and shares.going(draft) >= limit
    return full or any(map(_lacks_a_place, idle))


def _ask(draft: Draft, spec: UnitsSpec) -> None:
    """Ask for more units before those that wait are all taken."""
    table = draft.state.units
    at_once = spec.parallelism or AHEAD
    ahead = max(SHARDS_AHEAD, 2 * at_once) if spec.kind is UnitKind.SHARD else at_once
    asked = table.asked_at and draft.now - table.asked_at < ASK_AGAIN_SECONDS
    if (
        table.last
        or asked
        or not spec.is_one_work
        or table.waiting >= (ahead + 1) // 2
        or not units.may_go_on(draft)
    ):
        return
    wanted = ahead - table.waiting
    draft.state = replace(draft.state, units=replace(table, asked_at=draft.now))
    draft.act(UnitsWanted(len(table), wanted), f"asking for {counted(wanted, 'unit')} of work")


def grow(draft: Draft, most: int, besides: Collection[Shape] = ()) -> tuple[GangDraft, ...]:
    """Make more slots, at most so many, as far as units wait for them; return them.

    None of the shapes ``besides``.
    """
    spec, state = draft.state.spec.units, draft.state
    if spec is None or not units.may_go_on(draft) or state.uninstall.asked:
        return ()
    limit = shares.most_slots(state)
    room = most if limit is None else min(limit - shares.going(draft), most)
    shapes = _without_slot(draft, room, besides) if state.units.waiting else []
    if not shapes:
        return ()
    # Nor one of whose tasks an attempt of before may still run: it would wait for its end.
    known = map(parse_task_id, (*state.abandoned, *state.strays))
    old = {gang_named(parsed[1]) for parsed in known if parsed is not None}
    draft.ask_anew()
    names = (n for n in map(slot_name, count()) if n not in state.gangs and n not in old)
    made = tuple(zip(names, shapes, strict=False))
    for name, shape in made:
        job = JobState(phase_since=draft.now, shape=shape)
        table = TaskTable(Roster.of(state.spec.shaped(shape), gang=name))
        draft.set_gang(Gang(name, table, job=job))
    return tuple(draft.gang(name) for name, _ in made)


def _without_slot(draft: Draft, most: int, besides: Collection[Shape]) -> list[Shape]:
    """Return the shapes of the first units that wait, and that no slot waits for."""
    table, found = draft.state.units, list[Shape]()
    idle = [g for g in draft.awake() if g.name != MAIN and g.unit is None]
    waiting = Counter(gang.job.shape for gang in idle if gang.job.phase not in ENDED_PHASES)
    numbers = table.numbers_waiting() if most > 0 else ()
    for number in islice(numbers, most + waiting.total() + _LOOKED_THROUGH):
        shape = table.shape(number)
        if waiting[shape] > 0:
            waiting[shape] -= 1
        elif shape not in besides:
            found.append(shape)
            if len(found) == most:
                break
    return found


def drop_unplaced(draft: Draft, slots: Iterable[GangDraft]) -> None:
    """Forget slots that were made in this step and have found no place."""
    for gang in slots:
        draft.drop_gang(gang.name)
