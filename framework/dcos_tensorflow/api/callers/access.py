"""Callers and their rights: tokens, the rights that come with them, which addresses may be bound.

Used by ``api.answering`` for each request and by the command line before the server is started. It
reads the caller's login and says whether that is enough; it knows no path and shows nothing. A peer
that says wrong tokens has a bucket of tries, which fills again with time; one that never fails is
not kept.
"""

from __future__ import annotations

import enum
import hmac
import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol

from starlette.requests import Request

from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses
from dcos_tensorflow.records import dataclass
from untrusted_input.loopback import is_loopback
from untrusted_input.other_pages import is_from_another_page, names_an_address
from untrusted_input.peer import owner_of_peer

#: Wrong tokens in a row that are answered at once, and after how long (seconds) there is one more.
TRIES = 10
SECONDS_A_TRY = 6.0
#: So many peers are remembered; the one that failed longest ago goes first.
MOST_PEERS = 4096


class OpenBinding(ValueError):
    """The API would be open to the network without a token, and no flag asked for that."""


class Right(enum.IntEnum):
    """What a caller may do; each has those before it too."""

    READ = 1
    OPERATE = 2


@dataclass(frozen=True)
class Caller:
    """A caller who was let in."""

    #: Who, in the words of the audit log: ``operator``, ``reader``, ``router``, ``dcos:alice``,
    #: ``anyone``.
    name: str
    right: Right


@dataclass(frozen=True)
class Refusal:
    """Why a caller was not let in."""

    #: 401 for no token or a wrong one, 403 for one that may not do that, 429 for too many.
    status: int
    why: str
    #: The caller, where it is known.
    caller: str = ""
    #: Seconds until the next try; 0 where waiting changes nothing.
    wait_seconds: int = 0
    #: Whether it was a wrong token, or a verb without the right to it: something to write down.
    is_a_try: bool = False


