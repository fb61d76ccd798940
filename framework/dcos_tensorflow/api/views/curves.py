"""The curves of the training, in columns: ``/v1/curves``; the service's runs: ``/v1/runs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from dcos_tensorflow.api import schemas
from dcos_tensorflow.history.points import Point
from dcos_tensorflow.history.record import Record, best

_KEPT = tuple(name for name in schemas.KeptRun.__annotations__ if name != "best")


def curves(points: Mapping[str, Sequence[Point]]) -> dict[str, schemas.Curve]:
    """Return the points of each task; null where a metric was not told."""
    return {name: _columns(found) for name, found in points.items()}


def _columns(points: Sequence[Point]) -> schemas.Curve:
    metrics = dict.fromkeys(name for point in points for name in point.metrics)
    return {
        "at": [point.at for point in points],
        "step": [point.step for point in points],
        "metrics": {name: [point.metrics.get(name) for point in points] for name in metrics},
    }


def runs(records: Sequence[Record]) -> list[schemas.KeptRun]:
    """Return what is known of each run beside its curves, as it was kept."""
    return [_run(record) for record in records]


def _run(record: Record) -> schemas.KeptRun:
    told = best(record)
    shown = {name: record.get(name) for name in _KEPT}
    shown["best"] = {"metric": told[0], "value": told[1]} if told is not None else None
    return cast("schemas.KeptRun", shown)
