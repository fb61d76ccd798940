"""The record of a run beside its curves: one JSON document, ``run.json``.

Made by ``keeper`` of the state, merged with the record before; shown by ``dcos-tensorflow runs``
and ``/v1/runs``. Tags and the note of a person are kept beside it. Pure.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dcos_tensorflow.core.contract import MOST_STEPS, NOT_FINITE
from dcos_tensorflow.core.json_numbers import as_json
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.job import Incident, JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.history.points import Point

#: The newest incidents of a run that are kept.
MOST_INCIDENTS = 100
#: The best metric of a run is the first of these that it has told.
_USUAL = ("val_loss", "loss", "val_accuracy", "accuracy")
#: Words of metrics of which more is better; of all others less is.
_MORE_IS_BETTER = ("acc", "auc", "precision", "recall", "f1", "score", "reward", "iou", "bleu")

Record = Mapping[str, Any]


#: No time is later (unix seconds): what is would be no date.
_NEVER = 1e11
#: A note, and each tag, is no longer; bytes.
NOTE_BYTES, TAG_BYTES = 2000, 50
MOST_TAGS = 20

Notes = Mapping[str, Any]
NONE: Notes = {"tags": [], "note": ""}

ALLOWED = (
    f'the body must be {{"tags": ["..."], "note": "..."}} with at most {MOST_TAGS} tags of'
    f" {TAG_BYTES} bytes each, without commas, and a note of {NOTE_BYTES} bytes"
)


def known(found: Any) -> Record:
    """Return a document that was read, if it is one as ``record_of`` makes it; else an empty one.

    Whatever is in it then can be shown, compared and joined with others.
    """
    if not isinstance(found, dict):
        return {}
    whole = {**dict.fromkeys(_FITS), **found}
    fit = all(fits(whole[name]) for name, fits in _FITS.items())
    more = all(fits(whole[name]) for name, fits in _FITS_IF_THERE.items() if name in whole)
    return whole if fit and more else {}


def run_id(state: ServiceState) -> str:
    """Return what a run is called: its number, and a part of the id that no other run has."""
    return f"{state.run}-{state.instance[:8]}"


def record_of(state: ServiceState, options: Mapping[str, Any], before: Record) -> dict[str, Any]:
    """Return the document of the present run. ``before`` is the one that was kept last, or empty.

    ``options`` are those in force, secrets hidden. Times are unix seconds; null where something has
    not happened.
    """
    job, verdict = state.job, state.job.verdict
    return {
        "service": state.spec.name,
        "id": run_id(state),
        "run": state.run,
        "phase": str(job.phase),
        "outcome": str(verdict.outcome) if verdict is not None else None,
        "summary": verdict.summary if verdict is not None else job.why,
        "uninstalled": state.uninstall.asked,
        # What has not started has been seen first when it was first kept.
        "started_at": job.started_at or before.get("started_at") or job.phase_since or None,
        "finished_at": job.finished_at or None,
        "configuration": configuration_id(state.spec),
        "options": dict(options) or before.get("options") or {},
        "incidents": _incidents(before.get("incidents") or (), job.incidents),
        "result": before.get("result") or dict(job.result),
        "units": before.get("units"),
        "step": before.get("step"),
        "metrics": before.get("metrics") or {},
        "is_over": job.phase is JobPhase.DONE,
    }


def with_points(record: Record, points: Iterable[Point]) -> dict[str, Any]:
    """Return the document with the highest step, and of each metric its least, most and newest.

    They are those of all points, and not only of those that are kept.
    """
    step, metrics = record.get("step"), dict(record.get("metrics") or {})
    for point in points:
        if point.step is not None:
            step = point.step if step is None else max(step, point.step)
        for name, value in point.metrics.items():
            known = metrics.get(name) or {"least": None, "most": None}
            least, most = known["least"], known["most"]
            if math.isfinite(value):
                least = value if least is None else min(least, value)
                most = value if most is None else max(most, value)
            metrics[name] = {"least": least, "most": most, "newest": as_json(value)}
    return {**record, "step": step, "metrics": metrics}


def joined(record: Record, other: Record) -> dict[str, Any]:
    """Return the document with what another machine has known of the same run."""
    metrics = dict(other.get("metrics") or {})
    for name, mine in (record.get("metrics") or {}).items():
        its = metrics.get(name, mine)
        ends = [
            min((end for end in (mine["least"], its["least"]) if end is not None), default=None),
            max((end for end in (mine["most"], its["most"]) if end is not None), default=None),
        ]
        metrics[name] = {**mine, "least": ends[0], "most": ends[1]}
    steps = [each for each in (record.get("step"), other.get("step")) if each is not None]
    incidents = {
        (each["at"], each["task"]): each
        for each in (*(other.get("incidents") or ()), *(record.get("incidents") or ()))
    }
    return {
        **other,
        **record,
        "step": max(steps, default=None),
        "metrics": metrics,
        "incidents": [incidents[key] for key in sorted(incidents)][-MOST_INCIDENTS:],
    }


def best(record: Record, metric: str = "") -> tuple[str, float] | None:
    """Return a metric's name and its best value; that of the usual one where none is named.

    Of a sweep it is its best trial's. None where it was not told.
    """
    trial = (record.get("units") or {}).get("best")
    if trial and metric in ("", trial["metric"]):
        return trial["metric"], trial["value"]
    metrics = record.get("metrics") or {}
    names = [metric] if metric else [*_USUAL, *metrics]
    finite = (name for name in names if name in metrics and metrics[name]["least"] is not None)
    name = next(finite, None)
    if name is None:
        return None
    more = any(word in name.lower() for word in _MORE_IS_BETTER)
    return name, metrics[name]["most" if more else "least"]


def _incidents(
    before: Sequence[Mapping[str, Any]], now: Iterable[Incident]
) -> list[Mapping[str, Any]]:
    """Return all incidents; the state forgets those of long ago."""
    found = {(each["at"], each["task"]): each for each in before}
    for each in now:
        told = {"at": each.at, "task": each.task, "kind": each.kind, "summary": each.told}
        found[each.at, each.task] = {**told, "step": each.step}
    return [found[key] for key in sorted(found)][-MOST_INCIDENTS:]


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and -sys.float_info.max <= value <= sys.float_info.max


def _is_moment(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= _NEVER


def _is_step(value: Any) -> bool:
    return value is None or (_is_number(value) and abs(value) <= MOST_STEPS)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_metrics(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(told, dict) and _is_range(told) for told in value.values())


def _is_range(told: dict[str, Any]) -> bool:
    """Say so of the values of a metric: without a finite one there is no least and no most."""
    ends = [told.get("least", ""), told.get("most", "")]
    newest = told.get("newest")
    known = ends == [None, None] or all(map(_is_number, ends))
    return known and (_is_number(newest) or newest in NOT_FINITE)


def _is_incident(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_moment(value.get("at")):
        return False
    texts = all(_is_text(value.get(name)) for name in ("task", "kind", "summary"))
    return texts and _is_step(value.get("step"))


def _are_units(value: Any) -> bool:
    """Say so of what came of a sweep or batch; its best trial alone is ever looked at."""
    if value is None:
        return True
    best = value.get("best") if isinstance(value, dict) else 0
    if not isinstance(best, dict):
        return best is None
    return _is_text(best.get("metric")) and _is_number(best.get("value"))


def _each(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


#: What must be true of each part.
_FITS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("service", "id", "phase", "summary", "configuration"), _is_text),
    **dict.fromkeys(("options", "result"), lambda value: isinstance(value, dict)),
    **dict.fromkeys(("started_at", "finished_at"), lambda v: v is None or _is_moment(v)),
    "outcome": lambda value: value is None or _is_text(value),
    "run": lambda value: _is_number(value) and isinstance(value, int),
    "uninstalled": lambda value: isinstance(value, bool),
    "incidents": _each(_is_incident),
    "units": _are_units,
    "step": _is_step,
    "metrics": _are_metrics,
}
#: What must be so of each part that records of before have not.
_FITS_IF_THERE: Mapping[str, Callable[[Any], bool]] = {"tags": _each(_is_text), "note": _is_text}


def notes_of(given: Any) -> Notes:
    """Return tags and note of a document, each tag once. Raises ValueError, which says what fits.

    Names beside these two are passed over, so that a run's record may be given.
    """
    found = {**NONE, **given} if isinstance(given, dict) else {}
    tags: Any = found.get("tags")
    note: Any = found.get("note")
    if not isinstance(tags, list) or len(tags) > MOST_TAGS or not _fits(note, NOTE_BYTES):
        raise ValueError(ALLOWED)
    if not all(_fits(tag, TAG_BYTES) and "," not in tag and tag.strip() for tag in tags):
        raise ValueError(ALLOWED)
    return {"tags": list(dict.fromkeys(tag.strip() for tag in tags)), "note": note.strip()}


def _fits(text: Any, most: int) -> bool:
    return isinstance(text, str) and len(text.encode("utf-8", "replace")) <= most