class AccessRefused(Exception):
    """A request is not answered. The text is the refusal's."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


class Logins(Protocol):
    """Callers beside those with a token of this service (``api.callers.dcos_tokens``)."""

    def caller(self, token: str) -> Caller | None:
        """Return whose token that is; None for an unknown one. It may wait."""


#: Where no token is asked for.
ANYONE = Caller("anyone", Right.OPERATE)
OPERATOR = Caller("operator", Right.OPERATE)
READER = Caller("reader", Right.READ)
#: A proxy that has let its user in.
ROUTER = Caller("router", Right.OPERATE)

#: A shorter token may be found by trying: one a millisecond, for years, finds no longer one that
#: was drawn.
LEAST_DRAWN = 16

_NO_TOKEN = "this API needs its token: Authorization: Bearer <token>"


def check_binding(host: str, guarded: bool, allow_open: bool) -> None:
    """Refuse to serve ``host`` unguarded, unless ``allow_open`` says that it is wanted.

    Raises OpenBinding. Every client that reaches an open API can end the job.
    """
    if guarded or allow_open or is_loopback(host):
        return
    raise OpenBinding(
        f"the API would listen on {host or 'all addresses'} without a token, and every client that"
        " reaches it could stop the job; set a token (--api-token-file), or bind to 127.0.0.1"
    )


class Access:
    """The callers: ``token`` is the operator's, ``read_token`` one that may only read.

    Clients at ``trusted`` addresses need none of these. Without any of the four no token is
    required, and every client may do everything.
    """

    def __init__(
        self,
        token: str = "",
        read_token: str = "",
        logins: Logins | None = None,
        failures: FailedLogins | None = None,
        trusted: TrustedAddresses | None = None,
    ) -> None:
        self._tokens = [
            (text.encode(), caller)
            for text, caller in ((token, OPERATOR), (read_token, READER))
            if text
        ]
        self._logins = logins
        self._trusted = trusted
        self._failures = failures or FailedLogins()
        self._guessable = any(len(text) < LEAST_DRAWN for text, _ in self._tokens)
        #: The tokens themselves: they are in nothing that is shown.
        self.secrets = frozenset(filter(None, (token, read_token)))

    @property
    def asks(self) -> bool:
        """Say whether anything is asked for."""
        return bool(self._tokens) or self._logins is not None or self._trusted is not None

    @property
    def waits(self) -> bool:
        """Say whether ``admit`` may wait for others: it is not for the event loop then."""
        return self._logins is not None or self._trusted is not None

    def admit(self, request: Request, right: Right) -> Caller:
        """Return who asks, and may do that. Raises Refused. Others' keys may be fetched for it."""
        if not self.asks:
            return ANYONE
        if self._is_routed(request):
            # What it carries is a token of the router's, which is none of ours.
            return ROUTER
        given = _given(request)
        if given is None:
            raise AccessRefused(Refusal(401, self._no_token()))
        # A right token counts, whatever else of the same address tries: a job may be its operator's
        # neighbour. Only of tokens that trying could find, a guesser must not hear that one is.
        unheard = self._guessable and self._failures.wait_seconds(_peer(request)) > 0
        caller = None if unheard else self._caller(given)
        if caller is None:
            raise AccessRefused(self._wrong(_peer(request)))
        if caller.right < right:
            why = f"{caller.name} may only read here: orders need the operator's token"
            raise AccessRefused(Refusal(403, why, caller.name, is_a_try=True))
        return caller

    def _wrong(self, peer: Hashable) -> Refusal:
        """Return what a peer is told that has said a wrong token, and remember it."""
        wait = self._failures.wait_seconds(peer)
        if wait:
            why = "too many wrong tokens came from this address: wait, then say the right one"
            return Refusal(429, why, wait_seconds=math.ceil(wait))
        self._failures.note(peer)
        return Refusal(401, f"this is not its token; {self._no_token()}", is_a_try=True)

    def _is_routed(self, request: Request) -> bool:
        client = request.client
        return self._trusted is not None and client is not None and self._trusted.has(client.host)

    def _no_token(self) -> str:
        if self._trusted is None:
            return _NO_TOKEN
        return f"{_NO_TOKEN}, or to be asked by way of {' or '.join(self._trusted.names)}"

    def _caller(self, given: str) -> Caller | None:
        sent = given.encode("latin-1", "replace")
        # All of them are compared, whichever it is: the time tells nothing.
        found = [caller for text, caller in self._tokens if hmac.compare_digest(sent, text)]
        if found:
            return found[0]
        return self._logins.caller(given) if self._logins is not None else None


def is_foreign(request: Request, *, asks: bool) -> bool:
    """Say whether a browser may have sent this for a page that is not ours.

    If it ``asks`` for no token, a name that means this machine is looked at too: any site's
    may.
    """
    headers = request.headers
    if is_from_another_page(request.method, headers):
        return True
    listening = request.scope.get("server") or ("", None)
    return not asks and is_loopback(listening[0]) and not names_an_address(headers)


def _given(request: Request) -> str | None:
    """Return the token of a request: ``Bearer <token>``, or DC/OS' form ``token=<token>``."""
    given = request.headers.get("authorization", "")
    for prefix in ("bearer ", "token="):
        if given.lower().startswith(prefix):
            return given[len(prefix) :].strip()
    return None


def _peer(request: Request) -> Hashable:
    """Return who counts as one: an address, and on this machine the user whose process it is.

    Else another user could lock the operator out of an API on loopback.
    """
    client, server = request.client, request.scope.get("server")
    if client is None:
        return ""
    if server is None or not (is_loopback(client.host) and is_loopback(server[0])):
        return network_of(client.host)
    try:
        return client.host, owner_of_peer((client.host, client.port), (server[0], server[1]))
    except ValueError:
        # IPv6, whose table the kernel keeps elsewhere: one peer for all users.
        return client.host


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
