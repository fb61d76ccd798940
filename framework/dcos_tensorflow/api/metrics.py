"""Metrics: the SDK's names, and ours beside them, for Prometheus and as Dropwizard's JSON.

What the state tells is read from it at each scrape. What only passes by is counted by
``counters``. Nothing is registered globally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dcos_tensorflow.api import schemas
from dcos_tensorflow.api.counters import Metrics
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.records import dataclass

__all__ = ["Metrics", "dropwizard_body", "prometheus_text"]

#: The SDK's ``plan_status`` values; every other status counts as in progress.
_PLAN_VALUES = {Status.ERROR: -1, Status.COMPLETE: 0, Status.WAITING: 1, Status.PENDING: 1}

_PREFIX = "dcos_tensorflow_"


@dataclass(frozen=True)
class Sample:
    """One value. ``labels`` is empty but for metrics of our own."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


def counter_values(state: ServiceState, counts: Mapping[str, int]) -> dict[str, int]:
    """Return all counters by dotted name."""
    processed = state.desk.log.accepted + state.desk.log.rejected
    return {
        "offers.processed": processed,
        "offers.received": processed + len(state.desk.offers),
        **counts,
    }


def gauge_values(state: ServiceState) -> dict[str, int]:
    """Return the SDK's gauges by dotted name."""
    known = plans(state.view())
    return {
        "is_suppressed": int(state.desk.suppressed is True),
        **{f"plan_status.{n}": _PLAN_VALUES.get(p.status, 2) for n, p in known.items()},
    }


def own_samples(state: ServiceState) -> Iterator[Sample]:
    """Yield what the SDK has no name for: tasks by role and state, restarts, training progress."""
    yield Sample(f"{_PREFIX}epoch", state.epoch.epoch if state.epoch is not None else 0)
    yield Sample(f"{_PREFIX}registered", int(state.registered))
    yield Sample(f"{_PREFIX}job_restarts", state.job.restart.count)
    yield Sample(f"{_PREFIX}job_incidents", len(state.job.incidents))
    yield Sample(f"{_PREFIX}tasks_waiting", len(state.only_gang.placing.misfits))
    standing = Counter((str(r.role), str(r.state)) for r in state.tasks.values())
    for (role, task_state), count in sorted(standing.items()):
        yield Sample(f"{_PREFIX}tasks", count, (("role", role), ("state", task_state)))
    for name, record in sorted(state.tasks.items()):
        progress = state.told.reports.get(record.task_id, {}).get("progress")
        if not isinstance(progress, Mapping):
            continue
        for key in ("step", "loss", "accuracy"):
            value = progress.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield Sample(f"{_PREFIX}task_{key}", value, (("task", name),))


class StateCollector(Collector):
    """All values of one scrape, in Prometheus' form; made for it and dropped after it."""

    def __init__(self, state: ServiceState, counts: Mapping[str, int]) -> None:
        self._samples = [
            *(Sample(_flat(n), v) for n, v in counter_values(state, counts).items()),
            *(Sample(_flat(n), v) for n, v in gauge_values(state).items()),
            *own_samples(state),
        ]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yield one family per name. The SDK's exporter declares its counters as gauges too."""
        families: dict[str, GaugeMetricFamily] = {}
        for sample in self._samples:
            labels = [name for name, _ in sample.labels]
            family = families.setdefault(
                sample.name, GaugeMetricFamily(sample.name, sample.name, labels=labels)
            )
            family.add_metric([value for _, value in sample.labels], sample.value)
        yield from families.values()


def _flat(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def prometheus_text(state: ServiceState, counts: Mapping[str, int]) -> bytes:
    """Return Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StateCollector(state, counts))
    return generate_latest(registry)


def dropwizard_body(state: ServiceState, counts: Mapping[str, int]) -> schemas.Metrics:
    """Return Dropwizard's JSON, as ``/v1/metrics`` of the SDK does."""
    gauges: dict[str, schemas.Gauge] = {n: {"value": v} for n, v in gauge_values(state).items()}
    for sample in own_samples(state):
        name = ".".join((sample.name, *(value for _, value in sample.labels)))
        gauges[name] = {"value": sample.value}
    counters: dict[str, schemas.Counter] = {
        n: {"count": v} for n, v in sorted(counter_values(state, counts).items())
    }
    return {
        "version": "3.1.3",
        "gauges": gauges,
        "counters": counters,
        "histograms": {},
        "meters": {},
        "timers": {},
    }
