"""An S3 server for tests: moto behind a door where faults are ordered, on a free loopback port.

``S3Server.fault`` is asked about every request: None lets it through, else it is answered by a
``Fault``. Requests with a condition (If-Match, If-None-Match) go through one at a time, because
moto checks and writes in two steps and S3 does both at once.
"""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto.server import create_backend_app
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from waiting import eventually

KEY_ID, SECRET_KEY = "AKIATESTTESTTESTTEST", "very/secret+key"


@dataclass(frozen=True)
class Request:
    """One request as the door sees it. ``number`` counts from 1 over all requests."""

    number: int
    method: str
    path: str
    query: str
    headers: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """What happens to a request instead of, or around, its answer.

    ``status`` and ``code`` refuse it; ``cut_request`` closes the connection with the body half
    read; ``cut_answer`` after so many bytes of the answer; ``lost_answer`` after it was carried
    out; ``corrupt`` flips a byte of the answer; ``delay`` waits before anything else, seconds.
    """

    status: int = 0
    code: str = "SlowDown"
    cut_request: bool = False
    cut_answer: int | None = None
    lost_answer: bool = False
    corrupt: bool = False
    delay: float = 0.0


class S3Server:
    """A moto S3 with the bucket ``bucket``. Close it."""

    def __init__(self, bucket: str = "bucket") -> None:
        self.fault: Callable[[Request], Fault | None] = lambda request: None
        self.requests: list[Request] = []
        self.ignores_conditions = False
        self._app = create_backend_app("s3")
        self._lock = threading.Lock()
        self._conditional = threading.Lock()
        self._server = _Server("127.0.0.1", 0, self._answer, _Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.bucket = bucket
        self.client = boto3.session.Session().client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET_KEY,
        )
        self.client.create_bucket(Bucket=bucket)

    def close(self) -> None:
        self.client.close()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def options(self, folder: Path) -> dict[str, object]:
        """Return the options' section ``s3`` for this server; the keys are put into ``folder``."""
        keys = folder / "keys"
        keys.write_text(
            f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET_KEY}\n"
        )
        return {
            "endpoint_url": self.url,
            "region": "us-east-1",
            "credentials": {"file": str(keys)},
        }

    def list_keys(self, prefix: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def empty(self) -> None:
        """Remove every object."""
        keys = self.list_keys()
        for start in range(0, len(keys), 1000):
            batch = [{"Key": key} for key in keys[start : start + 1000]]
            self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": batch})

    def settle(self) -> None:
        """Wait until everything is carried out that was sent by clients which have been killed.

        No other client may be connected.
        """
        self.client.close()
        # Connections are accepted in their order: this one after those that wait already.
        self.list_keys("nothing")
        self.client.close()
        eventually(
            lambda: not self._server.connections, seconds=60, what="the end of every request"
        )

    def uploads(self) -> list[str]:
        answer = self.client.list_multipart_uploads(Bucket=self.bucket)
        return [upload["Key"] for upload in answer.get("Uploads", ())]

    def count(self, method: str, pattern: str = "") -> int:
        """How many requests of ``method`` had a path and query with ``pattern`` in them."""
        return sum(
            request.method == method and bool(re.search(pattern, f"{request.path}?{request.query}"))
            for request in self.requests
        )

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = self._noted(environ)
        if self.ignores_conditions:
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        fault = self.fault(request)
        if fault is not None and fault.delay:
            time.sleep(fault.delay)
        if fault is not None and fault.status:
            return _refusal(fault, environ, start_response)
        if fault is not None and fault.cut_request:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0) // 2)
            return _hang_up(environ)
        conditional = request.method == "PUT" and any(
            name in request.headers for name in ("IF_MATCH", "IF_NONE_MATCH")
        )
        if conditional:
            with self._conditional:
                answer = self._app(environ, start_response)
        else:
            answer = self._app(environ, start_response)
        if fault is not None and fault.lost_answer:
            return _hang_up(environ)
        if fault is not None and fault.corrupt:
            content = bytearray(b"".join(answer))
            if content:
                content[len(content) // 2] ^= 0xFF
            return [bytes(content)]
        if fault is not None and fault.cut_answer is not None:
            return _cut(answer, fault.cut_answer, environ)
        return answer

    def _noted(self, environ: dict[str, Any]) -> Request:
        headers = {name[5:]: value for name, value in environ.items() if name[:5] == "HTTP_"}
        with self._lock:
            request = Request(
                len(self.requests) + 1,
                environ["REQUEST_METHOD"],
                environ["PATH_INFO"],
                environ.get("QUERY_STRING", ""),
                headers,
            )
            self.requests.append(request)
        return request


class _Server(ThreadedWSGIServer):
    """Knows how many connections it has accepted and not yet closed."""

    def __init__(self, *arguments: Any) -> None:
        self.connections = 0
        self._counting = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._counting:
            self.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._counting:
            self.connections -= 1


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing: a test shows its own requests."""


def _refusal(fault: Fault, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    body = f"<?xml version='1.0'?><Error><Code>{fault.code}</Code><Message>no</Message></Error>"
    content = b"" if environ["REQUEST_METHOD"] == "HEAD" else body.encode()
    start_response(
        f"{fault.status} Ordered",
        [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))],
    )
    return [content]


def _hang_up(environ: dict[str, Any]) -> Iterable[bytes]:
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def _cut(answer: Iterable[bytes], limit: int, environ: dict[str, Any]) -> Iterable[bytes]:
    for piece in answer:
        if len(piece) >= limit:
            yield piece[:limit]
            break
        limit -= len(piece)
        yield piece
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
