"""A collector of traces: takes OTLP over HTTP, as OpenTelemetry's exporters send it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """What came, span by span."""

    url: str
    spans: list[Any] = field(default_factory=list)
    #: What each resource says of itself.
    resources: list[dict[str, str]] = field(default_factory=list)
    #: All that was sent, as it came.
    raw: bytes = b""

    def span(self, name: str) -> Any:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@contextmanager
def collector() -> Iterator[Collector]:
    """Collect until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            collected.raw += body
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                said = part.resource.attributes
                collected.resources.append({each.key: each.value.string_value for each in said})
                collected.spans += [span for scope in part.scope_spans for span in scope.spans]
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collected = Collector(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collected
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def said(span: Any) -> dict[str, Any]:
    """Return a span's attributes."""
    return {each.key: _value(each.value) for each in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
