"""Sends runs to an MLflow tracking server, from their records on the disk.

Started by ``deploy.served_job`` beside the keeper, on a thread of its own: no step of a training
waits for the server. The sent points are noted beside the run, so that the server gets those that
it misses, while it is away or while no scheduler runs, later: each point once. A run that another
one has followed is ended there, too.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcos_tensorflow.core.job_parameters import text
from dcos_tensorflow.core.json_numbers import as_json
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.mlflow import (
    MOST_METRICS,
    MOST_PARAMETERS,
    MlflowServer,
    TrackingError,
)
from dcos_tensorflow.history.points import Point, Points
from dcos_tensorflow.history.record import Record, run_id
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: The server is told this often; after a failure less and less often; seconds.
SECONDS = 5.0
_MOST_SECONDS = 60.0
#: How long the end of the process waits for the last words; seconds.
_LAST_SECONDS = 5.0
#: So many trials of a sweep are told of, the first ones.
MOST_TRIALS = 1000
#: By these a run is found again, whatever was lost here.
_RUN_TAG, _TRIAL_TAG = "dcos_tensorflow.run", "dcos_tensorflow.trial"
#: How MLflow knows the runs below another one.
_PARENT_TAG = "mlflow.parentRunId"
_FINISHED, _FAILED, _KILLED = "FINISHED", "FAILED", "KILLED"
_STATUS = {Outcome.SUCCEEDED: _FINISHED, Outcome.FAILED: _FAILED, Outcome.STOPPED: _KILLED}
_ENDED = {UnitState.SUCCEEDED: _FINISHED, UnitState.FAILED: _FAILED, UnitState.PRUNED: _KILLED}
#: What MLflow takes in no name.
_ODD = re.compile(r"[^\w./ -]", re.ASCII)
_GROUPS = ("parameter_server", "chief", "worker", "gpu_worker", "evaluator")


@dataclass(frozen=True)
class TrackingSources:
    """Where it is known who is told and what. None is called in the event loop's thread."""

    #: Returns the newest state; None while there is none.
    state: Callable[[], ServiceState | None]
    #: Returns the server that the options in force name. May raise TrackingError.
    server: Callable[[ServiceState], MlflowServer]
    #: Returns where the present run leaves something, by what it is.
    places: Callable[[ServiceState], Mapping[str, str]]
    #: Returns the trials of a sweep as ``/v1/units`` has them, secrets hidden.
    trials: Callable[[ServiceState], Mapping[str, Any]]


class Tracking:
    """See the module. ``path`` is the folder of the service's runs."""

    def __init__(self, path: Path, sources: TrackingSources) -> None:
        self._path = path
        self._sources = sources
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0
        #: The names of runs that are told of; None before it was looked for them.
        self._open: set[str] | None = None

    def start(self) -> None:
        """Begin to tell. Returns at once."""
        self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Tell what was kept last, if that takes no longer than a moment, and end."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_LAST_SECONDS)

    def _work(self) -> None:
        last = False
        while not last:
            last = self._ending.wait(min(_MOST_SECONDS, SECONDS * 2 ** min(self._failures, 8)))
            try:
                self._tell()
            except Exception as error:
                # The job goes on whatever this was, and the same is told once.
                unknown = None if isinstance(error, TrackingError | OSError) else error
                if not self._failures:
                    later = "it gets the missing values later"
                    log.warning("the tracking server: %s; %s", error, later, exc_info=unknown)
                self._failures += 1
            else:
                if self._failures:
                    log.info(
                        "the tracking server answers again, and has the values that it had missed"
                    )
                self._failures = 0

    def _tell(self) -> None:
        state = self._sources.state()
        if state is None or state.spec.tracking is None:
            return
        if self._open is None:
            # Of runs of before those that have begun to be told and were not told to their end.
            runs = folder.runs_in(self._path)
            self._open = {run.path.name for run in runs if run.tracking().get("over") is False}
        present = run_id(state)
        self._open.add(present)
        # The present one first: what one of before is refused holds it up for no moment.
        for name in sorted(self._open, key=lambda each: each != present):
            if self._run(state, RunFolder(self._path / name), is_present=name == present):
                self._open.discard(name)

    def _run(self, state: ServiceState, run: RunFolder, *, is_present: bool) -> bool:
        """Tell what is new of a run; say whether it is over, or is none to be told of."""
        spec, known, record = state.spec.tracking, run.tracking(), run.record()
        if spec is None or not record:
            return not is_present
        if known.get("uri") != spec.uri:
            if not is_present:
                return True
            # From now on it is to be told, whether the server is there or not.
            known = {"uri": spec.uri, "experiment": spec.experiment, "over": False}
            run.keep_tracking(known)
        if not known.get("over"):
            told = _Told(self._sources.server(state), run, known)
            told.all_of(record, self._sources.places(state) if is_present else {})
            if is_present and state.spec.units is not None:
                told.trials_of(self._sources.trials(state))
            if record["is_over"] or not is_present:
                told.end_of(record)
        return bool(known.get("over")) and not is_present


