"""A scheduler's event stream: records in, HTTP chunks out, and the ways in which it can break.

``cluster`` puts events in; the connection's own thread (``http_master``) writes them. A record is
``<length>\\n<json>`` (Mesos' RecordIO); every record goes out as one chunk.
"""

from __future__ import annotations

import collections
import json
import os
import select
import socket
import threading
from typing import Any, BinaryIO

Json = dict[str, Any]


class EventStream:
    """One open subscription. Thread-safe."""

    def __init__(self, stream_id: str) -> None:
        self.stream_id = stream_id
        self._records: collections.deque[bytes | None] = collections.deque()
        self._lock = threading.Lock()
        self._wake: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._half_open = False
        self._cut = False
        self._aborted = False

    def send(self, event: Json) -> None:
        """Put an event at the end."""
        body = json.dumps(event, separators=(",", ":")).encode()
        self._put(b"%d\n%s" % (len(body), body))

    def close(self) -> None:
        """End the stream after what was put."""
        self._put(None)

    def abort(self) -> None:
        """Break the connection without an end, as a master that dies does."""
        self._aborted = True
        self._signal()

    def half_open(self) -> None:
        """Write nothing any more, and leave the connection open."""
        self._half_open = True
        self._signal()

    def cut_mid_record(self) -> None:
        """Write half of the next record, then close the connection."""
        self._cut = True

    def _put(self, record: bytes | None) -> None:
        with self._lock:
            self._records.append(record)
        self._signal()

    def _signal(self) -> None:
        with self._lock:
            if self._wake is not None:
                os.eventfd_write(self._wake, 1)

    def serve(self, connection: socket.socket, out: BinaryIO) -> None:
        """Write records until the stream is closed or the client goes away."""
        assert self._wake is not None
        wake = self._wake
        try:
            while self._write(out):
                ready, _, _ = select.select([connection.fileno(), wake], [], [])
                if wake in ready:
                    os.eventfd_read(wake)
                if connection.fileno() in ready and not connection.recv(4096):
                    return
        except OSError:
            # The client is gone, which ends the subscription like any other way.
            return
        finally:
            with self._lock:
                self._wake = None
                os.close(wake)

    def _write(self, out: BinaryIO) -> bool:
        """Write what is there; say whether the stream goes on."""
        while not self._half_open:
            if self._aborted:
                return False
            with self._lock:
                if not self._records:
                    return True
                record = self._records.popleft()
            if record is None:
                out.write(b"0\r\n\r\n")
                return False
            if self._cut:
                half = record[: max(1, len(record) // 2)]
                out.write(b"%x\r\n%s\r\n" % (len(half), half))
                return False
            out.write(b"%x\r\n%s\r\n" % (len(record), record))
        return True
