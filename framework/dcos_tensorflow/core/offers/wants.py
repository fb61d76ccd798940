"""The tasks that a gang wants to place: members, sidecars that follow it, members that join again.

Asked by ``core.offers.desk`` once a step. Nothing is decided here about an offer. When a
member waits too long, the gang goes on without it, or gives its places back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures.causes import INVALID_OFFERS_REASON
from dcos_tensorflow.core.model.controls import DEPLOY, RECOVERY, UPDATE
from dcos_tensorflow.core.model.gang import Placing
from dcos_tensorflow.core.model.job import JobPhase, Membership
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.offers.volume_places import bound, found_taken
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.restarts import planned_changes, restarts, sidecars
from dcos_tensorflow.core.restarts.gang_queries import (
    cluster_addresses,
    contained,
    has_container,
    is_idle,
    is_quiet,
    leaving,
    may_return,
    missing,
    stays,
    strategy_of,
)
from dcos_tensorflow.core.restarts.launch_options import options_of, preferred_port
from dcos_tensorflow.core.restarts.membership import can_do_without, joins_alone, members_to_tell
from dcos_tensorflow.core.spec.service_spec import (
    GANG_ROLES,
    Addressing,
    ConstraintOperator,
    PlacementConstraint,
    Strategy,
    split_task_name,
)
from dcos_tensorflow.records import dataclass

#: gRPC (or TensorBoard) first, the task runner last.
PORTS_PER_TASK = 2
#: Reasons of an end after which the agent makes no offers any more.
_LEFT_BEHIND = frozenset({"REASON_AGENT_DRAINING", "REASON_SLAVE_DRAINING"})
#: A task is wanted at its old address for so long (seconds); its offer comes with the next
#: allocation.
KEEP_PLACE_SECONDS = 6.0


@dataclass(frozen=True)
class Wants:
    """What one gang wants now."""

    #: Members: all of them or none are placed.
    members: tuple[TaskRequest, ...] = ()
    #: Sidecars, and members that the job goes on without: each takes what it gets.
    others: tuple[TaskRequest, ...] = ()
    #: Members that train, on machines which are taken back: they move when all have another place.
    ahead: tuple[TaskRequest, ...] = ()
    #: Some member is wanted at its old place, and is content with another one in a moment.
    picky: bool = False

    def __bool__(self) -> bool:
        return bool(self.members or self.others or self.ahead)

    @property
    def every(self) -> tuple[TaskRequest, ...]:
        """Return all that is wanted."""
        return (*self.members, *self.others)


_NOTHING = Wants()


def wants(gang: GangDraft) -> Wants:
    """Return what a gang wants now."""
    lost = _lost_members(gang)
    if lost and _waited_too_long(gang, lost):
        lost = _lost_members(gang)
    others = (*_wanted_sidecars(gang, with_gang=bool(lost)), *_wanted_again(gang))
    ahead = planned_changes.members_that_move(gang)
    if not lost and not others and not ahead:
        return _NOTHING
    terms = _Terms.of(gang)
    picky = any(terms.keeps_its_place(gang.tasks.get(name)) for name in lost)
    requests = terms.requests
    return Wants(requests(lost), requests(others), requests(ahead), picky)


@dataclass(frozen=True)
class _Terms:
    gang: GangDraft
    #: Tasks whose ports turned out to be taken.
    taken: frozenset[str]
    #: Agents that are passed over.
    avoided: frozenset[str]
    #: Whether tasks are wanted at their old addresses now: a move would cost more than a wait.
    at_old_places: bool

    @classmethod
    def of(cls, gang: GangDraft) -> _Terms:
        view = gang.view
        # Sessions never find a peer that has moved, and a ParameterServerStrategy chief would have
        # to restart to find it; MultiWorkerMirrored members all restart anyway. A container with an
        # address of its own has another one after each launch.
        costly = strategy_of(view) in (Strategy.PARAMETER_SERVER, Strategy.BETWEEN_GRAPH)
        early = gang.now - view.job.phase_since < KEEP_PLACE_SECONDS
        old = costly and early and not view.spec.has_own_addresses()
        return cls(
            gang,
            frozenset(found_taken(view)),
            avoidance.agents(gang.service),
            old and len(missing(view)) < len(view.roster),
        )

    def requests(self, names: Iterable[str]) -> tuple[TaskRequest, ...]:
        return tuple(self._request(name) for name in names)

    def keeps_its_place(self, before: TaskRecord | None) -> bool:
        if before is None or not self.at_old_places:
            return False
        if not before.role.is_in_gang or before.kill_reason or not before.terminal:
            return False
        if before.reason in _LEFT_BEHIND or before.agent_id in self.avoided:
            return False
        return before.state is not TaskState.LOST or before.reason == INVALID_OFFERS_REASON

    def _request(self, name: str) -> TaskRequest:
        view = self.gang.view
        spec = options_of(view, name)
        task_role, _ = split_task_name(name)
        role = spec.role(task_role)
        if role is None:
            raise AssertionError(f"{name} is not wanted and cannot be placed")
        was_taken = name in self.taken
        before = view.tasks.get(name)
        preferred = preferred_port(view, name)
        own = spec.has_own_addresses()
        by_name = not own and spec.addressing is Addressing.DNS and task_role.is_in_gang
        home = view.service.subscription.master_region
        request = TaskRequest(
            name=name,
            role=task_role,
            resources=role.resources,
            port_count=0 if own else PORTS_PER_TASK,
            preferred_port=None if was_taken or own else preferred or None,
            required_port=role.port if by_name else None,
            constraints=role.constraints,
            region=spec.region or ("" if role.names_region() else home),
        )
        if before is not None and not was_taken and not by_name and self.keeps_its_place(before):
            same_host = PlacementConstraint("hostname", ConstraintOperator.IS, before.hostname)
            request = replace(
                request, required_port=before.ports[0], constraints=(*role.constraints, same_host)
            )
        return bound(view, request, role)


def _lost_members(gang: GangDraft) -> tuple[str, ...]:
    """Return the members that have no container and may be placed now."""
    view = gang.view
    if view.job.phase is not JobPhase.PLACING:
        return ()
    plan = RECOVERY if view.job.deployed else DEPLOY
    asked_for = view.job.deployed and view.job.restart.planned
    if not asked_for and any(view.controls.holds(plan, str(role)) for role in GANG_ROLES):
        return ()
    lost = missing(view)
    if is_quiet(view) and (old := leaving(view)):
        gang.block(f"no task is placed before {listed([r.name for r in old])} left")
        return ()
    if any(may_return(view, view.tasks.get(name), gang.now) for name in lost):
        return ()
    return lost


def _waited_too_long(gang: GangDraft, wanted: Sequence[str]) -> bool:
    """Go on with fewer where that is allowed, or give the places of the others back."""
    view, placing = gang.view, gang.placing
    forced = [name for name in wanted if view.controls.forced(name)]
    if forced and can_do_without(view, forced):
        _go_without(gang, forced, "as it was asked to")
        return True
    if gang.service.waited(view.job.phase_since) < view.spec.gang.wait_seconds:
        return False
    lost = [misfit.task for misfit in placing.misfits] or list(wanted)
    names = listed(lost)
    if can_do_without(view, lost):
        _go_without(gang, lost, "until there is room")
        return True
    holding = contained(view, view.roster.names)
    if not holding or not is_idle(view):
        return False
    gang.restart = replace(gang.restart, replacing=tuple(r.name for r in holding))
    why = f"no place for {names} within {view.spec.gang.wait_seconds:g} s: the whole gang waits"
    # Not those that have finished, where these need no peers: they are not run again.
    restarts.stop(gang, [*(record.name for record in holding), *wanted], why, planned=False)
    return True


def _go_without(gang: GangDraft, lost: Sequence[str], how_long: str) -> None:
    """Take members out of the gang; those that must know restart when all others are there."""
    why = f"the job goes on without {listed(lost)} {how_long}"
    known = gang.job.membership
    gang.set_membership(Membership((*known.absent, *lost), known.joining))
    gang.explain(why)
    gang.placing = Placing(held_since=gang.placing.held_since, rounds=gang.placing.rounds)
    gang.say(why)
    view = gang.view
    if not missing(view) and view.epoch is not None:
        told = members_to_tell(view, view.epoch.addresses, cluster_addresses(view))
        restarts.stop(gang, told, why, planned=False)


def _wanted_again(gang: GangDraft) -> tuple[str, ...]:
    """Return members that the job goes on without: not soon where joining costs a restart."""
    job, controls = gang.job, gang.view.controls
    absent, joining = job.membership.absent, job.membership.joining
    if job.phase is not JobPhase.RUNNING or not absent:
        return ()
    grows = gang.now - job.phase_since >= gang.spec.gang.grow_seconds
    return tuple(
        name
        for name in absent
        if (grows or name in joining or joins_alone(gang.view, name))
        and not controls.holds(UPDATE, str(split_task_name(name)[0]))
        and not controls.forced(name)
        and not _may_still_run(gang, name)
    )


def _may_still_run(gang: GangDraft, name: str) -> bool:
    """Say whether the attempt before has not ended: one that left may be stopping yet."""
    record = gang.tasks.get(name)
    return has_container(record) or may_return(gang.view, record, gang.now)


def _wanted_sidecars(gang: GangDraft, *, with_gang: bool) -> tuple[str, ...]:
    """Return sidecars: beside a gang that is placed now, or that runs.

    And those that outlive the job, when it is done.
    """
    job, epoch = gang.job, gang.epoch
    # Beside a gang whose addresses are not known yet, a sidecar could not be told them.
    first = with_gang and epoch is None and not addresses.are_learned(gang.spec)
    is_over = job.phase is JobPhase.DONE and epoch is not None
    if not first and not is_over and job.phase not in (JobPhase.STARTING, JobPhase.RUNNING):
        return ()
    due = sidecars.due_names(gang)
    return tuple(name for name in due if not is_over or stays(gang.view, name))
