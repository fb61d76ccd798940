"""How near to the best a sweep comes, by its method and the number of its trials.

Read it so: ``sweep_hartmann_tpe_regret_30`` is how far the best of the first 30 trials is from the
best that there is, on average over ``--seeds`` sweeps; less is better. Two objectives are searched:
Hartmann's function of six numbers, which such searches are usually compared by, and a training made
up of a rate, a width, a depth, a dropout and an optimizer, told with noise. What counts of a trial
is what it is worth, not what the noise made of it. ``wins`` is in how many sweeps tpe ends nearer
than random does with the same seed. The trials come as in a service of four slots: each knows those
that are 8 before it. Nothing is measured in seconds: the figures are the same on any machine.

    python -m benchmarks.jobs.sweep_methods [--seeds 10] [--trials 60] [--json FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any

from benchmarks import figures
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.workload_spec import (
    Goal,
    Parameter,
    ParameterKind,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.workloads import producer_of

Told = Mapping[str, Any]

#: So many trials are looked at for the curves.
LOOKS = (1, 2, 3, 5, 8, 12, 20, 30, 40, 60, 100, 150, 200)
METHODS = (SearchMethod.TPE, SearchMethod.RANDOM)
LAG = 8

# Hartmann 6-D (Dixon and Szego, "Towards global optimisation", 1978).
_ALPHA = (1.0, 1.2, 3.0, 3.2)
_A = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann(told: Told) -> float:
    """Return how far it is from the least value of the function."""
    found = sum(
        alpha * math.exp(-sum(a * (told[f"x{i}"] - p) ** 2 for i, (a, p) in enumerate(pairs)))
        for alpha, pairs in (
            (alpha, tuple(zip(row, places, strict=True)))
            for alpha, row, places in zip(_ALPHA, _A, _P, strict=True)
        )
    )
    return 3.32236801 - found


def training(told: Told) -> float:
    """Return how much accuracy is lost, beside the best: one rate per optimizer, some width."""
    best = {"sgd": -1.5, "adam": -3.0, "rmsprop": -3.3}[told["optimizer"]]
    rate: float = min(abs(math.log10(told["rate"]) - best), 3.0)
    width: float = abs(math.log2(told["width"] / 96))
    slower = {"sgd": 0.02, "adam": 0.0, "rmsprop": 0.01}[told["optimizer"]]
    deep: float = abs(told["layers"] - 3) * 0.01 * (1 + rate)
    dropped: float = 0.1 * (told["dropout"] - 0.2) ** 2
    return 0.08 * rate**2 + 0.015 * width + slower + deep + dropped


SPACES: dict[str, tuple[Callable[[Told], float], float, tuple[Parameter, ...]]] = {
    "hartmann": (
        hartmann,
        0.0,
        tuple(Parameter(f"x{i}", ParameterKind.FLOAT, 0.0, 1.0) for i in range(6)),
    ),
    "training": (
        training,
        0.01,
        (
            Parameter("rate", ParameterKind.FLOAT, 1e-6, 1.0, log=True),
            Parameter("width", ParameterKind.INT, 8, 512, log=True),
            Parameter("layers", ParameterKind.INT, 1, 8),
            Parameter("dropout", ParameterKind.FLOAT, 0.0, 0.8),
            Parameter("optimizer", ParameterKind.CHOICE, choices=("sgd", "adam", "rmsprop")),
        ),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=60)
    figures.add_option(parser)
    arguments = parser.parse_args()
    looks = [look for look in LOOKS if look <= arguments.trials]
    found: dict[str, float] = {}
    for space in SPACES:
        curves = {
            method: [
                regrets(space, method, seed, arguments.trials) for seed in range(arguments.seeds)
            ]
            for method in METHODS
        }
        for method, of_method in curves.items():
            row = {look: mean(curve[look - 1] for curve in of_method) for look in looks}
            found |= {f"sweep_{space}_{method}_regret_{n}": value for n, value in row.items()}
            shown = "  ".join(f"{look}: {value:.3g}" for look, value in row.items())
            print(f"{space:9} {method:7} {shown}", flush=True)
        pairs = zip(curves[SearchMethod.TPE], curves[SearchMethod.RANDOM], strict=True)
        wins = sum(tpe[-1] < random[-1] for tpe, random in pairs)
        found[f"sweep_{space}_tpe_wins"] = wins
        print(f"{space:9} tpe ends nearer in {wins} of {arguments.seeds}", flush=True)
    figures.write(arguments.json, found)


def regrets(space: str, method: SearchMethod, seed: int, trials: int) -> list[float]:
    """Return how far what looked best is from the best, after each trial of a sweep."""
    function, noise, parameters = SPACES[space]
    spec = SweepSpec(parameters, "loss", Goal.MINIMIZE, trials, method, seed=seed, lag=LAG)
    sweep, best, found = producer_of(spec), (math.inf, math.inf), []
    given, ended = 0, 0
    while ended < trials:
        given += len(sweep.next(given, LAG).units)
        told = sweep.shown(ended)["parameters"]
        worth = function(told)
        seen = worth + noise * unevenness(told)
        sweep.ended(ended, UnitState.SUCCEEDED, {"metrics": {"loss": seen}})
        best = min(best, (seen, worth))
        found.append(best[1])
        ended += 1
    return found


def unevenness(told: Told) -> float:
    """Return a number from -1 to 1 that looks like chance, and is the same for the same trial."""
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**31 - 1


if __name__ == "__main__":
    main()
