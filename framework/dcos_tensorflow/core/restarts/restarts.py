"""The way of a restart: stop, wait, find containers, stage, stop others that must know, start.

Called by ``core.advance``; ``core.failures.incidents`` and ``core.restarts.planned_changes`` begin
one. A member that has a container keeps it: its runner stops the process and starts it again.
No task of a restart set starts before all of it has stopped: no new process meets an old one
of a peer. Members that are not in the set train on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dcos_tensorflow.core.cluster.orders import grace_seconds
from dcos_tensorflow.core.cluster.serving import serves
from dcos_tensorflow.core.counted import counted, listed, they
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import own_errors
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import DEPLOY, RECOVERY
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.report import checkpoint_step_of
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, parse_task_id
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.gang_queries import (
    cluster_addresses,
    contained,
    is_quiet,
    leaving,
    missing,
    paused,
    scope,
    strategy_of,
)
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, Strategy, gang_named, name_in_gang
from dcos_tensorflow.core.work import assignment as units

#: A runner that has not stopped its process so long after the grace does not work: its container
#: is given up. Longer than a scheduler needs to find its runners after a restart.
DISOBEYED_SECONDS = 20.0


def stop(gang: GangDraft, names: Iterable[str], why: str, *, planned: bool) -> None:
    """Begin a restart of these members, or add them to the one under way.

    Once those of an earlier restart were told to start, it is over for them: STARTING.
    """
    under_way = gang.job.phase not in (JobPhase.RUNNING, JobPhase.STARTING)
    concerned = units.stopped_with(gang, names)
    concerned |= set(gang.restart.members) if under_way else set()
    gang.restart = replace(
        gang.restart,
        members=tuple(n for n in gang.roster.every if n in concerned),
        planned=planned and (gang.restart.planned or not under_way),
        plan=gang.restart.plan if under_way and planned else "",
    )
    gang.enter(JobPhase.STOPPING, why)
    # A member whose start has failed holds nothing back: the order makes it ready at once.
    gang.look_again()


def watch_stopping(gang: GangDraft) -> None:
    """STOPPING: order the members that still train to stop; go on when none does."""
    view = gang.view
    if own_errors.may_be_of_all(view, gang.now):
        return
    concerned = view.tasks.having(Fact.CONTAINED).intersection(scope(view))
    busy = concerned - view.tasks.having(Fact.STOPPED)
    later = _servers_that_stop_later(view, busy) if gang.restart.planned else frozenset()
    for record in view.tasks.records_of(busy):
        _order_to_stop(gang, record, later)
    replacing = concerned.intersection(gang.restart.replacing)
    for record in gang.tasks.records_of(replacing):
        _give_up_container(gang, record)
    if busy or replacing:
        return
    due_at = gang.restart.due_at
    if gang.now < due_at:
        gang.enter(JobPhase.BACKING_OFF, f"stopped; it starts again in {due_at - gang.now:.1f} s")
    elif held := _held_back(gang) or _idle(gang):
        gang.enter(JobPhase.BACKING_OFF, held)
    else:
        _go_on(gang)


def _servers_that_stop_later(view: GangView, busy: Collection[str]) -> frozenset[str]:
    """Return which of those that still train are not told yet to stop, when nothing has failed.

    The decider goes first, to save; independent tasks each for themselves. Servers go last, and all
    together: the tasks that they serve save through them.
    """
    decider = view.roster.decider
    if decider in busy and strategy_of(view) is not Strategy.INDEPENDENT:
        return frozenset(name for name in busy if name != decider)
    spec, seen = view.spec, view.job.strategy_seen
    serving = frozenset(name for name in busy if serves(spec, seen, name))
    return serving if len(serving) < len(busy) else frozenset()


def _order_to_stop(gang: GangDraft, record: TaskRecord, later: Collection[str]) -> None:
    """Order one process to stop, unless it is to stop ``later`` than others."""
    epoch = gang.epoch
    if epoch is not None and record.name not in epoch.addresses:
        # It was out of reach through a scale-in, and the gang has grown again: no order reaches it.
        _replace(gang, record, "is of an earlier cluster")
        gang.put(replace(record, kill_reason="it is of an earlier cluster"))
        return
    if record.held:
        if _disobeys(gang, record):
            _replace(gang, record, "has a runner that did not stop its process in time")
        return
    if record.name not in later:
        order_to_stop(gang, record)


def _replace(gang: GangDraft, record: TaskRecord, why: str) -> None:
    """Want another container for a member of the restart."""
    if record.name not in gang.restart.replacing:
        gang.restart = replace(gang.restart, replacing=(*gang.restart.replacing, record.name))
        gang.say(f"{record.name} {why}: its container is given up")


def _disobeys(gang: GangDraft, record: TaskRecord) -> bool:
    """Say whether a runner should have stopped its process long ago; it is not held yet."""
    limit = grace_seconds(gang.view, record.name) + DISOBEYED_SECONDS
    return gang.service.waited(max(record.ordered_at, gang.job.phase_since)) > limit


def order_to_stop(gang: GangDraft, record: TaskRecord) -> None:
    """Want the process stopped; the start it is wanted for next is a new one."""
    gang.put(replace(record, start=record.start + 1, held=True, ordered_at=gang.now))
    gang.say(f"stopping the process of {record.name}")


def _give_up_container(gang: GangDraft, record: TaskRecord) -> None:
    """Let ``core.advance`` kill a container that is to be replaced, once its process is stopped."""
    if record.kill_reason:
        return
    grace = grace_seconds(gang.view, record.name)
    overdue = gang.service.waited(record.ordered_at) > grace + 1.0
    if gang.tasks.has(record.name, Fact.STOPPED) or (record.held and overdue):
        gang.put(replace(record, kill_reason="it is placed again"))


def watch_backing_off(gang: GangDraft) -> None:
    """BACKING_OFF: go on when the time has come and no operator holds recovery back."""
    if gang.now < gang.restart.due_at:
        return
    held = _held_back(gang) or _idle(gang)
    if not held:
        _go_on(gang)
    elif gang.job.why != held:
        gang.explain(held)
        gang.say(held)


def _held_back(gang: GangDraft) -> str:
    """Return what of an operator's holds the restart after a failure back; empty for nothing."""
    if gang.restart.planned:
        return ""
    plan = RECOVERY if gang.job.deployed else DEPLOY
    phases = ("",) if gang.job.deployed else tuple(map(str, GANG_ROLES))
    if not any(gang.view.controls.holds(plan, phase) for phase in phases):
        return ""
    what = "recovery" if gang.job.deployed else "the deployment"
    return f"{what} is paused: nothing starts again until it is resumed"


