"""The task runner's loop: feeds ``lifecycle`` what happens and carries out what it answers.

``main`` makes one and calls ``run`` in the main thread. Everything else (signals, HTTP requests,
the end of the process, peers that answer) reaches it through one queue.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import uuid
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import command_line, environment, lifecycle, progress
from dcos_tensorflow.task.contracts import Found, JobUnusable
from dcos_tensorflow.task.exit_analysis import (
    ANALYSED_LINES,
    Ending,
    ExitReport,
    analyse,
    job_unusable,
    runner_failed,
)
from dcos_tensorflow.task.guard import Guard
from dcos_tensorflow.task.lifecycle import Lifecycle, Phase
from dcos_tensorflow.task.logs import BoundedOutput, ProgressFile, RecentLines
from dcos_tensorflow.task.peers import PeerWatch
from dcos_tensorflow.task.process import UserProcess
from dcos_tensorflow.task.spec import Cluster, RunnerSpec

#: The arguments with which this program runs as its own guard or wrapper.
GUARD_FLAG = "--guard"
WRAPPER_FLAG = "--wrapper"
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

    def __init__(self, event: lifecycle.Event) -> None:
        self.event = event
        self.changed = False
        self.error: Optional[Exception] = None
        self.done = threading.Event()


class Runner:
    """Runs one task from its first start to its end.

    ``self_command`` is how this program starts itself again, for wrapper and guard.
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
    ) -> None:
        self._spec = spec
        self._found = found
        self._sandbox = sandbox
        self._inherited = dict(inherited)
        self._self_command = self_command
        self._stdout = stdout
        self._stderr = stderr
        self._where = environment.directories(spec, sandbox)
        self._mark = uuid.uuid4().hex
        # Only the wrapper can hold: scripts and commands may do anything from the first line on.
        held = found.contract == contract.CONTRACT_FUNCTION
        self._state = Lifecycle(spec.cluster, spec.grace_seconds, spec.wait_seconds, held)
        # SimpleQueue.put may be called from a signal handler.
        self._queue: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._recent = RecentLines(ANALYSED_LINES)
        self._progress = progress.Progress()
        self._progress_lock = threading.Lock()
        self._progress_file: Optional[ProgressFile] = None
        self._peers: Optional[PeerWatch] = None
        self._process: Optional[UserProcess] = None
        self._guard: Optional[Guard] = None
        self._guard_missing = False
        self._children_due = 0.0
        self._started_at: Optional[float] = None
        self._report: Optional[ExitReport] = None

    def log(self, message: str) -> None:
        """Write one line of our own into the task's stderr."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._stderr.write(f"task-runner: {stamp} {message}\n".encode("utf-8", "replace"))

    def stop(self, reason: str, grace_seconds: Optional[float] = None) -> None:
        """End the user's process and the task. Returns at once; safe in a signal handler."""
        self._queue.put(lifecycle.StopAsked(reason, grace_seconds))

    def change_cluster(self, cluster: Cluster) -> bool:
        """Go over to ``cluster``; return whether that changed anything.

        Raises StaleEpoch, Ending (see ``lifecycle``) or NotAnswering.
        """
        request = Request(lifecycle.ClusterChanged(cluster))
        self._queue.put(request)
        if not request.done.wait(ANSWER_SECONDS):
            raise NotAnswering("the task runner is busy ending the process; ask again")
        if request.error:
            raise request.error
        return request.changed

    def status(self) -> Dict[str, Any]:
        """Return the body of ``GET /v1/status``. May be called from any thread."""
        self._read_progress_file()
        state, report, peers = self._state, self._report, self._peers
        known, process = self._progress, self._process
        return {
            "service": self._spec.service,
            "task": self._spec.task,
            "attempt": self._spec.attempt,
            "epoch": state.cluster.epoch,
            "state": state.phase.value,
            "waiting_for": list(peers.missing()) if peers and state.phase is Phase.WAITING else [],
            "pid": process.pid if process else None,
            "started_at": self._started_at,
            "starts": state.starts,
            "exit_code": report.exit_code if report else None,
            "contract": self._found.contract,
            "summary": report.summary if report else _phase_sentence(state, peers),
            "hint": report.hint if report else "",
            "progress": known.as_json(),
            "result": known.result,
            "dropped_log_bytes": self._stdout.dropped_bytes + self._stderr.dropped_bytes,
        }

    def run(self) -> ExitReport:
        """Run the task to its end and return the verdict. Call it in the main thread.

        Raises JobUnusable when a directory of the task cannot be made.
        """
        try:
            self._prepare()
            self._feed(lifecycle.Prepared())
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
        self._progress_file = ProgressFile(path)
        outside = {
            name: value
            for name, value in self._inherited.items()
            if name not in environment.RUNNER_VARIABLES
        }
        mark = f"{environment.MARK_VARIABLE}={self._mark}"
        self._guard = Guard([*self._self_command, GUARD_FLAG, mark], outside)

    def _next(self) -> None:
        try:
            event = self._queue.get(timeout=TICK_SECONDS)
        except queue.Empty:
            event = lifecycle.Tick()
            self._look_after_children()
            self._read_progress_file()
        if isinstance(event, Request):
            self._feed_request(event)
        else:
            self._feed(event)

    def _feed_request(self, request: Request) -> None:
        before = self._state
        try:
            self._feed(request.event)
        except (lifecycle.StaleEpoch, lifecycle.Ending) as error:
            request.error = error
        request.changed = self._state != before
        request.done.set()

    def _feed(self, event: lifecycle.Event) -> None:
        if isinstance(event, lifecycle.ProcessEnded) and self._process:
            self._process.close()
            self._process = None
        self._state, actions = lifecycle.step(self._state, event, time.monotonic())
        for action in actions:
            self._perform(action)

    def _perform(self, action: lifecycle.Action) -> None:
        if isinstance(action, lifecycle.WatchPeers):
            self._watch_peers(action.cluster)
        elif isinstance(action, lifecycle.StartProcess):
            self._start(action)
        elif isinstance(action, lifecycle.ReleaseProcess):
            self._release(action.note)
        elif isinstance(action, lifecycle.SendSignal):
            self.log(action.note)
            if self._process:
                self._process.signal_group(action.number)
        else:
            self._finish(action.return_code)

    def _watch_peers(self, cluster: Cluster) -> None:
        if self._peers:
            self._peers.stop()
        addresses = self._addresses(cluster)
        if addresses:
            self.log(f"epoch {cluster.epoch}: waiting for {', '.join(addresses)}")
        answered = lifecycle.PeersAnswered(cluster.epoch)
        self._peers = PeerWatch(addresses, lambda: self._queue.put(answered))
        self._peers.start()

    def _addresses(self, cluster: Cluster) -> Tuple[str, ...]:
        if self._found.contract == contract.CONTRACT_TENSORBOARD:
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
        if self._process:
            self._process.release()

    def _start(self, action: lifecycle.StartProcess) -> None:
        if not action.held:
            self._stop_waiting(action.note)
        variables, notes = environment.user_environment(
            self._spec,
            action.cluster,
            inherited=self._inherited,
            where=self._where,
            python_path=self._found.python_path,
            python=sys.executable,
            mark=self._mark,
        )
        for note in notes:
            self.log(note)
        command, more = command_line.user_command(
            self._spec,
            self._found,
            action.cluster,
            where=self._where,
            python=sys.executable,
            wrapper_command=[self._self_command[0], "-u", *self._self_command[1:], WRAPPER_FLAG],
        )
        variables.update(more)
        self._recent.clear()
        self._started_at = time.time()
        start = action.start
        self.log(
            f"start {start}, epoch {action.cluster.epoch}, contract {self._found.contract}: "
            f"{' '.join(command)}"
        )
        try:
            self._process = UserProcess(
                command,
                environment=variables,
                directory=self._sandbox,
                stdout=self._stdout,
                stderr=self._stderr,
                on_line=self._read_line,
                on_end=lambda code: self._queue.put(lifecycle.ProcessEnded(start, code)),
                spared=self._our_children,
                held=action.held,
            )
        except OSError as error:
            self._report = self._not_started(command[0], error)

    def _not_started(self, program: str, error: OSError) -> ExitReport:
        theirs = isinstance(error, (FileNotFoundError, PermissionError))
        if theirs and os.path.isdir(self._sandbox):
            return job_unusable(f"{program} cannot be started: {error.strerror}")
        return runner_failed(f"The task runner cannot start {program}: {error}")

    def _finish(self, return_code: int) -> None:
        self._read_progress_file(last=True)
        spec = self._spec
        ending = Ending(
            return_code=return_code,
            stop_reason=self._state.stop_reason,
            contract=self._found.contract,
            job_name=spec.job.name,
            grpc_port=spec.grpc_port,
            tf1_compat=spec.job.tf1_compat,
            legacy_keras=spec.job.legacy_keras,
        )
        report = analyse(ending, self._recent.lines())
        self._report = replace(report, result=self._progress.result)

    def _read_line(self, line: str) -> None:
        self._recent.add(line)
        with self._progress_lock:
            self._progress = progress.read_line(self._progress, line, time.time())

    def _read_progress_file(self, last: bool = False) -> None:
        if self._progress_file is None:
            return
        with self._progress_lock:
            file = self._progress_file
            for line in file.close() if last else file.new_lines():
                self._progress = progress.read_record(self._progress, line, time.time())

    def _our_children(self) -> Set[int]:
        return {self._guard.pid} if self._guard else set()

    def _look_after_children(self) -> None:
        now = time.monotonic()
        if now < self._children_due:
            return
        self._children_due = now + CHILDREN_SECONDS
        if self._guard:
            self._keep(self._guard)
        if self._process:
            self._process.reap_orphans()

    def _keep(self, guard: Guard) -> None:
        try:
            guard.keep()
        except OSError as error:
            if not self._guard_missing:
                self.log(f"the guard is gone and cannot be started again now: {error}")
            self._guard_missing = True
        else:
            self._guard_missing = False

    def _close(self) -> None:
        if self._peers:
            self._peers.stop()
        if self._process and self._state.phase is not Phase.EXITED:
            # Only after an error of our own: the user's process must not outlive us.
            self._process.signal_group(signal.SIGKILL)
            self._process.close()
        if self._guard:
            self._guard.dismiss()


def _phase_sentence(state: Lifecycle, peers: Optional[PeerWatch]) -> str:
    if state.phase is Phase.WAITING and peers:
        return f"Waits for {', '.join(peers.missing()) or 'nobody'}"
    if state.phase is Phase.STOPPING:
        return f"Stopping: {state.stop_reason or 'a new cluster'}"
    return {
        Phase.PREPARING: "Prepares the sandbox",
        Phase.RUNNING: "The job's process runs",
    }.get(state.phase, "")


def install_signals(runner: Runner) -> None:
    """Let SIGTERM, SIGINT and SIGHUP end the task in order."""

    def handler(name: str) -> Callable[[int, Any], None]:
        return lambda number, frame: runner.stop(f"the task got {name}")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler(signal.Signals(number).name))
