"""What happens to the user's process and when: a pure state machine, ``step(state, event, now)``.

``runner`` feeds it everything that happens and carries out what it answers. No clock, no process,
no thread here: a test can play any order of events. The rules are those of docs/task-runner.md:
the scheduler orders which start is wanted and whether it runs, and repeats its order until the
status matches.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from enum import Enum
from typing import Optional, Tuple, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.exit_analysis import Ending as ProcessEnding
from dcos_tensorflow.task.exit_analysis import ExitClass, ExitReport, Verdict, analyse
from dcos_tensorflow.task.spec import Order

#: Ends after which no other start in this container could do better.
FINAL_CLASSES = (ExitClass.SUCCESS, ExitClass.JOB_UNUSABLE, ExitClass.PORT_TAKEN)
FINAL_CODES = (
    contract.EXIT_RUNNER_FAILED,
    contract.EXIT_PORT_TAKEN,
    contract.EXIT_JOB_UNUSABLE,
)


class Phase(str, Enum):
    """Where the task stands, as ``GET /v1/status`` says it."""

    PREPARING = contract.RUNNER_PREPARING
    WAITING = contract.RUNNER_WAITING
    RUNNING = contract.RUNNER_RUNNING
    STOPPING = contract.RUNNER_STOPPING
    HELD = contract.RUNNER_HELD
    FAILED = contract.RUNNER_FAILED
    EXITED = contract.RUNNER_EXITED


@dataclass(frozen=True)
class Settings:
    """What holds for the whole life of a task. Times are seconds.

    With ``gated`` the process is started before the peers answer, and itself waits at a gate to be
    released: what takes long at its start, it does meanwhile. With ``hold_on_failure`` a start
    that fails leaves the task in FAILED, where another start can be ordered; without, it ends it.
    """

    grace_seconds: float
    wait_seconds: float
    gated: bool = False
    hold_on_failure: bool = False


@dataclass(frozen=True)
class Failure:
    """How start number ``start`` failed; ``at`` is unix seconds."""

    start: int
    report: ExitReport
    at: float


@dataclass(frozen=True)
class Lifecycle:
    """The state of one task runner.

    ``order`` is the newest that was taken; ``current`` the one whose process lives, None while
    there is no process. ``starts`` counts the processes that were started. ``stop_reason`` is set
    once the task is to end for good, ``condemned`` once the watchdog has given the process up.
    ``deadline`` is when the present wait is over: for peers in WAITING, for the process' end in
    STOPPING. Times are of one clock, in seconds. ``failure`` is the newest one.
    """

    order: Order
    settings: Settings
    phase: Phase = Phase.PREPARING
    current: Optional[Order] = None
    stop_reason: str = ""
    condemned: Optional[Verdict] = None
    deadline: Optional[float] = None
    killed: bool = False
    starts: int = 0
    failure: Optional[Failure] = None


@dataclass(frozen=True)
class Prepared:
    """Contract found and directories made: the peers may be waited for."""


@dataclass(frozen=True)
class PeersAnswered:
    """Every address to wait for accepts connections, as seen for ``start`` of ``epoch``."""

    start: int
    epoch: int


@dataclass(frozen=True)
class ProcessEnded:
    """The user's process number ``process`` is gone, and all that it had started.

    ``process`` counts as ``Lifecycle.starts`` does. ``asked`` says that it ended because an order
    or a stop had asked it to; ``at`` is unix seconds. A process that could not be started, or must
    not be, has ended too.
    """

    process: int
    report: ExitReport
    asked: bool
    at: float


@dataclass(frozen=True)
class StopAsked:
    """The task is to end for good; ``grace_seconds`` None means the spec's."""

    reason: str
    grace_seconds: Optional[float] = None


@dataclass(frozen=True)
class OrderReceived:
    """The scheduler wants this start, running or held."""

    order: Order


@dataclass(frozen=True)
class Condemned:
    """The watchdog gives process number ``process`` up."""

    process: int
    verdict: Verdict


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Union[Prepared, PeersAnswered, ProcessEnded, StopAsked, OrderReceived, Condemned, Tick]


