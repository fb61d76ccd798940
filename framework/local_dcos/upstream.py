"""Asks other servers of this machine: the master, agents, services.

Used by the client of Mesos and by the service proxy. Addresses are loopback ones, so no proxy of
the environment is ever used.
"""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from local_dcos.http_calls import Answer
from untrusted_input.json_text import read_json

#: Seconds until a server that says nothing counts as gone; event streams send signs of life.
_TIMEOUT = 60.0
_CHUNK_BYTES = 64 * 1024
# Belong to one connection (RFC 9110, 7.6.1), or are set anew.
_OF_THE_CONNECTION = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "host",
        "date",
        "server",
    }
)


class Unreachable(Exception):
    """A server did not answer. The text says which and why."""


def ask(
    address: str,
    target: str,
    *,
    method: str = "GET",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    timeout: float = _TIMEOUT,
) -> tuple[int, bytes]:
    """Return status and body. Raises Unreachable."""
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        connection.request(method, target, body or None, dict(headers or {}))
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{address} does not answer: {error}") from error
    finally:
        connection.close()


def ask_json(address: str, target: str, *, headers: Mapping[str, str] | None = None) -> Any:
    """Return the JSON of a GET. Raises Unreachable, also for any other status than 200."""
    status, body = ask(address, target, headers=headers)
    if status != 200:
        raise Unreachable(f"{address}{target}: HTTP status {status}")
    try:
        return read_json(body)
    except ValueError as error:
        raise Unreachable(f"{address}{target}: {error}") from error


def forward(
    address: str,
    target: str,
    *,
    method: str,
    body: bytes,
    headers: Mapping[str, str],
    authorization: Mapping[str, str],
    prefix: str = "",
) -> Answer:
    """Return what another server answers, unchanged, as it comes.

    ``authorization`` is what the server asks for: the client's own was for us. ``prefix`` is put
    before the path of a redirection to the server itself. Raises Unreachable.
    """
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
    passed = {k: v for k, v in headers.items() if k.lower() not in _OF_THE_CONNECTION}
    passed.pop("authorization", None)
    passed |= authorization
    # A packed answer would stay packed, and is small anyway.
    passed["accept-encoding"] = "identity"
    try:
        connection.request(method, target, body or None, passed)
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise Unreachable(f"{address} does not answer: {error}") from error
    kept = [
        (name, _location(value, address, prefix) if name.lower() == "location" else value)
        for name, value in response.getheaders()
        if name.lower() not in _OF_THE_CONNECTION and name.lower() != "content-type"
    ]
    kind = response.getheader("Content-Type")
    if response.getheader("Content-Length") is not None or response.length == 0:
        try:
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{address} broke off its answer: {error}") from error
        finally:
            connection.close()
        return Answer(response.status, content, kind, kept)
    return Answer(response.status, _stream(connection, response), kind, kept)


def _stream(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse
) -> Iterator[bytes]:
    try:
        while True:
            try:
                chunk = response.read1(_CHUNK_BYTES)
            except TimeoutError:
                return
            if not chunk:
                return
            yield chunk
    finally:
        response.close()
        connection.close()


def _location(value: str, address: str, prefix: str) -> str:
    parsed = urllib.parse.urlparse(value)
    if parsed.netloc not in ("", address) or not parsed.path.startswith("/"):
        return value
    return prefix + urllib.parse.urlunparse(("", "", *parsed[2:]))
