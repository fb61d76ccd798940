"""The subscription stream: SUBSCRIBE, and the events that come back on it.

Used by the driver's stream thread, one object per subscription. The stream is HTTP/1.1 chunked
and carries RecordIO: a decimal length, a newline, that many bytes of JSON (Mesos documentation,
"RecordIO response format"). Chunks and records are cut independently.

It never reconnects: the exception tells how a subscription ended, and the driver decides what
follows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import Any

from dcos_tensorflow.mesos.connection import HttpConnection
from untrusted_input.json_text import read_json

SCHEDULER_PATH = "/api/v1/scheduler"
#: Missed heartbeats after which the master is considered gone (Mesos scheduler HTTP API,
#: "Master detection": reconnect after 5).
MISSED_HEARTBEATS = 5
#: What masters say when they say nothing (src/master/constants.hpp).
DEFAULT_HEARTBEAT_SECONDS = 15.0
#: A record longer than this is a desynchronised stream, not an event.
MAX_RECORD_BYTES = 1 << 30
_MAX_LENGTH_LINE = len(f"{MAX_RECORD_BYTES}\n") + 1
#: With what a master judges the call itself or its sender (src/master/http.cpp). Every other
#: answer may come of a master that is not ready, as 404 does before its routes are up (Mesos' own
#: library tries again: src/scheduler/scheduler.cpp), or of a proxy before it.
_REFUSALS = frozenset({400, 401, 403, 405, 406, 415})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: Not of the random numbers that a user's code in its own process may have seeded.
_JITTER = random.Random().uniform


class StreamEnded(Exception):
    """The subscription is over, for a reason that a new one may cure."""


class StreamRedirected(StreamEnded):
    """Another master leads; ``location`` is what the answer's Location header said."""

    def __init__(self, location: str) -> None:
        super().__init__(f"redirected to {location}")
        self.location = location


class SubscribeRefused(Exception):
    """The master judged the call or its sender: the same one again would not fare better."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"SUBSCRIBE refused with HTTP {status}: {message}")
        self.status = status


class ReconnectBackoff:
    """Full-jitter exponential back-off: ``uniform(0, min(maximum, initial * 2**n))`` seconds.

    Jitter over the whole interval spreads the frameworks of a cluster best after a master's
    failover (AWS Architecture Blog, "Exponential Backoff And Jitter").
    """

    def __init__(
        self,
        initial: float = 0.5,
        maximum: float = 15.0,
        *,
        draw: Callable[[float, float], float] = _JITTER,
    ) -> None:
        self.initial = initial
        self.maximum = maximum
        self._draw = draw
        self._failures = 0

    def reset(self) -> None:
        """Start from ``initial`` again: the last connection was stable."""
        self._failures = 0

    def next_delay(self) -> float:
        """Return the seconds to wait now, and count one more failure."""
        ceiling = min(self.maximum, self.initial * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return self._draw(0.0, ceiling)


class SubscriptionStream:
    """One subscription on one connection, read by one thread; any thread may interrupt it."""

    def __init__(self, connection: HttpConnection) -> None:
        self.connection = connection
        self._response: HTTPResponse | None = None

    def open(self, call: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        """Send SUBSCRIBE and return the stream id ("" when the master gave none).

        Raises StreamRedirected, SubscribeRefused, StreamEnded, OSError or HTTPException.
        """
        self.connection.request(
            "POST",
            SCHEDULER_PATH,
            body=json.dumps(call).encode(),
            headers={"Content-Type": "application/json", "Accept": "application/json", **headers},
        )
        response = self.connection.getresponse()
        self._response = response
        if response.status == 200:
            return response.headers.get("Mesos-Stream-Id", "")
        location = response.headers.get("Location", "")
        if response.status in REDIRECTS and location:
            raise StreamRedirected(location)
        message = _text_of(response)
        if response.status in _REFUSALS:
            raise SubscribeRefused(response.status, message)
        raise StreamEnded(f"SUBSCRIBE answered with HTTP {response.status}: {message}")

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield events until the stream breaks; always ends with an exception.

        Raises StreamEnded when the peer closed or the stream is corrupt, OSError (TimeoutError
        when nothing came for as long as was allowed) or HTTPException.
        """
        while True:
            yield self._event()

    def expect_heartbeats(self, interval_seconds: float) -> None:
        """From now on give up after five heartbeats' time without a byte."""
        self.connection.allow_silence(MISSED_HEARTBEATS * interval_seconds)

    def interrupt(self) -> None:
        """Make the reading thread see the end of the stream now."""
        self.connection.interrupt()

    def close(self) -> None:
        """Release the connection; by the reading thread only."""
        if self._response is not None:
            self._response.close()
        self.connection.close()

    def _event(self) -> dict[str, Any]:
        assert self._response is not None
        line = self._part(self._response.readline, _MAX_LENGTH_LINE)
        if not line:
            raise StreamEnded("the master closed the stream")
        digits = line.strip()
        if not line.endswith(b"\n") or not digits.isdigit():
            raise StreamEnded(f"the stream is corrupt: {line!r} where a record's length belongs")
        length = int(digits)
        if length > MAX_RECORD_BYTES:
            raise StreamEnded(f"the stream is corrupt: a record of {length} bytes")
        record = self._part(self._response.read, length)
        if len(record) < length:
            raise StreamEnded("the master closed the stream in the middle of a record")
        try:
            event = read_json(record, most_levels=None)
        except ValueError as error:
            raise StreamEnded(f"the stream is corrupt: a record is no JSON ({error})") from error
        if not isinstance(event, dict):
            raise StreamEnded("the stream is corrupt: a record is no JSON object")
        return event

    def _part(self, read: Callable[[int], bytes], most_bytes: int) -> bytes:
        """Return what is read; http.client raises these for lengths of chunks that are none."""
        try:
            return read(most_bytes)
        except (ValueError, OverflowError) as error:
            raise StreamEnded(f"the stream is corrupt: {error}") from error


def heartbeat_seconds(subscribed: Mapping[str, Any]) -> float:
    """Return the heartbeat interval of a SUBSCRIBED event, the default when it names none."""
    interval = subscribed.get("heartbeat_interval_seconds")
    if isinstance(interval, int | float) and interval > 0:
        return float(interval)
    return DEFAULT_HEARTBEAT_SECONDS


def _text_of(response: HTTPResponse, limit: int = 4096) -> str:
    try:
        return response.read(limit).decode("utf-8", "replace").strip() or response.reason
    except (OSError, HTTPException):
        return response.reason
