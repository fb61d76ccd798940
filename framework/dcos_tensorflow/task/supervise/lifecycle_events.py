"""The events and commands of ``lifecycle``: facts about the user's process, and its handling.

Plain values. ``runner`` makes the events and carries out the actions; ``lifecycle`` has the
rules.
"""

from __future__ import annotations

from enum import Enum
from typing import Optional, Tuple, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, ExitVerdict
from dcos_tensorflow.task.spec import StartOrder, TaskCluster


class TaskPhase(str, Enum):
    """Where the task stands, as ``GET /v1/status`` says it."""

    PREPARING = contract.RUNNER_PREPARING
    WAITING = contract.RUNNER_WAITING
    RUNNING = contract.RUNNER_RUNNING
    STOPPING = contract.RUNNER_STOPPING
    HELD = contract.RUNNER_HELD
    FAILED = contract.RUNNER_FAILED
    EXITED = contract.RUNNER_EXITED
    DONE = contract.RUNNER_DONE


@dataclass(frozen=True)
class LifecycleSettings:
    """What holds for the whole life of a task. Times are seconds.

    With ``gated`` the process is started before the peers answer, and itself waits at a gate to be
    released: what takes long at its start, it does meanwhile. With ``hold_on_failure`` a start
    that fails leaves the task in FAILED, where another start can be ordered; without, it ends it.
    With ``stores`` something is fetched before each start, and kept after each end; with
    ``installs`` something is fetched, and nothing kept.
    """

    grace_seconds: float
    wait_seconds: float
    gated: bool = False
    hold_on_failure: bool = False
    stores: bool = False
    installs: bool = False

    @property
    def fetches(self) -> bool:
        """Say whether a start needs anything that is not there from the beginning."""
        return self.stores or self.installs


@dataclass(frozen=True)
class FailedStart:
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
    STOPPING. Times are of one clock, in seconds. ``failure`` is the newest one. ``fetches`` counts
    what was asked to be fetched; ``fetching`` while the newest of these is under way. ``keeping``
    is a process that has ended, while what it left is kept; its end counts when that is done.
    ``idle`` says that the process has done its unit of work and waits for the next one.
    ``takes_workers`` says that it takes other workers while it runs.
    """

    order: StartOrder
    settings: LifecycleSettings
    phase: TaskPhase = TaskPhase.PREPARING
    current: Optional[StartOrder] = None
    stop_reason: str = ""
    condemned: Optional[ExitVerdict] = None
    deadline: Optional[float] = None
    killed: bool = False
    starts: int = 0
    failure: Optional[FailedStart] = None
    fetches: int = 0
    fetching: bool = False
    keeping: Optional["Keeping"] = None
    idle: bool = False
    takes_workers: bool = False


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
class UnitDone:
    """Process number ``process`` has done the unit of ``start``, and lives on for the next one."""

    process: int
    start: int
    report: ExitReport
    at: float


@dataclass(frozen=True)
class WorkersTaken:
    """Process number ``process`` trains with the workers of a ``version`` of the cluster.

    0: it takes no others while it runs.
    """

    process: int
    version: int


@dataclass(frozen=True)
class Keeping:
    """The end of a process that is not judged yet, and the order that it ran under."""

    end: ProcessEnded
    order: StartOrder


@dataclass(frozen=True)
class StopAsked:
    """The task is to end for good; ``grace_seconds`` None means the spec's."""

    reason: str
    grace_seconds: Optional[float] = None


@dataclass(frozen=True)
class OrderReceived:
    """The scheduler wants this start, running or held."""

    order: StartOrder


@dataclass(frozen=True)
class Condemned:
    """The watchdog gives process number ``process`` up."""

    process: int
    verdict: ExitVerdict


@dataclass(frozen=True)
class Fetched:
    """Fetch number ``fetch`` is done, or could not be: ``refusal`` says why then.

    ``at`` is unix seconds.
    """

    fetch: int
    at: float
    refusal: Optional[ExitReport] = None


@dataclass(frozen=True)
class OutputKept:
    """What process number ``process`` left is kept, as far as there was time.

    ``refusal`` says why what counts of it could not be: its start has failed then.
    """

    process: int
    refusal: Optional[ExitReport] = None


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Union[
    Prepared,
    Fetched,
    PeersAnswered,
    ProcessEnded,
    UnitDone,
    WorkersTaken,
    OutputKept,
    StopAsked,
    OrderReceived,
    Condemned,
    Tick,
]


@dataclass(frozen=True)
class Fetch:
    """Fetch what ``order`` needs; a fetch before it is given up. ``fetch`` is its number."""

    order: StartOrder
    fetch: int


@dataclass(frozen=True)
class Keep:
    """Keep what the process left, for ``seconds``; the same again may shorten that.

    ``output_of`` is the order whose unit was done: what it wrote is published.
    """

    process: int
    seconds: float
    output_of: Optional[StartOrder] = None


@dataclass(frozen=True)
class WatchPeers:
    """Look until all peers of ``order`` answer."""

    order: StartOrder


@dataclass(frozen=True)
class ForgetPeers:
    """Look for no peer any more: nothing is to be started for now."""


@dataclass(frozen=True)
class StartProcess:
    """Start the user's process as ``order`` says; ``process`` is its number.

    ``gated`` says that it waits for a ReleaseProcess before it does anything that needs a peer.
    """

    order: StartOrder
    process: int
    note: str = ""
    gated: bool = False


@dataclass(frozen=True)
class HandOver:
    """Hand the unit of ``order`` to the process that waits for one."""

    order: StartOrder
    note: str = ""


@dataclass(frozen=True)
class TellWorkers:
    """Tell the process which workers there are now."""

    cluster: TaskCluster


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

    failure: FailedStart


@dataclass(frozen=True)
class Finish:
    """Nothing is left to do: report and exit, and let no process wait for work."""

    report: ExitReport


Action = Union[
    Fetch,
    WatchPeers,
    ForgetPeers,
    StartProcess,
    HandOver,
    TellWorkers,
    ReleaseProcess,
    SendSignal,
    Keep,
    ReportFailure,
    Finish,
]
Step = Tuple[Lifecycle, Tuple[Action, ...]]
