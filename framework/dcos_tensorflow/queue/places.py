"""Which hosts have room for a gang: amounts in arrays, so that 5,000 hosts cost as much as one.

Called by ``line`` and ``giving_way``. A gang is placed all or none, each task where it leaves the
least GPU behind and then the least CPU: tasks without GPUs stay off hosts that have some. It never
chooses the job for the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.queue.model import Constraint, GangNeed, Host, Placement, TaskNeed

#: Of each host: cpu_milli, mem_mib, gpu_milli. Shape (3, hosts).
Amounts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

# A thousandth of a GPU left behind is worse than any amount of CPU left behind.
_GPU_FIRST = 1_000_000_000


# So many kinds of needs are remembered: jobs want the same again and again.
_KINDS = 4_096


@lru_cache(_KINDS)
def amount_of(need: TaskNeed, count: int = 1) -> NDArray[np.int64]:
    """Return what ``count`` tasks take: (cpu_milli, mem_mib, gpu_milli). It cannot be changed."""
    amount = np.array(
        (need.cpu_milli * count, need.mem_mib * count, need.gpu_milli * count), dtype=np.int64
    )
    amount.flags.writeable = False
    return amount


@lru_cache(_KINDS)
def amount_of_gang(gang: GangNeed) -> NDArray[np.int64]:
    """Return what all tasks of a gang take together. It cannot be changed."""
    total = np.zeros(3, dtype=np.int64)
    for need, count in gang:
        total += amount_of(need, count)
    total.flags.writeable = False
    return total


class Places:
    """The hosts of the cluster, and what is taken of each."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        self._hosts: list[Host | None] = []
        self.total: Amounts = np.zeros((3, 0), dtype=np.int64)
        self.used: Amounts = np.zeros((3, 0), dtype=np.int64)
        self.weight: NDArray[np.float64] = np.zeros(0)
        self._masks: dict[tuple[Constraint, ...], Mask] = {}
        #: The hosts that will be gone soon.
        self.going: frozenset[str] = frozenset()
        #: How often there was more room than before: what had none may have some now.
        self.grown = 0

    def hosts_are(self, hosts: Iterable[Host]) -> frozenset[str]:
        """Take the hosts that there are now; return the names of those that are gone.

        A host that is gone keeps its column, with nothing in it, until the queue starts again.
        """
        given = {host.name: host for host in hosts}
        gone = {
            name
            for name, index in self._index.items()
            if name not in given and (self._hosts[index] is not None or self.used[:, index].any())
        }
        self.know(given)
        for name in gone:
            self._hosts[self._index[name]] = None
            self.total[:, self._index[name]] = 0
        for name, host in given.items():
            index = self._index[name]
            if self._hosts[index] != host:
                self._hosts[index] = host
                has = (host.cpu_milli, host.mem_mib, host.gpu_milli)
                self.total[:, index] = (0, 0, 0) if host.goes else has
                self.weight[index] = host.gpu_weight
        self._masks.clear()
        self.grown += 1
        self.going = frozenset(host.name for host in given.values() if host.goes)
        return frozenset(gone)

    def hosts(self) -> tuple[Host, ...]:
        """Return the hosts that there are."""
        return tuple(host for host in self._hosts if host is not None)

    def know(self, names: Iterable[str]) -> None:
        """Have a column for each of the hosts; a new one has nothing yet."""
        new = [name for name in dict.fromkeys(names) if name not in self._index]
        if not new:
            return
        self._index.update({name: len(self.names) + k for k, name in enumerate(new)})
        self.names.extend(new)
        self._hosts.extend([None] * len(new))
        wider = np.zeros((3, len(new)), dtype=np.int64)
        self.total = np.concatenate((self.total, wider), axis=1)
        self.used = np.concatenate((self.used, wider), axis=1)
        self.weight = np.concatenate((self.weight, np.ones(len(new))))
        self._masks.clear()

    @property
    def free(self) -> Amounts:
        """Return what is free of each host; below 0 where more is taken than there is."""
        return self.total - self.used

    def capacity(self) -> NDArray[np.float64]:
        """Return the size of the cluster, its GPUs by their weights."""
        cpus, mem, gpus = self.total
        return np.array((cpus.sum(), mem.sum(), (gpus * self.weight).sum()), dtype=np.float64)

    def charge_of(self, placement: Placement) -> NDArray[np.float64]:
        """Return what a placement is charged, its GPUs by the weights of their hosts."""
        charge = np.zeros(3)
        for name, need, count in placement:
            weight = self.weight[self._index[name]] if name in self._index else 1.0
            charge += (
                need.cpu_milli * count,
                need.mem_mib * count,
                need.gpu_milli * count * weight,
            )
        return charge

    def allowed(self, where: tuple[Constraint, ...]) -> Mask:
        """Return which hosts have the attributes."""
        mask = self._masks.get(where)
        if mask is None:
            mask = np.array(
                [
                    host is not None
                    and all(host.attributes.get(name) in values for name, values in where)
                    for host in self._hosts
                ],
                dtype=np.bool_,
            )
            self._masks[where] = mask
        return mask

    def place(
        self, gang: GangNeed, where: tuple[Constraint, ...], free: Amounts
    ) -> Placement | None:
        """Return a place for all tasks of the gang in ``free``, which stays as it is, or None."""
        if len(gang) > 1:
            free = free.copy()
        placement: list[tuple[str, TaskNeed, int]] = []
        for need, count in gang:
            mask = self.allowed(where)
            if need.where:
                mask = mask & self.allowed(need.where)
            chosen = _spread(need, count, free, mask)
            if chosen is None:
                return None
            placement.extend((self.names[host], need, tasks) for host, tasks in chosen)
            if len(gang) > 1:
                for host, tasks in chosen:
                    free[:, host] -= amount_of(need, tasks)
        return tuple(placement)

    def as_many(self, need: TaskNeed, count: int, mask: Mask, free: Amounts) -> Placement:
        """Return places for as many of ``count`` equal tasks as ``free`` has."""
        chosen = _spread(need, count, free, mask, whole=False) or ()
        return tuple((self.names[host], need, tasks) for host, tasks in chosen)

    def take(self, placement: Placement) -> None:
        """Take a placement of the hosts."""
        self.change(placement, self.used, 1)

    def give_back(self, placement: Placement) -> None:
        """Give a placement back to the hosts."""
        self.grown += 1
        self.change(placement, self.used, -1)

    def change(self, placement: Placement, amounts: Amounts, sign: int) -> None:
        """Add a placement to ``amounts`` of hosts, or take it off with ``sign`` -1."""
        for name, need, count in placement:
            amounts[:, self._index[name]] += sign * amount_of(need, count)

    def host(self, name: str) -> int:
        """Return the column of a host."""
        return self._index[name]


def _spread(
    need: TaskNeed, count: int, free: Amounts, mask: Mask, *, whole: bool = True
) -> Sequence[tuple[int, int]] | None:
    """Return on which hosts ``count`` equal tasks go, and how many on each; None if they do not.

    If not ``whole``, as many of them as there is room for.
    """
    cpus, mem, gpus = free
    fits = mask & (cpus >= need.cpu_milli) & (mem >= need.mem_mib)
    if need.gpu_milli:
        fits &= gpus >= need.gpu_milli
    candidates = fits.nonzero()[0]
    if not candidates.size:
        return None
    left = gpus[candidates] * _GPU_FIRST + cpus[candidates]
    if count == 1:
        return ((int(candidates[left.argmin()]), 1),)
    room = np.full(candidates.size, count, dtype=np.int64)
    for row, amount in enumerate((need.cpu_milli, need.mem_mib, need.gpu_milli)):
        if amount:
            np.minimum(room, free[row, candidates] // amount, out=room)
    if whole and int(room.sum()) < count:
        return None
    chosen = []
    for position in np.argsort(left, kind="stable"):
        tasks = min(count, int(room[position]))
        chosen.append((int(candidates[position]), tasks))
        count -= tasks
        if not count:
            break
    return chosen
