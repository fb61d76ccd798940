"""What happens to the user's process and when: a pure state machine, ``step(state, event, now)``.

``runner`` feeds it everything that happens and carries out what it answers. No clock, no process,
no thread here: a test can play any order of events.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from enum import Enum
from typing import Optional, Tuple, Union

from dcos_tensorflow.task.spec import Cluster


class Phase(str, Enum):
    """Where the task stands, as ``GET /v1/status`` says it."""

    PREPARING = "preparing"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    EXITED = "exited"


@dataclass(frozen=True)
class Lifecycle:
    """The state of one task runner.

    ``cluster`` is the epoch that the user's process runs with or is about to start with.
    ``next_cluster`` is set while the process is stopped in order to start again with it.
    ``stop_reason`` is set once the task is to end for good. ``deadline`` is when the present wait
    is over: for peers in WAITING, for the process' end in STOPPING. Times are of one clock, in
    seconds. ``return_code`` is negative for a signal, as in ``subprocess``. With ``starts_held``
    the process is started before the peers answer, and itself waits to be released: what takes
    long at its start, it does meanwhile.
    """

    cluster: Cluster
    grace_seconds: float
    wait_seconds: float
    starts_held: bool = False
    phase: Phase = Phase.PREPARING
    next_cluster: Optional[Cluster] = None
    stop_reason: str = ""
    deadline: Optional[float] = None
    killed: bool = False
    starts: int = 0
    return_code: Optional[int] = None


@dataclass(frozen=True)
class Prepared:
    """Contract found and directories made: the peers may be waited for."""


@dataclass(frozen=True)
class PeersAnswered:
    """Every address to wait for accepts connections, as seen for ``epoch``."""

    epoch: int


@dataclass(frozen=True)
class ProcessEnded:
    """The user's process of start number ``start`` is gone, and all that it had started."""

    start: int
    return_code: int


@dataclass(frozen=True)
class StopAsked:
    """The task is to end for good; ``grace_seconds`` None means the spec's."""

    reason: str
    grace_seconds: Optional[float] = None


@dataclass(frozen=True)
class ClusterChanged:
    """The scheduler wants this epoch."""

    cluster: Cluster


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Union[Prepared, PeersAnswered, ProcessEnded, StopAsked, ClusterChanged, Tick]


@dataclass(frozen=True)
class WatchPeers:
    """Look until all peers of ``cluster`` answer."""

    cluster: Cluster


@dataclass(frozen=True)
class StartProcess:
    """Start the user's process with ``cluster``; ``start`` is the number of this start.

    ``held`` says that it waits for a ReleaseProcess before it does anything that needs a peer.
    """

    cluster: Cluster
    start: int
    note: str = ""
    held: bool = False


@dataclass(frozen=True)
class ReleaseProcess:
    """Let the process that was started held go on."""

    note: str = ""


@dataclass(frozen=True)
class SendSignal:
    """Send ``number`` to the whole process group of the user."""

    number: int
    note: str


@dataclass(frozen=True)
class Finish:
    """Nothing is left to do: report and exit."""

    return_code: int


Action = Union[WatchPeers, StartProcess, ReleaseProcess, SendSignal, Finish]
Step = Tuple[Lifecycle, Tuple[Action, ...]]


class StaleEpoch(Exception):
    """The scheduler asked for an epoch that is older than the one we have."""


class Ending(Exception):
    """The task is about to end: it takes no new cluster."""


def step(state: Lifecycle, event: Event, now: float) -> Step:
    """Return the new state and what is to be done.

    Raises StaleEpoch and Ending for a cluster that cannot be taken; the state stays as it was.
    """
    if state.phase is Phase.EXITED and not isinstance(event, ClusterChanged):
        return state, ()
    if isinstance(event, Prepared):
        return _wait(state, now)
    if isinstance(event, PeersAnswered):
        current = state.phase is Phase.WAITING and event.epoch == state.cluster.epoch
        return _go(state, "") if current else (state, ())
    if isinstance(event, ProcessEnded):
        return _ended(state, event, now)
    if isinstance(event, StopAsked):
        return _stop(state, event, now)
    if isinstance(event, ClusterChanged):
        return _change_cluster(state, event.cluster, now)
    return _time_passed(state, now)


