"""The unit of work of a start: the input of its process, and the output.

``starts`` makes one ``UnitWork`` for each task; without units it does nothing. Publishing the
output of a shard may take long, so that happens on a thread, and an event tells of it.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import unit_order as units
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, runner_failed, storage_failed
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.job_files import replace_text
from dcos_tensorflow.task.output.progress_log import ProgressLog
from dcos_tensorflow.task.spec import RunnerSpec, StartOrder
from dcos_tensorflow.task.supervise import environment
from dcos_tensorflow.task.supervise.environment import Directories
from dcos_tensorflow.task.supervise.lifecycle_events import OutputKept
from dcos_tensorflow.task.unit_order import UnitOrder

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.s3.retry import Cancellation
    from dcos_tensorflow.task.supervise.shard_output import ShardOutput

#: In the sandbox: the names that a shard's input has, a line each.
INPUTS_FILE_NAME = "shard-inputs.txt"
#: What a unit's own PROGRESS_FILE is called, beside what is kept of it (``measured``).
PROGRESS_NAME = "measured.jsonl"
#: They have ``data_shard`` (0, 1) as a task that is alone has, and decide about no unit.
_SIDE_ROLES = ("ps", "evaluator", "tensorboard")


def own_part(order: StartOrder, spec: RunnerSpec) -> StartOrder:
    """Return the order as it concerns this task: one of a slot's tasks writes and measures."""
    index = (order.cluster.data_shard or (0, 1))[0]
    if order.unit is None or (index == 0 and spec.role not in _SIDE_ROLES):
        return order
    payload = replace(order.unit.payload, output="", measure=None)
    return replace(order, unit=replace(order.unit, payload=payload))


