"""Addresses from which a request needs no token: those of a proxy that has checked its user.

Asked by ``api.callers.access``. On DC/OS that is Admin Router, on the masters: their names are
looked up, and anew now and then, for masters come and go. An address is that of the kernel for a
connection, not one in a request. A host that can take such an address has the network anyway.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable

#: A look-up counts for so many seconds.
_SECONDS = 10.0


def addresses_of(name: str) -> frozenset[str]:
    """Return the addresses that a name stands for now. Raises OSError."""
    return frozenset(str(found[4][0]) for found in socket.getaddrinfo(name, None))


class TrustedAddresses:
    """The addresses of some names. Any thread may use it; it may wait for a look-up.

    A name that cannot be looked up keeps the addresses that it had.
    """

    def __init__(
        self,
        names: Iterable[str],
        look_up: Callable[[str], frozenset[str]] = addresses_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        #: As they were given, for messages.
        self.names = tuple(names)
        self._look_up = look_up
        self._clock = clock
        self._known: dict[str, frozenset[str]] = {}
        self._looked_at = -_SECONDS
        self._lock = threading.Lock()

    def has(self, host: str) -> bool:
        """Say whether a connection from ``host`` is one of theirs."""
        # One looks anew. Those who come meanwhile wait for it only where nothing is known yet.
        if self._lock.acquire(blocking=not self._known):
            try:
                self._look()
            finally:
                self._lock.release()
        return _plain(host) in {_plain(one) for known in self._known.values() for one in known}

    def _look(self) -> None:
        if self._clock() - self._looked_at < _SECONDS:
            return
        found = dict(self._known)
        for name in self.names:
            try:
                found[name] = self._look_up(name)
            except OSError:
                found.setdefault(name, frozenset())
        self._known, self._looked_at = found, self._clock()


def _plain(host: str) -> str:
    """Return an address as all write it: sockets of IPv6 tell of IPv4 in a way of their own."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return str(mapped or address)
    return host
