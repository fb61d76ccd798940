"""Questions about the members of a gang: who is wanted, who has a container, who is down.

Asked by every verb of the core; decides nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from dcos_tensorflow.core.cluster import orders
from dcos_tensorflow.core.cluster.cluster_spec import address_of, decider, members_of
from dcos_tensorflow.core.model.job import STOPPED_PHASES, Outcome
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import GANG_ROLES, Strategy, split_task_name
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.recovery.restart_table import Loss, restart_set
from dcos_tensorflow.core.recovery.strategy import recovery_strategy


def strategy_of(state: ServiceState) -> Strategy:
    """Return the strategy that the job is recovered by."""
    return recovery_strategy(state.spec, state.job.strategy_seen)


def members(state: ServiceState) -> tuple[str, ...]:
    """Return the names of the members that the gang is to have now: those done without are not."""
    absent = set(state.job.absent)
    return tuple(name for name in members_of(state.spec) if name not in absent)


def scope(state: ServiceState) -> tuple[str, ...]:
    """Return the members that the restart under way concerns; all of them at a first start."""
    wanted = members(state)
    concerned = set(state.job.restarting)
    if not concerned:
        return wanted
    return tuple(name for name in wanted if name in concerned)


def has_container(record: TaskRecord | None) -> bool:
    """Say whether there is a container in which the process can be started again."""
    return record is not None and not record.terminal and record.state is not TaskState.UNREACHABLE


def missing(state: ServiceState) -> tuple[str, ...]:
    """Return the members of the restart under way that have no container."""
    return tuple(name for name in scope(state) if not has_container(state.tasks.get(name)))


def may_return(state: ServiceState, record: TaskRecord | None, now: float) -> bool:
    """Say whether an unreachable task is still waited for before it is replaced."""
    return (
        record is not None
        and record.state is TaskState.UNREACHABLE
        and now < record.changed_at + state.spec.replace_after_seconds
    )


def is_down(state: ServiceState, record: TaskRecord, now: float) -> bool:
    """Say whether a member that should train cannot, for a reason that calls for a restart."""
    if record.terminal:
        return record.state is not TaskState.FINISHED
    if record.state is TaskState.UNREACHABLE:
        return not may_return(state, record, now)
    return record.process_failed


def is_held(state: ServiceState, record: TaskRecord) -> bool:
    """Say whether the member's runner has said that its process is stopped as ordered."""
    return record.held and orders.is_held(record, state.reports.get(record.task_id, {}))


def is_started(state: ServiceState, record: TaskRecord) -> bool:
    """Say whether the wanted start of a member runs, or is done."""
    if record.state is TaskState.FINISHED:
        return True
    if record.state is not TaskState.RUNNING:
        return False
    if record.start == 1 and not record.ordered_at:
        # It was launched to run at once: that Mesos says RUNNING is all there is to know.
        return True
    return orders.is_started(record, state.reports.get(record.task_id, {}))


def is_paused(state: ServiceState, name: str) -> bool:
    """Say whether this task's process is to stay stopped: it is paused, or cannot do without one.

    Whoever would have to restart with a paused member is held too: it could only fail.
    """
    paused = state.controls.paused_tasks
    if not paused or name in paused:
        return name in paused
    losses = {p: Loss.PROCESS for p in paused if split_task_name(p)[0] in GANG_ROLES}
    return name in restart_set(strategy_of(state), decider_of(state), members(state), losses)


def known_step(state: ServiceState) -> int | None:
    """Return the highest training step that any member has reported; None when none has."""
    steps = [
        step
        for record in state.live_tasks
        if record.role in GANG_ROLES
        and isinstance(progress := state.reports.get(record.task_id, {}).get("progress"), Mapping)
        and isinstance(step := progress.get("step"), int)
    ]
    return max(steps, default=None)


def cluster_addresses(state: ServiceState) -> dict[str, str]:
    """Return the address of every member that has been placed, as a ClusterSpec names it."""
    found: dict[str, str] = {}
    for name in members(state):
        record = state.tasks.get(name)
        role, index = split_task_name(name)
        role_spec = state.spec.role(role)
        if record is not None and role_spec is not None:
            found[name] = address_of(state.spec, role_spec, index, record.address, record.ports[0])
    return found


def decider_of(state: ServiceState) -> str:
    """Return the name of the task that decides about the job's end."""
    return decider(state.spec)


def is_wanted(state: ServiceState, name: str) -> bool:
    """Say whether the options ask for a task of this name at all."""
    role, index = split_task_name(name)
    spec = state.spec.role(role)
    return spec is not None and index < spec.count


def leaving(state: ServiceState) -> tuple[TaskRecord, ...]:
    """Return who has a container and is no member any more, unless an operator keeps it."""
    wanted, holds = members(state), state.controls.holds
    return tuple(
        r
        for r in state.live_tasks
        if r.role in GANG_ROLES
        and r.name not in wanted
        and has_container(r)
        and (is_wanted(state, r.name) or not holds("decommission", r.name))
    )


def is_quiet(state: ServiceState) -> bool:
    """Say whether nobody trains: the decider and all that restart have said that they stopped."""
    if state.job.phase not in STOPPED_PHASES:
        return False
    concerned = (state.tasks.get(name) for name in {*scope(state), decider_of(state)})
    return all(r is None or not has_container(r) or is_held(state, r) for r in concerned)


def stays(state: ServiceState, name: str) -> bool:
    """Say whether a task of this name is to run on when the job has ended."""
    job, role = state.job, state.spec.role(split_task_name(name)[0])
    stopped = job.verdict is not None and job.verdict.outcome is Outcome.STOPPED
    record = state.tasks.get(name)
    given_up = record is not None and bool(record.kill_reason)
    return bool(role and role.outlives_job) and not (job.uninstalling or stopped or given_up)


def is_idle(state: ServiceState) -> bool:
    """Say whether nothing trains because of the restart under way: its decider is stopped."""
    record = state.tasks.get(decider_of(state))
    return record is None or not has_container(record) or record.held
