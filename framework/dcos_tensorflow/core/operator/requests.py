"""Requests to a running service: steer a plan, restart a pod, change the options, stop.

Called by ``core.step`` with every event, before it looks at facts. A request that cannot be
carried out is refused with a sentence, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, replace
from typing import Any

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.cluster.rendering import illegal_mix, rendered_strategy
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import ReleaseIdleMachines
from dcos_tensorflow.core.model.job import ENDED_PHASES, JobPhase, Membership, Outcome, Verdict
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.operator import plan_control, uninstall
from dcos_tensorflow.core.restarts import planned_changes, sidecars, update_order
from dcos_tensorflow.core.restarts.launch_options import still_of_use
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, Strategy, TaskRole, UnitKind

#: What identifies the service to Mesos and to its peers: another value is another service.
FIXED_FIELDS = {
    "name": "the name of a service",
    "user": "the user that tasks run as",
    "mesos_role": "the Mesos role",
    "principal": "the principal",
    "region": "the region",
}

#: So many configurations stay in the store, to go back to, beside those that tasks run with.
CONFIGURATIONS_KEPT = 10


def carry_out(draft: Draft, event: events.Event) -> bool:
    """Carry out what a person asks; False when the event is no request."""
    verb = _REQUESTS.get(type(event))
    if verb is None:
        return False
    verb(draft, event)
    return True


def stop(draft: Draft, event: events.StopRequested) -> None:
    """End the job; what has outlived one that is over ends too."""
    for gang in draft.gangs():
        if gang.job.phase in ENDED_PHASES:
            sidecars.stop_staying(gang, event.why)
            continue
        verdict = Verdict(Outcome.STOPPED, uninstall.EXIT_INTERRUPTED, event.why)
        gang.job = replace(gang.job, verdict=verdict, finished_at=draft.now)
        gang.enter(JobPhase.ENDING, f"stopped: {event.why}")


def control(draft: Draft, command: events.PlanCommand | events.PodCommand) -> None:
    """Carry out a plan or pod verb."""
    ruling = plan_control.rule(draft.state, command)
    draft.state = replace(draft.state, controls=ruling.controls)
    draft.reasons.append(ruling.why)
    for name in ruling.effects.give_up:
        _give_up(draft, name)
    _start_again(draft, ruling.effects.restart, plan=ruling.effects.plan)
    _start_again(draft, ruling.effects.replace, in_new_container=True)


def _start_again(
    draft: Draft, names: Iterable[str], *, plan: str = "", in_new_container: bool = False
) -> None:
    members: dict[str, list[str]] = {}
    for name in names:
        found = draft.state.gang_wanting(name)
        if found is None:
            continue
        gang = draft.gang(found.name)
        if in_new_container:
            reservations.give_up(gang, name, "replaced on request")
        record = gang.tasks.get(name)
        if record is None:
            continue
        if record.terminal:
            sidecars.try_again_on_request(gang, record)
        elif in_new_container and record.state is TaskState.UNREACHABLE:
            # A person that replaces it by hand does not wait for its agent any longer.
            _abandon(gang, record)
            avoidance.avoid(draft, record.agent_id)
        elif record.role.is_in_gang:
            members.setdefault(gang.name, []).append(name)
        else:
            sidecars.restart_on_request(gang, record, in_new_container=in_new_container)
    for gang_name, mine in members.items():
        planned_changes.restart_on_request(
            draft.gang(gang_name), mine, plan=plan, in_new_container=in_new_container
        )


def _give_up(draft: Draft, name: str) -> None:
    """Wait no more for the end of a task out of reach; should it return, it is killed."""
    gang = draft.gang_with(name)
    if gang is not None and not gang.tasks[name].terminal:
        _abandon(gang, gang.tasks[name])


def _abandon(gang: GangDraft, record: TaskRecord) -> None:
    state = gang.service.state
    abandoned = {**state.abandoned, record.task_id: record.agent_id}
    gang.service.state = replace(state, abandoned=abandoned)
    gang.advance(record, TaskState.LOST, message="given up on request")


def release(draft: Draft, event: events.ReleaseRequested) -> None:
    """Have idle machines given back that were bought."""
    draft.act(ReleaseIdleMachines(), f"idle machines are given back: {event.why}")


def refusal(state: ServiceState, spec: ServiceSpec) -> str:
    """Return why the service cannot go over to ``spec``; empty when it can."""
    wrong = clash_with_what_is_owned(state, spec, tuple(TaskRole)) or illegal_mix(spec)
    if wrong:
        return wrong
    if _kind(state.spec) is not _kind(spec):
        return (
            f"the work would change from {_kind(state.spec) or 'one job'} to"
            f" {_kind(spec) or 'one job'}: install another service"
        )
    over = [g.job.phase for g in state.gangs.values() if g.job.is_over]
    if len(over) == len(state.gangs):
        return f"the job is {over[0]}: nothing of it can be changed any more"
    before, after = rendered_strategy(state.spec), rendered_strategy(spec)
    if before is not after and not _is_joined_or_left(state.spec, spec):
        return (
            f"the strategy would change from {before} to {after}: its checkpoints would not fit;"
            " stop the job first"
        )
    return ""


def clash_with_what_is_owned(
    state: ServiceState, spec: ServiceSpec, with_volumes: Collection[TaskRole]
) -> str:
    """Return why what the service owns would be lost with ``spec``; empty when nothing would be.

    ``with_volumes`` are the roles whose volumes are to be as they were.
    """
    for field, what in FIXED_FIELDS.items():
        before, after = getattr(state.spec, field), getattr(spec, field)
        if before != after:
            return (
                f"{what} cannot be changed from {before!r} to {after!r} while the service exists;"
                " install another one"
            )
    return _changed_volume(state.spec, spec, with_volumes) or _lost_provider(state, spec)


def _kind(spec: ServiceSpec) -> UnitKind | None:
    return spec.units.kind if spec.units is not None else None


def _is_joined_or_left(before: ServiceSpec, after: ServiceSpec) -> bool:
    """Say whether others join the only task that trains, or leave it alone.

    Options that name no strategy never differ in theirs: the code is the same, and what one
    worker has saved the first of several restores.
    """
    unnamed = before.strategy is after.strategy is Strategy.AUTO
    pair = {rendered_strategy(before), rendered_strategy(after)}
    return unnamed and pair == {Strategy.INDEPENDENT, Strategy.MULTI_WORKER}


def _changed_volume(before: ServiceSpec, after: ServiceSpec, roles: Collection[TaskRole]) -> str:
    """Return why volumes of these roles cannot change so; a task would lose its data."""
    for role in (each for each in after.roles if each.role in roles):
        earlier = next((r for r in before.roles if r.role is role.role), None)
        if earlier is not None and earlier.volume != role.volume:
            return (
                f"the volume of {role.role} tasks cannot be changed while there are any;"
                " install another service"
            )
    return ""


def _lost_provider(state: ServiceState, after: ServiceSpec) -> str:
    """Return why machines cannot be had from elsewhere: those that are there would never end."""
    left = machines_left(state.capacity)
    before = state.spec.capacity
    if not left or before is None:
        return ""
    if after.capacity is not None and after.capacity.provider == before.provider:
        return ""
    return (
        f"the provider of machines cannot be changed while there is {counted(left, 'machine')} of"
        " it: give them back first (capacity release)"
    )


def change_configuration(draft: Draft, event: events.ConfigurationChanged) -> None:
    """Make another configuration the target; what differs is restarted by and by."""
    state, spec = draft.state, event.spec
    target = configuration_id(spec)
    if target == configuration_id(state.spec):
        _note_refusal(draft, "")
        draft.reasons.append("the configuration is the target already")
        return
    why = refusal(state, spec)
    _note_refusal(draft, why)
    if why:
        draft.reasons.append(f"the configuration is not changed: {why}")
        return
    differing = [
        f.name for f in fields(ServiceSpec) if getattr(spec, f.name) != getattr(state.spec, f.name)
    ]
    before = configuration_id(state.spec)
    former = still_of_use({**state.former_options, before: state.spec}, state.views())
    draft.state = replace(
        draft.state,
        spec=spec,
        former_options=former,
        configurations=remembered((*state.configurations, before, target), former),
        controls=update_order.reconfigured(state.controls, spec),
    )
    # What did not fit before may fit now: look again, also at what was declined.
    draft.ask_anew()
    for gang in draft.gangs():
        _follow(gang)
    draft.reasons.append(f"configuration {target} is the target now: {', '.join(differing)} differ")


def remembered(known: Iterable[str], in_use: Collection[str]) -> tuple[str, ...]:
    """Return the configurations that stay in the store, the newest last."""
    newest_last = tuple(dict.fromkeys(reversed(tuple(known))))[::-1]
    newest = newest_last[-CONFIGURATIONS_KEPT:]
    return tuple(key for key in newest_last if key in newest or key in in_use)


def _follow(gang: GangDraft) -> None:
    """Take a gang over to the new options: its members may have changed."""
    gang.look_again()
    known, roster = gang.job.membership, Roster.of(gang.spec, gang=gang.name)
    membership = Membership(
        absent=tuple(n for n in known.absent if n in roster.wanted),
        joining=tuple(n for n in known.joining if n in roster.wanted),
    )
    gang.job = replace(gang.job, membership=membership)
    gang.follow(roster.without(membership.absent))
    planned_changes.take_along(gang)


def _note_refusal(draft: Draft, why: str) -> None:
    told = replace(draft.state.told, refused_configuration=why)
    draft.state = replace(draft.state, told=told)


_REQUESTS: dict[type, Callable[[Draft, Any], None]] = {
    events.StopRequested: stop,
    events.PlanCommand: control,
    events.PodCommand: control,
    events.ConfigurationChanged: change_configuration,
    events.UninstallRequested: uninstall.request,
    events.ReleaseRequested: release,
}
