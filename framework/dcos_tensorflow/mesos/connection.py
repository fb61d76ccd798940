"""One HTTP connection to a Mesos master or agent: TCP, TLS, keep-alive, stale detection.

Used by the subscription stream, the calls and the agent file reader. It never retries and never
follows redirects: the caller judges the error.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from dcos_tensorflow.mesos.address import Address

#: Seconds of silence before TCP asks whether the peer is still there, between its questions, and
#: how many of them may stay unanswered. It finds dead peers below what heartbeats see.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


class Authentication(Protocol):
    """How calls say who makes them."""

    def header(self) -> dict[str, str]:
        """Return the Authorization header; empty for no login. Raises OSError when it has none."""

    def refused(self, header: Mapping[str, str]) -> bool:
        """Take note of a 401 to ``header``; say whether another try goes with another header."""


def tls_context(
    ca_file: str = "", verify: bool = True, client_cert: str = "", client_key: str = ""
) -> ssl.SSLContext:
    """Return the TLS settings for https masters and agents.

    ``ca_file`` empty means the system's authorities. ``verify`` false accepts any certificate.
    Raises OSError or ssl.SSLError when a file cannot be read or is not what it should be.
    """
    context = ssl.create_default_context(cafile=ca_file or None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client_cert:
        context.load_cert_chain(client_cert, client_key or None)
    return context


@cache
def _usual_tls() -> ssl.SSLContext:
    """Return the settings where nothing is said: the system's authorities take a while to read."""
    return tls_context()


class HttpConnection(http.client.HTTPConnection):
    """An HTTP/1.1 connection that can be interrupted from another thread.

    ``timeout`` is seconds for each step: connecting, writing, waiting for bytes.
    """

    def __init__(self, address: Address, timeout: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(address.host, address.port, timeout=timeout)
        self.address = address
        self.interrupted = False
        self._tls = (tls or _usual_tls()) if address.https else None
        self._raw: socket.socket | None = None

    def connect(self) -> None:
        """Dial every address of the host in turn; raise the last one's OSError."""
        failure: OSError | None = None
        found = socket.getaddrinfo(self.address.host, self.address.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, endpoint in found:
            try:
                self.sock = self._dial(family, kind, protocol, endpoint)
                return
            except OSError as error:
                failure = error
        raise failure or OSError(f"{self.address} has no address")

    def _dial(self, family: int, kind: int, protocol: int, endpoint: object) -> socket.socket:
        dialled = socket.socket(family, kind, protocol)
        self._raw = dialled
        try:
            self._stop_if_interrupted()
            dialled.settimeout(self.timeout)
            dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                if hasattr(socket, option):
                    dialled.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
            dialled.connect(endpoint)  # type: ignore[arg-type]
            if self._tls is not None:
                dialled = self._tls.wrap_socket(
                    dialled, server_hostname=self.address.host, do_handshake_on_connect=False
                )
                self._raw = dialled
                self._stop_if_interrupted()
                dialled.do_handshake()
            # What interrupt() shut down before it was connected is connected all the same.
            self._stop_if_interrupted()
            return dialled
        except BaseException:
            dialled.close()
            self._raw = None
            raise

    def _stop_if_interrupted(self) -> None:
        if self.interrupted:
            raise OSError("interrupted")

    def interrupt(self) -> None:
        """Make whatever another thread does on this connection fail now."""
        self.interrupted = True
        raw = self._raw
        if raw is not None:
            # OSError: not connected yet, or gone already. Nothing is left to interrupt then.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(raw, socket.SHUT_RDWR)

    def stale(self) -> bool:
        """Say whether an idle kept-alive connection was closed by the peer.

        An idle connection has nothing to read: readable means closed, or bytes without a request.
        """
        if self.sock is None:
            return True
        poll = select.poll()
        poll.register(self.sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(poll.poll(0))

    def allow_silence(self, seconds: float) -> None:
        """Change the time-out of the connection as it is, also below an open response.

        ``sock`` is None then if the response ends with the connection: hence ``_raw``.
        """
        if self._raw is not None:
            self._raw.settimeout(seconds)


ConnectionFactory = Callable[[Address], HttpConnection]
