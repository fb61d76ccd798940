"""What the units of a service are: producers of the trials of a sweep and the shards of a batch.

The core knows units by their numbers, keeps them and hands them to slots; a producer says what the
next ones are, and hears how each went. Pure: no I/O, no clock, no randomness but by a seed. What a
producer knows is worked out of the kept units again after a crash. Nothing outside ``sweep``
imports Optuna, and nothing there before a sweep needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dcos_tensorflow.core.spec.workload_spec import SweepSpec, WorkloadSpec
from dcos_tensorflow.workloads.producer import KeptUnit, Producer


def producer_of(
    spec: WorkloadSpec,
    kept: Iterable[KeptUnit] = (),
    *,
    inputs: Sequence[str] = (),
    existing: Collection[str] = (),
    last: bool = False,
) -> Producer:
    """Return the producer of a service's units; ``kept`` are those that the state has.

    ``inputs`` is what a batch finds listed at its ``listing``, ``existing`` its outputs that are
    there. With ``last`` all units are kept, and neither matters. Raises WorkloadError.
    """
    if isinstance(spec, SweepSpec):
        from dcos_tensorflow.workloads.sweep.sweep import Sweep

        return Sweep(spec, kept)
    from dcos_tensorflow.workloads.batch.batch import Batch

    return Batch(spec, kept, inputs, existing, last=last)
