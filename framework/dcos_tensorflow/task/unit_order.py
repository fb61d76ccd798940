"""A unit of work as an order tells of it: a trial of a sweep, or a shard of a batch. Pure.

``spec`` reads it. ``workloads.producer`` makes the payload of a unit; this module gives it to
the user's process, and reports on the unit when it is done.
"""

from __future__ import annotations

import json
import posixpath
from dataclasses import field, replace
from typing import Any, Dict, List, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.output.progress import Progress, number, numbers_of, plain
from dcos_tensorflow.task.spec_fields import Texts, checked, read
from dcos_tensorflow.task.storage_spec import Storage, is_below_the_sandbox


@dataclass(frozen=True)
class Measure:
    """Which values are kept of a unit: of ``metric`` the first in each span of steps.

    A span begins at each of ``spans``, in their order.
    """

    metric: str
    spans: Tuple[int, ...] = ()


def _whole() -> Any:
    return checked("a whole number", lambda value: type(value) is int)


@dataclass(frozen=True)
class Shard:
    """A piece of a batch's input: numbers from ``begin`` to ``end``, which is not in it.

    Of a listing they count its lines, and ``names`` are those, each behind ``prefix``.
    """

    index: int
    begin: Any = _whole()
    end: Any = _whole()
    prefix: str = ""
    names: Texts = ()
    #: Of each input, in their order, what changes when it does: of size and ETag (``Batch``).
    stamps: str = ""

    @property
    def inputs(self) -> Tuple[str, ...]:
        """Return the names in full; none where the input is numbers alone."""
        return tuple(self.prefix + name for name in self.names)


@dataclass(frozen=True)
class Payload:
    """What a unit is.

    ``env`` are variables, ``context`` is laid over the job's. ``directory`` is the unit's own,
    below those of the task, empty for none. ``output`` is where the output of a shard is found
    when it is whole: a path, or a place in S3; empty for none.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    directory: str = checked(
        "a path below the task's directories",
        lambda value: not value or is_below_the_sandbox(value),
        "",
    )
    shard: Optional[Shard] = None
    output: str = ""
    measure: Optional[Measure] = None


@dataclass(frozen=True)
class UnitOrder:
    """One attempt of a unit."""

    number: int
    attempt: int
    payload: Payload = Payload()

    def as_json(self) -> Dict[str, Any]:
        """Return what a report says of which unit it is."""
        return {"number": self.number, "attempt": self.attempt}


def parse_unit(document: Any) -> Optional[UnitOrder]:
    """Return the unit of an order; None where there is none. Raises SpecError."""
    return read(_Told, {"unit": document}).unit


@dataclass(frozen=True)
class _Told:
    unit: Optional[UnitOrder] = None


def context_of(unit: Optional[UnitOrder], text: str) -> str:
    """Return JOB_CONTEXT: the job's own ``text``, with the unit's context laid over it.

    Text that is no JSON object stays as it is where a unit has none.
    """
    if unit is None or not unit.payload.context:
        return text
    try:
        known = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        known = {}
    return json.dumps({**(known if isinstance(known, dict) else {}), **unit.payload.context})


def storage_of(kept: Storage, unit: UnitOrder, owner: str) -> Storage:
    """Return what of a task's places in S3 is the unit's: each has its own below them.

    A later attempt of the unit takes the place of an earlier one, whatever slot it runs in;
    ``owner`` is the task that runs this one.
    """
    directory = unit.payload.directory
    checkpoints, summaries, output = kept.checkpoints, kept.summaries, kept.output
    if checkpoints and directory:
        writer = checkpoints.writer
        if writer:
            writer = replace(writer, generation=unit.attempt, owner=f"{writer.owner}/{owner}")
        uri = posixpath.join(checkpoints.uri, directory)
        checkpoints = replace(checkpoints, uri=uri, writer=writer)
    if summaries and directory:
        summaries = replace(summaries, uri=posixpath.join(summaries.uri, directory))
    if output and directory:
        output = replace(output, uri=posixpath.join(output.uri, directory))
    if not directory:
        # No other unit's: units would publish their checkpoints over each other.
        checkpoints = None
    return replace(kept, checkpoints=checkpoints, summaries=summaries, output=output)


def storage_without_unit(kept: Storage) -> Storage:
    """Return what a slot's task keeps in S3 while it has no unit: input data is there for all."""
    return replace(kept, checkpoints=None, summaries=None, output=None)


def result_of(
    known: Progress,
    points: Mapping[int, Tuple[int, float]],
    needed: str = "",
    seconds: Optional[float] = None,
) -> Dict[str, Any]:
    """Return what is told of a unit as its result, at most UNIT_RESULT_BYTES of JSON.

    Of one that would be longer the job's own result is left out as far as it is not numbers, then
    all of it, and then the metrics; but for the metric ``needed``, which decides about the unit.
    """
    metrics = plain(numbers_of(known))
    measured: List[Any] = [list(points[span]) for span in sorted(points)]
    document: Dict[str, Any] = {} if seconds is None else {"seconds": round(seconds, 3)}
    if measured:
        document["measured"] = plain(measured)
    own = dict(known.result or {})
    numbers = {k: v for k, v in own.items() if number(v) is not None}
    least, one = ({k: v for k, v in d.items() if k == needed} for d in (numbers, metrics))
    for result, values in ((own, metrics), (numbers, metrics), (least, metrics), (least, one)):
        whole = {**document, "result": result, "metrics": values}
        if len(json.dumps(whole).encode()) <= contract.UNIT_RESULT_BYTES:
            return whole
    return document
