"""Opens the runner's port. Apart from ``server``: it takes longer to be imported than to be asked.

``main`` opens it before anything is started: a task whose port is taken starts nothing. A client
that connects waits until ``server`` serves.
"""

from __future__ import annotations

import socket
import time

#: How many may wait, and how many are served at once.
MAX_CONNECTIONS = 32
#: How long a port that is taken is tried again: its last owner may be ending just now.
BIND_SECONDS = 2.0
_PAUSE_SECONDS = 0.2


def listen(port: int) -> socket.socket:
    """Listen on all interfaces at ``port``, by IPv6 and IPv4 where the machine has both.

    Raises OSError when the port stays taken for ``BIND_SECONDS``.
    """
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        try:
            return _bound(port)
        except OSError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def _bound(port: int) -> socket.socket:
    """Return what listens; by IPv4 alone where the kernel has nothing else."""
    listener, host = socket.socket(socket.AF_INET, socket.SOCK_STREAM), "0.0.0.0"
    if socket.has_dualstack_ipv6():
        listener.close()
        listener, host = socket.socket(socket.AF_INET6, socket.SOCK_STREAM), "::"
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    try:
        # Not SO_REUSEPORT: two processes that listen on one port would share its requests.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(MAX_CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener
