"""The plans that follow a job on its way from one state to another: ``recovery`` and ``update``.

``recovery`` has a phase while members are stopped and started again, whatever the cause, with a
step for each that restarts. ``update`` exists while tasks run with other options than the target's,
and while members that the options have added are not in the gang yet; until then, and afterwards,
there is none.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.controls import RECOVERY, UPDATE, step_key, step_name
from dcos_tensorflow.core.model.job import RESTARTING_PHASES
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.plans import deploy
from dcos_tensorflow.core.plans.deploy import deployed_standing, phase_of, step_of
from dcos_tensorflow.core.plans.elements import Plan, PlanStrategy, Status, aggregate
from dcos_tensorflow.core.plans.standing import Standing, on_its_way, where
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.restarts.gang_queries import is_started_again, scope
from dcos_tensorflow.core.spec.service_spec import RoleSpec, UpdateStrategy

_STRATEGIES = {
    UpdateStrategy.PARALLEL: PlanStrategy.PARALLEL,
    UpdateStrategy.SERIAL: PlanStrategy.SERIAL,
    UpdateStrategy.CANARY: PlanStrategy.CANARY,
}


def recovery_plan(view: GangView) -> Plan:
    """Return the plan of the restart under way; without phases when nothing restarts."""
    job = view.job
    if not job.deployed or job.phase not in RESTARTING_PHASES or deploy.restarts_again(view):
        return Plan(RECOVERY, PlanStrategy.PARALLEL, Status.COMPLETE)
    concerned = set(scope(view))
    steps = tuple(
        step_of(view, RECOVERY, name, _recovering(view, name))
        for role in view.spec.roles_in_start_order
        if role.role.is_in_gang
        for name in view.roster.names_of(role)
        if name in concerned
    )
    phase = phase_of(view, RECOVERY, f"restart-{job.restart.count}", steps)
    return Plan(RECOVERY, PlanStrategy.PARALLEL, phase.status, (phase,))


def _recovering(view: GangView, name: str) -> Standing:
    status, message = on_its_way(view, name)
    unplaced = status in (Status.PENDING, Status.PREPARED)
    if unplaced and view.controls.holds(RECOVERY):
        return Status.WAITING, "recovery is paused: nothing starts again until it is resumed"
    return status, message


def is_updating(view: GangView) -> bool:
    """Say whether tasks are to go over to the target configuration, or are on their way there."""
    job = view.job
    if update_order.outdated(view) or update_order.come_back_outdated(view):
        return True
    if _membership_waits(view):
        return True
    # Those that go over, or join, are not outdated from their launch on, and do not run yet.
    on_the_way = job.restart.plan == UPDATE and job.phase in RESTARTING_PHASES
    return on_the_way and job.verdict is None


def _membership_waits(view: GangView) -> bool:
    """Say whether members are to join; or to leave, were the update not paused.

    Then there is a plan to look at and to pause or resume, even where every task runs with the
    target's options.
    """
    if view.epoch is None or view.job.verdict is not None:
        return False
    known = view.epoch.addresses
    joining = (*view.roster.names, *view.job.membership.joining)
    if any(name not in known and not view.controls.forced(name) for name in joining):
        return True
    wanted = {*joining}
    return view.controls.holds(UPDATE) and any(name not in wanted for name in known)


def update_plan(view: GangView, plan: str = UPDATE) -> Plan:
    """Return the plan by which the tasks go over to the target configuration.

    ``plan`` is the name that it is shown under: users of the SDK's clients look for it in
    ``deploy``.
    """
    strategy = _STRATEGIES[view.spec.update_strategy]
    outdated = frozenset(update_order.outdated(view))
    waits = update_order.waits_for_approval(view)
    phases = tuple(
        phase_of(
            view,
            plan,
            str(role.role),
            tuple(
                step_of(view, plan, name, _updating(view, role, name, outdated, waits))
                for name in view.roster.names_of(role)
            ),
            strategy,
        )
        for role in view.spec.roles_in_start_order
    )
    return Plan(plan, strategy, aggregate(phase.status for phase in phases), phases)


def _updating(
    view: GangView, role: RoleSpec, name: str, outdated: frozenset[str], waits: bool
) -> Standing:
    if name not in outdated:
        if is_started_again(view, name) and name not in view.job.membership.absent:
            return on_its_way(view, name)
        return deployed_standing(view, name)
    record = view.tasks[name]
    if step_key(UPDATE, str(role.role), step_name(name)) in view.controls.completed:
        return Status.COMPLETE, "was forced complete: it stays as it is until the next update"
    if name in view.job.restart.replacing or record.kill_reason:
        return Status.STARTING, f"is being replaced by one with the new options {where(record)}"
    if view.controls.holds(UPDATE, str(role.role)):
        return Status.WAITING, "the update is paused: it stays as it is until that is resumed"
    if waits:
        return Status.WAITING, "the canary runs; the update goes on when it is resumed"
    return Status.PENDING, f"runs with the options before {where(record)}"
