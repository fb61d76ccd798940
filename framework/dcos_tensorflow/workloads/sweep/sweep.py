"""The producer of a sweep: one trial after the other, each by the results of those before it.

Trial n knows the trials up to n - lag, and no others, whatever has ended meanwhile. So neither the
order in which trials end, nor how many run at once, nor a crash changes a suggestion or which
trials are stopped. A straggler, a trial that does not end while as many as the lag begin after it,
holds up no other: those know all before them but the straggler. The knowledge of a trial is stored
with it: a sweep goes on as it began when its options change.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.job_parameters import shape_of, variables
from dcos_tensorflow.core.model.units import UnitState, number_told
from dcos_tensorflow.core.spec.workload_spec import (
    EarlyStopping,
    ParameterValue,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.workloads.producer import (
    Given,
    KeptUnit,
    Points,
    Producer,
    Stop,
    Unit,
)
from dcos_tensorflow.workloads.sweep.stopping import stopped
from dcos_tensorflow.workloads.sweep.trial import Trial, combinations, spans


class Sweep(Producer):
    """The trials of one sweep; ``kept`` are those that the state has, by their numbers."""

    def __init__(self, spec: SweepSpec, kept: Iterable[KeptUnit] = ()) -> None:
        self._spec = spec
        self._trials: list[Trial] = []
        for unit in kept:
            self.keep(unit)

    @property
    def total(self) -> int:
        """How many trials there are in all."""
        return self._spec.trials

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that were suggested so far."""
        return tuple(self._trials)

    def next(self, first: int, count: int) -> Given:
        """Return the next trials, as far as those are known that they are suggested by."""
        until = min(first + count, self.total)
        while len(self._trials) < until and (trial := self._suggested()):
            self._trials.append(trial)
        units = tuple(Unit(t.number, self._payload(t)) for t in self._trials[first:until])
        return Given(units, last=first + len(units) >= self.total)

    def keep(self, unit: KeptUnit) -> None:
        """Take a trial as it was given, and its verdict once it has ended."""
        if unit.number == len(self._trials):
            payload = unit.payload
            without = frozenset(payload.get("without", ()))
            self._trials.append(
                Trial(unit.number, payload["context"], payload["known"], without=without)
            )
        if unit.outcome is not None:
            self.ended(unit.number, unit.outcome, unit.result)

    def ended(self, number: int, outcome: UnitState, result: Mapping[str, Any]) -> None:
        """Keep what a trial counts with, worked out of what is kept of it and nothing else."""
        trial = self._trials[number]
        if not trial.ended:
            self._trials[number] = self._verdict(trial, outcome, result)

    def measured(self, number: int, points: Points) -> Stop | None:
        """Return that the trial is to be stopped, if one of its values says so."""
        trial = self._trials[number]
        if trial.ended:
            return None
        trial = self._trials[number] = trial.with_points(self._spec, points)
        stop = stopped(self._spec, trial, self._known_by(trial))
        return Stop(stop.why, {"measured": trial.measured()}) if stop else None

    def shown(self, number: int) -> Mapping[str, Any]:
        """Return the parameters, the value or the last one measured, and why there is none.

        ``points`` are all that count of those measured.
        ``without`` are the stragglers that its suggestion did not wait for.
        """
        trial = self._trials[number]
        points = trial.in_order
        last = points[-1] if points else None
        return {
            "parameters": dict(trial.parameters),
            "value": trial.value,
            "measured": last and {"step": last.step, "value": last.value},
            "points": trial.measured(),
            "stopped_at": trial.stopped_at,
            "without": sorted(trial.without),
            "why": trial.why,
        }

    def _suggested(self) -> Trial | None:
        """Return the next trial; None while ``lag`` trials are under way."""
        number = len(self._trials)
        if not self._spec.learns:
            return Trial(number, self._parameters(number, (), ()), known=0)
        under_way = [trial for trial in self._trials if not trial.ended]
        if len(under_way) >= self._spec.lag:
            return None
        before = self._trials[-1].known if self._trials else 0
        count = max(before, number - self._spec.lag + 1)
        without = frozenset(trial.number for trial in under_way if trial.number < count)
        known = [trial for trial in self._trials[:count] if trial.number not in without]
        # Those between the known and this one are not looked at, whether they have ended or not.
        running = [trial for trial in under_way if trial.number in without]
        running += self._trials[count:]
        return Trial(number, self._parameters(number, known, running), count, without=without)

    def _known_by(self, trial: Trial) -> Sequence[Trial]:
        return [t for t in self._trials[: trial.known] if t.number not in trial.without]

    def _parameters(
        self, number: int, known: Sequence[Trial], running: Sequence[Trial]
    ) -> Mapping[str, ParameterValue]:
        if self._spec.method is SearchMethod.GRID:
            return next(self._untried)
        from dcos_tensorflow.workloads.sweep.parameter_search import suggested

        return suggested(self._spec, number, known, running)

    @functools.cached_property
    def _untried(self) -> Iterator[dict[str, ParameterValue]]:
        """Yield the combinations that no trial has: there are trials of before with other ones."""
        tried = {json.dumps(dict(trial.parameters), sort_keys=True) for trial in self._trials}
        return (
            found
            for found in combinations(self._spec)
            if json.dumps(found, sort_keys=True) not in tried
        )

    def _payload(self, trial: Trial) -> Mapping[str, Any]:
        payload: dict[str, Any] = {
            "env": variables(trial.parameters),
            "context": dict(trial.parameters),
            "directory": self._directory(trial),
            "known": trial.known,
        }
        if trial.without:
            payload["without"] = sorted(trial.without)
        if shape := shape_of(trial.parameters):
            payload["shape"] = [[str(role), option, value] for role, option, value in shape]
        judged = self._spec.early_stopping is not EarlyStopping.NONE
        told = list(spans(self._spec)) if judged else []
        return {**payload, "measure": {"metric": self._spec.metric, "spans": told}}

    def _directory(self, trial: Trial) -> str:
        """Return the name of the trial's own directories.

        A second sweep of the service finds those of the first: what trials with other parameters
        have left there must not be taken for theirs.
        """
        told = json.dumps([self._spec.metric, dict(trial.parameters)], sort_keys=True)
        return f"trial-{trial.number}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"

    def _verdict(self, trial: Trial, outcome: UnitState, result: Mapping[str, Any]) -> Trial:
        trial = replace(trial, ended=True, points={})
        if outcome is UnitState.FAILED:
            return replace(trial, why="it failed")
        trial = trial.with_points(self._spec, result.get("measured"))
        points = trial.in_order
        stop = stopped(self._spec, trial, self._known_by(trial))
        if stop is not None:
            # It may have gone on before it was told: what came of that must not count.
            told = dict(sorted(trial.points.items())[: stop.turn + 1])
            return replace(trial, points=told, stopped_at=stop.step, why=stop.why)
        if outcome is UnitState.PRUNED:
            last = points[-1].step if points else 0
            return replace(trial, stopped_at=last, why="it was stopped")
        value = number_told(result, self._spec.metric)
        if value is not None:
            return replace(trial, value=value)
        return replace(trial, why=_missing(self._spec.metric, result))


def _missing(metric: str, result: Mapping[str, Any]) -> str:
    """Say that a trial did not tell its objective, and what it told instead."""
    parts = (result.get(part) for part in ("result", "metrics"))
    told = sorted({str(name) for part in parts if isinstance(part, Mapping) for name in part})
    others = f"it told {', '.join(told[:20])}" if told else "it told none"
    return f"its metric {metric} never came; {others}"
