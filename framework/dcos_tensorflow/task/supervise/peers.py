"""Waits until the servers that must be there first accept connections.

``runner`` starts a watch before each start of the user's process. It only connects and closes: it
never speaks to a peer.
"""

from __future__ import annotations

import socket
import threading
from typing import Callable, List, Tuple

CONNECT_SECONDS = 1.0
#: Between two rounds, for each address that is missing, and at most. TensorFlow takes seconds to
#: listen, and the last who wait for it are to lose none.
PAUSE_SECONDS = 0.05
MOST_PAUSE_SECONDS = 0.2


def accepts(address: str, timeout: float = CONNECT_SECONDS) -> bool:
    """Say whether something listens at ``address`` (``host:port``)."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout):
            return True
    except OSError:
        return False


class PeerWatch:
    """Looks for a set of addresses in its own thread, until all have answered once."""

    def __init__(self, addresses: Tuple[str, ...], on_all: Callable[[], None]) -> None:
        self._missing: List[str] = list(addresses)
        self._on_all = on_all
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="peer-watch", daemon=True)

    def start(self) -> None:
        """Begin to look; ``on_all`` is called once, from the watch's thread, unless stopped."""
        self._thread.start()

    def missing(self) -> Tuple[str, ...]:
        """Return the addresses that have not answered yet."""
        return tuple(self._missing)

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def _look(self) -> None:
        while not self._stopped.is_set():
            for address in list(self._missing):
                if self._stopped.is_set():
                    return
                if accepts(address):
                    self._missing.remove(address)
            if not self._missing:
                self._on_all()
                return
            self._stopped.wait(min(PAUSE_SECONDS * len(self._missing), MOST_PAUSE_SECONDS))
