"""The task runner's loop: feeds ``lifecycle`` what happens and carries out what it answers.

``main`` makes one and calls ``run`` in the main thread. Everything else (signals, HTTP requests,
the end of the process, peers that answer) reaches it through one queue.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Set, Tuple, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import (
    environment,
    exit_file,
    lifecycle,
    out_of_memory,
    strategy,
    watchdog,
)
from dcos_tensorflow.task import (
    lifecycle_events as events,
)
from dcos_tensorflow.task.contracts import Found, JobUnusable
from dcos_tensorflow.task.exit_analysis import Ending, ExitReport, human_line
from dcos_tensorflow.task.guarding import Guard
from dcos_tensorflow.task.lifecycle_events import Lifecycle, Phase
from dcos_tensorflow.task.logs import BoundedOutput
from dcos_tensorflow.task.observer import Observer, own_port
from dcos_tensorflow.task.peers import PeerWatch
from dcos_tensorflow.task.preparation import Preparation
from dcos_tensorflow.task.process import UserProcess
from dcos_tensorflow.task.program import WRAPPER_FLAG
from dcos_tensorflow.task.progress_log import ProgressLog
from dcos_tensorflow.task.showing import Moment, Showing
from dcos_tensorflow.task.spec import Cluster, Order, RunnerSpec
from dcos_tensorflow.task.storage_work import storage_work

if TYPE_CHECKING:
    from dcos_tensorflow.task.log_shipping.shipper import Shipper

#: How often deadlines and the progress file are looked at.
TICK_SECONDS = 0.25
#: How often guard and orphans are: that reads the whole process table.
CHILDREN_SECONDS = 1.0
#: A request waits for the loop, which may be busy killing for ``process_table.END_SECONDS``.
ANSWER_SECONDS = 30.0


class NotAnswering(Exception):
    """The runner's loop did not take a request in time."""


class Request:
    """An event that somebody waits for: the loop sets ``changed`` or ``error``, then ``done``."""

    def __init__(self, event: events.Event) -> None:
        self.event = event
        self.changed = False
        self.error: Optional[Exception] = None
        self.done = threading.Event()


@dataclass(frozen=True)
class _End:
    """A process is gone, as the thread that waited for it says; not yet judged."""

    process: int
    return_code: int
    signalled: bool


