"""Metrics: the SDK's names, and ours beside them, for Prometheus and as Dropwizard's JSON.

Values of the state are read from it at each scrape. ``counters`` counts passing
events. Nothing is registered globally. ``docs/metrics.md`` lists the families, in the words
of FAMILIES.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dcos_tensorflow.api import counters, schemas
from dcos_tensorflow.api.counters import Histogram, Measured, Metrics
from dcos_tensorflow.api.source import Usages
from dcos_tensorflow.core.model.report import checkpoint_step_of, step_of
from dcos_tensorflow.core.model.service_state import OfferUse, ServiceState
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.records import dataclass

__all__ = ["FAMILIES", "Family", "Metrics", "dropwizard_body", "prometheus_text"]

#: The SDK's ``plan_status`` values; every other status counts as in progress.
_PLAN_VALUES = {Status.ERROR: -1, Status.COMPLETE: 0, Status.WAITING: 1, Status.PENDING: 1}

_PREFIX = "dcos_tensorflow_"
_GAUGE, _COUNTER, _HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True)
class Family:
    """All values of one name."""

    kind: str
    #: What it is, for people.
    what: str
    labels: tuple[str, ...] = ()


def _sdk() -> Iterator[tuple[str, Family]]:
    """Yield the SDK's, which its exporter declares as gauges, whatever they are."""
    yield "offers_received", Family(_GAUGE, "offers that came")
    yield "offers_processed", Family(_GAUGE, "offers used or declined")
    yield "declines_short", Family(_GAUGE, "offers declined for up to a minute")
    yield "declines_long", Family(_GAUGE, "offers declined for more than a minute")
    yield "revives", Family(_GAUGE, "calls that asked for offers")
    yield "revives_throttles", Family(_GAUGE, "looks that found it too early for another one")
    yield "suppresses", Family(_GAUGE, "calls that asked for no more offers")
    yield "operation_launch", Family(_GAUGE, "tasks launched")
    yield "operation_kill", Family(_GAUGE, "kills sent")
    yield "operation_reserve", Family(_GAUGE, "reservations made")
    yield "operation_create", Family(_GAUGE, "volumes made")
    yield "operation_unreserve", Family(_GAUGE, "reservations given back")
    yield "operation_destroy", Family(_GAUGE, "volumes destroyed")
    for state in dict.fromkeys(counters.MESOS_STATES.values()):
        yield f"task_status_{state.lower()}", Family(_GAUGE, f"changes of tasks to {state}")
    yield "is_suppressed", Family(_GAUGE, "1 while no offers are wanted")
    for plan in ("deploy", "recovery", "update", "decommission"):
        what = f"plan {plan}: -1 error, 0 complete, 1 waiting or pending, 2 in progress"
        yield f"plan_status_{plan}", Family(_GAUGE, what)
    yield "offers_process", Family(_HISTOGRAM, "seconds that a look at new offers took")


_OWN = {
    "registered": Family(_GAUGE, "1 while a master knows us"),
    "offers_total": Family(_COUNTER, "offers by their outcome", ("verdict",)),
    "events_waiting": Family(_GAUGE, "events that wait for the event loop"),
    "event_loop_busy_seconds": Family(_GAUGE, "how long the event loop is at its present events"),
    counters.LATENCY: Family(
        _HISTOGRAM, "seconds for which the event loop did not look though something waited"
    ),
    counters.STEP: Family(_HISTOGRAM, "seconds that deciding took"),
    counters.COMMIT: Family(_HISTOGRAM, "seconds that writing to the state store took"),
    counters.CALLS: Family(_HISTOGRAM, "seconds that the calls of one decision took"),
    counters.PLACEMENT: Family(_HISTOGRAM, "seconds that a gang waited for places"),
    counters.RECOVERY: Family(
        _HISTOGRAM, "seconds from the cause of a restart until all members ran again", ("kind",)
    ),
    "recoveries_total": Family(_COUNTER, "restarts after which all ran again", ("cause",)),
    "lost_steps_total": Family(_COUNTER, "steps that were trained once more after a restart"),
    "epoch": Family(_GAUGE, "version of the ClusterSpec"),
    "job_restarts": Family(_GAUGE, "restarts of the gang after failures"),
    "job_incidents": Family(_GAUGE, "incidents within the retry window"),
    "tasks": Family(_GAUGE, "tasks", ("role", "state")),
    "tasks_waiting": Family(_GAUGE, "tasks that fit nowhere"),
    "task_step": Family(_GAUGE, "training step that a task tells", ("task",)),
    "task_loss": Family(_GAUGE, "loss that a task tells", ("task",)),
    "task_accuracy": Family(_GAUGE, "accuracy that a task tells", ("task",)),
    "task_cpu_percent": Family(_GAUGE, "processor time of a task, in percents of one", ("task",)),
    "task_memory_bytes": Family(_GAUGE, "memory of a task", ("task",)),
    "task_steps_per_second": Family(_GAUGE, "steps that a task makes in a second", ("task",)),
    "task_gpu_utilisation": Family(
        _GAUGE, "share of time in which a GPU of a task computes, from 0 to 1", ("task", "gpu")
    ),
    "task_gpu_memory_bytes": Family(_GAUGE, "memory of a GPU in use", ("task", "gpu")),
    "checkpoint_step": Family(_GAUGE, "step of the newest checkpoint that can be restored"),
    "checkpoint_age_seconds": Family(_GAUGE, "for how long that one has been the newest"),
    "checkpoint_lag_steps": Family(_GAUGE, "steps that were told since that one"),
    "checkpoint_upload_lag_seconds": Family(
        _GAUGE, "for how long something complete has waited to get to S3", ("task",)
    ),
}

