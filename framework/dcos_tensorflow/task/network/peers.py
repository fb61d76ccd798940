"""Waits until the servers that must come first accept connections; finds unreachable peers.

``runner`` starts both before a start of the user's process. They only connect and close, and never
speak to a peer.
"""

from __future__ import annotations

import errno
import select
import socket
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from dcos_tensorflow.core import contract

CONNECT_SECONDS = 1.0
#: Between two rounds, for each address that is missing, and at most. TensorFlow takes seconds to
#: listen, and the last who wait for it are to lose none.
PAUSE_SECONDS = 0.05
MOST_PAUSE_SECONDS = 0.2
#: A machine that is there answers within so many seconds, whatever it answers.
REACH_SECONDS = 3.0
#: One that has not for so long is told. Looks come so often, and then seldom (seconds).
REACH_PATIENCE_SECONDS, REACH_PAUSE_SECONDS, REACH_SELDOM_SECONDS = 10.0, 2.0, 30.0
#: A port that has refused for so long is no server's: a chief may open none.
REACH_MOST_SECONDS = 900.0

_WORDS = {
    errno.ECONNREFUSED: contract.UNREACHABLE_REFUSED,
    errno.ETIMEDOUT: contract.UNREACHABLE_SILENT,
}


def accepts(address: str, timeout: float = CONNECT_SECONDS) -> bool:
    """Say whether something listens at ``address`` (``host:port``)."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout):
            return True
    except OSError:
        return False


def unreachable(addresses: Sequence[str], seconds: float = REACH_SECONDS) -> Dict[str, str]:
    """Return those of these addresses that do not accept, each with the word why.

    All are dialled at once.
    """
    found: Dict[str, str] = {}
    dialled: Dict[int, Tuple[socket.socket, str]] = {}
    looks, until = select.poll(), time.monotonic() + seconds
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            family, kind, number, _, where = socket.getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_STREAM
            )[0]
        except (OSError, ValueError, UnicodeError):
            found[address] = contract.UNREACHABLE_NAME
            continue
        dial = socket.socket(family, kind, number)
        dial.setblocking(False)
        error = dial.connect_ex(where)
        if error == errno.EINPROGRESS:
            dialled[dial.fileno()] = dial, address
            looks.register(dial, select.POLLOUT)
            continue
        dial.close()
        found.update(_why_not(address, error))
    while dialled and (left := until - time.monotonic()) > 0:
        for descriptor, _ in looks.poll(1000 * left):
            looks.unregister(descriptor)
            dial, address = dialled.pop(descriptor)
            found.update(_why_not(address, dial.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))
            dial.close()
    for dial, address in dialled.values():
        found[address] = contract.UNREACHABLE_SILENT
        dial.close()
    return found


def _why_not(address: str, error: int) -> Dict[str, str]:
    if error == 0:
        return {}
    return {address: _WORDS.get(error, contract.UNREACHABLE_ROUTE)}


class ReachCheck:
    """Looks on a thread whether this task reaches its peers, until all have accepted once.

    ``on_news`` is called there when ``found`` has changed. A name may be told to DNS only when its
    task runs: nothing is found before it has been so for ``patience`` seconds. A peer that refuses
    may be about to listen, which the scheduler hears from that peer's own runner.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        on_news: Callable[[], None],
        *,
        patience: float = REACH_PATIENCE_SECONDS,
        pause: float = REACH_PAUSE_SECONDS,
    ) -> None:
        self.addresses = tuple(addresses)
        self._on_news = on_news
        self._patience, self._pause = patience, pause
        self._stopped = threading.Event()
        #: Addresses that cannot be reached, each with the word why.
        self.found: Tuple[Tuple[str, str], ...] = ()
        threading.Thread(target=self._look, name="reach-check", daemon=True).start()

    def stop(self) -> None:
        """Look no more; what was found stays."""
        self._stopped.set()

    def _look(self) -> None:
        began, left = time.monotonic(), self.addresses
        while left and not self._stopped.is_set():
            now, looked = unreachable(left), time.monotonic() - began
            if looked > REACH_MOST_SECONDS:
                now = {a: why for a, why in now.items() if why != contract.UNREACHABLE_REFUSED}
            left, patient = tuple(now), looked < self._patience
            found = () if patient else tuple(now.items())
            if found != self.found:
                self.found = found
                self._on_news()
            self._stopped.wait(self._pause if patient else REACH_SELDOM_SECONDS)


def reach_check(
    before: Optional[ReachCheck], addresses: Sequence[str], on_news: Callable[[], None]
) -> Optional[ReachCheck]:
    """Return the check of a cluster's members: that of before, or one of its own instead."""
    # Of what is not known yet there is a name that leads nowhere.
    known = tuple(a for a in addresses if not a.rpartition(":")[0].endswith(".invalid"))
    if len(known) < 2 or (before and before.addresses == known):
        return before
    if before:
        before.stop()
    return ReachCheck(known, on_news)


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
