"""Which tasks are to go over to a changed configuration, and when.

Asked by ``core.recovery.planned_changes`` (whom to restart next), by the plan views and by
``core.operator.plan_control``. A task is outdated while its container was launched with other
options than the target's (``core.cluster.fingerprint``). One that fails or moves meanwhile is
launched with the target's, unless it is kept from them (``core.cluster.launch_options``). Pure.
"""

from __future__ import annotations

from dcos_tensorflow.core.cluster.fingerprint import fingerprint
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState, configuration_id
from dcos_tensorflow.core.model.spec import ServiceSpec, UpdateStrategy
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import (
    DEPLOY,
    UPDATE,
    names_of,
    roles_in_start_order,
    step_key,
    step_name,
)

_ON_THE_WAY = frozenset({TaskState.LAUNCHING, TaskState.STAGING, TaskState.STARTING})


def outdated(state: ServiceState) -> tuple[str, ...]:
    """Return the live tasks whose container is not the target configuration's, in start order.

    A record without a fingerprint says nothing, and is taken for up to date. Nothing is outdated
    once the job is over.
    """
    if state.job.verdict is not None or state.job.phase is JobPhase.FINISHING:
        return ()
    return outdated_for(state, state.spec)


def outdated_for(state: ServiceState, spec: ServiceSpec) -> tuple[str, ...]:
    """Return the live tasks that would be outdated if ``spec`` were the target."""
    found: list[str] = []
    for role in roles_in_start_order(spec):
        target = fingerprint(spec, role.role)
        for name in names_of(role):
            record = state.tasks.get(name)
            if record is None or record.terminal or record.fingerprint in ("", target):
                continue
            found.append(name)
    return tuple(found)


def due(state: ServiceState) -> tuple[str, ...]:
    """Return the outdated tasks that are to get a new container now.

    Not those that the operator holds back or has forced complete. Parallel: all of them. Serial:
    one, when everything runs. Canary: one; the others once it was approved.
    """
    waiting = tuple(name for name in outdated(state) if not is_held(state, name))
    match state.spec.update_strategy:
        case UpdateStrategy.PARALLEL:
            return waiting
        case UpdateStrategy.SERIAL:
            return waiting[:1] if _everything_runs(state) else ()
        case UpdateStrategy.CANARY:
            if is_approved(state):
                return waiting
            return () if canary_is_out(state) else waiting[:1]


def is_held(state: ServiceState, name: str) -> bool:
    """Say whether the operator keeps this task at its old configuration."""
    role = name.rpartition("-")[0]
    controls = state.controls
    return (
        controls.holds(UPDATE, role)
        or step_key(UPDATE, role, step_name(name)) in controls.completed
    )


def is_kept_back(state: ServiceState, name: str) -> bool:
    """Say whether this task would be launched with its old options, had it to be launched now.

    Not when it is on its way to the new ones already.
    """
    canary = state.spec.update_strategy is UpdateStrategy.CANARY
    ahead = canary and canary_is_out(state) and not is_approved(state)
    return name not in state.job.updating and (ahead or is_held(state, name))


def come_back_outdated(state: ServiceState) -> tuple[str, ...]:
    """Return the tasks without a container that will have their old options again."""
    if state.job.verdict is not None:
        return ()
    return tuple(
        name
        for role in roles_in_start_order(state.spec)
        for name in names_of(role)
        if (record := state.tasks.get(name)) is not None
        and record.terminal
        and record.fingerprint not in ("", fingerprint(state.spec, role.role))
        and is_kept_back(state, name)
    )


def is_approved(state: ServiceState) -> bool:
    """Say whether the tasks after the canary may go over."""
    approved = state.controls.approved
    return bool(approved) and approved == configuration_id(state.spec)


def canary_is_out(state: ServiceState) -> bool:
    """Say whether one task was sent ahead to the target configuration."""
    return bool(state.job.canary) and state.job.canary == configuration_id(state.spec)


def waits_for_approval(state: ServiceState) -> bool:
    """Say whether a canary went over, and the others wait for the operator."""
    if state.spec.update_strategy is not UpdateStrategy.CANARY or not outdated(state):
        return False
    return canary_is_out(state) and not is_approved(state)


def _everything_runs(state: ServiceState) -> bool:
    return state.job.phase is JobPhase.RUNNING and not any(
        record.state in _ON_THE_WAY for record in state.live_tasks
    )


def _of_unwanted(key: str, wanted: frozenset[str]) -> bool:
    plan, _, step = key.split("/", 2)
    return plan == DEPLOY and step.partition(":")[0] not in wanted


def reconfigured(state: ServiceState, spec: ServiceSpec) -> Controls:
    """Return the controls for when ``spec`` becomes the target. Called for ConfigurationChanged.

    What was asked of an earlier update ends with it: its pauses, its approval, what was forced
    complete in it. What concerns tasks that are not wanted any more is dropped.
    """
    controls, wanted = state.controls, frozenset(spec.task_names())
    return Controls(
        paused=tuple(
            key for key in controls.paused if key != UPDATE and not key.startswith(f"{UPDATE}/")
        ),
        completed=tuple(
            key
            for key in controls.completed
            if not key.startswith(f"{UPDATE}/") and not _of_unwanted(key, wanted)
        ),
        paused_tasks=tuple(name for name in controls.paused_tasks if name in wanted),
    )
