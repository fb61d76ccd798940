"""The producer of a batch: all of its input in pieces, each of them once.

The caller hands in the inputs of S3 or of a manifest, and the outputs that are there already, each
with the record of its inputs. A shard is its inputs, and its number only names its output: a batch
that goes on works on inputs without an output. After a crash the kept shards say how far the input
was given out: it goes on behind the last of them, so that nothing is left out and nothing comes
twice.
"""

from __future__ import annotations

import bisect
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, zip_longest
from types import MappingProxyType
from typing import Any

from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.workload_spec import (
    MAX_PAYLOAD,
    MOST_UNITS,
    BatchSpec,
    index_of,
    output_of,
    writes_below,
)
from dcos_tensorflow.workloads.producer import (
    Given,
    KeptUnit,
    Points,
    Producer,
    Stop,
    Unit,
    WorkloadError,
)

#: What changes when an input does has so many characters; this stands for what is not known.
STAMP_LENGTH = 8
UNKNOWN_STAMP = "-" * STAMP_LENGTH
#: What was an output made of: ``begin`` and ``end``, of a listing ``inputs`` and their ``stamps``.
Record = Mapping[str, Any]


class Batch(Producer):
    """The shards of one batch.

    ``kept`` are those that the state has, by their numbers; ``inputs`` what is listed now at
    ``listing``, of a prefix by name, each with its stamp in ``stamps``; ``existing`` the outputs
    that are there now, and ``records`` says by the name of an output what it was made of. With
    ``last`` no shard comes behind those that are kept. Raises WorkloadError where outputs are there
    that must not be replaced or were made of something else, a manifest has changed, an input is
    an output, or there are more shards than a service may have.
    """

    learns = False

    def __init__(
        self,
        spec: BatchSpec,
        kept: Iterable[KeptUnit] = (),
        inputs: Sequence[str] = (),
        existing: Collection[str] = (),
        *,
        stamps: Sequence[str] = (),
        records: Mapping[str, Record] = MappingProxyType({}),
        last: bool = False,
    ) -> None:
        self._spec = spec
        self._inputs = inputs
        self._stamps = stamps
        self._units: list[Unit] = []
        for unit in kept:
            self.keep(unit)
        self._kept = len(self._units)
        #: The shards that are to be worked on beside those: index, begin and end of each.
        self._pieces: list[tuple[int, int, int]] = []
        if last:
            return
        index = index_of(spec)
        self._refuse_outputs_as_inputs(index)
        given = {unit.payload["shard"]["index"] for unit in self._units}
        there = {index(name): name for name in existing}
        done = {n: there[n] for n in sorted(n for n in there if n is not None) if n not in given}
        if done and not spec.resume:
            raise WorkloadError(_refused(done.values()))
        first, begin = self._behind_kept()
        end = len(inputs) if spec.listing else spec.end
        made_of = {name: _record(records, name) for name in done.values()}
        worked = self._positions(made_of) if spec.listing else self._numbers(made_of)
        spans = [(max(a, begin), b) for a, b in _between(worked, spec.begin, end) if b > begin]
        size = spec.per_shard
        shards = len(given) + len(done) + sum(-(-(b - a) // size) for a, b in spans)
        if spec.listing and shards > MOST_UNITS:
            raise WorkloadError(_too_many(spec, shards, sum(b - a for a, b in spans)))
        free = (n for n in count(first) if n not in done)
        self._pieces = [
            (next(free), start, min(start + size, b))
            for a, b in spans
            for start in range(a, b, size)
        ]

    @property
    def total(self) -> int:
        """How many shards there are to be worked on in all."""
        return self._kept + len(self._pieces)

    def next(self, first: int, count: int) -> Given:
        """Return the next shards. Raises WorkloadError where the names of inputs are too long."""
        pieces = self._pieces[len(self._units) - self._kept : first + count - self._kept]
        for piece in pieces:
            self._units.append(Unit(len(self._units), self._payload(*piece)))
        units = tuple(self._units[first : first + count])
        return Given(units, last=first + len(units) >= self.total)

    def keep(self, unit: KeptUnit) -> None:
        """Take a shard as it was given."""
        if unit.number == len(self._units):
            self._units.append(Unit(unit.number, unit.payload))

    def ended(self, number: int, outcome: UnitState, result: Mapping[str, Any]) -> None:
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

    def _refuse_outputs_as_inputs(self, index: Callable[[str], int | None]) -> None:
        listing, output = self._spec.listing, self._spec.output
        if self._is_prefix and writes_below(output, listing):
            raise WorkloadError(f"the outputs {output} lie below {listing} and would be inputs")
        for name in self._inputs:
            if index(name) is not None:
                raise WorkloadError(f"{listing} names {name}, which is an output of this batch")

    def _behind_kept(self) -> tuple[int, int]:
        """Return the first index that was not given out, and where what is left begins."""
        if not self._units:
            return 0, self._spec.begin
        if self._spec.listing and not self._is_prefix:
            self._refuse_changed_manifest()
        shard = self._units[-1].payload["shard"]
        begin = shard["end"]
        if self._is_prefix:
            # Objects may have come or gone meanwhile: those behind the last one are left.
            begin = bisect.bisect_right(self._inputs, f"{shard['prefix']}{shard['names'][-1]}")
        return shard["index"] + 1, begin

    def _refuse_changed_manifest(self) -> None:
        for unit in self._units:
            shard = unit.payload["shard"]
            lines = self._inputs[shard["begin"] : shard["end"]]
            for number, (line, now) in enumerate(zip_longest(shard["names"], lines)):
                if line != now:
                    raise WorkloadError(
                        f"{self._spec.listing} has changed since shard {shard['index']} was"
                        f" taken from it: its line {shard['begin'] + number + 1} was {line}"
                    )

    def _positions(self, made_of: Mapping[str, Record]) -> list[tuple[int, int]]:
        """Return which of what is listed has been worked on. Raises WorkloadError."""
        missing: dict[str, list[tuple[str, str]]] = {}
        for output, record in made_of.items():
            names = record.get("inputs")
            if not isinstance(names, list):
                now = f"inputs are listed at {self._spec.listing}"
                raise WorkloadError(_of_others(output, record, now))
            for name, stamp in zip(names, _stamps_of(record, len(names)), strict=True):
                missing.setdefault(name, []).append((output, stamp))
        given = {
            position
            for unit in self._units
            for position in range(unit.payload["shard"]["begin"], unit.payload["shard"]["end"])
        }
        found = []
        for position, name in enumerate(self._inputs if missing else ()):
            if name not in missing or (position in given and not self._is_prefix):
                continue
            output, stamp = missing[name].pop(0)
            if not missing[name]:
                del missing[name]
            self._refuse_changed(output, name, stamp, position)
            found.append((position, position + 1))
        if missing and not self._units:
            name, ((output, _), *_more) = next(iter(missing.items()))
            raise WorkloadError(
                f"{output} was made of {name}, which {self._spec.listing} does not name any more:"
                f" remove {output}, and the batch works on its other inputs again"
            )
        return found

    def _refuse_changed(self, output: str, name: str, stamp: str, position: int) -> None:
        now = self._stamps[position] if self._stamps else UNKNOWN_STAMP
        if stamp != now and UNKNOWN_STAMP not in (stamp, now):
            raise WorkloadError(
                f"{name} has changed since {output} was made of it: remove {output} to have it"
                " made again"
            )

    def _numbers(self, made_of: Mapping[str, Record]) -> list[tuple[int, int]]:
        """Return which numbers of the range have been worked on. Raises WorkloadError."""
        found = []
        for output, record in made_of.items():
            begin, end = (_whole(record.get(name)) for name in ("begin", "end"))
            if "inputs" in record or begin < self._spec.begin or not begin < end <= self._spec.end:
                range_ = f"batch.inputs.range is from {self._spec.begin} to {self._spec.end}"
                raise WorkloadError(_of_others(output, record, range_))
            found.append((begin, end))
        return sorted(found)

    @property
    def _is_prefix(self) -> bool:
        return self._spec.listing.endswith("/")

    def _payload(self, index: int, begin: int, end: int) -> Mapping[str, Any]:
        size, names = self._spec.per_shard, self._inputs[begin:end]
        shard: dict[str, Any] = {"index": index, "begin": begin, "end": end}
        if self._spec.listing:
            prefix = self._spec.listing if self._is_prefix else ""
            shard |= {"prefix": prefix, "names": [n.removeprefix(prefix) for n in names]}
            stamps = self._stamps[begin:end]
            if any(stamp != UNKNOWN_STAMP for stamp in stamps):
                shard["stamps"] = "".join(stamps)
        payload = {
            "env": {"SHARD_INDEX": str(index), "SHARD_BEGIN": str(begin), "SHARD_END": str(end)},
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


def _too_many(spec: BatchSpec, shards: int, left: int) -> str:
    more = MOST_UNITS - (shards - -(-left // spec.per_shard))
    would = f"; batch.inputs.per_shard of {-(-left // more)} would do" if more > 0 else ""
    return (
        f"batch.inputs.per_shard of {spec.per_shard} makes {shards} shards of the inputs "
        f"at {spec.listing}, and {MOST_UNITS} is the most{would}"
    )


def _record(records: Mapping[str, Record], output: str) -> Record:
    if output not in records:
        raise WorkloadError(
            f"{output} is there, and there is no record of the inputs that it was made of: remove"
            " it to have them worked on"
        )
    return records[output]


def _whole(number: Any) -> int:
    """Return a number of a record; one that no range has for what is none."""
    return number if isinstance(number, int) else -sys.maxsize


def _stamps_of(record: Record, length: int) -> Sequence[str]:
    text = str(record.get("stamps", ""))
    stamps = [text[at : at + STAMP_LENGTH] for at in range(0, len(text), STAMP_LENGTH)]
    return stamps if len(stamps) == length else [UNKNOWN_STAMP] * length


def _between(taken: Iterable[tuple[int, int]], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what is left of ``begin`` to ``end``; what is taken comes in its order."""
    for start, stop in taken:
        if start > begin:
            yield begin, start
        begin = max(begin, stop)
    if begin < end:
        yield begin, end


def _of_others(output: str, record: Record, now: str) -> str:
    inputs = record.get("inputs")
    of = f"{inputs[0]}" if inputs else f"{record.get('begin')} to {record.get('end')}"
    return f"{output} was made of {of}, and {now}: give this batch another batch.output"


def _refused(existing: Collection[str]) -> str:
    return (
        f"{counted(len(existing), 'output')} of this batch"
        f" {agreeing(len(existing), 'are')} there already, such as {min(existing)}; with"
        " batch.resume (run --resume) only missing outputs are made"
    )
