"""What ``GET /v1/status`` says of the task, and that it says something else now.

``runner`` shows one ``Moment`` after the other; ``server`` asks, in the threads of its requests.
Nothing here changes anything of the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from dcos_tensorflow.task import status
from dcos_tensorflow.task.checkpoints import Checkpoint
from dcos_tensorflow.task.contracts import Found
from dcos_tensorflow.task.exit_analysis import ExitReport
from dcos_tensorflow.task.lifecycle_events import Lifecycle
from dcos_tensorflow.task.news import News
from dcos_tensorflow.task.observer import Observer
from dcos_tensorflow.task.peers import PeerWatch
from dcos_tensorflow.task.preparation import Preparation
from dcos_tensorflow.task.process import UserProcess
from dcos_tensorflow.task.progress_log import ProgressLog
from dcos_tensorflow.task.spec import RunnerSpec
from dcos_tensorflow.task.storage_work import StorageWork

if TYPE_CHECKING:
    from dcos_tensorflow.task.log_shipping.shipper import Shipper


@dataclass(frozen=True)
class Moment:
    """What belongs together: the state, and all that the loop has at hand in it.

    ``report`` is that of the task's end.
    """

    state: Lifecycle
    strategy: str = ""
    peers: Optional[PeerWatch] = None
    process: Optional[UserProcess] = None
    observer: Optional[Observer] = None
    started_at: Optional[float] = None
    report: Optional[ExitReport] = None


class Showing:
    """The status of one task. ``dropped_log_bytes`` is asked for how much output was dropped."""

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        first: Moment,
        *,
        preparation: Preparation,
        progress: ProgressLog,
        storage: Optional[StorageWork],
        shipper: "Optional[Shipper]",
        dropped_log_bytes: Callable[[], int],
    ) -> None:
        self._spec = spec
        self._found = found
        self._preparation = preparation
        self._progress = progress
        self._storage = storage
        self._shipper = shipper
        self._dropped_log_bytes = dropped_log_bytes
        self._news = News(first)

    def show(self, moment: Moment) -> None:
        """Show ``moment`` from now on."""
        self._news.tell(moment)

    def wait(self, after: int, seconds: float) -> None:
        """Return when another moment than number ``after`` is shown, or so much later."""
        self._news.wait(after, seconds)

    def document(self) -> Dict[str, Any]:
        """Return the body of the answer. ``revision`` is the number of the moment it shows."""
        # Before the rest is read: what happens meanwhile is news for whoever gets this one.
        revision, now = self._news.newest
        self._progress.read_file()
        return status.document(
            self._spec,
            now.state,
            contract=self._found.contract,
            strategy=now.strategy,
            pid=now.process.pid if now.process else None,
            started_at=now.started_at,
            missing_peers=now.peers.missing() if now.peers else (),
            report=now.report,
            progress=self._progress.known,
            checkpoint=self._checkpoint(),
            memory_bytes=now.observer.memory_bytes() if now.observer else None,
            frozen_seconds=now.observer.frozen_seconds if now.observer else 0.0,
            dropped_log_bytes=self._dropped_log_bytes(),
            storage=self._kept_in_s3(),
            revision=revision,
        )

    def _kept_in_s3(self) -> Optional[Dict[str, Any]]:
        if not self._storage and not self._shipper:
            return None
        logs = self._shipper.status() if self._shipper else None
        return {**(self._storage.as_json() if self._storage else {}), "logs": logs}

    def _checkpoint(self) -> Optional[Checkpoint]:
        """Return what a start would restore now: what is published, where that is brought."""
        if self._storage and self._spec.storage.checkpoints:
            return self._storage.checkpoint()
        return self._preparation.checkpoint()
