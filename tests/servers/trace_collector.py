"""A collector of traces: takes OTLP over HTTP, as OpenTelemetry's exporters send it."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from servers.web_server import Handler, served


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

    class Taking(Handler):
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
            self.answer(200)

    with served(Taking) as address:
        collected = Collector(f"http://{address}")
        yield collected


def said(span: Any) -> dict[str, Any]:
    """Return a span's attributes."""
    return {each.key: _value(each.value) for each in span.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
