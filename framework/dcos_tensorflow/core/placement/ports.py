"""Which ports of an agent a task gets.

``core.placement.packing`` calls it for a task that has a place. It remembers no port.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from dcos_tensorflow.core.spec.resources import PortRanges


def choose_ports(
    offered: PortRanges,
    count: int,
    first: int | None,
    name: str,
    *,
    taken: AbstractSet[int],
    shunned: AbstractSet[int],
) -> tuple[int, ...]:
    """Choose distinct ports, none ``taken``: ``first``, then by name, ``shunned`` ones last.

    The rest starts at a place among the offered ports that follows from ``name``, and goes on
    upwards and around. Two services with different names so begin at different places: the port
    that one has just released is not what the other takes next, while a task that comes back to an
    agent finds its old ports, if they are free.
    """
    chosen: list[int] = []
    if first is not None and first in offered and first not in taken:
        chosen.append(first)
    start = zlib.crc32(name.encode())
    for avoided in (shunned, frozenset[int]()):
        if len(chosen) == count:
            break
        for port in _from(offered, start):
            if port not in taken and port not in avoided and port not in chosen:
                chosen.append(port)
                if len(chosen) == count:
                    break
    return tuple(chosen)


def _from(offered: PortRanges, start: int) -> Iterator[int]:
    """Yield every offered port once, beginning at number ``start`` modulo their count."""
    skip = start % max(len(offered), 1)
    head: list[tuple[int, int]] = []
    for position, (first, last) in enumerate(offered.ranges):
        if skip <= last - first:
            yield from range(first + skip, last + 1)
            for later_first, later_last in offered.ranges[position + 1 :]:
                yield from range(later_first, later_last + 1)
            head.append((first, first + skip - 1))
            break
        head.append((first, last))
        skip -= last - first + 1
    for first, last in head:
        yield from range(first, last + 1)
