"""The starts of the user's process in one container: each from its command to its end.

``runner`` makes one ``Starts`` and tells it when to begin, to signal and to look. ``lifecycle``
decides which start is wanted, and about the way after an end.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import field, replace
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Optional, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.modules import Found, JobUnusable
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.exits import exit_file
from dcos_tensorflow.task.exits.exit_analysis import (
    ExitReport,
    ExitVerdict,
    ProcessEnding,
    analyse,
    job_unusable,
)
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.output.left_files import LeftFiles, SandboxBefore
from dcos_tensorflow.task.output.logs import BoundedOutput, UnitLogs
from dcos_tensorflow.task.output.progress_log import ProgressLog
from dcos_tensorflow.task.python import reach
from dcos_tensorflow.task.python.python_packages import Base, this_python
from dcos_tensorflow.task.report.operator_commands import OperatorCommands
from dcos_tensorflow.task.spec import RunnerSpec, StartOrder, TaskCluster
from dcos_tensorflow.task.supervise import environment, memory, watchdog
from dcos_tensorflow.task.supervise.guard import MARK_VARIABLE, Guard
from dcos_tensorflow.task.supervise.lifecycle_events import (
    HandOver,
    ProcessEnded,
    StartProcess,
    TellWorkers,
    UnitDone,
    WorkersTaken,
)
from dcos_tensorflow.task.supervise.observer import TABLE_SECONDS, Observer, own_port
from dcos_tensorflow.task.supervise.own_children import OwnChildren
from dcos_tensorflow.task.supervise.process import UserProcess
from dcos_tensorflow.task.supervise.start_preparation import Preparation, make_link
from dcos_tensorflow.task.supervise.unit_work import UnitWork
from dcos_tensorflow.task.wrapper_protocol import WRAPPER_FLAG

if TYPE_CHECKING:
    from dcos_tensorflow.task.output.shipping.shipper import Shipper

#: How often guard and orphans are looked after: that reads the whole process table.
CHILDREN_SECONDS = 1.0


@dataclass(frozen=True)
class End:
    """A process is gone, as the thread that waited for it says; not yet judged."""

    process: int
    return_code: int
    signalled: bool


@dataclass(frozen=True)
class DoneReported:
    """A process has said, on a thread, that it has done the unit of ``start``; not yet judged."""

    process: int
    start: int


@dataclass(frozen=True)
class Installed:
    """Nothing is being installed, or taken, any more: ``base`` is the Python to run with.

    ``variables`` are for the user's process. ``refusal`` says why there is no environment, or no
    GPU.
    """

    base: Base
    variables: Mapping[str, str] = field(default_factory=dict)
    refusal: Optional[ExitReport] = None


class Starts:
    """What runs now of one task's starts, and what they have told.

    ``self_command`` is how this program starts itself again, for the wrapper; ``on_end`` gets an
    ``End``, a ``DoneReported`` or a ``WorkersTaken`` from another thread.
    """

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        where: environment.Directories,
        *,
        inherited: Mapping[str, str],
        self_command: List[str],
        guard: Guard,
        stdout: BoundedOutput,
        stderr: BoundedOutput,
        shipper: "Optional[Shipper]",
        log: Callable[[str], None],
        on_end: Callable[[Union[End, DoneReported, WorkersTaken]], None],
    ) -> None:
        self._spec = spec
        self._found = found
        self._where = where
        self._inherited = inherited
        self._stdout = stdout
        self._stderr = stderr
        self._shipper = shipper
        self._log = log
        self._on_end = on_end
        self._guard = guard
        self._children_due = 0.0
        self._sandbox: Optional[SandboxBefore] = None
        #: One process is handed one unit after the other.
        self._serves = found.contract == contract.CONTRACT_SHARDS
        self._kills_before: Optional[int] = None
        #: Where the code assigns TF_CONFIG, once it was read.
        self.tf_config_at = ""
        #: What the newest process finds; until there is one, what all of ours do.
        self.variables = self.helpers_environment()
        self.children = OwnChildren()
        self.commands = OperatorCommands(where.sandbox, lambda: self.variables, self.children, log)
        self.preparation = Preparation(
            spec,
            found,
            where,
            inherited,
            wrapper_command=("-u", *self_command[1:], WRAPPER_FLAG),
            mark=guard.mark,
            base=this_python(),
        )
        self.progress = ProgressLog()
        self.unit = UnitWork(spec, where, self.progress, log)
        self._unit_logs = UnitLogs(where.sandbox, (stdout, stderr))
        self.process: Optional[UserProcess] = None
        self.observer: Optional[Observer] = None
        #: When the newest process was started, in unix seconds.
        self.started_at: Optional[float] = None

    def prepare(self) -> None:
        """Make the sandbox ready for the first start. Raises JobUnusable."""
        for path in self._where.local():
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                raise JobUnusable(
                    f"The directory {path} cannot be made: {error.strerror}",
                    "it is for checkpoints and logs; choose one that the task's user may write",
                ) from None
        for link in self._spec.links:
            make_link(link, self._where.sandbox)
        try:
            reach.put(self._where.sandbox)
        except OSError as error:
            self._log(f"the job cannot import dcos_tensorflow.report: {error}")
        path = os.path.join(self._where.sandbox, environment.PROGRESS_FILE_NAME)
        try:
            os.unlink(path)
        except FileNotFoundError:
            # The usual case: the sandbox is new.
            pass
        except OSError as error:
            self._log(f"{path} is in the way, so the job cannot report progress there: {error}")
        self.progress.follow(path)
        self._sandbox = SandboxBefore(self._where.sandbox, self._told_elsewhere())

    def helpers_environment(self) -> Dict[str, str]:
        """Return the variables of what the runner starts for itself: it ends with the attempt."""
        return {**self._outside(), MARK_VARIABLE: self._guard.mark}

    def run_with(self, base: Base, variables: Mapping[str, str]) -> None:
        """Let the starts to come use another Python, and find these variables, too.

        What the Python that it is made of has on its PATH stays there.
        """
        known = self.preparation
        path = environment.search_path(known.inherited.get("PATH", os.defpath), known.base.python)
        inherited = {**known.inherited, "PATH": path, **variables}
        self.preparation = replace(known, base=base, inherited=inherited)

    def take_workers(self) -> None:
        """Let the starts to come take other workers while they run."""
        self.preparation = replace(self.preparation, takes_workers=True)

    def parse(self, options: Mapping[str, str]) -> None:
        """Let the starts to come get the parameters that their code parses as arguments."""
        self.preparation = replace(self.preparation, options=options)

    def _outside(self) -> Dict[str, str]:
        return {
            name: value
            for name, value in self._inherited.items()
            if name not in environment.RUNNER_VARIABLES
        }

    def begin(self, action: StartProcess, has_failed: bool) -> Optional[ExitReport]:
        """Start a process, and return why there is none; ``listen`` then lets it be heard of.

        ``has_failed``: the start before has left a report, which is that of the task no more.
        """
        refusal = self._begin_start(action.order, has_failed, goes_on=False)
        if refusal:
            return refusal
        number, cluster = action.process, action.order.cluster
        command, variables, notes = self.preparation.command(
            cluster, self.unit.where, self.unit.variables(), self.unit.parameters
        )
        for note in notes:
            self._log(note)
        self.variables = variables
        self.started_at = time.time()
        self._kills_before = memory.kernel_kills()
        self._log(
            f"start {action.order.start}, {_of_unit(action.order)}version {cluster.epoch} of the "
            f"cluster, contract {self._found.contract}: {' '.join(command)}"
        )
        try:
            self.process = UserProcess(
                command,
                environment=variables,
                directory=self._where.sandbox,
                stdout=self._stdout,
                stderr=self._stderr,
                on_block=self.progress.read_block,
                on_end=lambda code, signalled: self._on_end(End(number, code, signalled)),
                spared=lambda: {self._guard.pid} | self.children.pids(),
                gated=action.gated,
                on_word=self._hearer(number),
            )
        except OSError as error:
            return self.preparation.cannot_start(command[0], variables, error)
        if self._serves:
            self._hand(action.order)
        self._observe(self.process, cluster)
        return None

    def _hearer(self, process: int) -> Optional[Callable[[int], None]]:
        """Return what is done with the numbers that a process says; None where it says none."""
        if self._serves:
            return lambda start: self._on_end(DoneReported(process, start))
        if self.preparation.takes_workers:
            return lambda version: self._on_end(WorkersTaken(process, version))
        return None

    def _begin_start(
        self, order: StartOrder, has_failed: bool, goes_on: bool
    ) -> Optional[ExitReport]:
        """Make ready for ``order`` what a process finds, and return why it must not begin."""
        if self._shipper:
            self._shipper.spool.begin_start(order.start)
        if order.unit is not None:
            self._unit_logs.begin(order.unit.number)
        refusal = self.unit.begin(order, goes_on) or self.preparation.refusal(order)
        if refusal is None and self._serves:
            refusal = None if self.unit.shard() else _no_shard()
        if refusal is None and has_failed:
            exit_file.withdraw_report(self._where.sandbox, self._log)
        return refusal

    def hand_over(self, action: HandOver, has_failed: bool) -> Optional[ExitReport]:
        """Hand a unit to the process that waits for one, and return why that cannot be."""
        order = action.order
        refusal = self._begin_start(order, has_failed, goes_on=True)
        if refusal or self.process is None:
            return refusal
        self.started_at = time.time()
        self._log(f"start {order.start}, {_of_unit(order)}by the process that runs")
        self._hand(order)
        self._observe(self.process, order.cluster)
        return None

    def tell_workers(self, action: TellWorkers) -> None:
        """Tell the process which workers there are."""
        cluster = action.cluster
        jobs = (cluster.tf_config or {}).get("cluster", {})
        self._log(f"version {cluster.epoch} of the cluster, by the process that runs")
        if self.process:
            self.process.hand({"version": cluster.epoch, "cluster": jobs})

    def _hand(self, order: StartOrder) -> None:
        if self.process:
            shard, variables = self.unit.shard(), self.unit.variables()
            self.process.hand({"start": order.start, "shard": shard, "variables": variables})

    def _observe(self, process: UserProcess, cluster: TaskCluster) -> None:
        beside = self._found.contract in contract.CONTRACTS_BESIDE
        self.observer = Observer(
            process,
            watchdog.WatchdogLimits(self._spec.stall_seconds, self._spec.freeze_seconds),
            port=own_port(self._found, cluster),
            in_shell=self._found.contract == contract.CONTRACT_COMMAND,
            # It reads what others write: that is no progress of its own.
            directories=() if beside else self.unit.where.watched(),
            measures=self.unit.measures,
            # A unit of work may be over by then.
            first_look=TABLE_SECONDS if self.unit.is_there else 0.0,
        )

    def listen(self) -> None:
        """Listen to the process that ``begin`` has started, and wait for its end."""
        if self.process:
            self.process.begin()

    def release(self) -> None:
        """Let a process at its gate go on."""
        if self.process:
            self.process.release()

    def signal(self, number: int) -> None:
        """Send a signal to all of the process, if one runs."""
        if self.process:
            self.process.signal_group(number)

    def look(self) -> Optional[ExitVerdict]:
        """Look after guard and orphans, and return why the process is given up, if it is."""
        self._look_after_children()
        self.progress.read_file()
        if self.observer is None:
            return None
        self._read_events(self.observer)
        return self.observer.look(self.progress.known, self.progress.count)

    def _read_events(self, observer: Observer, *, last: bool = False) -> None:
        """Take what the event files tell, where the job does not tell it itself."""
        if not self.progress.known.told or self.progress.misses_its_metric:
            self.progress.read_event_step(observer.event_step(last=last))
            self.progress.read_scalars(observer.take_scalars())

    def ended(self, end: End, condemned: Optional[ExitVerdict], stop_reason: str) -> ProcessEnded:
        """Return what the end of the process means.

        ``condemned`` and ``stop_reason`` say why it was signalled, where that was our doing.
        """
        if self.process:
            self.process.close()
        # All that this start has told is its own, not the next one's.
        self.progress.read_file(last=self.unit.is_there)
        if self.observer:
            self._read_events(self.observer, last=True)
        self.process = self.observer = None
        ending = ProcessEnding(
            return_code=end.return_code,
            stop_reason=stop_reason if end.signalled else "",
            condemned=condemned if end.signalled else None,
            out_of_memory=memory.kernel_kills() != self._kills_before,
            step=self.progress.known.start_step,
            tf_config_at=self.tf_config_at,
        )
        report = self.preparation.report(ending, self.progress.lines())
        if report.exit_class is ExitClass.SUCCESS and self._serves:
            report = _left_early(report)
        report = replace(report, result=self.progress.known.result)
        self._unit_ended()
        if report.exit_class is not ExitClass.SUCCESS:
            self.unit.discard()
        asked = end.signalled and ending.condemned is None
        return ProcessEnded(end.process, report, asked, time.time())

    def unit_done(self, word: DoneReported) -> UnitDone:
        """Return what it means that a process has done its unit, and waits for the next one."""
        self.progress.read_file(last=True)
        report = analyse(ProcessEnding(return_code=0, contract=self._found.contract), ())
        report = replace(report, result=self.progress.known.result)
        self._unit_ended()
        return UnitDone(word.process, word.start, report, time.time())

    def _unit_ended(self) -> None:
        self.unit.ended()
        self._unit_logs.end()

    def left(self) -> Optional[LeftFiles]:
        """Return what the job has left in the sandbox; None where nothing was started."""
        return self._sandbox.left() if self._sandbox else None

    def _told_elsewhere(self) -> List[str]:
        """Return the directories that are no leavings: for checkpoints and summaries, and data."""
        data = [os.path.join(self._where.sandbox, item.path) for item in self._spec.storage.data]
        kept = [self._where.output_dir] if self._spec.storage.output else []
        return [*self._where.watched(), *data, *kept]

    def kill(self) -> None:
        """End what still runs: neither the user's process nor a command must outlive us."""
        self.commands.close()
        if self.process:
            self.process.signal_group(signal.SIGKILL)
            self.process.close()

    def _look_after_children(self) -> None:
        now = time.monotonic()
        if now < self._children_due:
            return
        self._children_due = now + CHILDREN_SECONDS
        self._guard.keep(self._log)
        if self.process:
            self.process.reap_orphans()


def _of_unit(order: StartOrder) -> str:
    unit = order.unit
    return f"unit {unit.number} (attempt {unit.attempt}), " if unit else ""


def _no_shard() -> ExitReport:
    return job_unusable(
        "main(shard, context) is called for the shards of a batch, and this start is for none",
        "ask for a batch, or define main(server, log_dir, context)",
    )


def _left_early(report: ExitReport) -> ExitReport:
    return replace(
        report,
        exit_code=1,
        exit_class=ExitClass.USER_ERROR,
        summary="The process ended with 0 before main(shard, context) had returned",
        hint="return from main instead: the process is handed the next shard then",
    )
