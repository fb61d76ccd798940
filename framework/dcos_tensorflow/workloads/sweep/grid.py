"""All combinations of a sweep's parameters, in an order that the seed decides. Pure."""

from __future__ import annotations

import hashlib
import itertools

from dcos_tensorflow.core.spec.workload_spec import ParameterValue, SweepSpec


def combinations(spec: SweepSpec) -> list[dict[str, ParameterValue]]:
    """Return the parameters of each trial: no order of the axes, so that the first say something.

    Every parameter has an end of values: options with others are refused.
    """
    names = [parameter.name for parameter in spec.parameters]
    points = list(itertools.product(*(parameter.values() or () for parameter in spec.parameters)))
    order = sorted(range(len(points)), key=lambda index: seed_of(spec, index))
    return [dict(zip(names, points[index], strict=True)) for index in order[: spec.trials]]


def seed_of(spec: SweepSpec, number: int) -> int:
    """Return a seed of 32 bits, as numpy takes them, for one of many draws."""
    text = f"{spec.seed}/{number}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
