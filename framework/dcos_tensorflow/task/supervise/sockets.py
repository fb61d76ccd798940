"""Whether a process listens on a port: read from /proc/net, without connecting.

``runner`` asks for the port of the task's own TensorFlow server. A connection would be accepted by
the kernel for a frozen server as well, and would fill its backlog.
"""

from __future__ import annotations

from typing import Iterable, Optional, Set

from untrusted_input.process_table import open_files

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = b"0A"


def listening_inodes(port: int) -> Optional[Set[int]]:
    """Return the inodes of the sockets that listen on ``port``; None when it cannot be read."""
    inodes: Set[int] = set()
    readable = False
    wanted = b":%04X" % port
    for table in _TABLES:
        try:
            with open(table, "rb") as file:
                next(file, None)
                readable = True
                for line in file:
                    fields = line.split()
                    # The kernel lists those that listen first; of the others there may be many.
                    if len(fields) < 10 or fields[3] != _LISTEN:
                        break
                    if fields[1].endswith(wanted):
                        inodes.add(int(fields[9]))
        except (OSError, ValueError):
            continue
    return inodes if readable else None


def owner(inodes: Set[int], pids: Iterable[int]) -> Optional[int]:
    """Return the first of ``pids`` that holds one of the sockets; None when none does."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return next((pid for pid in pids if not wanted.isdisjoint(open_files(pid))), None)
