"""Which tasks are to go over to a changed configuration, and when.

Asked by ``core.restarts.planned_changes`` (which task to restart next), by the plan views and by
``core.operator.plan_control``. A task is outdated while its container was launched with other
options than the target's (``core.spec.launched_with``). One that fails or moves meanwhile is
launched with the target's, unless it is kept from them (``core.restarts.launch_options``). Pure.
"""

from __future__ import annotations

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import DEPLOY, UPDATE, Controls, step_key, step_name
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.spec.service_spec import (
    ServiceSpec,
    TaskRole,
    UpdateStrategy,
    name_in_gang,
    split_task_name,
)


def outdated(view: GangView) -> tuple[str, ...]:
    """Return the live tasks whose container is not the target configuration's, in start order.

    A record without a fingerprint says nothing, and is taken for up to date. Nothing is outdated
    once the job is over.
    """
    return () if view.job.is_over else outdated_for(view, view.spec)


def outdated_for(view: GangView, spec: ServiceSpec) -> tuple[str, ...]:
    """Return the live tasks that would be outdated if ``spec`` were the target."""
    stale = _stale_roles(view, spec)
    if not stale:
        return ()
    live = view.tasks.having(Fact.LIVE)
    return tuple(
        name
        for role in spec.roles_in_start_order
        if role.role in stale
        for name in view.roster.names_of(role)
        if name in live and view.tasks[name].fingerprint not in ("", stale[role.role])
    )


def _stale_roles(view: GangView, spec: ServiceSpec) -> dict[TaskRole, str]:
    """Return the roles of which some live task has other options, with their fingerprint now."""
    targets = {role.role: spec.fingerprints[role.role] for role in spec.roles_in_start_order}
    return {
        role: targets[role]
        for role, launched in view.tasks.launched_with
        if role in targets and launched not in ("", targets[role])
    }


def due(view: GangView) -> tuple[str, ...]:
    """Return the outdated tasks that are to get a new container now.

    Not those that the operator holds back or has forced complete. Parallel: all of them. Serial:
    one, when everything runs. Canary: one; the others once it was approved.
    """
    waiting = tuple(name for name in outdated(view) if not is_left_out(view.controls, name))
    match view.spec.update_strategy:
        case UpdateStrategy.PARALLEL:
            return waiting
        case UpdateStrategy.SERIAL:
            return waiting[:1] if _everything_runs(view) else ()
        case UpdateStrategy.CANARY:
            if is_approved(view):
                return waiting
            return () if canary_is_out(view) else waiting[:1]


def is_left_out(controls: Controls, name: str) -> bool:
    """Say whether the operator keeps this task at its old configuration."""
    if not controls.paused and not controls.completed:
        return False
    role = str(split_task_name(name)[0])
    return (
        controls.holds(UPDATE, role)
        or step_key(UPDATE, role, step_name(name)) in controls.completed
    )


def is_kept_back(view: GangView, name: str) -> bool:
    """Say whether this task would be launched with its old options, had it to be launched now.

    Not when it is on its way to the new ones already.
    """
    canary = view.spec.update_strategy is UpdateStrategy.CANARY
    ahead = canary and canary_is_out(view) and not is_approved(view)
    return name not in view.job.update.updating and (ahead or is_left_out(view.controls, name))


def come_back_outdated(view: GangView) -> tuple[str, ...]:
    """Return the tasks without a container that will have their old options again."""
    if view.job.verdict is not None:
        return ()
    ended = view.tasks.having(Fact.ENDED)
    return tuple(
        name
        for role in view.spec.roles_in_start_order
        for name in view.roster.names_of(role)
        if name in ended
        and view.tasks[name].fingerprint not in ("", view.spec.fingerprints[role.role])
        and is_kept_back(view, name)
    )


def is_approved(view: GangView) -> bool:
    """Say whether the tasks after the canary may go over."""
    approved = view.controls.approved
    return bool(approved) and approved == configuration_id(view.service.spec)


def canary_is_out(view: GangView) -> bool:
    """Say whether one task was sent ahead to the target configuration."""
    canary = view.job.update.canary
    return bool(canary) and canary == configuration_id(view.service.spec)


def waits_for_approval(view: GangView) -> bool:
    """Say whether a canary went over, and the others wait for the operator."""
    if view.spec.update_strategy is not UpdateStrategy.CANARY or not outdated(view):
        return False
    return canary_is_out(view) and not is_approved(view)


def _everything_runs(view: GangView) -> bool:
    return view.job.phase is JobPhase.RUNNING and not view.tasks.having(Fact.COMING_UP)


def _of_unwanted(key: str, wanted: frozenset[str]) -> bool:
    plan, _, step = key.split("/", 2)
    return plan == DEPLOY and name_in_gang(step.partition(":")[0]) not in wanted


def reconfigured(controls: Controls, spec: ServiceSpec) -> Controls:
    """Return the controls for when ``spec`` becomes the target. Called for ConfigurationChanged.

    What was asked of an earlier update ends with it: its pauses, its approval, what was forced
    complete in it. What concerns tasks that are not wanted any more is dropped.
    """
    wanted = spec.wanted_names
    return Controls(
        paused=tuple(
            key for key in controls.paused if key != UPDATE and not key.startswith(f"{UPDATE}/")
        ),
        completed=tuple(
            key
            for key in controls.completed
            if not key.startswith(f"{UPDATE}/") and not _of_unwanted(key, wanted)
        ),
        paused_tasks=tuple(name for name in controls.paused_tasks if name_in_gang(name) in wanted),
    )
