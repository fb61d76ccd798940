"""How often a client may say a wrong token: a bucket of tries for each peer that has.

Asked by ``api.callers.access`` about a peer whose token is wrong. A bucket fills again with time,
and what is kept of peers is bounded. Nothing here knows a token; a peer that never fails is not
kept.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from dcos_tensorflow.records import dataclass

#: Wrong tokens in a row that are answered at once, and after how long (seconds) there is one more.
TRIES = 10
SECONDS_A_TRY = 6.0
#: So many peers are remembered; the one that failed longest ago goes first.
MOST_PEERS = 4096


@dataclass(frozen=True)
class _Bucket:
    #: Tries that were left at ``at``.
    tries: float
    #: Seconds of the clock.
    at: float


class FailedLogins:
    """The buckets. Any thread may use them; ``clock`` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[Hashable, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def wait_seconds(self, peer: Hashable) -> float:
        """Return how long the peer has to wait before it is listened to; 0 for not at all."""
        with self._lock:
            left = self._left(peer)
        return 0.0 if left >= 1.0 else (1.0 - left) * SECONDS_A_TRY

    def note(self, peer: Hashable) -> None:
        """Take a try from the peer, which has said a wrong token."""
        with self._lock:
            self._buckets[peer] = _Bucket(max(self._left(peer) - 1.0, 0.0), self._clock())
            self._buckets.move_to_end(peer)
            if len(self._buckets) > MOST_PEERS:
                self._buckets.popitem(last=False)

    def _left(self, peer: Hashable) -> float:
        bucket = self._buckets.get(peer)
        if bucket is None:
            return TRIES
        left = bucket.tries + (self._clock() - bucket.at) / SECONDS_A_TRY
        if left >= TRIES:
            del self._buckets[peer]
        return min(left, TRIES)


def network_of(host: str) -> str:
    """Return what counts as one peer: an address, of IPv6 the /64 that one machine may have."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
