"""The running jobs that give way to a team that reclaims its guarantee.

Called by ``line``. Of the jobs that may give way it takes those of the lowest priority that lose
the least work for the room that they free, and takes them whole: a gang never goes in part. It
takes no more than the waiting gang needs. It never decides that a job has to give way, only which.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TypeAlias

from dcos_tensorflow.queue.model import Constraint, GangNeed, Placement, TaskNeed
from dcos_tensorflow.queue.places import Amounts, Places, amount_of
from dcos_tensorflow.records import dataclass

#: The highest priority that goes, and the work that is lost.
Price: TypeAlias = tuple[int, float]


@dataclass(frozen=True)
class Candidate:
    """A running gang that may give way."""

    job: str
    #: Which of a sweep's or a batch's slots; 0 of a training.
    slot: int
    placement: Placement
    priority: int
    #: The work that it repeats, in seconds of the whole cluster.
    lost_work: float

    @property
    def key(self) -> tuple[str, int]:
        """Return what it is told apart by."""
        return self.job, self.slot


class _Choice:
    """The gangs that were chosen so far, and the room that is free without them."""

    def __init__(self, candidates: Iterable[Candidate], places: Places) -> None:
        self._places = places
        self.free: Amounts = places.free
        self.chosen: dict[tuple[str, int], Candidate] = {}
        self.on_host: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            for name in {host for host, _, _ in candidate.placement}:
                self.on_host.setdefault(name, []).append(candidate)

    def room_on(self, name: str, need: TaskNeed) -> tuple[Price, list[Candidate]] | None:
        """Return the cheapest way to room for one task on a host; None where there is none."""
        column = self._places.host(name)
        free, wanted = self.free[:, column].copy(), amount_of(need)
        others = [c for c in self.on_host[name] if c.key not in self.chosen]
        scarce = 2 if need.gpu_milli else 0

        def dearness(candidate: Candidate) -> tuple[int, float, tuple[str, int]]:
            frees = sum(
                (task.gpu_milli if scarce else task.cpu_milli) * count
                for host, task, count in candidate.placement
                if host == name
            )
            return candidate.priority, candidate.lost_work / max(frees, 1), candidate.key

        going: list[Candidate] = []
        for candidate in sorted(others, key=dearness):
            if (free >= wanted).all():
                break
            going.append(candidate)
            for host, task, count in candidate.placement:
                if host == name:
                    free += amount_of(task, count)
        if not (free >= wanted).all() or not going:
            return None
        return (max(c.priority for c in going), sum(c.lost_work for c in going)), going

    def add(self, going: Iterable[Candidate]) -> None:
        """Choose some more."""
        for candidate in going:
            self.chosen[candidate.key] = candidate
            self._places.change(candidate.placement, self.free, 1)


def choose(
    gang: GangNeed, where: tuple[Constraint, ...], candidates: Iterable[Candidate], places: Places
) -> tuple[tuple[Candidate, ...], Placement] | None:
    """Return the gangs that give way and the place of the new one; None if that is not enough."""
    choice = _Choice(candidates, places)
    for need, count in gang:
        if not _make_room(need, count, where, choice, places):
            return None
    free = places.free
    for candidate in choice.chosen.values():
        places.change(candidate.placement, free, 1)
    # The last ones may have freed so much that one of the first need not go: the dearest is tried
    # first.
    for candidate in sorted(choice.chosen.values(), key=lambda c: (-c.priority, -c.lost_work)):
        places.change(candidate.placement, free, -1)
        if places.place(gang, where, free) is not None:
            del choice.chosen[candidate.key]
        else:
            places.change(candidate.placement, free, 1)
    placement = places.place(gang, where, free)
    if placement is None or not choice.chosen:
        return None
    return tuple(choice.chosen.values()), placement


def _make_room(
    need: TaskNeed, count: int, where: tuple[Constraint, ...], choice: _Choice, places: Places
) -> bool:
    """Choose until ``count`` tasks of a need have a place, which is taken of what is free."""
    allowed = places.allowed(where) & places.allowed(need.where)
    heap: list[tuple[Price, str]] | None = None
    while True:
        placed = places.as_many(need, count, allowed, choice.free)
        places.change(placed, choice.free, -1)
        count -= sum(tasks for _, _, tasks in placed)
        if not count:
            return True
        if heap is None:
            hosts = [name for name in choice.on_host if allowed[places.host(name)]]
            rooms = [(choice.room_on(name, need), name) for name in hosts]
            heap = [(room[0], name) for room, name in rooms if room is not None]
            heapq.heapify(heap)
        while heap:
            price, name = heapq.heappop(heap)
            room = choice.room_on(name, need)
            if room is None:
                continue
            heapq.heappush(heap, (room[0], name))
            if room[0] <= price:
                choice.add(room[1])
                break
        else:
            return False
