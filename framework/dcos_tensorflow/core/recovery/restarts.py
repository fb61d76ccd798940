"""The way of a restart: stop, wait, find containers, stage, stop who else must know, start.

Called by ``core.advance``; ``core.recovery.incidents`` and ``core.recovery.planned_changes`` begin
one. Whoever has a container keeps it: its runner stops the process and starts it again. Nobody of a
restart set starts before all of it has stopped, so that no new process meets an old one of a peer.
Members that are not in the set train on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core.cluster import orders
from dcos_tensorflow.core.cluster.cluster_spec import members_of
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import GANG_ROLES
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, parse_task_id
from dcos_tensorflow.core.recovery.members import (
    cluster_addresses,
    decider_of,
    has_container,
    is_held,
    is_paused,
    is_quiet,
    is_started,
    leaving,
    members,
    missing,
    scope,
)

#: A runner that has not stopped its process so long after the grace does not work: its container
#: is given up. Longer than a scheduler needs to find its runners after a restart.
DISOBEYED_SECONDS = 20.0


def stop(draft: Draft, names: Iterable[str], why: str, *, planned: bool) -> None:
    """Begin a restart of these members, or add them to the one under way.

    Once those of an earlier restart were told to start, it is over for them: STARTING.
    """
    under_way = draft.job.phase not in (JobPhase.RUNNING, JobPhase.STARTING)
    concerned = set(names) | (set(draft.job.restarting) if under_way else set())
    draft.enter(
        JobPhase.STOPPING,
        why,
        restarting=tuple(n for n in members_of(draft.state.spec) if n in concerned),
        planned=planned and (draft.job.planned or not under_way),
    )
    # Whoever's start has failed holds nothing back: the order makes it ready at once.
    draft.set(considered=(-1, ()))


def watch_stopping(draft: Draft) -> None:
    """STOPPING: order whoever still trains to stop; go on when nobody does."""
    state = draft.state
    concerned = [r for n in scope(state) if has_container(r := state.tasks.get(n)) and r]
    busy = [r for r in concerned if not is_held(state, r)]
    for record in busy:
        _order_to_stop(draft, record, concerned)
    for record in concerned:
        _give_up_container(draft, record)
    if busy or any(r.name in draft.job.replacing for r in concerned):
        return
    if draft.now < draft.job.restart_at:
        wait = draft.job.restart_at - draft.now
        draft.enter(JobPhase.BACKING_OFF, f"stopped; it starts again in {wait:.1f} s")
    elif _is_held_back(draft):
        draft.enter(JobPhase.BACKING_OFF, _HELD_BACK)
    else:
        _go_on(draft)


def _order_to_stop(draft: Draft, record: TaskRecord, concerned: list[TaskRecord]) -> None:
    """Order one process to stop; when nothing failed, the decider's checkpoint comes first."""
    if record.held:
        if _disobeys(draft, record) and record.name not in draft.job.replacing:
            draft.set_job(replacing=(*draft.job.replacing, record.name))
            why = f"{record.name}'s runner did not stop its process in time"
            draft.reasons.append(f"{why}; its container is given up")
        return
    chief = decider_of(draft.state)
    if draft.job.planned and record.name != chief:
        first = next((r for r in concerned if r.name == chief), None)
        if first is not None and not is_held(draft.state, first):
            return
    order_to_stop(draft, record)


def _disobeys(draft: Draft, record: TaskRecord) -> bool:
    """Say whether a runner should have stopped its process long ago; it is not held yet."""
    limit = orders.grace_seconds(draft.state) + DISOBEYED_SECONDS
    return draft.waited(max(record.ordered_at, draft.job.phase_since)) > limit


def order_to_stop(draft: Draft, record: TaskRecord) -> None:
    """Want the process stopped; the start it is wanted for next is a new one."""
    held = replace(record, start=record.start + 1, held=True, ordered_at=draft.now)
    draft.put(held)
    draft.reasons.append(f"stopping the process of {record.name}")


def _give_up_container(draft: Draft, record: TaskRecord) -> None:
    """Let ``core.advance`` kill a container that is to be replaced, once its process is stopped."""
    record = draft.state.tasks[record.name]
    if record.name not in draft.job.replacing or record.kill_reason:
        return
    overdue = draft.waited(record.ordered_at) > orders.grace_seconds(draft.state) + 1.0
    if is_held(draft.state, record) or (record.held and overdue):
        draft.put(replace(record, kill_reason="it is placed again"))


def watch_backing_off(draft: Draft) -> None:
    """BACKING_OFF: go on when the time has come and nobody holds recovery back."""
    if draft.now < draft.job.restart_at:
        return
    if not _is_held_back(draft):
        _go_on(draft)
    elif draft.job.why != _HELD_BACK:
        draft.set_job(why=_HELD_BACK)
        draft.reasons.append(_HELD_BACK)


_HELD_BACK = "recovery is paused: nothing starts again until it is resumed"


def _is_held_back(draft: Draft) -> bool:
    """Say whether an operator holds the restart after a failure back."""
    recovers = draft.job.deployed and not draft.job.planned
    return recovers and draft.state.controls.holds("recovery")


def _go_on(draft: Draft) -> None:
    lost = missing(draft.state)
    if not lost:
        back = [n for n in scope(draft.state) if not is_held(draft.state, draft.state.tasks[n])]
        if back:
            draft.enter(JobPhase.STOPPING, f"{', '.join(back)} are stopped before anybody starts")
        elif not _old_peers_run(draft.state):
            begin(draft)
        return
    _place(draft, lost)


