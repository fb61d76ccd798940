"""An incremental parser of one HTTP/1.x response (RFC 9112).

pymesos feeds it whatever a socket delivered and asks what is known so far. Bytes may be cut
anywhere; header values come out the same wherever they were cut. It never does I/O and it parses
no requests.
"""

_MAX_HEAD_BYTES = 1 << 20
_MAX_CHUNK_LINE_BYTES = 4096


class HttpParser:
    """One response. Feed it with :meth:`execute`; an error is remembered and ends the parsing."""

    def __init__(self):
        self._buffer = bytearray()
        self._body = bytearray()
        self._status = 0
        self._headers = {}
        self._step = self._read_head
        self._left = 0
        self._chunked = False
        self._failed = False
        self._head_complete = False
        self._complete = False

    def execute(self, data, length):
        """Parse ``length`` bytes of ``data``; return how many were taken.

        Fewer than ``length`` are taken only after an error, which :meth:`get_errno` then tells.
        """
        if self._failed:
            return 0
        self._buffer += data[:length]
        try:
            while not self._complete and self._step():
                pass
        except ValueError:
            self._failed = True
            return 0
        return length

    def get_errno(self):
        """Return 1 after bytes that are no HTTP response, else 0."""
        return int(self._failed)

    def is_headers_complete(self):
        """Say whether status line and headers are known."""
        return self._head_complete

    def get_status_code(self):
        """Return the status code; 0 before the headers are complete."""
        return self._status

    def get_headers(self):
        """Return the headers, names as sent; a repeated header's values joined by a comma."""
        return dict(self._headers)

    def is_chunked(self):
        """Say whether the body comes in chunks."""
        return self._chunked

    def is_partial_body(self):
        """Say whether :meth:`recv_body` has something to give."""
        return bool(self._body)

    def recv_body(self):
        """Return the body received since the last call."""
        body = bytes(self._body)
        self._body.clear()
        return body

    def is_message_complete(self):
        """Say whether the response has ended."""
        return self._complete

    def _take_line(self, limit):
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > limit:
                raise ValueError("line too long")
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line[:-1] if line.endswith(b"\r") else line

    def _read_head(self):
        ends = [
            (at, len(mark))
            for mark in (b"\r\n\r\n", b"\n\n")
            if (at := self._buffer.find(mark)) >= 0
        ]
        if not ends:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                raise ValueError("headers too long")
            return False
        end, size = min(ends)
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\n")
        del self._buffer[: end + size]
        version, _, rest = lines[0].strip().partition(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError("not an HTTP/1.x response")
        status = int(rest[:3])
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise ValueError("malformed header")
            value = value.strip()
            headers[name] = headers[name] + ", " + value if name in headers else value
        if 100 <= status < 200:
            return True
        self._status, self._headers, self._head_complete = status, headers, True
        self._choose_body({name.lower(): value for name, value in headers.items()})
        return True

    def _choose_body(self, headers):
        if self._status in (204, 304):
            self._complete = True
        elif headers.get("transfer-encoding", "").lower().endswith("chunked"):
            self._chunked = True
            self._step = self._read_chunk_size
        elif "content-length" in headers:
            self._left = int(headers["content-length"])
            if self._left < 0:
                raise ValueError("negative Content-Length")
            self._complete = self._left == 0
            self._step = self._read_counted
        else:
            self._step = self._read_until_close

    def _read_counted(self):
        taken = self._move(self._left)
        self._left -= taken
        self._complete = self._left == 0
        return False

    def _read_until_close(self):
        self._move(len(self._buffer))
        return False

    def _read_chunk_size(self):
        line = self._take_line(_MAX_CHUNK_LINE_BYTES)
        if line is None:
            return False
        digits = line.split(b";", 1)[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise ValueError("malformed chunk size")
        self._left = int(digits, 16)
        self._step = self._read_chunk if self._left else self._read_trailer
        return True

    def _read_chunk(self):
        self._left -= self._move(self._left)
        if self._left:
            return False
        self._step = self._read_chunk_end
        return True

    def _read_chunk_end(self):
        line = self._take_line(_MAX_CHUNK_LINE_BYTES)
        if line is None:
            return False
        if line:
            raise ValueError("chunk longer than its size")
        self._step = self._read_chunk_size
        return True

    def _read_trailer(self):
        line = self._take_line(_MAX_HEAD_BYTES)
        if line is None:
            return False
        self._complete = line == b""
        return True

    def _move(self, limit):
        taken = min(limit, len(self._buffer))
        self._body += self._buffer[:taken]
        del self._buffer[:taken]
        return taken
