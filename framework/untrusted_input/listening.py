"""A socket that listens, before there is anything that answers at it.

Used by ``asgi_server``. A port that is taken is an error here, where it can be handled, and the
address can be told before a request is answered.
"""

from __future__ import annotations

import socket


class ServerNotStarted(OSError):
    """Nothing could be served at the wanted address; the text says why."""


def listening_at(what: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens; ``what`` would be served there, for messages: ``the API``.

    Raises ServerNotStarted naming the address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ServerNotStarted(f"{what} can not listen on {host}: {error}") from error
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        # Until a process listens a second one could bind the same port.
        bound.listen()
    except OSError as error:
        bound.close()
        reason = error.strerror or str(error)
        raise ServerNotStarted(f"{what} can not listen on {host}:{port}: {reason}") from error
    return bound


def address_of(listening: socket.socket) -> str:
    """Return where it listens, as ``host:port``."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