def _place(draft: Draft, lost: tuple[str, ...]) -> None:
    draft.enter(JobPhase.PLACING, f"{', '.join(lost)} wait for offers")
    # Long filters of earlier declines must not hide what is needed now.
    draft.set(suppressed=None, considered=(-1, ()))


def _is_away(state: ServiceState, name: str) -> bool:
    record = state.tasks.get(name)
    return record is not None and record.state is TaskState.UNREACHABLE


def watch_placing(draft: Draft) -> None:
    """PLACING: left by ``core.offers.launching``, or when whoever was missing has come back."""
    if draft.job.restarting and not missing(draft.state):
        draft.enter(JobPhase.STOPPING, "everybody has a container again")


def watch_staging(draft: Draft) -> None:
    """STAGING: when every new container is ready, stop who else must know, then start all."""
    state = draft.state
    lost = missing(state)
    if lost:
        if any(not _is_away(state, name) for name in lost):
            # Options removed it, and its container with it, and brought it back.
            _place(draft, lost)
        # Who cannot be reached may return: nobody starts without it.
        return
    launched = [r for n in scope(state) if has_container(r := state.tasks.get(n)) and r and r.held]
    busy = [r for r in launched if not is_held(state, r)]
    if not busy:
        _stop_rest_or_begin(draft)
    # Who came back from an agent that was away may still run, and may not obey.
    stubborn = [r for r in busy if r.ordered_at and _disobeys(draft, r)]
    if stubborn:
        draft.enter(JobPhase.STOPPING, draft.job.why)


def _stop_rest_or_begin(draft: Draft) -> None:
    state = draft.state
    rest = [r for n in scope(state) if has_container(r := state.tasks.get(n)) and r and not r.held]
    if rest:
        names = ", ".join(r.name for r in rest)
        draft.enter(JobPhase.STOPPING, f"{names} must know the new cluster and are stopped for it")
        return
    ready = all(is_held(state, r) for n in scope(state) if (r := state.tasks.get(n)))
    if ready and not _old_peers_run(state):
        begin(draft)


def _old_peers_run(state: ServiceState) -> bool:
    """Say whether who leaves, or was given up, has not ended yet; ``core.advance`` kills it."""
    return is_quiet(state) and (bool(leaving(state)) or any(map(_is_of_gang, state.strays)))


def _is_of_gang(task_id: str) -> bool:
    parsed = parse_task_id(task_id)
    return parsed is not None and parsed[1].rpartition("-")[0] in GANG_ROLES


def begin(draft: Draft) -> None:
    """Start everybody of the restart set at the same moment, with the newest ClusterSpec."""
    renew_epoch(draft)
    state = draft.state
    restored = _checkpoint_step(draft)
    starting = []
    for name in scope(state):
        record = state.tasks[name]
        if not has_container(record) or is_paused(state, name):
            continue
        epoch = state.epoch.epoch if state.epoch is not None else record.epoch
        draft.put(replace(record, held=False, ordered_at=draft.now, epoch=epoch))
        starting.append(name)
    known = restored is not None and decider_of(state) in starting
    at = f" from step {restored}" if known else ""
    number = state.epoch.epoch if state.epoch is not None else 0
    draft.enter(
        JobPhase.STARTING,
        f"{', '.join(starting) or 'nobody'} start{at} (epoch {number})",
        restore_step=restored,
        planned=False,
        replacing=(),
    )


def _checkpoint_step(draft: Draft) -> int | None:
    """Return the step that the decider would restore; it is what everybody restores."""
    record = draft.state.tasks.get(decider_of(draft.state))
    report = draft.state.reports.get(record.task_id, {}) if record is not None else {}
    checkpoint = report.get("checkpoint")
    step = checkpoint.get("step") if isinstance(checkpoint, dict) else None
    return step if isinstance(step, int) else None


def renew_epoch(draft: Draft) -> None:
    """Make a new ClusterSpec when an address or the membership differs from the newest one."""
    addresses = cluster_addresses(draft.state)
    epoch = draft.state.epoch
    if epoch is not None and dict(epoch.addresses) == addresses:
        return
    number = epoch.epoch + 1 if epoch is not None else 1
    draft.set(epoch=ClusterSpec(epoch=number, addresses=addresses))
    draft.reasons.append(f"epoch {number}: {len(addresses)} members")


def late(draft: Draft) -> tuple[TaskRecord, ...]:
    """Return the members that should run and do not yet; who is held was told not to."""
    state = draft.state
    return tuple(
        r
        for r in _wanted_to_run(state)
        if r.state is not TaskState.UNREACHABLE and not is_started(state, r)
    )


def out_of_sight(draft: Draft) -> tuple[TaskRecord, ...]:
    """Return the members that became unreachable before they were seen to run.

    They may return without having heard of their start: until then nobody says that all run.
    """
    state = draft.state
    return tuple(
        r
        for r in _wanted_to_run(state)
        if r.state is TaskState.UNREACHABLE
        and not orders.is_started(r, state.reports.get(r.task_id, {}))
    )


def _wanted_to_run(state: ServiceState) -> list[TaskRecord]:
    return [
        r
        for n in members(state)
        if not is_paused(state, n) and (r := state.tasks.get(n)) is not None and not r.held
    ]
