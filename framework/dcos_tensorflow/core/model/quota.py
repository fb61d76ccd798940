"""Why a gang waits that a quota keeps from growing: the rest of the quota beside the demand.

A master whose role has used up its quota makes smaller offers, or none; no offer says so.
The scheduler asks the master while a gang waits; ``core.offers.desk`` notes the answer beside the
reason of the wait. Pure; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from dcos_tensorflow.core.counted import amount
from dcos_tensorflow.core.spec.resources import EPSILON, Resources
from dcos_tensorflow.records import dataclass

#: What is counted, by Mesos' name of the scalar.
_UNITS = {"cpus": "cpu", "mem": "MB mem", "disk": "MB disk", "gpus": "gpu"}


@dataclass(frozen=True)
class Quota:
    """Limits of a Mesos role, and what it uses of them: all its frameworks and roles below it.

    Both by Mesos' names of scalars; what is not limited is not in ``limits``.
    """

    mesos_role: str
    limits: Mapping[str, float] = field(default_factory=dict)
    consumed: Mapping[str, float] = field(default_factory=dict)


def shortage(quota: Quota | None, wanted: Iterable[Resources]) -> str:
    """Return what of the quota is too small for all of ``wanted`` together; empty when nothing."""
    if quota is None:
        return ""
    total = sum(wanted, Resources())
    parts = []
    for name, unit in _UNITS.items():
        limit = quota.limits.get(name)
        needed = float(getattr(total, name))
        if limit is None or not needed:
            continue
        left = max(0.0, round(limit - quota.consumed.get(name, 0.0), 3))
        if needed > left + EPSILON:
            parts.append(f"{left:g} of {amount(limit, unit)}, and {needed:g} are needed")
    return f"{quota.mesos_role} leaves {', '.join(parts)}" if parts else ""
