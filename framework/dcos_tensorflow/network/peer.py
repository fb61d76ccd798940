"""Whose process is at the other end of a connection of this machine.

Used by servers on loopback that let in the processes of one user. The kernel says so: every TCP
socket has an owner, and a connection within a machine has both its ends in one table (proc(5),
``/proc/net/tcp``). Nothing is sent and nobody is asked.
"""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from pathlib import Path

#: Sockets of IPv6 may be connected to addresses of IPv4, and stand in their own table then.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_MAPPED = "0000000000000000FFFF0000"
#: A socket that its process has closed is in another state, and its owner not known any more.
_ESTABLISHED = "01"


def owner_of_peer(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the user id of who connected from ``client``; None when nobody can tell.

    Both are addresses of IPv4 with their ports.
    """
    ends = (_written(*client), _written(*server))
    wanted = {ends, (_MAPPED + ends[0], _MAPPED + ends[1])}
    for table in _TABLES:
        with contextlib.suppress(OSError):
            for line in table.read_text(encoding="ascii").splitlines()[1:]:
                _, local, remote, state, _, _, _, uid, *_ = line.split()
                if (local, remote) in wanted and state == _ESTABLISHED:
                    return int(uid)
    return None


def _written(host: str, port: int) -> str:
    """Return an address as the kernel writes it: in the order of this machine's bytes."""
    number = int.from_bytes(ipaddress.IPv4Address(host).packed, sys.byteorder)
    return f"{number:08X}:{port:04X}"