class _Told:
    """What one run's part of the server has been told, and what it is told next."""

    def __init__(self, server: MlflowServer, run: RunFolder, known: dict[str, Any]) -> None:
        self._server = server
        self._run = run
        self._known = known

    def all_of(self, record: Record, places: Mapping[str, str]) -> None:
        """Tell what is new of a run: what it is, and the points of its curves."""
        if not self._known.get("run_id"):
            self._begin(record)
        tags = {f"dcos_tensorflow.{name}": place for name, place in places.items() if place}
        if tags != self._known.get("tags", {}):
            self._server.tell(self._id, tags=tags)
            self._keep(tags=tags)
        sent: dict[str, float] = dict(self._known.get("sent") or {})
        points = self._run.points()
        for batch in _batches(_new(points, sent)):
            metrics = [
                (name, as_json(value), point.at, point.step or 0)
                for task, point in batch
                for name, value in _named(task, point, points).items()
            ]
            self._server.tell(self._id, metrics=metrics)
            for task, point in batch:
                sent[task] = max(point.at, sent.get(task, 0.0))
            self._keep(sent=dict(sent))

    def trials_of(self, document: Mapping[str, Any]) -> None:
        """Tell of the trials that are decided, each as a run below this one."""
        objective: Mapping[str, Any] = document.get("objective") or {}
        done = set(self._known.get("trials") or ())
        for unit in document["units"] if objective else ():
            number, status = unit["number"], _ENDED.get(unit["state"])
            if status is None or number in done or len(done) >= MOST_TRIALS:
                continue
            self._trial(unit, objective["metric"], status)
            done.add(number)
            self._keep(trials=sorted(done))

    def end_of(self, record: Record) -> None:
        at = record["finished_at"] or record["started_at"] or 0.0
        result = {_name(k): v for k, v in record["result"].items()}
        numbers = {k: v for k, v in result.items() if _is_number(v)}
        metrics = [(k, v, at, record["step"] or 0) for k, v in numbers.items()]
        best = (record["units"] or {}).get("best")
        if best:
            metrics.append((_name(best["metric"]), best["value"], at, 0))
        words = {f"result.{k}": str(v) for k, v in result.items() if k not in numbers}
        self._server.tell(
            self._id,
            metrics=metrics[:MOST_METRICS],
            tags=dict(list({"summary": record["summary"], **words}.items())[:MOST_PARAMETERS]),
        )
        status = _STATUS[Outcome(record["outcome"])] if record["outcome"] else _KILLED
        self._server.end_run(self._id, status, at)
        self._keep(over=True)

    @property
    def _id(self) -> str:
        return str(self._known["run_id"])

    def _begin(self, record: Record) -> None:
        experiment = self._server.experiment(self._known["experiment"])
        name, tag = f"{record['service']}@{record['run']}", f"{record['service']}/{record['id']}"
        found = self._server.run_tagged(experiment, _RUN_TAG, tag)
        if not found:
            began = record["started_at"] or 0.0
            service = record["options"].get("service") or {}
            source = service.get("job_name") or service.get("job_cmd") or ""
            tags = {_RUN_TAG: tag, "mlflow.source.type": "JOB", "mlflow.source.name": source}
            found = self._server.begin_run(experiment, name, began, tags)
        parameters = _parameters(record["options"])
        self._server.tell(found, parameters=parameters)
        self._keep(run_id=found, experiment_id=experiment)

    def _trial(self, unit: Mapping[str, Any], metric: str, status: str) -> None:
        experiment, number = str(self._known["experiment_id"]), unit["number"]
        tag = f"{self._id}/{number}"
        began, ended = unit.get("begun_at") or 0.0, unit.get("ended_at") or 0.0
        found = self._server.run_tagged(experiment, _TRIAL_TAG, tag)
        if not found:
            tags = {_TRIAL_TAG: tag, _PARENT_TAG: self._id}
            found = self._server.begin_run(experiment, f"trial {number}", began, tags)
        told = unit.get("value")
        value = told if told is not None else (unit.get("measured") or {}).get("value")
        parameters = {_name(k): text(v) for k, v in unit["parameters"].items()}
        metrics = [] if value is None else [(_name(metric), value, ended, 0)]
        self._server.tell(
            found,
            parameters=dict(list(parameters.items())[:MOST_PARAMETERS]),
            metrics=metrics,
            tags={"why": unit["why"]} if unit.get("why") else {},
        )
        self._server.end_run(found, status, ended)

    def _keep(self, **changes: Any) -> None:
        self._known.update(changes)
        self._run.keep_tracking(self._known)


def _new(points: Points, sent: Mapping[str, float]) -> Iterator[tuple[str, Point]]:
    found = [
        (point.at, task, point)
        for task, told in points.items()
        for point in told
        if point.at > sent.get(task, 0.0) and point.metrics
    ]
    return ((task, point) for _, task, point in sorted(found, key=lambda each: each[:2]))


def _batches(points: Iterable[tuple[str, Point]]) -> Iterator[Sequence[tuple[str, Point]]]:
    batch: list[tuple[str, Point]] = []
    size = 0
    for each in points:
        more = len(each[1].metrics)
        if batch and size + more > MOST_METRICS:
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += more
    if batch:
        yield batch


def _named(task: str, point: Point, points: Points) -> Mapping[str, float]:
    """Return the metrics of a point: those of the first task by their names, others' below it."""
    below = "" if task == next(iter(points)) else f"{task}/"
    return {_name(f"{below}{name}"): value for name, value in point.metrics.items()}


def _parameters(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a run: its hyperparameters, its arguments, and its size."""
    service = options.get("service") or {}
    try:
        context = read_json(service.get("job_context") or "{}")
    except ValueError:
        context = {}
    own = context if isinstance(context, dict) else {}
    found = {_name(name): text(value) for name, value in own.items()}
    for name in ("tensorflow_version", "strategy"):
        if service.get(name) not in (None, "", "auto"):
            found[f"service.{name}"] = text(service[name])
    if service.get("job_args"):
        found["service.job_args"] = json.dumps(service["job_args"])
    for group in _GROUPS:
        if count := (options.get(group) or {}).get("count"):
            found[f"{group}.count"] = text(count)
    return dict(list(found.items())[:MOST_PARAMETERS])


def _name(name: str) -> str:
    return _ODD.sub("_", name)[:250]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
