"""A scheduler's event stream: records in, HTTP chunks out.

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

    def send(self, event: Json) -> None:
        """Put an event at the end."""
        body = json.dumps(event, separators=(",", ":")).encode()
        self._put(b"%d\n%s" % (len(body), body))

    def close(self) -> None:
        """End the stream after what was put."""
        self._put(None)

    def _put(self, record: bytes | None) -> None:
        with self._lock:
            self._records.append(record)
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
        while True:
            with self._lock:
                if not self._records:
                    return True
                record = self._records.popleft()
            if record is None:
                out.write(b"0\r\n\r\n")
                return False
            out.write(b"%x\r\n%s\r\n" % (len(record), record))
