"""The active half of a step, part two: what is wanted, and what becomes of each offer.

Called by ``core.service.step`` after ``core.advance``. A gang is placed all or none; offers that
cannot help go back at once with a long filter; none is held longer than ``gang.hold_seconds``;
when nothing is wanted the master is told (rule 6). Every misfit keeps its reason (rule 7).
"""

from __future__ import annotations

from collections.abc import Sequence

from dcos_tensorflow.core.actions import Revive, Suppress
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.gang_launch import SOON_REFUSE_SECONDS, launch
from dcos_tensorflow.core.job import JobPhase
from dcos_tensorflow.core.offer_return import decline
from dcos_tensorflow.core.placement import (
    PlacedTask,
    Placement,
    TaskRequest,
    place,
)
from dcos_tensorflow.core.reconciliation import doubt
from dcos_tensorflow.core.recovery import PORT_TAKEN, spread
from dcos_tensorflow.core.spec import (
    GANG_ROLES,
    Addressing,
    RoleSpec,
)
from dcos_tensorflow.core.task import TaskState

#: Seconds. Nothing is wanted / this offer cannot help.
IDLE_REFUSE_SECONDS = 3600.0
USELESS_REFUSE_SECONDS = 300.0
#: REVIVE drops every filter of the role: not more often than this.
REVIVE_SECONDS = 5.0
#: gRPC (or TensorBoard) first, the task runner last.
PORTS_PER_TASK = 2

#: Phases in which nothing is wanted now, but will be in seconds.
_SOON = frozenset({JobPhase.STOPPING, JobPhase.BACKING_OFF})


def use_offers(draft: Draft) -> None:
    """Decide about every offer in hand."""
    if not draft.state.registered:
        return
    gang = _wanted_gang(draft)
    sidecars = _wanted_sidecars(draft, with_gang=bool(gang))
    if not gang and not sidecars:
        _want_nothing(draft)
        return
    _ask_for_offers(draft)
    if draft.state.offers and not (gang and _old_attempts_may_live(draft)):
        _consider(draft, gang, sidecars)
    _hold_no_longer(draft, bool(gang))


def _request(draft: Draft, role: RoleSpec, index: int) -> TaskRequest:
    spec = draft.state.spec
    by_name = spec.addressing is Addressing.DNS and role.role in GANG_ROLES
    name = f"{role.role}-{index}"
    was_taken = any(i.kind == PORT_TAKEN and i.task == name for i in draft.job.incidents)
    return TaskRequest(
        name=name,
        role=role.role,
        resources=role.resources,
        port_count=PORTS_PER_TASK,
        preferred_port=None if was_taken else role.port or None,
        required_port=role.port if by_name else None,
        constraints=role.constraints,
        region=spec.region,
    )


def _wanted_gang(draft: Draft) -> tuple[TaskRequest, ...]:
    """Return requests for the whole gang, or nothing while any of it may still run."""
    if draft.job.phase is not JobPhase.PLACING:
        return ()
    alive = [
        r
        for r in draft.state.live_tasks
        if r.role in GANG_ROLES and r.state is not TaskState.UNREACHABLE
    ]
    if alive:
        return ()
    return tuple(
        _request(draft, role, index)
        for role in draft.state.spec.roles
        if role.role in GANG_ROLES
        for index in range(role.count)
    )


def _old_attempts_may_live(draft: Draft) -> bool:
    """Say whether an attempt that was given up may run on an agent that is back.

    An agent that makes offers is reachable. What we left behind on it is asked about and killed
    before the same task starts anywhere (rule 5). So is what the master still owes an answer about.
    """
    state = draft.state
    if state.strays:
        return True
    back = {offer.agent_id for offer in state.offers.values()}
    given_up = {r.task_id: r.agent_id for r in state.live_tasks if r.state is TaskState.UNREACHABLE}
    given_up |= dict(state.abandoned)
    doubtful = frozenset(task_id for task_id, agent_id in given_up.items() if agent_id in back)
    if doubtful:
        doubt(draft, doubtful)
    return bool(doubtful) or not given_up.keys().isdisjoint(state.reconciliation.waiting)


def _wanted_sidecars(draft: Draft, *, with_gang: bool) -> tuple[TaskRequest, ...]:
    """Return requests for sidecars: beside a gang that is placed now, or that runs."""
    if not with_gang and draft.job.phase not in (JobPhase.STARTING, JobPhase.RUNNING):
        return ()
    return tuple(
        _request(draft, role, index)
        for role in draft.state.spec.roles
        if role.role not in GANG_ROLES
        for index in range(role.count)
        if _sidecar_is_due(draft, f"{role.role}-{index}")
    )


def _sidecar_is_due(draft: Draft, name: str) -> bool:
    record = draft.state.tasks.get(name)
    if record is None:
        return True
    retry = draft.state.spec.retry
    if not record.terminal or record.state is TaskState.FINISHED:
        return False
    if record.failures >= retry.limit:
        return False
    wait = retry.initial_backoff_seconds * retry.backoff_factor**record.failures
    return draft.now >= record.changed_at + min(wait, retry.max_backoff_seconds)


