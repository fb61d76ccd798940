"""Restarts that an operator or the cluster asks for while nothing has failed.

Called by ``core.advance`` while the job runs. In this order, one at a time: an agent that is to be
taken down, members that were added or are not wanted any more, a decider that could not take them
while it trains, a task that an operator pauses or resumes, a changed configuration. Each is a
planned restart: tasks that save have the whole grace, the decider first, so that the newest state
is in a checkpoint; servers go last and at once.

``announced`` tells the API before an update which tasks it would restart; a failure meanwhile may
add more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.agents.maintenance import (
    agents,
    is_just_noticed,
    is_leaving,
    must_be_left,
)
from dcos_tensorflow.core.counted import they
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import UPDATE
from dcos_tensorflow.core.model.job import STOPPED_PHASES, JobPhase, Membership, Update
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts import restarts, update_order
from dcos_tensorflow.core.restarts.gang_queries import contained, paused, restart_set_of
from dcos_tensorflow.core.restarts.membership import members_to_tell
from dcos_tensorflow.core.restarts.restart_table import Loss
from dcos_tensorflow.core.spec.service_spec import Addressing, ServiceSpec, split_task_name
from dcos_tensorflow.records import dataclass

#: Phases in which members may be told to start again on request.
_STEERABLE = frozenset(
    {JobPhase.RUNNING, JobPhase.STARTING, JobPhase.STOPPING, JobPhase.BACKING_OFF, JobPhase.STAGING}
)
#: A process that takes other workers has done so by then (``task.python.live_workers``): its code
#: may still be at its beginning, the worker not listen yet, and a step be under way.
TAKE_SECONDS = 400.0


def begin_due(gang: GangDraft) -> None:
    """Begin the restart that is due, if any."""
    for due in (_leave_agents, _change_members, _catch_up, _pause_or_resume, _update):
        due(gang)
        if gang.job.phase is not JobPhase.RUNNING:
            return


def restart_on_request(
    gang: GangDraft, names: Iterable[str], *, plan: str, in_new_container: bool
) -> None:
    """Start these members again, in their containers or in new ones on other agents.

    The ``plan`` shows it where its verb was what an operator has used.
    """
    wanted = [n for n in names if n in gang.roster]
    records = contained(gang.view, wanted)
    if not records or gang.job.phase not in _STEERABLE:
        return
    if in_new_container:
        for record in records:
            avoidance.avoid(gang.service, record.agent_id)
        _move(gang, [r.name for r in records], f"{they(wanted, 'are')} placed anew on request")
    else:
        again = f"{they(wanted, 'are')} started again on request"
        _restart(gang, [r.name for r in records], Loss.PROCESS, again)
        gang.restart = replace(gang.restart, plan=plan)


def take_along(gang: GangDraft) -> None:
    """Add to the restart under way members that were to leave and are wanted again.

    They train on as before: the options that they were to leave by have stopped all others.
    """
    concerned = gang.restart.members
    if gang.job.phase not in STOPPED_PHASES or not concerned:
        return
    losses = {name: Loss.PROCESS for name in concerned if name in gang.roster}
    live = gang.tasks.having(Fact.LIVE)
    due = (name for name in restart_set_of(gang.view, losses) if name in live)
    gang.restart = replace(gang.restart, members=_with(concerned, due))


def _restart(gang: GangDraft, names: Iterable[str], loss: Loss, why: str) -> None:
    chosen = restart_set_of(gang.view, dict.fromkeys(names, loss))
    restarts.stop(gang, chosen, why, planned=True)


def _move(gang: GangDraft, names: Sequence[str], why: str) -> None:
    """Place members elsewhere, where they have other addresses unless they go by name.

    A member that has to know of those stops before they go, not after: a ParameterServerStrategy
    chief that has lost a worker cannot save any more, and takes all of its grace to find out
    (measured).
    """
    _replace(gang, names)
    by_name = gang.spec.addressing is Addressing.DNS and not gang.spec.has_own_addresses()
    _restart(gang, names, Loss.PROCESS if by_name else Loss.MOVED, why)


def _replace(gang: GangDraft, names: Iterable[str]) -> None:
    gang.restart = replace(gang.restart, replacing=_with(gang.restart.replacing, names))


def _with(known: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*known, *more)))


def _leave_agents(gang: GangDraft) -> None:
    draft = gang.service
    _leave(gang, [r for r in _on_leaving_agents(gang) if must_be_left(draft, r.agent_id)])


def members_that_move(gang: GangDraft) -> tuple[str, ...]:
    """Return the members on machines that are taken back: they train on, and look for places."""
    known = gang.service.state.maintenance
    if gang.job.phase is not JobPhase.RUNNING or not (known.noticed or known.advised):
        return ()
    return tuple(record.name for record in _on_leaving_agents(gang))


def leave_early(gang: GangDraft) -> None:
    """Begin the move of those that have found another place.

    Not before others may have heard of their own end: machines of one market go together, and each
    move costs the gang a restart.
    """
    going = _on_leaving_agents(gang)
    if not any(is_just_noticed(gang.service, record.agent_id) for record in going):
        _leave(gang, going)


def _on_leaving_agents(gang: GangDraft) -> list[TaskRecord]:
    """Return the members on agents that go soon, as far as they can go elsewhere.

    A task with a volume cannot go without it, and trains on until the agent is down.
    """
    draft = gang.service
    going = {a for a in agents(draft) if gang.tasks.on_agent(a) and is_leaving(draft, a)}
    if not going:
        return []
    reservation_of = draft.state.reservation_of
    members = contained(gang.view, gang.roster.names)
    return [r for r in members if r.agent_id in going and reservation_of(r.name) is None]


def _leave(gang: GangDraft, going: Collection[TaskRecord]) -> None:
    if not going:
        return
    names = [r.name for r in going]
    hosts = sorted({r.hostname for r in going})
    _move(gang, names, f"{they(hosts, 'are')} to be taken down: {they(names, 'move')}")


def _change_members(gang: GangDraft) -> None:
    epoch, roster = gang.epoch, gang.roster
    if epoch is None or epoch.names == roster.members:
        return
    added = tuple(n for n in roster.names if n not in epoch.names)
    removed = [n for n in epoch.addresses if n not in roster]
    if added:
        # The members go on training until there is a place for a new one: there may never be.
        known = gang.job.membership
        gang.set_membership(Membership(_with(known.absent, added), _with(known.joining, added)))
        gang.say(f"{they(added, 'join')} when there is room")
    controls = gang.view.controls
    if not removed or any(controls.holds(UPDATE, str(split_task_name(n)[0])) for n in removed):
        return
    before = epoch.addresses
    after = {n: before[n] for n in roster.names if n in before}
    chosen = members_to_tell(gang.view, before, after)
    what = they(removed, "leave")
    if chosen:
        restarts.stop(gang, chosen, what, planned=True)
        gang.restart = replace(gang.restart, plan=UPDATE)
    else:
        renewed = restarts.renew_epoch(gang)
        gang.say(what)
        restarts.tell_decider(gang)
        gang.explain(restarts.all_run(len(renewed.addresses)))


def _catch_up(gang: GangDraft) -> None:
    """Start a decider again that was to take other workers while it trains, and does not."""
    decider = gang.roster.decider
    if not gang.tasks.has(decider, Fact.BEHIND):
        return
    taking = gang.tasks.has(decider, Fact.TAKES_WORKERS)
    if taking and gang.service.waited(gang.tasks[decider].ordered_at) < TAKE_SECONDS:
        return
    why = f"{decider} has not taken the other workers while it trains"
    restarts.stop(gang, [decider], why, planned=True)
    gang.restart = replace(gang.restart, plan=UPDATE)


def _pause_or_resume(gang: GangDraft) -> None:
    view = gang.view
    wanted, held = paused(view), view.tasks.having(Fact.HELD)
    if not wanted and not held:
        return
    # A member out of reach may return, and must not train on without those that stopped.
    live = view.tasks.having(Fact.LIVE) & view.roster.members
    there = view.tasks.having(Fact.CONTAINED)
    for concerned, what in (
        ((live & wanted) - held, "paused"),
        ((live & held) - wanted, "resumed"),
    ):
        if concerned & there:
            names = view.roster.in_order(concerned)
            restarts.stop(gang, names, f"{they(names, 'are')} {what}", planned=True)
            return


def _update(gang: GangDraft) -> None:
    due = update_order.due(gang.view)
    names = [r.name for r in contained(gang.view, gang.roster.members.intersection(due))]
    if not names:
        return
    target = configuration_id(gang.service.state.spec)
    _replace(gang, names)
    updating = _with(gang.job.update.updating, names)
    gang.job = replace(gang.job, update=Update(canary=target, updating=updating))
    chosen = restart_set_of(gang.view, dict.fromkeys(names, Loss.PROCESS))
    others = [n for n in gang.roster.in_order(chosen) if n not in names]
    along = f"; {they(others, 'start')} again with {'it' if len(names) == 1 else 'them'}"
    told = f"{they(names, 'get')} {'a new container' if len(names) == 1 else 'new containers'}"
    why = f"{told} for the changed options{along if others else ''}"
    restarts.stop(gang, chosen, why, planned=True)
    gang.restart = replace(gang.restart, plan=UPDATE)


@dataclass(frozen=True)
class Announced:
    """The tasks that an update concerns, by what becomes of them."""

    #: They get new containers.
    replaced: tuple[str, ...] = ()
    #: They start again in their containers, for these change or the members do.
    along: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()


def announced(view: GangView, spec: ServiceSpec) -> Announced:
    """Return the tasks that are concerned when ``spec`` becomes the target."""
    spec = spec.shaped(view.job.shape)
    replaced = update_order.outdated_for(view, spec)
    before = view.epoch.addresses if view.epoch is not None else {}
    wanted = Roster.of(spec, gang=view.gang.name).every
    joining = tuple(n for n in wanted if before and n not in before)
    leaving = tuple(n for n in before if n not in wanted)
    after = {name: before.get(name, "joins") for name in wanted}
    chosen = {
        *restart_set_of(view, {n: Loss.PROCESS for n in replaced if n in view.roster}),
        *(members_to_tell(view, before, after) if joining or leaving else ()),
    }
    along = view.roster.in_order(chosen - {*replaced, *joining, *leaving})
    return Announced(replaced, along, joining, leaving)
