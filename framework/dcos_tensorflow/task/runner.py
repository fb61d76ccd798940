"""The task runner's loop: feeds events to ``lifecycle`` and carries out its commands.

``main`` makes one and calls ``run`` in the main thread. Everything else (signals, HTTP requests,
the end of the process, peers that answer) reaches it through one queue.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code import agreement
from dcos_tensorflow.job_code.facts import job_strategy, put_under_strategy, read_facts
from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.job_code.names import PARAMETER_SERVER
from dcos_tensorflow.task.before_start import BeforeStart
from dcos_tensorflow.task.exits import exit_file
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, ExitVerdict, human_line
from dcos_tensorflow.task.network.peers import PeerWatch, ReachCheck, reach_check
from dcos_tensorflow.task.output.logs import BoundedOutput
from dcos_tensorflow.task.python.contracts import tasks_of
from dcos_tensorflow.task.report.operator_commands import OperatorCommands
from dcos_tensorflow.task.report.status_document import Moment, Showing
from dcos_tensorflow.task.report.usage import UsageMeter
from dcos_tensorflow.task.spec import RunnerSpec, StartOrder, TaskCluster
from dcos_tensorflow.task.storage_work import storage_work
from dcos_tensorflow.task.supervise import environment, lifecycle
from dcos_tensorflow.task.supervise import lifecycle_events as events
from dcos_tensorflow.task.supervise.guard import Guard
from dcos_tensorflow.task.supervise.lifecycle_events import Lifecycle, TaskPhase
from dcos_tensorflow.task.supervise.starts import DoneReported, End, Installed, Starts
from dcos_tensorflow.task.supervise.unit_work import own_part

if TYPE_CHECKING:
    from dcos_tensorflow.task.output.shipping.shipper import Shipper
    from dcos_tensorflow.task.supervise.notices import Notice, NoticeWatch


#: How often deadlines and the progress file are looked at.
TICK_SECONDS = 0.25
#: What the end of a process, or of a unit of work, is told by.
ENDS = (events.ProcessEnded, events.UnitDone)
#: A request waits for the loop, which may be busy killing for ``process_table.END_SECONDS``.
ANSWER_SECONDS = 30.0


class NotAnswering(Exception):
    """The runner's loop did not take a request in time."""


#: Is there while no user may log in because the machine goes down, or comes up
#: (systemd-user-sessions.service(8)).
NO_LOGIN = "/run/nologin"


class RunnerRequest:
    """An event that a client waits for: the loop sets ``changed`` or ``error``, then ``done``."""

    def __init__(self, event: events.Event) -> None:
        self.event = event
        self.changed = False
        self.error: Optional[Exception] = None
        self.done = threading.Event()