def _wait(state: Lifecycle, now: float) -> Step:
    deadline = now + state.wait_seconds
    waiting = replace(state, phase=Phase.WAITING, deadline=deadline, killed=False)
    if not state.starts_held:
        return waiting, (WatchPeers(state.cluster),)
    start = state.starts + 1
    actions = (StartProcess(state.cluster, start, held=True), WatchPeers(state.cluster))
    return replace(waiting, starts=start), actions


def _go(state: Lifecycle, note: str) -> Step:
    if state.starts_held:
        return replace(state, phase=Phase.RUNNING, deadline=None), (ReleaseProcess(note),)
    start = state.starts + 1
    running = replace(state, phase=Phase.RUNNING, deadline=None, starts=start)
    return running, (StartProcess(state.cluster, start, note),)


def _ended(state: Lifecycle, event: ProcessEnded, now: float) -> Step:
    if event.start != state.starts:
        return state, ()
    if state.next_cluster is not None and not state.stop_reason:
        return _wait(replace(state, cluster=state.next_cluster, next_cluster=None), now)
    return _exit(state, event.return_code)


def _exit(state: Lifecycle, return_code: int) -> Step:
    ended = replace(state, phase=Phase.EXITED, deadline=None, return_code=return_code)
    return ended, (Finish(return_code),)


def _without_process(state: Lifecycle) -> bool:
    waiting = state.phase is Phase.WAITING and not state.starts_held
    return waiting or state.phase is Phase.PREPARING


def _stop(state: Lifecycle, event: StopAsked, now: float) -> Step:
    grace = state.grace_seconds if event.grace_seconds is None else event.grace_seconds
    if _without_process(state):
        return _exit(replace(state, stop_reason=event.reason), -signal.SIGTERM)
    deadline = now + grace
    if state.phase is Phase.STOPPING:
        # Whoever asks last may shorten the wait, never lengthen it.
        deadline = min(deadline, state.deadline or deadline)
        return replace(state, stop_reason=event.reason, deadline=deadline), ()
    stopping = replace(
        state, phase=Phase.STOPPING, stop_reason=event.reason, deadline=deadline, killed=False
    )
    note = f"{event.reason}: SIGTERM, and SIGKILL after {grace:g} s"
    return stopping, (SendSignal(signal.SIGTERM, note),)


def _change_cluster(state: Lifecycle, cluster: Cluster, now: float) -> Step:
    wanted = state.next_cluster or state.cluster
    if cluster.epoch < wanted.epoch:
        raise StaleEpoch(f"epoch {cluster.epoch} is older than epoch {wanted.epoch}")
    if cluster.epoch == wanted.epoch:
        return state, ()
    if state.stop_reason or state.phase is Phase.EXITED:
        raise Ending("the task is ending and takes no new cluster")
    if state.phase is Phase.PREPARING:
        return replace(state, cluster=cluster), ()
    if _without_process(state):
        return _wait(replace(state, cluster=cluster), now)
    if state.phase is Phase.STOPPING:
        return replace(state, next_cluster=cluster), ()
    stopping = replace(
        state,
        phase=Phase.STOPPING,
        next_cluster=cluster,
        deadline=now + state.grace_seconds,
        killed=False,
    )
    note = f"epoch {cluster.epoch} replaces epoch {state.cluster.epoch}: SIGTERM, then start again"
    return stopping, (SendSignal(signal.SIGTERM, note),)


def _time_passed(state: Lifecycle, now: float) -> Step:
    if state.deadline is None or now < state.deadline:
        return state, ()
    if state.phase is Phase.WAITING:
        return _go(state, f"peers still missing after {state.wait_seconds:g} s")
    if state.phase is Phase.STOPPING and not state.killed:
        note = "the process did not end in time: SIGKILL"
        return replace(state, killed=True), (SendSignal(signal.SIGKILL, note),)
    return state, ()