def _idle(gang: GangDraft) -> str:
    """Return why a slot whose containers are all there does not start; empty when it does."""
    return "" if missing(gang.view) or units.take(gang) else "it waits for a unit of work"


def _go_on(gang: GangDraft) -> None:
    view = gang.view
    lost = missing(view)
    if lost:
        _place(gang, lost)
        return
    running = set(scope(view)) - view.tasks.having(Fact.STOPPED)
    if running:
        back = they(gang.roster.in_order(running), "are")
        gang.enter(JobPhase.STOPPING, f"{back} stopped before any task starts")
    elif not _waits_for_old_peers(gang):
        _begin_with_a_unit(gang)


def _place(gang: GangDraft, lost: tuple[str, ...]) -> None:
    gang.enter(JobPhase.PLACING, f"{they(lost, 'wait')} for offers")
    gang.service.ask_anew()
    gang.look_again()


def watch_placing(gang: GangDraft) -> None:
    """PLACING: left by ``core.offers.launching``, or when the missing members have come back."""
    if gang.restart.members and not missing(gang.view):
        gang.enter(JobPhase.STOPPING, "every task has a container again")


def watch_staging(gang: GangDraft) -> None:
    """STAGING: when every new container is ready, stop others that must know, then start all."""
    view = gang.view
    lost = missing(view)
    if lost:
        if not view.tasks.having(Fact.UNREACHABLE).issuperset(lost):
            # Options removed it, and its container with it, and brought it back.
            _place(gang, lost)
        # A member out of reach may return: no task starts without it.
        return
    launched = view.tasks.having(Fact.HELD).intersection(scope(view))
    busy = launched - view.tasks.having(Fact.STOPPED)
    if not busy:
        _stop_rest_or_begin(gang)
    # A member back from an agent that was away may still run, and may not obey.
    if any(r.ordered_at and _disobeys(gang, r) for r in view.tasks.records_of(busy)):
        gang.enter(JobPhase.STOPPING, gang.job.why)


def _stop_rest_or_begin(gang: GangDraft) -> None:
    view = gang.view
    concerned = set(scope(view))
    rest = (view.tasks.having(Fact.CONTAINED) & concerned) - view.tasks.having(Fact.HELD)
    if rest:
        names = gang.roster.in_order(rest)
        told = f"{they(names, 'are')} stopped, to be told the new cluster"
        gang.enter(JobPhase.STOPPING, told)
    elif (
        concerned <= view.tasks.having(Fact.STOPPED)
        and not _waits_for_old_peers(gang)
        and not _waits_for_addresses(gang)
    ):
        _begin_with_a_unit(gang)


def _waits_for_old_peers(gang: GangDraft) -> bool:
    """Say whether a task that leaves or was given up trains yet; ``core.advance`` kills it.

    A server that leaves does nothing for those who do not know of it: unless the gang starts as a
    whole, no task waits for its end.
    """
    view = gang.view
    if not is_quiet(view):
        return False
    let_go, spec, seen = view.controls.let_go, view.spec, view.job.strategy_seen
    whole = len(scope(view)) == len(view.roster)
    old = [r.name for r in leaving(view) if whole or not serves(spec, seen, r.name)]
    old += [key for key in view.service.strays if _is_of(gang, key) and key not in let_go]
    if old:
        gang.block(f"no task starts before the end of {listed(old)}, being killed")
    return bool(old)