#: Every name that is ever served.
FAMILIES: Mapping[str, Family] = {
    **dict(_sdk()),
    **{f"{_PREFIX}{name}": family for name, family in _OWN.items()},
}


_NONE: Usages = MappingProxyType({})
#: What is told of each task's use by name, and as what it is served.
_USED = {
    "cpu_percent": "task_cpu_percent",
    "mem_bytes": "task_memory_bytes",
    "steps_per_second": "task_steps_per_second",
}


@dataclass(frozen=True)
class Sample:
    """One value. ``labels`` is empty but for metrics of our own."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


def counter_values(state: ServiceState, counts: Mapping[str, int]) -> dict[str, int]:
    """Return all counters by dotted name."""
    processed = state.desk.log.accepted + state.desk.log.rejected
    return {
        "offers.processed": processed,
        "offers.received": processed + len(state.desk.offers),
        "revives.throttles": state.desk.throttled,
        **counts,
    }


def gauge_values(state: ServiceState) -> dict[str, int]:
    """Return the SDK's gauges by dotted name."""
    known = plans(state.view())
    return {
        "is_suppressed": int(state.desk.suppressed is True),
        **{f"plan_status.{n}": _PLAN_VALUES.get(p.status, 2) for n, p in known.items()},
    }


def own_samples(
    state: ServiceState, measured: Measured, now: float, usages: Usages = _NONE
) -> Iterator[Sample]:
    """Yield what the SDK has no name for: tasks by role and state, restarts, training progress."""
    yield Sample("epoch", state.epoch.epoch if state.epoch is not None else 0)
    yield Sample("registered", int(state.registered))
    for use in OfferUse:
        yield Sample("offers_total", state.desk.log.by_use.get(use, 0), (use,))
    yield Sample("events_waiting", measured.waiting)
    yield Sample("event_loop_busy_seconds", measured.busy_seconds)
    for cause, count in measured.causes.items():
        yield Sample("recoveries_total", count, (cause,))
    yield Sample("lost_steps_total", measured.lost_steps)
    yield Sample("job_restarts", state.job.restart.count)
    yield Sample("job_incidents", len(state.job.incidents))
    yield Sample("tasks_waiting", len(state.only_gang.placing.misfits))
    standing = Counter((str(r.role), str(r.state)) for r in state.tasks.values())
    for labels, count in sorted(standing.items()):
        yield Sample("tasks", count, labels)
    reports = {name: state.told.reports.get(r.task_id, {}) for name, r in state.tasks.items()}
    for name, report in sorted(reports.items()):
        progress = report.get("progress")
        for key in ("step", "loss", "accuracy"):
            value = _number(progress, key)
            if value is not None:
                yield Sample(f"task_{key}", value, (name,))
        lag = _number(_part(report.get("storage"), "checkpoints"), "lag_seconds")
        if lag is not None:
            yield Sample("checkpoint_upload_lag_seconds", lag, (name,))
        yield from _usage_samples(name, usages.get(state.tasks[name].task_id, {}))
    yield from _checkpoint_samples(state, reports.values(), measured, now)


def _usage_samples(name: str, usage: Mapping[str, Any]) -> Iterator[Sample]:
    for key, shown in _USED.items():
        if (value := _number(usage, key)) is not None:
            yield Sample(shown, value, (name,))
    for index, gpu in enumerate(usage.get("gpus", ())):
        yield Sample("task_gpu_utilisation", gpu["utilisation"], (name, str(index)))
        yield Sample("task_gpu_memory_bytes", gpu["mem_bytes"], (name, str(index)))


