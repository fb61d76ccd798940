"""A recovery becomes one trace: cause, decision, write, orders, first step, with no value in it."""

import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.scheduler.loop.tracing import Span, Traces, is_asked_for, spans, traces_of
from dcos_tensorflow.scheduler.recoveries import Recoveries
from samples.states import NOW, an_incident
from samples.turns import restarted, turns_of
from servers.trace_collector import Collector, collector, said
from waiting import eventually

CANARY = "c4n4ry"


def a_trace(*incidents: Any, steps: tuple[int, ...] = (100, 81), **more: Any) -> Span:
    recoveries = Recoveries()
    states = restarted(*incidents, steps=steps, **more)
    *turns, last = turns_of(states)
    turns.append(last._replace(ended_at=NOW + 12))
    (found,) = [recovery for turn in turns for recovery in recoveries.follow(turn)]
    return spans(found)


def parts(span: Span) -> dict[str, Span]:
    return {part.name: part for part in span.parts}


def test_it_has_the_parts_of_a_recovery_in_their_order() -> None:
    assert [part.name for part in a_trace(an_incident(at=NOW)).parts] == [
        "cause",
        "decision",
        "orders",
        "first step",
    ]


def test_orders_last_until_all_run_again() -> None:
    orders = parts(a_trace(an_incident(at=NOW)))["orders"]
    assert orders.ended_at == NOW + 10
    assert [part.name for part in orders.parts] == ["stopping", "starting"]


def test_the_first_step_comes_after_that() -> None:
    first = parts(a_trace(an_incident(at=NOW)))["first step"]
    assert (first.began_at, first.ended_at) == (NOW + 10, NOW + 12)
    assert first.attributes["dcos_tensorflow.step"] == 81


def test_no_part_begins_before_the_whole() -> None:
    whole = a_trace(an_incident(at=NOW))
    assert all(whole.began_at <= p.began_at <= p.ended_at <= whole.ended_at for p in whole.parts)


def test_the_cause_is_named_as_the_conventions_have_it() -> None:
    error = OwnError("ValueError", "train.py", 7)
    cause = parts(a_trace(an_incident(at=NOW, kind="failed", error=error)))["cause"]
    assert cause.attributes["error.type"] == "failed"
    assert cause.attributes["exception.type"] == "ValueError"


def test_what_was_planned_has_no_error() -> None:
    assert "error.type" not in a_trace().attributes


def test_what_a_task_has_said_stays_here() -> None:
    incident = an_incident(at=NOW, summary=f"exit 1: {CANARY}", evidence=CANARY)
    assert CANARY not in str(a_trace(incident))


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_environment_asks_for_traces(environ: Mapping[str, str], asked: bool) -> None:
    assert is_asked_for(environ) is asked


def test_nothing_is_imported_without_need() -> None:
    program = (
        "import sys, dcos_tensorflow.deploy.served_job as served;"
        "assert served.traces_of('mnist', {}) is None;"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_opentelemetry_it_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert traces_of("mnist", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}) is None
    assert "dcos-tensorflow[tracing]" in caplog.text


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Send a recovery to a collector, and return what has come there."""
    with collector() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        traces = Traces("mnist")
        for turn in turns_of(restarted(an_incident(at=NOW), steps=[100, 81])):
            traces.observe(turn)
        traces.stop()
        yield found


def test_a_collector_gets_one_trace_with_its_parts(collected: Collector) -> None:
    whole = collected.span("recovery")
    assert {span.trace_id for span in collected.spans} == {whole.trace_id}
    assert collected.span("decision").parent_span_id == whole.span_id
    assert collected.span("stopping").parent_span_id == collected.span("orders").span_id


def test_a_collector_gets_the_times_of_the_recovery(collected: Collector) -> None:
    orders = collected.span("orders")
    assert orders.end_time_unix_nano == (NOW + 10) * 1e9


def test_a_collector_is_told_whose_it_is(collected: Collector) -> None:
    (resource,) = collected.resources
    assert resource["service.name"] == "mnist"
    assert resource["service.namespace"] == "dcos-tensorflow"


def test_a_trace_carries_the_id_of_the_log(collected: Collector) -> None:
    assert said(collected.span("decision"))["dcos_tensorflow.turn"] == "1afe-1"


def test_a_collector_that_does_not_answer_holds_up_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dcos_tensorflow.scheduler.loop.tracing._LAST_SECONDS", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    before = set(threading.enumerate())
    traces = Traces("mnist")
    for turn in turns_of(restarted(an_incident(at=NOW), steps=[100, 81])):
        traces.observe(turn)
    traces.stop()
    # It goes on trying for a moment; its random pauses would disturb tests that Hypothesis plays.
    eventually(lambda: set(threading.enumerate()) <= before)
