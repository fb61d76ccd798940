"""The answer to ``GET /v1/status``, and the signal that it has changed.

``runner`` shows one ``Moment`` after the other; ``server`` asks, in the threads of its requests.
Nothing here changes anything of the task.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple

from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.checkpoints import Checkpoint
from dcos_tensorflow.task.exits.exit_analysis import ExitReport
from dcos_tensorflow.task.exits.exit_file import failure_as_json
from dcos_tensorflow.task.network.peers import PeerWatch
from dcos_tensorflow.task.output.progress_log import ProgressLog
from dcos_tensorflow.task.report.usage import UsageMeter
from dcos_tensorflow.task.spec import RunnerSpec
from dcos_tensorflow.task.storage_work import StorageWork
from dcos_tensorflow.task.supervise.lifecycle_events import Lifecycle, TaskPhase
from dcos_tensorflow.task.supervise.observer import Observer
from dcos_tensorflow.task.supervise.process import UserProcess
from dcos_tensorflow.task.supervise.start_preparation import Preparation
from dcos_tensorflow.task.supervise.unit_work import UnitWork

if TYPE_CHECKING:
    from dcos_tensorflow.task.output.shipping.shipper import Shipper
    from dcos_tensorflow.task.supervise.notices import Notice


_SENTENCES = {
    TaskPhase.PREPARING: "Prepares the sandbox",
    TaskPhase.RUNNING: "The job's process runs",
    TaskPhase.HELD: "Held: no process is to run before the scheduler says so",
    TaskPhase.DONE: "The unit of work is done; the next one may come",
}


@dataclass(frozen=True)
class Moment:
    """What belongs together: the state, and all that the loop has at hand in it.

    ``report`` is that of the task's end. ``doing`` says what is being brought, where that
    is known. ``unit`` is what is told of a unit of work that has ended, ``notice`` what the machine
    says of its own end, ``gpus`` the device files of the GPUs that the runner itself has taken,
    ``unreachable`` the addresses of peers that are not reached, with the word why,
    ``data_service`` where the way to the job's tf.data service leads.
    """

    state: Lifecycle
    strategy: str = ""
    peers: Optional[PeerWatch] = None
    process: Optional[UserProcess] = None
    observer: Optional[Observer] = None
    started_at: Optional[float] = None
    report: Optional[ExitReport] = None
    doing: str = ""
    unit: Optional[Mapping[str, Any]] = None
    notice: "Optional[Notice]" = None
    gpus: Tuple[str, ...] = ()
    unreachable: Tuple[Tuple[str, str], ...] = ()
    data_service: str = ""


class Showing:
    """The status of one task. ``dropped_log_bytes`` is asked for how much output was dropped.

    ``peer_address`` is the machine's in the network of the peers, empty where none is named.
    """

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        first: Moment,
        *,
        preparation: Preparation,
        progress: ProgressLog,
        unit: UnitWork,
        storage: Optional[StorageWork],
        shipper: "Optional[Shipper]",
        usage: UsageMeter,
        peer_address: str,
        dropped_log_bytes: Callable[[], int],
    ) -> None:
        self._spec = spec
        self._found = found
        self._preparation = preparation
        self._progress = progress
        self._unit = unit
        self._storage = storage
        self._shipper = shipper
        self._usage = usage
        self._peer_address = peer_address
        self._dropped_log_bytes = dropped_log_bytes
        #: The number of the newest moment, for requests that wait for the next, and what it was.
        self._newest: Tuple[int, Moment] = (1, first)
        self._changed = threading.Condition()

    def show(self, moment: Moment) -> None:
        """Show ``moment`` from now on. Any thread, not a signal handler."""
        with self._changed:
            revision, shown = self._newest
            if moment != shown:
                self._newest = (revision + 1, moment)
                self._changed.notify_all()

    def wait(self, after: int, seconds: float) -> None:
        """Return when another moment than number ``after`` is shown, or so much later."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest[0] != after, seconds)

    def document(self) -> Dict[str, Any]:
        """Return the status as docs/task-runner.md tells it.

        ``revision`` is the number of the moment it shows.
        """
        # Before the rest is read: what happens meanwhile is news for the client that gets this one.
        revision, now = self._newest
        self._progress.read_file()
        state, report = now.state, now.report
        progress, checkpoint = self._progress.known, self._checkpoint()
        if report is None and state.phase is TaskPhase.FAILED and state.failure:
            report = state.failure.report
        missing = now.peers.missing() if now.peers else ()
        return {
            "service": self._spec.service,
            "task": self._spec.task,
            "attempt": self._spec.attempt,
            "epoch": (state.current or state.order).cluster.epoch,
            "takes_workers": state.takes_workers,
            "start": state.order.start,
            "run": state.order.run,
            "state": state.phase.value,
            "waiting_for": list(missing) if state.phase is TaskPhase.WAITING else [],
            "pid": now.process.pid if now.process else None,
            "started_at": now.started_at,
            "starts": state.starts,
            "exit_code": report.exit_code if report else None,
            "contract": self._found.contract,
            "strategy": now.strategy,
            "summary": report.summary if report else _sentence(state, missing, now.doing),
            "hint": report.hint if report else "",
            "exit": failure_as_json(state.failure) if state.failure else None,
            "progress": progress.as_json(),
            "result": progress.result,
            "unit": now.unit or self._unit.as_json(),
            "checkpoint": checkpoint.as_json() if checkpoint else None,
            "memory_bytes": now.observer.memory_bytes() if now.observer else None,
            "usage": self._usage.usage(now.observer, progress.start_step),
            "frozen_seconds": round(now.observer.frozen_seconds, 1) if now.observer else 0.0,
            "idle_since": now.observer.idle_since if now.observer else None,
            "listens_since": now.observer.listens_since if now.observer else None,
            "notice": now.notice.as_json() if now.notice else None,
            "gpus": list(now.gpus),
            "unreachable": dict(now.unreachable),
            "peer_address": self._peer_address,
            "data_service": now.data_service,
            "dropped_log_bytes": self._dropped_log_bytes(),
            "storage": self._kept_in_s3(),
            "revision": revision,
        }

    def _kept_in_s3(self) -> Optional[Dict[str, Any]]:
        if not self._storage and not self._shipper:
            return None
        logs = self._shipper.status() if self._shipper else None
        return {**(self._storage.as_json() if self._storage else {}), "logs": logs}

    def _checkpoint(self) -> Optional[Checkpoint]:
        """Return what a start would restore now: what is published, where that is brought.

        The tasks do not agree on what a unit of work goes on from.
        """
        if self._spec.takes_units:
            return None
        if self._storage and self._spec.storage.checkpoints:
            return self._storage.checkpoint()
        return self._preparation.checkpoint()


def _sentence(state: Lifecycle, missing_peers: Tuple[str, ...], doing: str) -> str:
    if state.phase is TaskPhase.WAITING:
        return f"Waits for {', '.join(missing_peers) or 'no peer'}"
    if state.fetching:
        return doing or "Brings data and checkpoint to the sandbox"
    if state.keeping is not None:
        kept = "The process has ended; its last checkpoint is published"
        return f"{kept}: {doing}" if doing else kept
    if state.phase is TaskPhase.STOPPING:
        return f"Stopping: {_why_stopping(state)}"
    return _SENTENCES.get(state.phase, "")


def _why_stopping(state: Lifecycle) -> str:
    if state.stop_reason:
        return state.stop_reason
    if state.condemned:
        return state.condemned.summary
    return f"start {state.order.start} is to {'follow' if state.order.run else 'be held'}"
