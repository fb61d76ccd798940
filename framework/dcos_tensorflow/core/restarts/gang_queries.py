"""Questions about the members of a gang: which have a container, are down, leave, are to stop.

Asked by every verb of the core; decides nothing and changes nothing. Frequent
questions are answered from the facts of the gang's task table: they cost the changes, not the
number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable

from dcos_tensorflow.core.cluster.rendering import address_of, recovery_strategy
from dcos_tensorflow.core.model.controls import DECOMMISSION
from dcos_tensorflow.core.model.job import RESTARTING_PHASES, STOPPED_PHASES, Outcome
from dcos_tensorflow.core.model.report import checkpoint_step_of, step_of
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.restart_table import Loss, restart_set
from dcos_tensorflow.core.spec.service_spec import Strategy, split_task_name


def strategy_of(view: GangView) -> Strategy:
    """Return the strategy that the job is recovered by."""
    return recovery_strategy(view.spec, view.job.strategy_seen)


def knows_strategy(view: GangView) -> bool:
    """Say whether the strategy is named in the options or was seen in the code: no guess."""
    return view.spec.strategy is not Strategy.AUTO or bool(view.job.strategy_seen)


def restart_set_of(view: GangView, losses: dict[str, Loss]) -> tuple[str, ...]:
    """Return the members that start again when these are lost, in the order of the roster."""
    roster = view.roster
    return restart_set(strategy_of(view), roster.decider, roster.names, losses)


def scope(view: GangView) -> tuple[str, ...]:
    """Return the members that the restart under way concerns; all of them at a first start."""
    concerned = view.job.restart.members
    return view.roster.in_order(concerned) if concerned else view.roster.names


def is_started_again(view: GangView, name: str) -> bool:
    """Say whether the restart under way of a gang that was deployed concerns a member."""
    job = view.job
    return job.deployed and job.phase in RESTARTING_PHASES and job.restart.concerns(name)


def has_container(record: TaskRecord | None) -> bool:
    """Say whether there is a container in which the process can be started again."""
    return record is not None and not record.terminal and record.state is not TaskState.UNREACHABLE


def contained(view: GangView, names: Iterable[str]) -> tuple[TaskRecord, ...]:
    """Return the records of those that have a container, in the order of the roster."""
    return view.tasks.records_of(view.tasks.having(Fact.CONTAINED).intersection(names))


def missing(view: GangView) -> tuple[str, ...]:
    """Return the members of the restart under way that have no container."""
    there = view.tasks.having(Fact.CONTAINED)
    wanted = scope(view)
    if there.issuperset(wanted):
        return ()
    return tuple(name for name in wanted if name not in there)


def may_return(view: GangView, record: TaskRecord | None, now: float) -> bool:
    """Say whether an unreachable task is still waited for before it is replaced."""
    return (
        record is not None
        and record.state is TaskState.UNREACHABLE
        and now < record.changed_at + view.spec.replace_after_seconds
    )


def down(view: GangView, now: float) -> tuple[TaskRecord, ...]:
    """Return the members that should train and cannot, for a reason that calls for a restart."""
    unwell = view.tasks.having(Fact.UNWELL)
    if not unwell:
        return ()
    found = view.tasks.records_of(unwell & view.roster.members)
    return tuple(r for r in found if not may_return(view, r, now))


def paused(view: GangView) -> frozenset[str]:
    """Return the tasks whose process is to stay stopped: paused ones, and their dependents.

    A member that would have to restart with a paused one is held too: it could only fail.
    """
    asked = view.controls.paused_tasks
    if not asked:
        return frozenset()
    losses = {p: Loss.PROCESS for p in asked if split_task_name(p)[0].is_in_gang}
    return frozenset((*asked, *restart_set_of(view, losses)))


def known_step(view: GangView) -> int | None:
    """Return the highest training step that any member has reported; None when none has."""
    steps = (
        step_of(view.report_of(record)) for record in view.tasks.live if record.role.is_in_gang
    )
    return max((step for step in steps if step is not None), default=None)


def newest_checkpoint(view: GangView) -> int | None:
    """Return the step of the newest checkpoint that a member's runner has seen; None for none."""
    records = filter(None, map(view.tasks.get, view.roster.names))
    steps = (checkpoint_step_of(view.report_of(record)) for record in records)
    return max((step for step in steps if step is not None), default=None)


def cluster_addresses(view: GangView) -> dict[str, str]:
    """Return the address of every member that has been placed, as a ClusterSpec names it."""
    found: dict[str, str] = {}
    roles = {role.role: role for role in view.spec.roles if role.count > 0}
    for name in view.roster.names:
        record = view.tasks.get(name)
        role = roles.get(record.role) if record is not None else None
        if record is not None and role is not None:
            learned = view.spec.peer_network
            host, port = record.peer_address if learned else record.address, record.ports[0]
            gang = view.gang.name
            found[name] = address_of(view.spec, role, record.index, host, port, gang=gang)
    return found


def leaving(view: GangView) -> tuple[TaskRecord, ...]:
    """Return tasks with a container that are no members any more, but those an operator keeps."""
    strangers = view.tasks.having(Fact.STRANGER)
    if not strangers:
        return ()
    holds = view.controls.holds
    return tuple(
        r
        for r in view.tasks.records_of(strangers)
        if has_container(r) and (r.name in view.roster.wanted or not holds(DECOMMISSION, r.name))
    )


def is_quiet(view: GangView) -> bool:
    """Say whether no task trains: the decider and all that restart have said that they stopped."""
    if view.job.phase not in STOPPED_PHASES:
        return False
    concerned = {*scope(view), view.roster.decider}
    tasks = view.tasks
    return (tasks.having(Fact.CONTAINED) & concerned) <= tasks.having(Fact.STOPPED)


def stays(view: GangView, name: str) -> bool:
    """Say whether a task of this name is to run on when the job has ended."""
    job, role = view.job, view.spec.role(split_task_name(name)[0])
    stopped = job.verdict is not None and job.verdict.outcome is Outcome.STOPPED
    record = view.tasks.get(name)
    given_up = record is not None and bool(record.kill_reason)
    over = view.service.uninstall.asked or stopped or given_up
    return bool(role and role.outlives_job) and not over


def still_running(view: GangView) -> bool:
    """Say whether a task runs that is to end and whose agent answers."""
    return any(not stays(view, name) for name in view.tasks.having(Fact.CONTAINED))


def is_idle(view: GangView) -> bool:
    """Say whether nothing trains because of the restart under way: its decider is stopped."""
    record = view.tasks.get(view.roster.decider)
    return record is None or not has_container(record) or record.held