class Runner:
    """Runs one task from its first start to its end.

    ``self_command`` is how this program starts itself again, for wrapper and guard. Raises
    JobUnusable for settings of S3 that can never work.
    """

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        *,
        sandbox: str,
        inherited: Mapping[str, str],
        self_command: List[str],
        stdout: BoundedOutput,
        stderr: BoundedOutput,
        shipper: "Optional[Shipper]" = None,
    ) -> None:
        self._spec = spec
        self._found = found
        self._sandbox = sandbox
        self._inherited = dict(inherited)
        self._self_command = self_command
        self._stdout = stdout
        self._stderr = stderr
        self._shipper = shipper
        self._shows = found.contract == contract.CONTRACT_TENSORBOARD
        self._where = environment.directories(spec, sandbox)
        self._mark = uuid.uuid4().hex
        # SimpleQueue.put may be called from a signal handler.
        self._queue: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._storage = storage_work(spec, self._where, self.log, self._queue.put)
        self._preparation = Preparation(
            spec,
            found,
            self._where,
            self._inherited,
            wrapper_command=(self_command[0], "-u", *self_command[1:], WRAPPER_FLAG),
            mark=self._mark,
        )
        settings = events.Settings(
            grace_seconds=spec.grace_seconds,
            wait_seconds=spec.wait_seconds,
            # Only our wrapper has a gate: scripts and commands may do anything from the start on.
            gated=found.contract == contract.CONTRACT_FUNCTION,
            hold_on_failure=spec.hold_on_failure,
            stores=self._storage is not None,
        )
        self._state = Lifecycle(spec.first_order, settings)
        self._strategy = ""
        self._progress = ProgressLog()
        self._peers: Optional[PeerWatch] = None
        self._process: Optional[UserProcess] = None
        self._observer: Optional[Observer] = None
        self._not_started: Optional[events.ProcessEnded] = None
        self._guard: Optional[Guard] = None
        self._tick_due = 0.0
        self._children_due = 0.0
        self._started_at: Optional[float] = None
        self._kills_before: Optional[int] = None
        self._report: Optional[ExitReport] = None
        self._showing = Showing(
            spec,
            found,
            self._moment(),
            preparation=self._preparation,
            progress=self._progress,
            storage=self._storage,
            shipper=shipper,
            dropped_log_bytes=lambda: stdout.dropped_bytes + stderr.dropped_bytes,
        )

    def log(self, message: str) -> None:
        """Write one line of our own into the task's stderr."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._stderr.write(f"task-runner: {stamp} {message}\n".encode("utf-8", "replace"))

    def stop(self, reason: str, grace_seconds: Optional[float] = None) -> None:
        """End the user's process and the task. Returns at once; safe in a signal handler."""
        self._queue.put(events.StopAsked(reason, grace_seconds))

    def order(self, order: Order) -> bool:
        """Take an order; return whether it changed anything.

        Raises StaleOrder, Ending (see ``lifecycle``) or NotAnswering.
        """
        request = Request(events.OrderReceived(order))
        self._queue.put(request)
        if not request.done.wait(ANSWER_SECONDS):
            raise NotAnswering("the task runner is busy ending the process; ask again")
        if request.error:
            raise request.error
        return request.changed

    def wait_for_news(self, after: int, seconds: float) -> None:
        """Return when the status has another ``revision`` than ``after``, or so much later."""
        self._showing.wait(after, seconds)

    def status(self) -> Dict[str, Any]:
        """Return the body of ``GET /v1/status``. May be called from any thread."""
        return self._showing.document()

    def run(self) -> ExitReport:
        """Run the task to its end and return the verdict. Call it in the main thread.

        Raises JobUnusable when a directory of the task cannot be made.
        """
        try:
            self._prepare()
            self._feed(events.Prepared())
            while self._report is None:
                self._next()
            return self._report
        finally:
            self._close()

    def _prepare(self) -> None:
        for path in self._where.local():
            try:
                os.makedirs(path, exist_ok=True)
            except OSError as error:
                raise JobUnusable(
                    f"The directory {path} cannot be made: {error.strerror}",
                    "it is for checkpoints and logs; choose one that the task's user may write",
                ) from None
        path = os.path.join(self._sandbox, environment.PROGRESS_FILE_NAME)
        try:
            os.unlink(path)
        except FileNotFoundError:
            # The usual case: the sandbox is new.
            pass
        except OSError as error:
            self.log(f"{path} is in the way, so the job cannot report progress there: {error}")
        self._progress.follow(path)
        self._strategy = strategy.recognise(self._found, self._sandbox)
        outside = {
            name: value
            for name, value in self._inherited.items()
            if name not in environment.RUNNER_VARIABLES
        }
        mark = f"{environment.MARK_VARIABLE}={self._mark}"
        self._guard = Guard(self._self_command, mark, outside)

    def _next(self) -> None:
        """Take one event, or the time that has passed: whatever comes in, deadlines are kept."""
        wait = self._tick_due - time.monotonic()
        event: Any = None
        if wait > 0:
            try:
                event = self._queue.get(timeout=wait)
            except queue.Empty:
                event = None
        if event is None:
            self._look_around()
            # From the end of the look: one that takes long must not keep the queue waiting.
            self._tick_due = time.monotonic() + TICK_SECONDS
            event = events.Tick()
        if isinstance(event, Request):
            self._feed_request(event)
        elif isinstance(event, _End):
            self._take_end(event)
        else:
            self._feed(event)

    def _look_around(self) -> None:
        self._look_after_children()
        self._progress.read_file()
        observer = self._observer
        if observer is None:
            return
        if not self._progress.known.told:
            self._progress.read_event_step(observer.event_step())
        verdict = observer.look(self._progress.known)
        if verdict is None and self._storage:
            verdict = self._storage.verdict()
        if verdict:
            self._feed(events.Condemned(self._state.starts, verdict))

    def _feed_request(self, request: Request) -> None:
        before = self._state
        try:
            self._feed(request.event)
        except (lifecycle.StaleOrder, lifecycle.Ending) as error:
            request.error = error
        request.changed = self._state != before
        request.done.set()

    def _take_end(self, end: _End) -> None:
        if self._process:
            self._process.close()
        self._process = self._observer = None
        # All that this start has told is its own, not the next one's.
        self._progress.read_file()
        condemned = self._state.condemned if end.signalled else None
        stopped = self._state.stop_reason or "the scheduler asked for it"
        ending = Ending(
            return_code=end.return_code,
            stop_reason=stopped if end.signalled else "",
            condemned=condemned,
            out_of_memory=out_of_memory.kills() != self._kills_before,
        )
        report = self._preparation.report(ending, self._progress.lines())
        report = replace(report, result=self._progress.known.result)
        asked = end.signalled and condemned is None
        self._feed(events.ProcessEnded(end.process, report, asked, time.time()))

    def _feed(self, event: events.Event) -> None:
        self._state, actions = lifecycle.step(self._state, event, time.monotonic())
        for action in actions:
            self._perform(action)
        # Only now: who reads "brings data" finds it begun, and who reads "failed" its file.
        self._show()
        if self._not_started:
            ended, self._not_started = self._not_started, None
            self._feed(ended)

    def _perform(self, action: events.Action) -> None:
        if isinstance(action, (events.Fetch, events.Keep)):
            self._store(action)
        elif isinstance(action, events.WatchPeers):
            self._watch_peers(action.order.cluster)
        elif isinstance(action, events.ForgetPeers):
            self._stop_waiting("")
        elif isinstance(action, events.StartProcess):
            self._start(action)
        elif isinstance(action, events.ReleaseProcess):
            self._release(action.note)
        elif isinstance(action, events.SendSignal):
            self._signal(action)
        elif isinstance(action, events.ReportFailure):
            self._report_failure(action.failure)
        else:
            self._finish(action.report)

    def _moment(self) -> Moment:
        return Moment(
            self._state,
            self._strategy,
            self._peers,
            self._process,
            self._observer,
            self._started_at,
            self._report,
        )

    def _show(self) -> None:
        """Let the status say what is now: also before the process gets to know of it."""
        self._showing.show(self._moment())

    def _signal(self, action: events.SendSignal) -> None:
        self.log(action.note)
        self._show()
        if self._process:
            self._process.signal_group(action.number)
        if self._storage and action.number == signal.SIGTERM:
            self._storage.ends_soon()

    def _store(self, action: Union[events.Fetch, events.Keep]) -> None:
        assert self._storage is not None
        if isinstance(action, events.Keep):
            self._storage.keep(action.process, action.seconds)
        else:
            self._storage.fetch(action.order, action.fetch, self._started_at is not None)

    def _watch_peers(self, cluster: Cluster) -> None:
        if self._peers:
            self._peers.stop()
        addresses = self._addresses(cluster)
        if addresses:
            self.log(f"epoch {cluster.epoch}: waiting for {', '.join(addresses)}")
        answered = events.PeersAnswered(self._state.order.start, cluster.epoch)
        self._peers = PeerWatch(addresses, lambda: self._queue.put(answered))
        self._peers.start()

    def _addresses(self, cluster: Cluster) -> Tuple[str, ...]:
        if self._shows:
            return ()
        if self._found.contract == contract.CONTRACT_FUNCTION and cluster.server:
            return cluster.server.wait_for
        return cluster.wait_for

    def _stop_waiting(self, note: str) -> None:
        if self._peers:
            if note:
                self.log(f"{note}: {', '.join(self._peers.missing())}; starting anyway")
            self._peers.stop()

    def _release(self, note: str) -> None:
        self._stop_waiting(note)
        self._show()
        if self._process:
            self._process.release()

    def _start(self, action: events.StartProcess) -> None:
        if not action.gated:
            self._stop_waiting(action.note)
        self._progress.begin_start()
        if self._shipper:
            self._shipper.spool.begin_start(action.order.start)
        refusal = self._preparation.refusal(action.order)
        if refusal:
            self._end_without_process(action.process, refusal)
            return
        if self._state.failure:
            exit_file.withdraw_report(self._sandbox, self.log)
        number, cluster = action.process, action.order.cluster
        command, variables, notes = self._preparation.command(cluster)
        for note in notes:
            self.log(note)
        self._started_at = time.time()
        self._kills_before = out_of_memory.kills()
        self.log(
            f"start {action.order.start}, epoch {cluster.epoch}, contract {self._found.contract}: "
            f"{' '.join(command)}"
        )
        try:
            self._process = UserProcess(
                command,
                environment=variables,
                directory=self._sandbox,
                stdout=self._stdout,
                stderr=self._stderr,
                on_line=self._progress.read_line,
                on_end=lambda code, signalled: self._queue.put(_End(number, code, signalled)),
                spared=self._our_children,
                gated=action.gated,
            )
        except OSError as error:
            self._end_without_process(
                number, self._preparation.cannot_start(command[0], variables, error)
            )
            return
        self._observer = Observer(
            self._process,
            watchdog.Limits(self._spec.stall_seconds, self._spec.freeze_seconds),
            port=own_port(self._found, cluster),
            in_shell=self._found.contract == contract.CONTRACT_COMMAND,
            # TensorBoard reads what others write: that is no progress of its own.
            directories=() if self._shows else self._where.local(),
        )
        self._show()
        self._process.begin()
        if self._storage:
            self._storage.begin()

    def _end_without_process(self, number: int, report: ExitReport) -> None:
        self._not_started = events.ProcessEnded(number, report, False, time.time())

    def _report_failure(self, failure: events.Failure) -> None:
        name = f"start {failure.start} of {self._spec.task}"
        self.log(human_line(name, failure.report))
        exit_file.write_failure(self._sandbox, failure, self.log)

    def _finish(self, report: ExitReport) -> None:
        self._progress.read_file(last=True)
        self._report = replace(report, result=self._progress.known.result)

    def _our_children(self) -> Set[int]:
        return {self._guard.pid} if self._guard else set()

    def _look_after_children(self) -> None:
        now = time.monotonic()
        if now < self._children_due:
            return
        self._children_due = now + CHILDREN_SECONDS
        if self._guard:
            self._guard.keep(self.log)
        if self._process:
            self._process.reap_orphans()

    def _close(self) -> None:
        if self._peers:
            self._peers.stop()
        if self._process and self._state.phase is not Phase.EXITED:
            # Only after an error of our own: the user's process must not outlive us.
            self._process.signal_group(signal.SIGKILL)
            self._process.close()
        if self._storage:
            self._storage.close()
        if self._guard:
            self._guard.dismiss()