@dataclass(frozen=True)
class WatchPeers:
    """Look until all peers of ``order`` answer."""

    order: Order


@dataclass(frozen=True)
class ForgetPeers:
    """Look for no peer any more: nothing is to be started for now."""


@dataclass(frozen=True)
class StartProcess:
    """Start the user's process as ``order`` says; ``process`` is its number.

    ``gated`` says that it waits for a ReleaseProcess before it does anything that needs a peer.
    """

    order: Order
    process: int
    note: str = ""
    gated: bool = False


@dataclass(frozen=True)
class ReleaseProcess:
    """Let the process at the gate go on."""

    note: str = ""


@dataclass(frozen=True)
class SendSignal:
    """Send ``number`` to the whole process group of the user."""

    number: int
    note: str


@dataclass(frozen=True)
class ReportFailure:
    """Leave word of a start that failed: the task goes on."""

    failure: Failure


@dataclass(frozen=True)
class Finish:
    """Nothing is left to do: report and exit."""

    report: ExitReport


Action = Union[
    WatchPeers, ForgetPeers, StartProcess, ReleaseProcess, SendSignal, ReportFailure, Finish
]
Step = Tuple[Lifecycle, Tuple[Action, ...]]


class StaleOrder(Exception):
    """The order is older than one that was taken."""


class Ending(Exception):
    """The task is about to end: it takes no order."""


def step(state: Lifecycle, event: Event, now: float) -> Step:
    """Return the new state and what is to be done.

    Raises StaleOrder and Ending for an order that cannot be taken; the state stays as it was.
    """
    if isinstance(event, OrderReceived):
        return _receive(state, event.order, now)
    if state.phase is Phase.EXITED:
        return state, ()
    if isinstance(event, Prepared):
        return _begin(state, now)
    if isinstance(event, PeersAnswered):
        seen = (event.start, event.epoch)
        current = seen == (state.order.start, state.order.cluster.epoch)
        return _go(state, "") if current and state.phase is Phase.WAITING else (state, ())
    if isinstance(event, ProcessEnded):
        return _ended(state, event, now)
    if isinstance(event, StopAsked):
        return _stop(state, event, now)
    if isinstance(event, Condemned):
        return _condemn(state, event)
    return _time_passed(state, now)


def _begin(state: Lifecycle, now: float) -> Step:
    """Turn to the newest order, with no process there."""
    state = replace(state, killed=False, deadline=None)
    if not state.order.run:
        return replace(state, phase=Phase.HELD), (ForgetPeers(),)
    deadline = now + state.settings.wait_seconds
    waiting = replace(state, phase=Phase.WAITING, deadline=deadline)
    if not state.settings.gated:
        return waiting, (WatchPeers(state.order),)
    waiting, start = _start(waiting, "", gated=True)
    return waiting, (start, WatchPeers(state.order))


def _start(state: Lifecycle, note: str, gated: bool) -> Tuple[Lifecycle, StartProcess]:
    number = state.starts + 1
    started = replace(state, starts=number, current=state.order)
    return started, StartProcess(state.order, number, note, gated)


def _go(state: Lifecycle, note: str) -> Step:
    running = replace(state, phase=Phase.RUNNING, deadline=None)
    if state.current is not None:
        return running, (ReleaseProcess(note),)
    running, start = _start(running, note, gated=False)
    return running, (start,)


def _ended(state: Lifecycle, event: ProcessEnded, now: float) -> Step:
    ended = state.current
    if ended is None or event.process != state.starts:
        return state, ()
    report = event.report
    state = replace(state, current=None, condemned=None)
    if state.stop_reason:
        return _exit(state, report)
    if event.asked:
        return _begin(state, now)
    if report.exit_class in FINAL_CLASSES or report.exit_code in FINAL_CODES:
        return _exit(state, report)
    failure = Failure(ended.start, report, event.at)
    state = replace(state, failure=failure)
    if state.order.start > ended.start:
        state, actions = _begin(state, now)
        return state, (ReportFailure(failure), *actions)
    if not state.settings.hold_on_failure:
        return _exit(state, report)
    failed = replace(state, phase=Phase.FAILED, deadline=None, killed=False)
    return failed, (ForgetPeers(), ReportFailure(failure))


