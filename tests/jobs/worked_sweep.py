"""A sweep that is worked on in any order; what a trial shows follows from its parameters."""

import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.workload_spec import (
    EarlyStopping,
    Goal,
    Parameter,
    ParameterKind,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.workloads import producer_of
from dcos_tensorflow.workloads.producer import KeptUnit
from dcos_tensorflow.workloads.sweep.sweep import Sweep

STEPS = (1, 2, 3, 5, 9, 14, 27, 40)
PARAMETERS = (
    Parameter("rate", ParameterKind.FLOAT, 1e-5, 1e-1, log=True),
    Parameter("units", ParameterKind.INT, 8, 128, step=8),
    Parameter("layers", ParameterKind.CHOICE, choices=(1, 2, "deep")),
)


def a_sweep(
    trials: int = 30,
    method: SearchMethod = SearchMethod.TPE,
    early_stopping: EarlyStopping = EarlyStopping.NONE,
    lag: int = 4,
    **more: Any,
) -> SweepSpec:
    return SweepSpec(
        **{"parameters": PARAMETERS, "metric": "score", "goal": Goal.MAXIMIZE, **more},
        trials=trials,
        method=method,
        early_stopping=early_stopping,
        lag=lag,
    )


def quality(parameters: Mapping[str, Any]) -> float:
    far = abs(math.log10(parameters["rate"]) + 3) + abs(parameters["units"] - 64) / 64
    return -far - (parameters["layers"] != 2)


def value_at(parameters: Mapping[str, Any], step: int) -> float:
    """What a trial measures: better with time, and now and then not in the order of the end."""
    return quality(parameters) - 1 / step + 0.1 * math.sin(1e4 * parameters["rate"] * step)


def measured(parameters: Mapping[str, Any], count: int = len(STEPS)) -> list[list[float]]:
    """What a task runner has kept of a trial's first steps."""
    return [[step, value_at(parameters, step)] for step in STEPS[:count]]


@dataclass
class Slots:
    """Work on a sweep in an order that a seed decides, with crashes. The store has ``kept``.

    Running trials move step by step; a trial that is lost begins anew, and what is told of it comes
    twice. A crash makes a producer of what is kept, and of nothing else.
    """

    spec: SweepSpec
    seed: int
    parallel: int = 2
    crashes: float = 0.0
    kept: list[KeptUnit] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.sweep = self.producer()

    def producer(self) -> Sweep:
        stored = json.loads(
            json.dumps([[k.number, k.payload, k.outcome, k.result] for k in self.kept])
        )
        kept = [KeptUnit(n, p, o and UnitState(o), r) for n, p, o, r in stored]
        made = producer_of(self.spec, kept)
        assert isinstance(made, Sweep)
        return made

    def work(self) -> Sweep:
        while len(self.kept) < self.spec.trials or self.running:
            if self.random.random() >= self.crashes:
                self.take()
            else:
                # What is given and not kept was never there.
                self.sweep.next(len(self.kept), 1)
            if not self.running:
                continue
            self.move(self.random.choice(sorted(self.running)))
            if self.random.random() < self.crashes:
                # Some of what runs is lost with its machine.
                for number in list(self.running):
                    if self.random.random() < 0.5:
                        self.running[number] = 0
                self.sweep = self.producer()
        return self.sweep

    def take(self) -> None:
        free = self.parallel - len(self.running)
        given = self.sweep.next(len(self.kept), free + 1)
        assert given.units or self.running or given.last, "nothing runs, and there is more to do"
        for unit in given.units[:free]:
            self.kept.append(KeptUnit(unit.number, unit.payload))
            self.running[unit.number] = 0

    def move(self, number: int) -> None:
        parameters = self.kept[number].payload["context"]
        points = measured(parameters, self.running[number] + 1)
        stop = self.sweep.measured(number, points)
        # The order to stop may come too late: then the trial reaches its end all the same.
        if stop is not None and self.random.random() < 0.8:
            self.end(number, UnitState.PRUNED, stop.result)
            return
        self.running[number] += 1
        if self.running[number] == len(STEPS):
            result = {
                "metrics": {"score": value_at(parameters, STEPS[-1])},
                "measured": measured(parameters),
            }
            self.end(number, UnitState.SUCCEEDED, result)

    def end(self, number: int, outcome: UnitState, result: Mapping[str, Any]) -> None:
        self.kept[number] = KeptUnit(number, self.kept[number].payload, outcome, result)
        del self.running[number]
        for _ in range(self.random.choice((1, 1, 2))):
            self.sweep.ended(number, outcome, result)
