"""The units of a service: producers of the trials of a sweep and the shards of a batch.

The core knows units by their numbers, keeps them and hands them to slots; a producer makes the next
ones, and hears how each went. Pure: no I/O, no clock, no randomness but by a seed. After a crash a
producer works its knowledge out of the stored units. Nothing outside ``sweep`` imports Optuna, and
nothing there before a sweep needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dcos_tensorflow.core.spec.workload_spec import SweepSpec, WorkloadSpec
from dcos_tensorflow.workloads.producer import KeptUnit, Producer


def producer_of(
    spec: WorkloadSpec,
    kept: Iterable[KeptUnit] = (),
    *,
    inputs: Sequence[str] = (),
    existing: Collection[str] = (),
    stamps: Sequence[str] = (),
    records: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    last: bool = False,
) -> Producer:
    """Return the producer of a service's units; ``kept`` are those that the state has.

    ``inputs`` is what a batch finds listed at its ``listing``, ``stamps`` what changes when one of
    them does, ``existing`` its outputs that are there, and ``records`` what each was made of.
    With ``last`` all units are kept, and none of it matters. Raises WorkloadError.
    """
    if isinstance(spec, SweepSpec):
        from dcos_tensorflow.workloads.sweep.sweep import Sweep

        return Sweep(spec, kept)
    from dcos_tensorflow.workloads.batch.batch import Batch

    return Batch(spec, kept, inputs, existing, stamps=stamps, records=records, last=last)