def _checkpoint_samples(
    state: ServiceState, reports: Iterable[Mapping[str, Any]], measured: Measured, now: float
) -> Iterator[Sample]:
    """Yield how far the newest checkpoint is behind; of units of work each has its own."""
    told = [(step_of(report), checkpoint_step_of(report)) for report in reports]
    saved = max((step for _, step in told if step is not None), default=None)
    if saved is None or state.spec.units is not None:
        return
    yield Sample("checkpoint_step", saved)
    reached = max((step for step, _ in told if step is not None), default=saved)
    yield Sample("checkpoint_lag_steps", max(0, reached - saved))
    if measured.checkpoint is not None:
        yield Sample("checkpoint_age_seconds", max(0.0, now - measured.checkpoint[1]))


def _part(whole: Any, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else None


def _number(part: Any, name: str) -> float | None:
    value = _part(part, name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


class StateCollector(Collector):
    """All values of one scrape, in Prometheus' form; made for it and dropped after it."""

    def __init__(
        self, state: ServiceState, measured: Measured, now: float, usages: Usages = _NONE
    ) -> None:
        self._histograms = measured.histograms
        self._samples = [
            *(Sample(_flat(n), v) for n, v in counter_values(state, measured.counts).items()),
            *(Sample(_flat(n), v) for n, v in gauge_values(state).items()),
            *(
                Sample(f"{_PREFIX}{s.name}", s.value, s.labels)
                for s in own_samples(state, measured, now, usages)
            ),
        ]

    def collect(self) -> Iterable[Metric]:
        """Yield one family per name."""
        made: dict[str, Metric] = {}
        for sample in self._samples:
            family = made.setdefault(sample.name, _family(sample.name))
            family.add_metric(sample.labels, sample.value)  # type: ignore[attr-defined]
        for (name, label), histogram in self._histograms.items():
            full = _flat(name) if name == counters.OFFERS else f"{_PREFIX}{name}"
            family = made.setdefault(full, _family(full))
            labels = [label] if label else []
            family.add_metric(labels, _buckets(histogram), histogram.sum)  # type: ignore[attr-defined]
        yield from made.values()


_KINDS: Mapping[str, Callable[..., Metric]] = {
    _GAUGE: GaugeMetricFamily,
    _COUNTER: CounterMetricFamily,
    _HISTOGRAM: HistogramMetricFamily,
}


def _family(name: str) -> Metric:
    known = FAMILIES[name]
    return _KINDS[known.kind](name, known.what, labels=known.labels)


def _buckets(histogram: Histogram) -> list[tuple[str, int]]:
    """Return how many took as long as each bound at most, as Prometheus has them: added up."""
    found, total = [], 0
    for bound, count in zip((*histogram.bounds, "+Inf"), histogram.counts, strict=True):
        total += count
        found.append((str(bound), total))
    return found


def _flat(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def prometheus_text(state: ServiceState, measured: Measured, usages: Usages = _NONE) -> bytes:
    """Return Prometheus' text format. ``usages`` is what tasks use now, by task id."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(state, measured, time.time(), usages))
    return generate_latest(registry)


def dropwizard_body(
    state: ServiceState, measured: Measured, usages: Usages = _NONE
) -> schemas.Metrics:
    """Return Dropwizard's JSON, as ``/v1/metrics`` of the SDK does."""
    gauges: dict[str, schemas.Gauge] = {n: {"value": v} for n, v in gauge_values(state).items()}
    for sample in own_samples(state, measured, time.time(), usages):
        gauges[".".join((f"{_PREFIX}{sample.name}", *sample.labels))] = {"value": sample.value}
    known: dict[str, schemas.Counter] = {
        n: {"count": v} for n, v in sorted(counter_values(state, measured.counts).items())
    }
    timers: dict[str, schemas.Timer] = {}
    for (name, label), histogram in measured.histograms.items():
        full = name if name == counters.OFFERS else f"{_PREFIX}{name}"
        mean = histogram.sum / histogram.count if histogram.count else 0.0
        timer: schemas.Timer = {"count": histogram.count, "mean": mean, "duration_units": "seconds"}
        timers[f"{full}.{label}" if label else full] = timer
    return {
        "version": "3.1.3",
        "gauges": gauges,
        "counters": known,
        "histograms": {},
        "meters": {},
        "timers": timers,
    }
