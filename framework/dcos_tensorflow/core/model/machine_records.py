"""The stored records of machines that are bought for a service.

The ledger itself is ``capacity``'s and is opaque here: the core commits it before the loop that
buys acts on it, places nothing on machines that are to be emptied, and ends no uninstall while one
is left.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class CapacityRecord:
    """One record of the ledger: a purchase, or what is true of all of them."""

    #: Machines of it that may still cost something, those that were ordered included.
    machines: int = 0
    #: Hostnames and addresses of its machines that are to be emptied.
    leaving: tuple[str, ...] = ()
    #: Those of them whose tasks are to move before, as from machines that are taken back.
    moving: tuple[str, ...] = ()
    #: The record, as JSON.
    body: Mapping[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def remembered(self) -> dict[Any, Any]:
        """Hold what others read out of the body once."""
        return {}


#: The ledger by key.
CapacityRecords = Mapping[str, CapacityRecord]


def machines_left(records: CapacityRecords) -> int:
    """Return how many machines may still cost something."""
    return sum(record.machines for record in records.values())


def emptied(records: CapacityRecords) -> frozenset[str]:
    """Return the names of machines on which nothing is to be placed."""
    return frozenset(name for record in records.values() for name in record.leaving)
