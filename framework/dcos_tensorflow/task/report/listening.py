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
    """Listen on all interfaces at ``port``.

    Raises OSError when the port stays taken for ``BIND_SECONDS``.
    """
    deadline = time.monotonic() + BIND_SECONDS
    while True:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            # Not SO_REUSEPORT: two processes that listen on one port would share its requests.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("0.0.0.0", port))
            listener.listen(MAX_CONNECTIONS)
            return listener
        except OSError:
            listener.close()
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
