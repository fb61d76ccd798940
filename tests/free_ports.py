"""Ports that no process listens on, for servers that a test starts a moment later."""

import itertools
import os
import socket

#: Below what Linux gives to outgoing connections (ip_local_port_range): those come at any moment.
#: Clusters of one service take theirs from 12000 upwards, several of them at a time.
_FIRST, _COUNT = 20000, 7000
#: Test processes begin far apart, so that none finds what another one has just found.
_numbers = itertools.count(os.getpid() * 1499)


def agent_ports(number: int) -> tuple[int, int]:
    """Return ports for an embedded agent by its number, from 0 to 4: a place of this process' own.

    Agents of several processes that offer the same ports give them to tasks that listen at once.
    """
    first = 27000 + os.getpid() % 8 * 500 + number * 100
    return first, first + 99


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now, another one at each call."""
    for number in itertools.islice(_numbers, _COUNT):
        port = _FIRST + number % _COUNT
        with socket.socket() as probe:
            # As servers do: what an earlier connection has left is no obstacle.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
        return port
    raise RuntimeError(f"no port from {_FIRST} on is free")
