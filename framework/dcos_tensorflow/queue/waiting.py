"""The jobs of one team that wait, in their order, without a look at each.

Jobs that want the same and may run about as long stand in one bucket: when its first has no room,
none of it has, so that a decision costs the number of kinds of jobs, not of jobs. Called by
``line``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import TypeAlias

from dcos_tensorflow.queue.model import GangNeed, QueuedJob

#: The gang, and the class of the time limit: -1 of a job without one.
BucketKey: TypeAlias = tuple[GangNeed, int]
#: Urgent ones first, then by priority, then by age, then as they came.
JobOrder: TypeAlias = tuple[int, int, float, int]

# Limits of one class differ by at most that factor.
_LIMIT_STEP = 1.5


def limit_class(seconds: float | None) -> int:
    """Return the class of a time limit; -1 where there is none."""
    if seconds is None:
        return -1
    return max(0, math.ceil(math.log(max(seconds, 1.0), _LIMIT_STEP)))


def longest_of_class(limit: int) -> float:
    """Return how long a job of the class may run at most, in seconds."""
    return math.inf if limit < 0 else _LIMIT_STEP**limit


class TeamLine:
    """One team's waiting jobs."""

    def __init__(self) -> None:
        self._buckets: dict[BucketKey, list[tuple[JobOrder, str]]] = {}
        #: The entry of each job that counts; others of it are stale.
        self._entries: dict[str, tuple[JobOrder, BucketKey]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, job: str) -> bool:
        return job in self._entries

    def add(self, job: QueuedJob, number: int, *, urgent: bool = False) -> None:
        """Let a job wait, or wait in another order; ``number`` says when it came."""
        order = (0 if urgent else 1, -job.priority, job.submitted_at, number)
        key = (job.gang, limit_class(job.time_limit))
        self._entries[job.id] = (order, key)
        heapq.heappush(self._buckets.setdefault(key, []), (order, job.id))

    def remove(self, job: str) -> None:
        """Take a job out of the line."""
        self._entries.pop(job, None)

    def first(self, key: BucketKey) -> tuple[JobOrder, str] | None:
        """Return the first job of a bucket, or None of an empty one, which is dropped."""
        bucket = self._buckets.get(key)
        while bucket:
            order, job = bucket[0]
            if self._entries.get(job) == (order, key):
                return bucket[0]
            heapq.heappop(bucket)
        self._buckets.pop(key, None)
        return None

    def heads(self) -> list[tuple[JobOrder, str, BucketKey]]:
        """Return the first job of each bucket, as a heap."""
        found = []
        for key in list(self._buckets):
            first = self.first(key)
            if first is not None:
                found.append((*first, key))
        heapq.heapify(found)
        return found

    def ordered(self) -> Iterator[str]:
        """Yield all jobs in the order of the line."""
        for _, job in sorted((order, job) for job, (order, _) in self._entries.items()):
            yield job
