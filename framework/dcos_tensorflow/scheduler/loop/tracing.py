"""Traces of recoveries, sent by OpenTelemetry where the environment names a collector.

``deploy.served_job`` has them made where ``is_asked_for`` says so; without that nothing of
OpenTelemetry is imported. ``spans`` makes the parts of a trace and is pure. Names go out, and no
values: the words of tasks stay here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.loop.turn import Turn
from dcos_tensorflow.scheduler.recoveries import Recoveries, Recovery

log = logging.getLogger(__name__)

#: Variables of OpenTelemetry's own specification that name a collector.
_COLLECTORS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
#: How long what was not sent yet may hold up the end of the scheduler.
_LAST_SECONDS = 3.0
_OURS = "dcos_tensorflow"

Value = str | int | bool | Sequence[str]


def is_asked_for(environ: Mapping[str, str]) -> bool:
    """Say whether the environment names a collector of traces."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "otlp")
    return exporter == "otlp" and any(environ.get(name) for name in _COLLECTORS)


@dataclass(frozen=True)
class Span:
    """A part of a recovery. Times are unix seconds."""

    name: str
    began_at: float
    ended_at: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    parts: tuple[Span, ...] = ()
    #: It did not come to what it was for.
    failed: bool = False


def spans(recovery: Recovery) -> Span:
    """Return a recovery as spans: the whole, with cause, decision, write, orders, first step."""
    turn = recovery.decision
    acted = turn.ended_at - turn.performed
    decided = acted - (turn.committed or 0.0)
    heard = decided - turn.decided
    began = min(recovery.began_at, heard - turn.waited)
    parts = tuple(_parts(recovery, began, heard, decided, acted))
    whole: dict[str, Value] = {
        **_cause(recovery),
        f"{_OURS}.turn": turn.id,
        f"{_OURS}.members": recovery.members,
        f"{_OURS}.lost_steps": recovery.lost_steps,
    }
    ended = max(part.ended_at for part in parts)
    return Span("recovery", began, ended, whole, parts, failed=recovery.running_at is None)


def _parts(
    recovery: Recovery, began: float, heard: float, decided: float, acted: float
) -> Iterator[Span]:
    turn, names = recovery.decision, recovery.decision.named()
    events = {**_cause(recovery), f"{_OURS}.events": names["events"]}
    yield Span("cause", began, heard, events)
    yield Span("decision", heard, decided, {f"{_OURS}.turn": turn.id})
    if turn.committed is not None:
        yield Span("write", decided, acted, {f"{_OURS}.writes": names["writes"]})
    phases = tuple(Span(p.phase, p.began_at, p.ended_at) for p in recovery.phases)
    ended = recovery.running_at or max((p.ended_at for p in phases), default=turn.ended_at)
    calls = {f"{_OURS}.calls": names["calls"]}
    yield Span("orders", acted, max(acted, ended), calls, phases)
    if recovery.running_at is not None and recovery.first_step_at is not None:
        step = {f"{_OURS}.step": recovery.step_after or 0}
        since = recovery.running_at
        yield Span("first step", since, max(since, recovery.first_step_at), step)


def _cause(recovery: Recovery) -> dict[str, Value]:
    incident = recovery.incident
    if incident is None:
        return {f"{_OURS}.cause": recovery.cause}
    raised = {"exception.type": incident.error.exception} if incident.error is not None else {}
    return {
        f"{_OURS}.cause": recovery.cause,
        f"{_OURS}.task": incident.task,
        f"{_OURS}.task_id": incident.task_id,
        f"{_OURS}.charged": incident.charged,
        "error.type": recovery.cause,
        **raised,
    }


class Traces:
    """Sends the traces of one service. ``observe`` is called by one thread.

    Raises ImportError where OpenTelemetry is not installed, ValueError where it is set up wrong.
    """

    def __init__(self, service: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create(
            {"service.name": service, "service.namespace": "dcos-tensorflow"}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._recoveries = Recoveries()

    def observe(self, turn: Turn) -> None:
        """Send the recoveries that this turn has shown to be over, in a thread of its own."""
        for recovery in self._recoveries.follow(turn):
            self._send(spans(recovery), None)

    def stop(self) -> None:
        """Send what was not sent yet, if that takes no longer than a moment."""
        last = threading.Thread(target=self._provider.shutdown, name="last-traces", daemon=True)
        last.start()
        last.join(_LAST_SECONDS)

    def _send(self, span: Span, parent: object) -> None:
        from opentelemetry import trace

        above = trace.set_span_in_context(parent) if isinstance(parent, trace.Span) else None
        made = self._provider.get_tracer(_OURS).start_span(
            span.name, above, attributes=span.attributes, start_time=_nanoseconds(span.began_at)
        )
        for part in span.parts:
            self._send(part, made)
        if span.failed:
            made.set_status(trace.Status(trace.StatusCode.ERROR))
        made.end(_nanoseconds(span.ended_at))


def traces_of(service: str, environ: Mapping[str, str]) -> Traces | None:
    """Return what sends the traces of a service; None where none are wanted, or it is missing."""
    if not is_asked_for(environ):
        return None
    try:
        return Traces(service)
    except ImportError as error:
        log.warning("no traces are sent: pip install 'dcos-tensorflow[tracing]' (%s)", error)
    except ValueError as error:
        log.warning("no traces are sent: OpenTelemetry's settings are wrong: %s", error)
    return None


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