def _waits_for_addresses(gang: GangDraft) -> bool:
    """Say whether a member has not told yet by which address its peers reach it."""
    view = gang.view
    if not view.spec.peer_network:
        return False
    unknown = [r.name for r in contained(view, view.roster.members) if not r.peer_address]
    if unknown:
        gang.block(f"no task starts before the address of {listed(unknown)} is known")
    return bool(unknown)


def _is_of(gang: GangDraft, task_id: str) -> bool:
    """Say whether a task id is that of a member of the gang, of now or of before."""
    parsed = parse_task_id(task_id)
    if parsed is None or gang_named(parsed[1]) != gang.name:
        return False
    return name_in_gang(parsed[1]).rpartition("-")[0] in GANG_ROLES


def _begin_with_a_unit(gang: GangDraft) -> None:
    """Start, once there is a unit of work where units are what is worked on."""
    if units.take(gang):
        begin(gang)


def begin(gang: GangDraft) -> None:
    """Start all of the restart set at the same moment, with the newest ClusterSpec."""
    renew_epoch(gang)
    tell_decider(gang)
    view = gang.view
    restored = _checkpoint_step(view)
    held_back = paused(view)
    starting = []
    for record in contained(view, scope(view)):
        if record.name in held_back:
            continue
        epoch = view.epoch.epoch if view.epoch is not None else record.epoch
        gang.put(replace(record, held=False, ordered_at=gang.now, epoch=epoch))
        starting.append(record.name)
    known = restored is not None and gang.roster.decider in starting
    at = f" from step {restored}" if known else ""
    number = view.epoch.epoch if view.epoch is not None else 0
    gang.restart = replace(gang.restart, restore_step=restored, planned=False, replacing=())
    gang.enter(
        JobPhase.STARTING,
        f"{they(starting or ['no task'], 'start')}{at} (cluster version {number})",
    )


def _checkpoint_step(view: GangView) -> int | None:
    """Return the step that the decider would restore; all members restore it."""
    record = view.tasks.get(view.roster.decider)
    return checkpoint_step_of(view.report_of(record)) if record is not None else None


def renew_epoch(gang: GangDraft) -> ClusterSpec:
    """Make a new ClusterSpec when an address or the membership differs from the newest one."""
    addresses = cluster_addresses(gang.view)
    epoch = gang.epoch
    if epoch is not None and epoch.addresses == addresses:
        return epoch
    number = epoch.epoch + 1 if epoch is not None else 1
    renewed = ClusterSpec(epoch=number, addresses=addresses)
    gang.epoch = renewed
    gang.say(f"version {number} of the cluster: {counted(len(addresses), 'member')}")
    return renewed


def tell_decider(gang: GangDraft) -> None:
    """Want a decider that takes workers while it trains to take those of the newest ClusterSpec."""
    epoch, record = gang.epoch, gang.tasks.get(gang.roster.decider)
    if epoch is None or record is None or record.epoch >= epoch.epoch:
        return
    if gang.tasks.has(record.name, Fact.TAKES_WORKERS):
        gang.put(replace(record, epoch=epoch.epoch, ordered_at=gang.now))
        gang.say(f"{record.name} trains on and is told version {epoch.epoch} of the cluster")


def all_run(count: int) -> str:
    """Return why a job is RUNNING whose gang has so many tasks."""
    return f"all {count} tasks of the gang run" if count > 1 else "the gang's only task runs"


def late(gang: GangDraft) -> tuple[TaskRecord, ...]:
    """Return the members that should run and do not yet; one that is held was told not to."""
    tasks = gang.tasks
    waiting = _wanted_to_run(gang.view) - tasks.having(Fact.STARTED)
    return tasks.records_of(waiting - tasks.having(Fact.UNREACHABLE))


def out_of_sight(gang: GangDraft) -> tuple[TaskRecord, ...]:
    """Return the members that became unreachable before they were seen to run.

    They may return without having heard of their start: until then the job is not RUNNING.
    """
    tasks = gang.tasks
    unreachable = tasks.having(Fact.UNREACHABLE)
    if not unreachable:
        return ()
    return tasks.records_of(
        (unreachable & _wanted_to_run(gang.view)) - tasks.having(Fact.TELLS_STARTED)
    )


def _wanted_to_run(view: GangView) -> set[str]:
    """Return the members that have been launched and are not to stay stopped."""
    launched = view.roster.members.intersection(view.tasks)
    return set(launched) - view.tasks.having(Fact.HELD) - paused(view)
