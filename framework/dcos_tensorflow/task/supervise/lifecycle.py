"""The life of the user's process as a pure state machine: ``step(state, event, now)``.

``runner`` feeds it every event and carries out its commands. No clock, no process,
no thread here: a test can play any order of events. The rules are those of docs/task-runner.md:
the scheduler orders which start is wanted and whether it runs, and repeats its order until the
status matches.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, ProcessEnding, analyse
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.spec import StartOrder
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Condemned,
    Event,
    FailedStart,
    Fetch,
    Fetched,
    Finish,
    ForgetPeers,
    HandOver,
    Keep,
    Keeping,
    Lifecycle,
    OrderReceived,
    OutputKept,
    PeersAnswered,
    Prepared,
    ProcessEnded,
    ReleaseProcess,
    ReportFailure,
    SendSignal,
    StartProcess,
    Step,
    StopAsked,
    TaskPhase,
    TellWorkers,
    UnitDone,
    WatchPeers,
    WorkersTaken,
)

#: What a process that was stopped has left may take so long to be kept, whatever its grace was.
KEEP_SECONDS = 2.0
#: How long the last checkpoint of a task that has succeeded may take.
KEEP_AT_SUCCESS_SECONDS = 600.0
#: Ends after which no other start in this container could do better.
FINAL_CLASSES = (ExitClass.SUCCESS, ExitClass.JOB_UNUSABLE, ExitClass.PORT_TAKEN)
FINAL_CODES = (contract.EXIT_RUNNER_FAILED, contract.EXIT_PORT_TAKEN, contract.EXIT_JOB_UNUSABLE)


class StaleOrder(Exception):
    """The order is older than one that was taken."""


class TaskEnding(Exception):
    """The task is about to end: it takes no order."""


def step(state: Lifecycle, event: Event, now: float) -> Step:
    """Return the new state and what is to be done.

    Raises StaleOrder and Ending for an order that cannot be taken; the state stays as it was.
    """
    if isinstance(event, OrderReceived):
        return _receive(state, event.order, now)
    if state.phase is TaskPhase.EXITED:
        return state, ()
    if isinstance(event, Prepared):
        return _begin(state, now)
    if isinstance(event, PeersAnswered):
        seen = (event.start, event.epoch)
        current = seen == (state.order.start, state.order.cluster.epoch)
        return _go(state, "") if current and state.phase is TaskPhase.WAITING else (state, ())
    if isinstance(event, ProcessEnded):
        return _ended(state, event, now)
    if isinstance(event, UnitDone):
        return _unit_done(state, event, now)
    if isinstance(event, WorkersTaken):
        return _workers_taken(state, event), ()
    if isinstance(event, Fetched):
        return _fetched(state, event, now)
    if isinstance(event, OutputKept):
        return _kept(state, event, now)
    if isinstance(event, StopAsked):
        return _stop(state, event, now)
    if isinstance(event, Condemned):
        return _condemn(state, event)
    return _time_passed(state, now)


def _begin(state: Lifecycle, now: float) -> Step:
    """Turn to the newest order, with no process there: first to what it needs.

    Only the first order is not held before all is fetched: later the scheduler waits for it.
    """
    state = replace(state, killed=False, deadline=None, fetching=False)
    if state.settings.fetches and (state.order.run or not state.fetches):
        number = state.fetches + 1
        fetching = replace(state, phase=TaskPhase.PREPARING, fetches=number, fetching=True)
        return fetching, (ForgetPeers(), Fetch(state.order, number))
    return _proceed(state, now)


def _fetched(state: Lifecycle, event: Fetched, now: float) -> Step:
    if not state.fetching or event.fetch != state.fetches:
        return state, ()
    state = replace(state, fetching=False)
    if event.refusal is None:
        return _proceed(state, now)
    return _failed(state, FailedStart(state.order.start, event.refusal, event.at))


def _proceed(state: Lifecycle, now: float) -> Step:
    if not state.order.run:
        return replace(state, phase=TaskPhase.HELD, deadline=None), (ForgetPeers(),)
    if state.idle and state.current and state.current.cluster != state.order.cluster:
        why = f"start {state.order.start} has another cluster"
        return _terminate(state, state.order.grace_seconds, why, now)
    deadline = now + state.settings.wait_seconds
    waiting = replace(state, phase=TaskPhase.WAITING, deadline=deadline)
    if not state.settings.gated:
        return waiting, (WatchPeers(state.order),)
    waiting, start = _start(waiting, "", gated=True)
    return waiting, (start, WatchPeers(state.order))


def _start(state: Lifecycle, note: str, gated: bool) -> Tuple[Lifecycle, StartProcess]:
    number = state.starts + 1
    started = replace(state, starts=number, current=state.order, takes_workers=False)
    return started, StartProcess(state.order, number, note, gated)


def _go(state: Lifecycle, note: str) -> Step:
    running = replace(state, phase=TaskPhase.RUNNING, deadline=None)
    if state.idle:
        handed = replace(running, idle=False, current=state.order)
        return handed, (HandOver(state.order, note),)
    if state.current is not None:
        return running, (ReleaseProcess(note),)
    running, start = _start(running, note, gated=False)
    return running, (start,)


def _ended(state: Lifecycle, event: ProcessEnded, now: float) -> Step:
    ended = state.current
    if ended is None or event.process != state.starts:
        return state, ()
    gone = replace(state, current=None, condemned=None)
    if state.idle:
        return _idle_ended(replace(gone, idle=False), event, now)
    return _keep(gone, event, ended, now)


def _idle_ended(state: Lifecycle, event: ProcessEnded, now: float) -> Step:
    """Go on without a process that had nothing to do: the next unit gets another one."""
    if state.phase is not TaskPhase.STOPPING or state.keeping is not None:
        return state, ()
    return _exit(state, event.report) if state.stop_reason else _begin(state, now)


def _unit_done(state: Lifecycle, event: UnitDone, now: float) -> Step:
    """Take the end of a unit whose process lives on; one that is being stopped is not asked."""
    done = state.current
    running = state.phase is TaskPhase.RUNNING and not state.idle and event.process == state.starts
    if done is None or done.unit is None or not running or event.start != done.start:
        return state, ()
    end = ProcessEnded(event.process, event.report, asked=False, at=event.at)
    return _keep(replace(state, idle=True), end, done, now)


def _keep(state: Lifecycle, event: ProcessEnded, ended: StartOrder, now: float) -> Step:
    """Keep what the process of ``ended`` has left before its end counts, where anything is kept."""
    is_done = _has_done(event, ended)
    output = ended if is_done and ended.unit is not None and ended.unit.payload.output else None
    if not state.settings.stores and output is None:
        return _after(state, event, ended, now)
    seconds = _keep_seconds(state, event, now)
    keeping = replace(state, phase=TaskPhase.STOPPING, deadline=None, keeping=Keeping(event, ended))
    return keeping, (Keep(event.process, seconds, output),)


def _has_done(event: ProcessEnded, ended: StartOrder) -> bool:
    """Say whether a process has done the unit that its start was for."""
    return ended.unit is not None and event.report.exit_class is ExitClass.SUCCESS


def _keep_seconds(state: Lifecycle, event: ProcessEnded, now: float) -> float:
    """Return how long what the process left may take: what is left of the grace, or a while."""
    if state.deadline is not None and state.phase is TaskPhase.STOPPING:
        return max(state.deadline - now, KEEP_SECONDS)
    if event.report.exit_class is ExitClass.SUCCESS and not state.stop_reason:
        return KEEP_AT_SUCCESS_SECONDS
    return max(state.settings.grace_seconds, KEEP_SECONDS)


def _kept(state: Lifecycle, event: OutputKept, now: float) -> Step:
    kept = state.keeping
    if kept is None or kept.end.process != event.process:
        return state, ()
    end = kept.end if event.refusal is None else replace(kept.end, report=event.refusal)
    return _after(replace(state, keeping=None), end, kept.order, now)


def _after(state: Lifecycle, event: ProcessEnded, ended: StartOrder, now: float) -> Step:
    report = event.report
    if state.stop_reason:
        return _exit(state, report)
    if event.asked:
        return _begin(state, now)
    if _has_done(event, ended):
        if state.order.start > ended.start:
            return _begin(state, now)
        return replace(state, phase=TaskPhase.DONE, deadline=None, killed=False), (ForgetPeers(),)
    if _is_final(report):
        return _exit(state, report)
    failure = FailedStart(ended.start, report, event.at)
    if state.order.start > ended.start:
        state, actions = _begin(replace(state, failure=failure), now)
        return state, (ReportFailure(failure), *actions)
    return _failed(state, failure)


def _is_final(report: ExitReport) -> bool:
    return report.exit_class in FINAL_CLASSES or report.exit_code in FINAL_CODES


def _failed(state: Lifecycle, failure: FailedStart) -> Step:
    state = replace(state, failure=failure)
    if not state.settings.hold_on_failure or _is_final(failure.report):
        return _exit(state, failure.report)
    failed = replace(state, phase=TaskPhase.FAILED, deadline=None, killed=False)
    return failed, (ForgetPeers(), ReportFailure(failure))


def _exit(state: Lifecycle, report: ExitReport) -> Step:
    # A process that had nothing to do any more is killed with it.
    exited = replace(state, phase=TaskPhase.EXITED, deadline=None, current=None, idle=False)
    return exited, (Finish(report),)


def _stop(state: Lifecycle, event: StopAsked, now: float) -> Step:
    stopping = replace(state, stop_reason=event.reason)
    if state.phase is TaskPhase.FAILED and state.failure:
        return _exit(stopping, state.failure.report)
    if state.keeping is not None:
        return _hurry(stopping, event.grace_seconds)
    if state.current is None or state.idle:
        ending = ProcessEnding(return_code=-signal.SIGTERM, stop_reason=event.reason)
        return _exit(stopping, analyse(ending, ()))
    return _terminate(stopping, event.grace_seconds, event.reason, now)


def _hurry(state: Lifecycle, grace_seconds: Optional[float]) -> Step:
    assert state.keeping is not None
    grace = state.settings.grace_seconds if grace_seconds is None else grace_seconds
    return state, (Keep(state.keeping.end.process, max(grace, KEEP_SECONDS)),)


def _terminate(state: Lifecycle, grace_seconds: Optional[float], why: str, now: float) -> Step:
    """Stop the process. A later order may shorten the grace, never lengthen it."""
    grace = state.settings.grace_seconds if grace_seconds is None else grace_seconds
    deadline = now + grace
    if state.phase is TaskPhase.STOPPING:
        return replace(state, deadline=min(deadline, state.deadline or deadline)), ()
    stopping = replace(state, phase=TaskPhase.STOPPING, deadline=deadline, killed=False)
    note = f"{why}: SIGTERM, and SIGKILL after {grace:g} s"
    return stopping, (SendSignal(signal.SIGTERM, note),)


def _receive(state: Lifecycle, order: StartOrder, now: float) -> Step:
    if order.start < state.order.start:
        raise StaleOrder(f"start {order.start} is older than start {state.order.start}")
    if order.start == state.order.start and state.order.run and not order.run:
        # To stop it the scheduler orders a newer start: this order was made before the other.
        raise StaleOrder(f"start {order.start} was let go: it is not held any more")
    if state.stop_reason or state.phase is TaskPhase.EXITED:
        raise TaskEnding("the task is ending and takes no order")
    if state.keeping is not None:
        return _receive_while_keeping(state, state.keeping.end, order)
    if order.start == state.order.start:
        return _receive_again(state, order, now)
    taken = replace(state, order=order)
    if state.phase is TaskPhase.PREPARING and not state.fetching:
        return taken, ()
    if state.current is None or (state.idle and state.phase is not TaskPhase.STOPPING):
        return _begin(taken, now)
    why = f"start {order.start} replaces start {state.current.start}"
    return _terminate(taken, order.grace_seconds, why, now)


def _receive_while_keeping(state: Lifecycle, ended: ProcessEnded, order: StartOrder) -> Step:
    """Take an order after the end of a process, while what it left is kept."""
    assert state.keeping is not None
    done = _has_done(ended, state.keeping.order)
    if not ended.asked and not done and _is_final(ended.report):
        raise TaskEnding("the job's process has ended by itself, and the task ends with it")
    if order.start == state.order.start:
        _check_epoch(state, order)
        return replace(state, order=order), ()
    return _hurry(replace(state, order=order), order.grace_seconds)


def _receive_again(state: Lifecycle, order: StartOrder, now: float) -> Step:
    """Take an order for the start that is wanted already: it may let it go."""
    began = state.current is not None and state.current.start == order.start
    over = state.phase in (TaskPhase.FAILED, TaskPhase.DONE)
    if over or (began and state.phase is not TaskPhase.STOPPING):
        if began and state.takes_workers and order.cluster.epoch > state.order.cluster.epoch:
            wanted = replace(state.order, run=order.run, cluster=order.cluster)
            return replace(state, order=wanted), (TellWorkers(order.cluster),)
        # Its cluster counts no more: it began, or is over, with the one it had.
        return replace(state, order=replace(state.order, run=order.run)), ()
    _check_epoch(state, order)
    taken = replace(state, order=order)
    if state.fetching:
        return (taken, ()) if _needs_same(state.order, order) else _begin(taken, now)
    if state.phase is TaskPhase.PREPARING:
        return taken, ()
    if state.phase is TaskPhase.STOPPING:
        return _terminate(taken, order.grace_seconds, "", now)
    fetched = _needs_same(state.order, order) or not state.settings.fetches
    if fetched and order.run == state.order.run and order.cluster == state.order.cluster:
        return taken, ()
    return (_proceed if fetched else _begin)(taken, now)


def _workers_taken(state: Lifecycle, event: WorkersTaken) -> Lifecycle:
    """Take what a process says of its workers: only then it has another version of the cluster."""
    if state.current is None or event.process != state.starts:
        return state
    order, current = state.order, state.current
    if order.start == current.start and order.cluster.epoch == event.version:
        current = replace(current, cluster=order.cluster)
    return replace(state, current=current, takes_workers=event.version > 0)


def _check_epoch(state: Lifecycle, order: StartOrder) -> None:
    if order.cluster.epoch < state.order.cluster.epoch:
        raise StaleOrder(
            f"version {order.cluster.epoch} of the cluster for start {order.start} is older than "
            f"version {state.order.cluster.epoch}"
        )


def _needs_same(one: StartOrder, other: StartOrder) -> bool:
    """Say whether what is fetched for one order will do for the other."""
    wanted = (one.run, one.expects_restore_step, one.restore_step, one.unit)
    return wanted == (other.run, other.expects_restore_step, other.restore_step, other.unit)


def _condemn(state: Lifecycle, event: Condemned) -> Step:
    lives = state.current is not None and event.process == state.starts
    if not lives or state.phase not in (TaskPhase.WAITING, TaskPhase.RUNNING):
        return state, ()
    killed = replace(
        state, phase=TaskPhase.STOPPING, condemned=event.verdict, killed=True, deadline=None
    )
    return killed, (SendSignal(signal.SIGKILL, f"{event.verdict.summary}: SIGKILL"),)


def due(state: Lifecycle) -> Optional[float]:
    """Return when a Tick is the next to do something, by the clock of ``step``; None for never."""
    waits = state.phase is TaskPhase.WAITING or (
        state.phase is TaskPhase.STOPPING and not state.killed
    )
    return state.deadline if waits else None


def _time_passed(state: Lifecycle, now: float) -> Step:
    if state.deadline is None or now < state.deadline:
        return state, ()
    if state.phase is TaskPhase.WAITING:
        return _go(state, f"peers still missing after {state.settings.wait_seconds:g} s")
    if state.phase is TaskPhase.STOPPING and not state.killed:
        note = "the process did not end in time: SIGKILL"
        return replace(state, killed=True), (SendSignal(signal.SIGKILL, note),)
    return state, ()