class Runner:
    """Runs one task from its first start to its end.

    ``self_command`` is how this program starts itself again, for the wrapper. ``peer_address`` is
    this machine's in the peers' network, where one is named. Raises JobUnusable
    for settings of S3 that can never work.
    """

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        *,
        sandbox: str,
        inherited: Mapping[str, str],
        self_command: List[str],
        guard: Guard,
        stdout: BoundedOutput,
        stderr: BoundedOutput,
        shipper: "Optional[Shipper]" = None,
        peer_address: str = "",
    ) -> None:
        self._spec = spec
        self._found = found
        self._sandbox = sandbox
        self._inherited = inherited
        self._stderr = stderr
        self._is_beside = found.contract in contract.CONTRACTS_BESIDE
        where = environment.directories(spec, sandbox)
        # SimpleQueue.put may be called from a signal handler.
        self._queue: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._storage = storage_work(spec, where, self.log, self._queue.put)
        self._starts = Starts(
            spec,
            found,
            where,
            inherited=dict(inherited),
            self_command=self_command,
            guard=guard,
            stdout=stdout,
            stderr=stderr,
            shipper=shipper,
            log=self.log,
            on_end=self._queue.put,
        )
        self._before = BeforeStart(
            spec,
            found,
            self._starts,
            guard,
            inherited=inherited,
            log=self.log,
            tell=self._queue.put,
        )
        settings = events.LifecycleSettings(
            grace_seconds=spec.grace_seconds,
            wait_seconds=spec.wait_seconds,
            # Only our wrapper has a gate: scripts and commands may do anything from the start on.
            gated=found.contract == contract.CONTRACT_FUNCTION,
            hold_on_failure=spec.hold_on_failure,
            stores=self._storage is not None,
            installs=self._before.installs,
        )
        self._state = Lifecycle(spec.first_order, settings)
        self._strategy = ""
        self._peers: Optional[PeerWatch] = None
        self._reach: Optional[ReachCheck] = None
        self._notices: Optional[NoticeWatch] = None
        self._asked_to_end = False
        #: What a machine has said that goes down.
        self._shutdown: Optional[Notice] = None
        #: What is to be fetched once the packages are there.
        self._fetch_after: Optional[events.Fetch] = None
        #: What has happened while an event's actions were performed: the next events.
        self._followers: List[events.Event] = []
        self._tick_due = 0.0
        self._report: Optional[ExitReport] = None
        self._showing = Showing(
            spec,
            found,
            self._moment(),
            preparation=self._starts.preparation,
            progress=self._starts.progress,
            unit=self._starts.unit,
            storage=self._storage,
            shipper=shipper,
            usage=UsageMeter(spec.gpus, lambda: self._starts.variables, self._starts.children),
            peer_address=peer_address,
            dropped_log_bytes=lambda: stdout.dropped_bytes + stderr.dropped_bytes,
        )

    def log(self, message: str) -> None:
        """Write one line of our own into the task's stderr."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._stderr.write(f"task-runner: {stamp} {message}\n".encode("utf-8", "replace"))

    def stop(self, reason: str, grace_seconds: Optional[float] = None) -> None:
        """End the user's process and the task. Returns at once; safe in a signal handler."""
        self._asked_to_end = True
        self._queue.put(events.StopAsked(reason, grace_seconds))

    def order(self, order: StartOrder) -> bool:
        """Take an order; return whether it changed anything.

        Raises StaleOrder, Ending (see ``lifecycle``) or NotAnswering.
        """
        request = RunnerRequest(events.OrderReceived(own_part(order, self._spec)))
        self._queue.put(request)
        if not request.done.wait(ANSWER_SECONDS):
            raise NotAnswering("the task runner is busy ending the process; ask again")
        if request.error:
            raise request.error
        return request.changed

    @property
    def commands(self) -> OperatorCommands:
        """Return the commands of operators. From any thread."""
        return self._starts.commands

    def wait_for_news(self, after: int, seconds: float) -> None:
        """Return when the status has another ``revision`` than ``after``, or so much later."""
        self._showing.wait(after, seconds)

    def status(self) -> Dict[str, Any]:
        """Return the body of ``GET /v1/status``. May be called from any thread."""
        return self._showing.document()

    def run(self, begun: Callable[[], None]) -> ExitReport:
        """Run the task to its end and return the verdict. Call it in the main thread.

        ``begun`` is called as soon as the first process has been started, or waits for something:
        what it does, it does beside that. Raises JobUnusable when a directory of the task cannot be
        made, and when the code cannot train in the tasks of its cluster.
        """
        try:
            self._starts.prepare()
            self._read_code()
            self._feed(events.Prepared())
            # What follows from that at once is the start, where nothing is to be waited for.
            while self._report is None and not self._queue.empty():
                self._next()
            begun()
            self._watch_for_notices()
            while self._report is None:
                self._next()
            return self._report
        finally:
            self._close()

    def _read_code(self) -> None:
        """See in the code how it trains. Raises JobUnusable where it cannot do so in its tasks."""
        kind, facts = self._found.contract, read_facts(self._found, self._sandbox)
        tasks = tasks_of(self._spec, self._inherited)
        if self._spec.job.under_strategy:
            facts = put_under_strategy(facts, has_servers=bool(tasks.servers))
        agreement.check(kind, facts, tasks)
        guess = [self._found.guess] if self._found.guess else []
        for told in (*guess, *agreement.doubts(kind, facts, tasks)):
            self.log(told)
        has_servers = bool(tasks.chiefs and tasks.servers)
        self._strategy = job_strategy(self._found, facts, has_servers=has_servers)
        self._starts.parse(facts.options)
        self._starts.tf_config_at = facts.tf_config.place if facts.tf_config else ""
        coordinated = self._strategy == PARAMETER_SERVER and has_servers
        if (
            coordinated
            and self._spec.role == contract.CHIEF_ROLE
            and kind == contract.CONTRACT_SCRIPT
        ):
            self._starts.take_workers()
        if coordinated and self._spec.role in contract.WORKER_ROLES:
            # It serves: where only the code tells the strategy, the scheduler could not say so.
            grace = min(self._state.settings.grace_seconds, contract.NOTHING_TO_SAVE_SECONDS)
            settings = replace(self._state.settings, grace_seconds=grace)
            self._state = replace(self._state, settings=settings)
        self._before.read(facts, self._sandbox)

    def _next(self) -> None:
        """Take one event, or the time that has passed: whatever comes in, deadlines are kept."""
        due = lifecycle.due(self._state)
        wait = (self._tick_due if due is None else min(due, self._tick_due)) - time.monotonic()
        event: Any = None
        if wait > 0:
            try:
                event = self._queue.get(timeout=wait)
            except queue.Empty:
                event = None
        if event is None and time.monotonic() < self._tick_due:
            # A deadline comes before the next look: a grace of 0.1 s is over after 0.1 s.
            event = events.Tick()
        elif event is None:
            self._look_around()
            # From the end of the look: one that takes long must not keep the queue waiting.
            self._tick_due = time.monotonic() + TICK_SECONDS
            event = events.Tick()
        if isinstance(event, RunnerRequest):
            self._feed_request(event)
        elif isinstance(event, End):
            self._take_end(event)
        elif isinstance(event, DoneReported):
            self._feed(self._starts.unit_done(event))
        elif isinstance(event, Installed):
            self._take_installed(event)
        else:
            self._feed(event)

    def _tick(self) -> None:
        """Have the loop look around at once. From any thread."""
        self._queue.put(events.Tick())

    def _look_around(self) -> None:
        verdict = self._starts.look()
        if verdict is None and self._storage and self._starts.process:
            verdict = self._storage.verdict()
        if verdict:
            self._feed(events.Condemned(self._state.starts, verdict))

    def _feed_request(self, request: RunnerRequest) -> None:
        before = self._state
        try:
            if isinstance(request.event, events.OrderReceived):
                self._before.lead_to(request.event.order.data_service)
            self._feed(request.event)
        except (lifecycle.StaleOrder, lifecycle.TaskEnding) as error:
            request.error = error
        request.changed = self._state != before
        request.done.set()

    def _take_end(self, end: End) -> None:
        reason = self._state.stop_reason or "the scheduler asked for it"
        self._feed(self._starts.ended(end, self._state.condemned, reason))

    def _feed(self, event: events.Event) -> None:
        self._state, actions = lifecycle.step(self._state, event, time.monotonic())
        for action in actions:
            self._perform(action)
        followers, self._followers = self._followers, []
        for each in followers:
            self._feed(each)
        if not followers and not (isinstance(event, ENDS) and self._publishes_a_shard()):
            # Only now: a reader of "brings data" finds it begun, one of "failed" finds its file.
            self._show()

    def _publishes_a_shard(self) -> bool:
        """Say whether a unit's output is published, which is told when it takes longer than a tick.

        Else each shard would be news twice at its end.
        """
        keeping = self._state.keeping
        return keeping is not None and keeping.order.unit is not None

    def _perform(self, action: events.Action) -> None:
        if isinstance(action, (events.Fetch, events.Keep)):
            self._store(action)
        elif isinstance(action, events.WatchPeers):
            self._watch_peers(action.order.cluster)
        elif isinstance(action, events.ForgetPeers):
            self._stop_waiting("")
        elif isinstance(action, events.StartProcess):
            self._start(action)
        elif isinstance(action, events.HandOver):
            self._hand_over(action)
        elif isinstance(action, events.TellWorkers):
            self._starts.tell_workers(action)
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
            self._starts.process,
            self._starts.observer,
            self._starts.started_at,
            self._report,
            self._doing(),
            self._starts.unit.end,
            self._shutdown or (self._notices.notice if self._notices else None),
            self._before.gpus,
            self._reach.found if self._reach else (),
            self._before.data_service,
        )

    def _doing(self) -> str:
        """Return what is being brought, or how much of what is kept, where that is known."""
        before = self._before.doing(stores=self._storage is not None)
        if before is not None:
            return before
        return self._storage.doing if self._storage else ""

    def _show(self) -> None:
        """Let the status say what is now: also before the process gets to know of it."""
        self._showing.show(self._moment())

    def _signal(self, action: events.SendSignal) -> None:
        self.log(action.note)
        if self._asked_to_end:
            self._hear_of_a_shutdown()
        self._show()
        self._starts.signal(action.number)
        if self._storage and action.number == signal.SIGTERM:
            self._storage.ends_soon()

    def _store(self, action: Union[events.Fetch, events.Keep]) -> None:
        if isinstance(action, events.Keep):
            self._keep(action)
        elif self._before.begin():
            self._fetch_after = action
        else:
            self._fetch(action)

    def _keep(self, action: events.Keep) -> None:
        unit, done = self._starts.unit, action.output_of
        unit.hurry(action.seconds)
        if self._storage:
            publish = unit.publish if done is not None else None
            self._storage.keep(action.process, action.seconds, publish)
        elif done is not None:
            unit.keep(action.process, done.start, self._queue.put)

    def _fetch(self, action: events.Fetch) -> None:
        if self._storage:
            self._storage.fetch(action.order, action.fetch, self._starts.started_at is not None)
        else:
            self._queue.put(events.Fetched(action.fetch, time.time()))

    def _hear_of_a_shutdown(self) -> None:
        """Have the status say that the machine goes down, if that is why the task ends.

        A machine that does sends SIGTERM to everybody, as others do to one.
        """
        if os.path.exists(NO_LOGIN):
            from dcos_tensorflow.task.supervise.notices import Notice

            self.log("this machine is going down")
            self._shutdown = Notice(contract.NOTICE_INTERRUPTION, time.time())

    def _watch_for_notices(self) -> None:
        """Look whether the machine is taken back, where that can be."""
        if self._spec.is_spot:
            from dcos_tensorflow.task.supervise.notices import NoticeWatch

            self._notices = NoticeWatch(
                self._inherited,
                # The status says it at once.
                tell=self._tick,
                log=self.log,
            )
            self._notices.start()

    def _take_installed(self, made: Installed) -> None:
        action, self._fetch_after = self._fetch_after, None
        assert action is not None
        if made.refusal is not None:
            self._feed(events.Fetched(action.fetch, time.time(), made.refusal))
            return
        self._starts.run_with(made.base, made.variables)
        self._show()
        self._store(action)

    def _watch_peers(self, cluster: TaskCluster) -> None:
        self._reach = reach_check(self._reach, cluster.addresses, self._tick)
        if self._peers:
            self._peers.stop()
        addresses = self._addresses(cluster)
        answered = events.PeersAnswered(self._state.order.start, cluster.epoch)
        if not addresses:
            self._peers = None
            self._followers.append(answered)
            return
        self.log(f"version {cluster.epoch} of the cluster: waiting for {', '.join(addresses)}")
        self._peers = PeerWatch(addresses, lambda: self._queue.put(answered))
        self._peers.start()

    def _addresses(self, cluster: TaskCluster) -> Tuple[str, ...]:
        if self._is_beside:
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
        self._starts.release()

    def _start(self, action: events.StartProcess) -> None:
        if not action.gated:
            self._stop_waiting(action.note)
        refused = self._starts.begin(action, has_failed=self._state.failure is not None)
        if refused:
            ended = events.ProcessEnded(action.process, refused, False, time.time())
            self._followers.append(ended)
            return
        self._show()
        self._starts.listen()
        if self._storage:
            self._storage.begin()

    def _hand_over(self, action: events.HandOver) -> None:
        self._stop_waiting(action.note)
        refused = self._starts.hand_over(action, has_failed=self._state.failure is not None)
        if refused:
            verdict = ExitVerdict(refused.exit_class, refused.summary, refused.hint)
            self._queue.put(events.Condemned(self._state.starts, verdict))
            return
        self._show()
        if self._storage:
            self._storage.begin()

    def _report_failure(self, failure: events.FailedStart) -> None:
        name = f"start {failure.start} of {self._spec.task}"
        self.log(human_line(name, failure.report))
        exit_file.write_failure(self._sandbox, failure, self.log)

    def _finish(self, report: ExitReport) -> None:
        self._starts.progress.read_file(last=True)
        known = self._starts.progress.known
        # What waits for a unit of work waits in vain.
        self._starts.kill()
        self._starts.unit.discard()
        self._report = replace(
            report, result=known.result, progress=known.as_json(), left=self._starts.left()
        )

    def _close(self) -> None:
        if self._notices:
            self._notices.stop()
        if self._peers:
            self._peers.stop()
        if self._reach:
            self._reach.stop()
        if self._state.phase is not TaskPhase.EXITED:
            # Only after an error of our own.
            self._starts.kill()
        self._before.close()
        if self._storage:
            self._storage.close()