class UnitWork:
    """The units of one task, one after the other. ``where`` are the directories of the task."""

    def __init__(
        self,
        spec: RunnerSpec,
        where: Directories,
        progress: ProgressLog,
        log: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._task_where = where
        self._progress = progress
        self._log = log
        self._unit: Optional[UnitOrder] = None
        self._output: Optional[ShardOutput] = None
        self._gate: Optional[Cancellation] = None
        self._publishing = 0
        self._began = 0.0
        #: Where the present start works.
        self.where = where
        #: What is told of the unit when it has ended; None while it has not, or there is none.
        self.end: Optional[Dict[str, Any]] = None

    @property
    def is_there(self) -> bool:
        """Say whether the present start is for a unit."""
        return self._unit is not None

    @property
    def measures(self) -> bool:
        """Say whether values are kept on the way of what this task works on, in its own place."""
        payload = self._unit.payload if self._unit else None
        return payload is not None and payload.measure is not None and bool(payload.directory)

    def begin(self, order: StartOrder, goes_on: bool) -> Optional[ExitReport]:
        """Make everything ready for the unit of ``order``; return why that cannot be.

        ``goes_on``: the process of the unit before is handed this one.
        """
        self.discard()
        unit = self._unit = order.unit
        self.end = None
        self.where = environment.of_unit(self._task_where, unit)
        if unit is None:
            self._progress.begin_start()
            return None
        self._began = time.monotonic()
        try:
            for path in self.where.local() if unit.payload.directory else ():
                os.makedirs(path, exist_ok=True)
            self._place_inputs(unit)
            self._place_output(unit)
        except OSError as error:
            return runner_failed(f"The places of unit {unit.number} cannot be made: {error}")
        self._progress.begin_unit(self._measured(unit), goes_on, self._log, self._own_progress_path)
        return None

    def variables(self) -> Dict[str, str]:
        """Return the variables of the unit that a process finds beside those of the task."""
        unit = self._unit
        found = environment.unit_variables(self._spec, self.where, unit)
        if unit is not None and unit.payload.shard and unit.payload.shard.names:
            found[contract.SHARD_INPUTS] = self._inputs_path
        if self._output is not None:
            found[contract.SHARD_OUTPUT] = self._output.path
        if self._own_progress_path:
            found[contract.PROGRESS_FILE] = self._own_progress_path
        return found

    @property
    def _own_progress_path(self) -> str:
        """Return where the job tells of the unit, if beside checkpoints that outlive its container.

        Of those that come from S3 nothing is there that is newer than they are.
        """
        directory = self.where.checkpoint_dir
        outlives = self._spec.checkpoint_dir and not self._spec.storage.checkpoints
        if not (self.measures and outlives) or environment.is_url(directory):
            return ""
        return os.path.join(directory, PROGRESS_NAME)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters of a trial; none where the start is for none."""
        return self._unit.payload.context if self._unit is not None else {}

    def shard(self) -> Optional[Dict[str, Any]]:
        """Return what ``main(shard, context)`` is called with; None where there is no shard."""
        shard = self._unit.payload.shard if self._unit else None
        if shard is None:
            return None
        return {
            "index": shard.index,
            "begin": shard.begin,
            "end": shard.end,
            "inputs": list(shard.inputs),
            "output": self._output.path if self._output is not None else "",
        }

    def ended(self) -> None:
        """Note what the unit has told until its end, before anything of it is published."""
        self.end = self._document(time.monotonic() - self._began)

    def as_json(self) -> Optional[Mapping[str, Any]]:
        """Return what the status says of the unit; None where there is none. From any thread.

        How long it has taken is told at its end: until then each look would be news.
        """
        return self.end or self._document()

    def publish(self) -> Optional[ExitReport]:
        """Publish what the unit has written, and return why that cannot be; raise nothing."""
        output = self._output
        if output is None:
            return None
        from dcos_tensorflow.task.supervise.shard_output import NothingWritten

        try:
            published = output.publish(self._put if output.is_in_s3 else None)
        except NothingWritten:
            return _nothing_written()
        except OSError as error:
            said = f"The shard's output cannot be published as {output.final}: {error.strerror}"
            return storage_failed(said, "may the task's user write there?")
        except Exception as error:  # The loop waits for an answer whatever this was.
            problem = getattr(error, "problem", None)
            if problem is None:
                return storage_failed(f"{output.final}: {error}")
            return storage_failed(problem.summary, problem.hint, problem.refused)
        if self.end is not None:
            self.end = {**self.end, "published": published}
        return None

    def keep(self, process: int, start: int, tell: Callable[[OutputKept], None]) -> None:
        """Publish on a thread what ``process`` wrote in ``start``, and tell when that is done."""
        if self._publishing != start:
            self._publishing = start
            threading.Thread(
                target=lambda: tell(OutputKept(process, self.publish())),
                name="shard-output",
                daemon=True,
            ).start()

    def hurry(self, seconds: float) -> None:
        """Give what is being published no more than this."""
        if self._gate is not None:
            self._gate.limit(seconds)

    def discard(self) -> None:
        """Remove what the unit has written, before any reader finds it."""
        output, self._output = self._output, None
        if output is not None:
            output.discard()

    @property
    def _inputs_path(self) -> str:
        return os.path.join(self._task_where.sandbox, INPUTS_FILE_NAME)

    def _place_inputs(self, unit: UnitOrder) -> None:
        shard = unit.payload.shard
        if shard is not None and shard.names:
            replace_text(self._inputs_path, "".join(f"{name}\n" for name in shard.inputs))

    def _place_output(self, unit: UnitOrder) -> None:
        if not unit.payload.output:
            return
        from dcos_tensorflow.task.supervise.shard_output import ShardOutput
        from dcos_tensorflow.task.supervise.shard_record import text_of

        owner = f"{unit.attempt}-{self._spec.task}-{self._spec.attempt}"
        shard = unit.payload.shard
        record = text_of(vars(shard)) if shard is not None else ""
        output = ShardOutput(unit.payload.output, self._task_where.sandbox, owner, record)
        output.prepare()
        self._output = output

    def _measured(self, unit: UnitOrder) -> Any:
        if unit.payload.measure is None:
            return None
        from dcos_tensorflow.task.output.measured import FILE_NAME, MeasuredCurve

        directory = self.where.checkpoint_dir
        own = unit.payload.directory and not environment.is_url(directory)
        path = os.path.join(directory, FILE_NAME) if own else ""
        return MeasuredCurve(unit.payload.measure, path, self._log)

    def _document(self, seconds: Optional[float] = None) -> Optional[Dict[str, Any]]:
        unit = self._unit
        if unit is None:
            return None
        measure = unit.payload.measure
        needed = measure.metric if measure else ""
        result = units.result_of(self._progress.known, self._progress.points, needed, seconds)
        told = {**unit.as_json(), "result": result}
        return told if seconds is None else {**told, "seconds": round(seconds, 3)}

    def _put(self, path: str, uri: str, record: str) -> bool:
        from dcos_tensorflow.task import bundle

        bundle.activate(self._task_where.sandbox)
        from dcos_tensorflow.task.storage.s3.location import S3Settings
        from dcos_tensorflow.task.storage.s3.object_store import Connection
        from dcos_tensorflow.task.storage.s3.retry import Cancellation
        from dcos_tensorflow.task.storage.s3.shard_object import put_if_absent

        self._gate = Cancellation()
        settings = S3Settings.of(self._spec.storage.s3, self._task_where.sandbox)
        connection = Connection(settings, gate=self._gate, log=self._log)
        return put_if_absent(connection, path, uri, record)


def _nothing_written() -> ExitReport:
    return ExitReport(
        exit_code=1,
        exit_class=ExitClass.USER_ERROR,
        summary="The shard is done, and nothing was left at SHARD_OUTPUT",
        hint="write the shard's output to the path in SHARD_OUTPUT, also where it is empty",
    )
