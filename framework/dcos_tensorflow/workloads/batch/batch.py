"""The producer of a batch: all of its input in pieces, each of them once.

What is listed in S3 or in a manifest is handed in, as are the outputs that are there already. After
a crash both are listed again, and the kept shards say how far the input was given out: it goes on
behind the last of them, so that nothing is left out and nothing comes twice.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.workload_spec import (
    MAX_PAYLOAD,
    MOST_UNITS,
    BatchSpec,
    output_of,
)
from dcos_tensorflow.workloads.producer import (
    Given,
    KeptUnit,
    Outcome,
    Points,
    Producer,
    Stop,
    Unit,
    WorkloadError,
)


class Batch(Producer):
    """The shards of one batch.

    ``kept`` are those that the state has, by their numbers; ``inputs`` what is listed now at
    ``listing``, of a prefix by name; ``existing`` the outputs that are there now. With ``last`` no
    shard comes behind those that are kept. Raises WorkloadError where outputs are there that must
    not be replaced, a manifest has changed, or there are more shards than a service may have.
    """

    learns = False

    def __init__(
        self,
        spec: BatchSpec,
        kept: Iterable[KeptUnit] = (),
        inputs: Sequence[str] = (),
        existing: Collection[str] = (),
        *,
        last: bool = False,
    ) -> None:
        self._spec = spec
        self._inputs = inputs
        self._units: list[Unit] = []
        for unit in kept:
            self.keep(unit)
        self._kept = len(self._units)
        #: The first shard that was not given out, where it begins, and where in the listing.
        self._first, self._begin, self._offset = 0, spec.begin, 0
        self._missing: list[int] = []
        if last:
            return
        if self._units:
            self._go_on_behind(self._units[-1].payload["shard"])
        left = len(inputs) - self._offset if spec.listing else spec.end - self._begin
        shards = range(self._first, self._first + -(-max(0, left) // spec.per_shard))
        if spec.listing and shards.stop > MOST_UNITS:
            raise WorkloadError(_too_many(spec, shards, left))
        there = set(existing)
        self._missing = [index for index in shards if output_of(spec, index) not in there]
        if not self._units and not spec.resume and len(self._missing) < len(shards):
            raise WorkloadError(_refused(spec, len(shards) - len(self._missing), there))

    @property
    def total(self) -> int:
        """How many shards there are to be worked on in all."""
        return self._kept + len(self._missing)

    def next(self, first: int, count: int) -> Given:
        """Return the next shards. Raises WorkloadError where the names of inputs are too long."""
        wanted = islice(self._missing, len(self._units) - self._kept, None)
        while len(self._units) < first + count and (index := next(wanted, None)) is not None:
            self._units.append(Unit(len(self._units), self._payload(index)))
        units = tuple(self._units[first : first + count])
        return Given(units, last=first + len(units) >= self.total)

    def keep(self, unit: KeptUnit) -> None:
        """Take a shard as it was given."""
        if unit.number == len(self._units):
            self._units.append(Unit(unit.number, unit.payload))

    def ended(self, number: int, outcome: Outcome, result: Mapping[str, Any]) -> None:
        """Do nothing: no shard depends on another."""

    def measured(self, number: int, points: Points) -> Stop | None:
        """Return None: no shard is stopped for what it measures."""
        return None

    def shown(self, number: int) -> Mapping[str, Any]:
        """Return which piece of the input it is, and where its output is."""
        payload = self._units[number].payload
        shard = payload["shard"]
        return {
            "index": shard["index"],
            "begin": shard["begin"],
            "end": shard["end"],
            "output": payload["output"],
        }

    def _go_on_behind(self, shard: Mapping[str, Any]) -> None:
        self._first, self._begin = shard["index"] + 1, shard["end"]
        if not self._spec.listing:
            return
        last = f"{shard['prefix']}{shard['names'][-1]}"
        if self._is_prefix:
            # Objects may have come or gone meanwhile: those behind the last one are left.
            self._offset = bisect.bisect_right(self._inputs, last)
            return
        self._offset = shard["end"]
        if list(self._inputs[self._offset - 1 : self._offset]) != [last]:
            raise WorkloadError(
                f"{self._spec.listing} is not what it was when shard {shard['index']} was taken "
                f"from it: its line {self._offset} was {last}"
            )

    @property
    def _is_prefix(self) -> bool:
        return self._spec.listing.endswith("/")

    def _payload(self, index: int) -> Mapping[str, Any]:
        size, turn = self._spec.per_shard, index - self._first
        begin = self._begin + turn * size
        offset = self._offset + turn * size
        names = self._inputs[offset : offset + size]
        end = begin + len(names) if self._spec.listing else min(begin + size, self._spec.end)
        shard: dict[str, Any] = {"index": index, "begin": begin, "end": end}
        if self._spec.listing:
            prefix = self._spec.listing if self._is_prefix else ""
            shard |= {"prefix": prefix, "names": [n.removeprefix(prefix) for n in names]}
        payload = {
            "env": {
                "SHARD_INDEX": str(index),
                "SHARD_BEGIN": str(begin),
                "SHARD_END": str(end),
            },
            "shard": shard,
            "output": output_of(self._spec, index),
        }
        length = len(json.dumps(payload))
        if length > MAX_PAYLOAD:
            fewer = max(1, size * MAX_PAYLOAD * 9 // (length * 10))
            raise WorkloadError(
                f"the names of the {counted(len(names), 'input')} of shard {index} are too long "
                f"to be kept: {length} bytes, and {MAX_PAYLOAD} is the most; "
                f"batch.inputs.per_shard of {fewer} would do"
            )
        return payload


def _too_many(spec: BatchSpec, shards: range, left: int) -> str:
    more = MOST_UNITS - shards.start
    would = f"; batch.inputs.per_shard of {-(-left // more)} would do" if more > 0 else ""
    return (
        f"batch.inputs.per_shard of {spec.per_shard} makes {shards.stop} shards of what is listed "
        f"at {spec.listing}, and {MOST_UNITS} is the most{would}"
    )


def _refused(spec: BatchSpec, there: int, existing: Collection[str]) -> str:
    return (
        f"{counted(there, 'output')} of this batch {'is' if there == 1 else 'are'} there already, "
        f"such as {min(existing)}; with batch.resume (run --resume) only those that "
        "are missing are made"
    )
