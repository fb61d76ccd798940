"""How well an agent suits a task, of those that can hold it: ``placement.fitness``.

``core.placement.packing`` has one number per agent of it, the less the better: how much is free
there, as shares of the largest agent, by their weights. Resources above 0 are packed: the fullest
agent is the best. Those below 0 are spread. A task takes the same share of every agent, so the
best before it is the best after it. Knows neither tasks nor rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from dcos_tensorflow.core.placement.agents import CPUS, GPUS, MEM
from dcos_tensorflow.core.spec.service_spec import Fitness, PlacementSpec

#: Added for an agent with a maintenance window: more than any share is.
MAINTENANCE = 1e5

#: What counts by the name of it; ``WEIGHTED`` has weights of its own. Whole numbers are the faster.
_WEIGHTS: Mapping[Fitness, Mapping[int, float]] = {
    Fitness.PACK_GPU: {CPUS: 1, MEM: 1},
    Fitness.PACK_CPU_MEM: {CPUS: 1, MEM: 1},
    Fitness.SPREAD: {CPUS: -1, MEM: -1},
}


class Preference:
    """What a service prefers, on agents of which the largest offers ``largest`` (CPUS ... PORTS).

    ``uses_up_gpus``: tasks with GPUs first go where they leave the fewest others. ``keeps_gpus``:
    tasks without GPUs first go where no GPU is free.
    """

    def __init__(self, spec: PlacementSpec, largest: Sequence[int]) -> None:
        own = {CPUS: spec.cpus, MEM: spec.mem, GPUS: spec.gpus}
        weights = {r: w for r, w in _WEIGHTS.get(spec.fitness, own).items() if w}
        self.uses_up_gpus = spec.fitness is Fitness.PACK_GPU
        self.keeps_gpus = spec.fitness in (Fitness.PACK_GPU, Fitness.SPREAD)
        # Divided once, so that equals are equal.
        common = prod(largest[resource] for resource in weights)
        self._factors = [(r, weight * (common // largest[r])) for r, weight in weights.items()]
        self._divisor = common * sum(map(abs, weights.values()))

    def share(self, free: Sequence[Any], rows: Any) -> Any:
        """Return the weighted mean share of the largest agent that is ``free`` (CPUS ...)."""
        found: Any = 0
        for resource, factor in self._factors:
            found = found + free[resource][rows] * factor
        return found / self._divisor