def _sidecar_is_pending(draft: Draft) -> bool:
    limit = draft.state.spec.retry.limit
    return draft.job.phase in (JobPhase.STARTING, JobPhase.RUNNING) and any(
        r.terminal
        and r.state is not TaskState.FINISHED
        and r.role not in GANG_ROLES
        and r.failures < limit
        for r in draft.state.tasks.values()
    )


def _want_nothing(draft: Draft) -> None:
    stopping = draft.job.phase is JobPhase.PLACING or draft.job.phase in _SOON
    soon = stopping or _sidecar_is_pending(draft)
    seconds = SOON_REFUSE_SECONDS if soon else IDLE_REFUSE_SECONDS
    if draft.state.misfits or draft.state.gang_since:
        draft.set(misfits=(), gang_since=0.0)
    decline(draft, tuple(draft.state.offers), seconds, "nothing is wanted now")
    if not soon and draft.state.suppressed is not True:
        draft.set(suppressed=True)
        draft.act(Suppress((draft.state.spec.mesos_role,)), "nothing is wanted: no more offers")


def _ask_for_offers(draft: Draft) -> None:
    if draft.state.suppressed is False:
        return
    if draft.now - draft.state.revived_at < REVIVE_SECONDS:
        return
    draft.set(suppressed=False, revived_at=draft.now)
    draft.act(Revive((draft.state.spec.mesos_role,)), "asking for offers")


def _consider(
    draft: Draft, gang: tuple[TaskRequest, ...], sidecars: tuple[TaskRequest, ...]
) -> None:
    key = (draft.state.offers_version, tuple(r.name for r in (*gang, *sidecars)))
    if draft.state.considered != key:
        offers = tuple(draft.state.offers.values())
        placed = _placed(draft, gang)
        salt = _port_salt(draft)
        result = place((*gang, *sidecars), offers, placed, salt=salt)
        misfits = result.misfits
        if gang and sidecars and not result.complete:
            result = place(gang, offers, placed, salt=salt)
        if gang and not result.complete:
            _keep_waiting(draft, result, key)
        else:
            launch(draft, result)
            # A sidecar without a place does not hold up the gang, but says why it waits.
            draft.set(misfits=misfits)


def _port_salt(draft: Draft) -> str:
    """Return what spreads our choice of ports: the same, until one turned out to be taken.

    It differs from instance to instance: clusters that share a machine do not know of each other.
    """
    clashes = [i for i in draft.job.incidents if i.kind == PORT_TAKEN]
    again = f"/{draft.job.attempt}" if clashes else ""
    return f"{draft.state.instance}{again}"


def _placed(draft: Draft, gang: Sequence[TaskRequest]) -> tuple[PlacedTask, ...]:
    """Return what runs already: placement constraints count it."""
    wanted = {request.name for request in gang}
    return tuple(
        PlacedTask(name=r.name, role=r.role, agent_id=r.agent_id, hostname=r.hostname)
        for r in draft.state.live_tasks
        if r.name not in wanted
    )


def _keep_waiting(draft: Draft, result: Placement, key: tuple[int, tuple[str, ...]]) -> None:
    """Hold what helps, hand back what does not, and remember why."""
    first = result.misfits[0].reason if result.misfits else "no offer fits"
    more = f" (and {len(result.misfits) - 1} more tasks wait)" if len(result.misfits) > 1 else ""
    if first + more != draft.job.why:
        draft.set_job(why=first + more)
    draft.set(misfits=result.misfits)
    draft.reasons.append(first + more)
    by_reason: dict[str, list[str]] = {}
    for offer_id, reason in result.useless_offers.items():
        by_reason.setdefault(reason, []).append(offer_id)
    for reason, offer_ids in by_reason.items():
        decline(draft, tuple(offer_ids), USELESS_REFUSE_SECONDS, reason)
    # What was declined changes nothing about what was considered.
    draft.set(considered=(draft.state.offers_version, key[1]))


def _hold_no_longer(draft: Draft, gang: bool) -> None:
    """Hand every held offer back once the hold has lasted long enough."""
    state = draft.state
    if not state.offers:
        if state.gang_since:
            draft.set(gang_since=0.0)
        return
    if not gang:
        decline(draft, tuple(state.offers), SOON_REFUSE_SECONDS, "nothing fits here now")
        return
    since = state.gang_since or min(o.received_at for o in state.offers.values())
    if draft.now - since < state.spec.gang.hold_seconds:
        draft.set(gang_since=since)
        return
    rules = state.spec.gang
    wait = min(rules.retry_seconds * 2 ** min(state.gang_rounds, 16), rules.max_retry_seconds)
    seconds = wait * spread(f"{state.instance}/{state.gang_rounds}")
    why = f"the gang was not complete within {rules.hold_seconds:g} s; others may use these"
    decline(draft, tuple(state.offers), seconds, why)
    draft.set(gang_since=0.0, gang_rounds=state.gang_rounds + 1)
