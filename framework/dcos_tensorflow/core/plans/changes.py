"""The plans that follow a job on its way from one state to another: ``recovery`` and ``update``.

``recovery`` has a phase while members are stopped and started again, whatever the cause, with a
step for each that restarts. ``update`` exists while tasks run with other options than the target's,
or while its pause keeps members from joining; until then, and afterwards, there is none.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.job import RESTARTING_PHASES
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import GANG_ROLES, RoleSpec, UpdateStrategy
from dcos_tensorflow.core.plans.deploy import deployed_standing, phase_of, step_of
from dcos_tensorflow.core.plans.elements import (
    RECOVERY,
    UPDATE,
    Plan,
    PlanStrategy,
    Status,
    aggregate,
    names_of,
    roles_in_start_order,
    step_key,
    step_name,
)
from dcos_tensorflow.core.plans.standing import Standing, on_its_way, where
from dcos_tensorflow.core.recovery import members, update_order

_STRATEGIES = {
    UpdateStrategy.PARALLEL: PlanStrategy.PARALLEL,
    UpdateStrategy.SERIAL: PlanStrategy.SERIAL,
    UpdateStrategy.CANARY: PlanStrategy.CANARY,
}


def recovery_plan(state: ServiceState) -> Plan:
    """Return the plan of the restart under way; without phases when nothing restarts."""
    job = state.job
    if not job.deployed or job.phase not in RESTARTING_PHASES:
        return Plan(RECOVERY, PlanStrategy.PARALLEL, Status.COMPLETE)
    concerned = set(members.scope(state))
    steps = tuple(
        step_of(state, RECOVERY, name, _recovering(state, name))
        for role in roles_in_start_order(state.spec)
        if role.role in GANG_ROLES
        for name in names_of(role)
        if name in concerned
    )
    phase = phase_of(state, RECOVERY, f"restart-{job.restarts}", steps)
    return Plan(RECOVERY, PlanStrategy.PARALLEL, phase.status, (phase,))


def _recovering(state: ServiceState, name: str) -> Standing:
    status, message = on_its_way(state, name)
    unplaced = status in (Status.PENDING, Status.PREPARED)
    if unplaced and state.controls.holds(RECOVERY):
        return Status.WAITING, "recovery is paused: nothing starts again until it is resumed"
    return status, message


def is_updating(state: ServiceState) -> bool:
    """Say whether tasks are to go over to the target configuration, or are on their way there."""
    job = state.job
    if update_order.outdated(state) or update_order.come_back_outdated(state):
        return True
    if _membership_waits(state):
        return True
    # Those that go over have no container for a while, and without one they are not outdated.
    replacing = job.planned and bool(job.replacing) and job.phase in RESTARTING_PHASES
    return replacing and job.verdict is None and update_order.canary_is_out(state)


def _membership_waits(state: ServiceState) -> bool:
    """Say whether members would join or leave, were the update not paused.

    Then there is a plan to resume, even where every task runs with the target's options.
    """
    if state.epoch is None or state.job.verdict is not None:
        return False
    wanted = {*members.members(state), *state.job.joining}
    return state.controls.holds(UPDATE) and wanted != set(state.epoch.addresses)


def _joins_later(state: ServiceState, role: RoleSpec, name: str) -> bool:
    """Say whether a member was added to the options that the paused update keeps from joining."""
    if state.epoch is None or role.role not in GANG_ROLES or not state.controls.holds(UPDATE):
        return False
    done_without = set(state.job.absent) - set(state.job.joining)
    return name not in state.epoch.addresses and name not in done_without


def update_plan(state: ServiceState, plan: str = UPDATE) -> Plan:
    """Return the plan by which the tasks go over to the target configuration.

    ``plan`` is the name that it is shown under: users of the SDK's clients look for it in
    ``deploy``.
    """
    strategy = _STRATEGIES[state.spec.update_strategy]
    outdated = frozenset(update_order.outdated(state))
    waits = update_order.waits_for_approval(state)
    phases = tuple(
        phase_of(
            state,
            plan,
            str(role.role),
            tuple(
                step_of(state, plan, name, _updating(state, role, name, outdated, waits))
                for name in names_of(role)
            ),
            strategy,
        )
        for role in roles_in_start_order(state.spec)
    )
    return Plan(plan, strategy, aggregate(phase.status for phase in phases), phases)


def _updating(
    state: ServiceState, role: RoleSpec, name: str, outdated: frozenset[str], waits: bool
) -> Standing:
    if name not in outdated:
        if name in state.job.restarting:
            return on_its_way(state, name)
        if _joins_later(state, role, name):
            return Status.WAITING, "the update is paused: it joins when that is resumed"
        return deployed_standing(state, name)
    record = state.tasks[name]
    if step_key(UPDATE, str(role.role), step_name(name)) in state.controls.completed:
        return Status.COMPLETE, "was forced complete: it stays as it is until the next update"
    if name in state.job.replacing or record.kill_reason:
        return Status.STARTING, f"is being replaced by one with the new options {where(record)}"
    if state.controls.holds(UPDATE, str(role.role)):
        return Status.WAITING, "the update is paused: it stays as it is until that is resumed"
    if waits:
        return Status.WAITING, "the canary runs; the update goes on when it is resumed"
    return Status.PENDING, f"runs with the options before {where(record)}"