def _exit(state: Lifecycle, report: ExitReport) -> Step:
    return replace(state, phase=Phase.EXITED, deadline=None), (Finish(report),)


def _stop(state: Lifecycle, event: StopAsked, now: float) -> Step:
    stopping = replace(state, stop_reason=event.reason)
    if state.phase is Phase.FAILED and state.failure:
        return _exit(stopping, state.failure.report)
    if state.current is None:
        ending = ProcessEnding(return_code=-signal.SIGTERM, stop_reason=event.reason)
        return _exit(stopping, analyse(ending, ()))
    return _terminate(stopping, event.grace_seconds, event.reason, now)


def _terminate(state: Lifecycle, grace_seconds: Optional[float], why: str, now: float) -> Step:
    """Stop the process. Whoever asks last may shorten the grace, never lengthen it."""
    grace = state.settings.grace_seconds if grace_seconds is None else grace_seconds
    deadline = now + grace
    if state.phase is Phase.STOPPING:
        return replace(state, deadline=min(deadline, state.deadline or deadline)), ()
    stopping = replace(state, phase=Phase.STOPPING, deadline=deadline, killed=False)
    note = f"{why}: SIGTERM, and SIGKILL after {grace:g} s"
    return stopping, (SendSignal(signal.SIGTERM, note),)


def _receive(state: Lifecycle, order: Order, now: float) -> Step:
    if order.start < state.order.start:
        raise StaleOrder(f"start {order.start} is older than start {state.order.start}")
    if state.stop_reason or state.phase is Phase.EXITED:
        raise Ending("the task is ending and takes no order")
    if order.start == state.order.start:
        return _receive_again(state, order, now)
    taken = replace(state, order=order)
    if state.phase is Phase.PREPARING:
        return taken, ()
    if state.current is None:
        return _begin(taken, now)
    why = f"start {order.start} replaces start {state.current.start}"
    return _terminate(taken, order.grace_seconds, why, now)


def _receive_again(state: Lifecycle, order: Order, now: float) -> Step:
    """Take an order for the start that is wanted already: it may let it go or hold it."""
    began = state.current is not None and state.current.start == order.start
    if state.phase is Phase.FAILED or (began and state.phase is not Phase.STOPPING):
        # Its cluster counts no more: it began, or has failed, with the one it had.
        known = replace(state, order=replace(state.order, run=order.run))
        if began and not order.run:
            why = f"start {order.start} is to be held"
            return _terminate(known, order.grace_seconds, why, now)
        return known, ()
    if order.cluster.epoch < state.order.cluster.epoch:
        raise StaleOrder(
            f"epoch {order.cluster.epoch} of start {order.start} is older than epoch "
            f"{state.order.cluster.epoch}"
        )
    taken = replace(state, order=order)
    if state.phase is Phase.PREPARING:
        return taken, ()
    if state.phase is Phase.STOPPING:
        return _terminate(taken, order.grace_seconds, "", now)
    same = order.run == state.order.run and order.cluster == state.order.cluster
    return (taken, ()) if same else _begin(taken, now)


def _condemn(state: Lifecycle, event: Condemned) -> Step:
    lives = state.current is not None and event.process == state.starts
    if not lives or state.phase not in (Phase.WAITING, Phase.RUNNING):
        return state, ()
    killed = replace(
        state, phase=Phase.STOPPING, condemned=event.verdict, killed=True, deadline=None
    )
    return killed, (SendSignal(signal.SIGKILL, f"{event.verdict.summary}: SIGKILL"),)


def _time_passed(state: Lifecycle, now: float) -> Step:
    if state.deadline is None or now < state.deadline:
        return state, ()
    if state.phase is Phase.WAITING:
        return _go(state, f"peers still missing after {state.settings.wait_seconds:g} s")
    if state.phase is Phase.STOPPING and not state.killed:
        note = "the process did not end in time: SIGKILL"
        return replace(state, killed=True), (SendSignal(signal.SIGKILL, note),)
    return state, ()
