"""The storage work of a task, as the runner's loop sees it: started here, reported as events.

``runner`` makes one where the spec asks for it. Requests take long and may fail, so they happen on
a thread; the loop goes on and answers. The engines are in ``task.storage``, which is imported here
alone: a task that keeps nothing in S3 needs neither them nor boto3.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.checkpoints import Checkpoint
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, ExitVerdict, storage_failed
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.spec import RunnerSpec, StartOrder
from dcos_tensorflow.task.supervise import environment
from dcos_tensorflow.task.supervise import lifecycle_events as events
from dcos_tensorflow.task.supervise.environment import Directories
from dcos_tensorflow.task.unit_order import UnitOrder, storage_of, storage_without_unit

if TYPE_CHECKING:
    from dcos_tensorflow.task.output.shipping.shipper import Shipper
    from dcos_tensorflow.task.storage.s3.retry import Cancellation
    from dcos_tensorflow.task.storage.task_storage import StartNeeds, TaskStorage

Log = Callable[[str], None]
Tell = Callable[[events.Event], None]


def storage_work(
    spec: RunnerSpec, where: Directories, log: Log, tell: Tell
) -> "Optional[StorageWork]":
    """Return what keeps the task's state in S3; None where nothing of it is wanted.

    Raises JobUnusable for settings that can never work.
    """
    wanted = spec.storage
    if not wanted.keeps_state:
        return None
    from dcos_tensorflow.task.storage.s3.location import LocationError
    from dcos_tensorflow.task.storage.task_storage import TaskStorage

    if wanted.checkpoints and environment.is_url(where.checkpoint_dir):
        raise JobUnusable(
            f"CHECKPOINT_DIR is {where.checkpoint_dir}, and checkpoints are to be published",
            "give checkpoints.uri alone: the task then has a directory of its own",
        )
    if spec.takes_units:
        wanted = storage_without_unit(wanted)

    def of_unit(unit: UnitOrder) -> TaskStorage:
        kept = storage_of(spec.storage, unit, f"{spec.task}/{spec.attempt}")
        return TaskStorage(kept, environment.of_unit(where, unit), log)

    try:
        return StorageWork(TaskStorage(wanted, where, log), of_unit, log, tell)
    except LocationError as error:
        raise JobUnusable(str(error)) from None


def log_shipper(spec: RunnerSpec, sandbox: str, log: Log) -> "Optional[Shipper]":
    """Return what copies the task's output; None where that is not wanted.

    Raises JobUnusable for settings that can never work.
    """
    wanted = spec.storage.logs
    if wanted is None:
        return None
    from dcos_tensorflow.task.output.shipping.shipper import Shipper, folder_in
    from dcos_tensorflow.task.storage.s3.location import LocationError, S3Settings
    from dcos_tensorflow.task.storage.s3.object_store import Connection

    source = f"{spec.service.strip('/')}/{spec.task}/{spec.attempt}"
    try:
        connection = Connection(S3Settings.of(spec.storage.s3, sandbox), log=log)
        return Shipper(wanted, source, connection, folder_in(sandbox))
    except (LocationError, OSError) as error:
        raise JobUnusable(f"The task's output cannot be shipped: {error}") from None


class StorageWork:
    """Runs the steps of one ``TaskStorage`` one after the other, and tells when each is done.

    Each unit of work has one of its own, which ``of_unit`` makes. All methods are the loop's, but
    for ``checkpoint`` and ``as_json``.
    """

    def __init__(
        self,
        storage: "TaskStorage",
        of_unit: "Callable[[UnitOrder], TaskStorage]",
        log: Log,
        tell: Tell,
    ) -> None:
        self._storage = storage
        self._of_unit = of_unit
        self._unit: Optional[UnitOrder] = None
        self._log = log
        self._tell = tell
        self._steps: "queue.SimpleQueue[Optional[Callable[[], None]]]" = queue.SimpleQueue()
        self._newest_fetch = 0
        #: Of which process, and of which start of it, is being kept what it left.
        self._keeping: Optional[Tuple[int, int]] = None
        self._thread = threading.Thread(target=self._work, name="storage", daemon=True)
        self._thread.start()

    def fetch(self, order: StartOrder, number: int, ran_before: bool) -> None:
        """Bring what ``order`` needs; then ``Fetched`` with ``number`` is told."""
        from dcos_tensorflow.task.storage.task_storage import StartNeeds

        agreed = order.run and order.expects_restore_step
        if order.unit is not None:
            ran_before = self._turn_to(order.unit)
        wanted = StartNeeds(agreed, order.restore_step if agreed else None, ran_before)
        self._newest_fetch = number
        storage, gate = self._storage, self._storage.announce_fetch()
        self._steps.put(lambda: self._fetch(storage, wanted, number, gate))

    def _turn_to(self, unit: UnitOrder) -> bool:
        """Work for ``unit`` from now on; say whether what it left here is the newest there is."""
        before, self._unit = self._unit, unit
        if before == unit:
            return False
        former = self._storage
        former.stop()
        self._storage = self._of_unit(unit)
        self._storage.take_over(former)
        is_next = before is not None and before.number == unit.number
        return before is not None and is_next and before.attempt + 1 == unit.attempt

    def begin(self) -> None:
        """Begin to publish: the process runs."""
        self._storage.begin()

    def ends_soon(self) -> None:
        """Have what is complete already published while the process is being stopped."""
        self._storage.publish_soon()

    def keep(
        self,
        process: int,
        seconds: float,
        first: Optional[Callable[[], Optional[ExitReport]]] = None,
    ) -> None:
        """Publish what ``process`` left, for ``seconds``; then ``Kept`` is told.

        The same again shortens the time. ``first`` is done before, and returns why the start has
        failed, if it has.
        """
        this = (process, self._newest_fetch)
        if self._keeping == this:
            self._storage.hurry(seconds)
            return
        self._keeping, storage = this, self._storage
        self._steps.put(lambda: self._keep(storage, process, seconds, first))

    def close(self) -> None:
        """Stop everything at once."""
        self._steps.put(None)
        self._storage.stop()
        self._thread.join(5.0)

    def checkpoint(self) -> Optional[Checkpoint]:
        """Return the newest published checkpoint that is known; no request is made."""
        newest = self._storage.newest()
        return Checkpoint(*newest) if newest else None

    @property
    def doing(self) -> str:
        """Return how much is there of what is brought, or of what is kept; '' for nothing."""
        is_kept = self._keeping is not None and self._keeping[1] == self._newest_fetch
        return self._storage.leaving() if is_kept else self._storage.arriving()

    def verdict(self) -> Optional[ExitVerdict]:
        """Return why the process must end: a newer attempt has taken its place."""
        problem = self._storage.superseded()
        return ExitVerdict(ExitClass.STORAGE, problem.summary, problem.hint) if problem else None

    def as_json(self) -> Dict[str, Any]:
        """Return what ``GET /v1/status`` shows under ``storage``."""
        return self._storage.status()

    def _work(self) -> None:
        step = self._steps.get()
        while step is not None:
            step()
            step = self._steps.get()

    def _fetch(
        self, storage: "TaskStorage", wanted: "StartNeeds", number: int, gate: "Cancellation"
    ) -> None:
        if number == self._newest_fetch:
            refusal = self._fetched(storage, wanted, gate)
            self._tell(events.Fetched(number, time.time(), refusal))

    def _fetched(
        self, storage: "TaskStorage", wanted: "StartNeeds", gate: "Cancellation"
    ) -> Optional[ExitReport]:
        from dcos_tensorflow.task.storage.s3.errors import StorageError

        try:
            try:
                storage.fetch(wanted, gate)
            except StorageError as error:
                if storage.keep_local(error, wanted) is None:
                    known = error.problem
                    return storage_failed(known.summary, known.hint, known.refused)
        except Exception as error:  # The loop waits for an answer whatever this was.
            return storage_failed(f"The start cannot be prepared: {error!r}")
        return None

    def _keep(
        self,
        storage: "TaskStorage",
        process: int,
        seconds: float,
        first: Optional[Callable[[], Optional[ExitReport]]],
    ) -> None:
        refusal = first() if first is not None else None
        try:
            began = time.monotonic()
            if not storage.finish(seconds):
                self._log(
                    f"storage: the files that the process left are not all in S3 after "
                    f"{time.monotonic() - began:.1f} s"
                )
        except Exception as error:  # The task must end whatever this was.
            self._log(f"storage: the files that the process left could not be kept: {error!r}")
        self._tell(events.OutputKept(process, refusal))
