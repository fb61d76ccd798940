"""Whether a gang's tasks have their places on machines that are not bought yet, and how few do.

Called by ``planner``, for each kind of machine that could be bought. It is the core's placement
that says so, with offers made up for the machines. Most misfits are known without it: by the
resources that the tasks need in all, and by how many of those that need most go on one machine.
Pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from dcos_tensorflow.capacity.alternatives import Mix
from dcos_tensorflow.capacity.market import Pool
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.constraints import HOSTNAME_FIELDS
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.resources import EPSILON, PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint

#: What an agent offers whose machine is not bought yet: ports are what its operator says.
_PORTS = PortRanges.of([(1, 65_535)])
#: CPUs, memory, disk, GPUs.
_Amounts = tuple[float, float, float, float]


def offer_of(pool: Pool, name: str) -> Offer:
    """Return the offer that a machine of this pool, called so, will make."""
    return Offer(
        offer_id=name,
        agent_id=name,
        hostname=name,
        address="",
        mesos_role="*",
        resources=pool.resources,
        ports=_PORTS,
        attributes={
            "instance_type": pool.instance_type,
            "zone": pool.zone,
            "market": str(pool.market),
        },
        zone=pool.zone,
    )


def made_up(mix: Mix, name: str) -> Iterator[Offer]:
    """Yield the offers that machines of a mix will make; ``name`` is their names' beginning."""
    return (
        offer_of(pool, f"{name}-{at}-{number}")
        for at, (pool, count) in enumerate(mix)
        for number in range(count)
    )


class TrialPlacement:
    """Tasks that find no place on what is there; asked for one mix of machines after another."""

    def __init__(self, requests: Sequence[TaskRequest], there: Sequence[Offer]) -> None:
        self._requests = requests
        self._there = there
        self._has_rules = any(request.constraints for request in requests)
        # Without rules a machine is no more than what it has.
        self._known: dict[tuple[object, ...], bool] = {}
        free = [_amounts(offer.resources) for offer in there]
        needs = [_amounts(request.resources) for request in requests]
        # What has to find room on new machines, of each amount.
        self._missing = [
            sum(need[at] for need in needs) - sum(offer[at] for offer in free) for at in range(4)
        ]
        # By what a task needs: how many of those that need so much or more have to.
        self._large = {
            least: sum(_holds(need, least) for need in needs)
            - sum(_how_many(least, offer) for offer in free)
            for least in set(needs)
        }
        # Those that want a machine each, of the role that has most of them.
        alone = Counter(r.role for r in requests if any(map(_is_alone, r.constraints)))
        self._alone = max(alone.values(), default=0) - len(there)

    def fits(self, mix: Mix) -> bool:
        """Say whether all tasks have a place on what is there and on these machines."""
        key = mix if self._has_rules else tuple((pool.resources, count) for pool, count in mix)
        if key not in self._known:
            offers = [*self._there, *made_up(mix, "new")]
            self._known[key] = place(self._requests, offers).complete
        return self._known[key]

    def least(self, pools: Sequence[Pool]) -> int | None:
        """Return how many machines it takes at least; None where no number of them does."""
        amounts = [_amounts(pool.resources) for pool in pools]
        most = tuple(max(column) for column in zip(*amounts, strict=True))
        least = max(1, self._alone)
        # Mesos rounds: each task may take a little less than it needs.
        rounded = EPSILON * len(self._requests)
        for missing, amount in zip(self._missing, most, strict=True):
            if missing > rounded:
                if not amount:
                    return None
                least = max(least, math.ceil((missing - rounded) / amount))
        for need, tasks in self._large.items():
            if tasks > 0:
                on_one = _how_many(need, most)
                if not on_one:
                    return None
                least = max(least, math.ceil(tasks / on_one))
        return least if least <= len(self._requests) else None

    def fewest(self, least: int, mix_of: Callable[[int], Mix | None]) -> Mix | None:
        """Return the smallest mix that does; None where not even a machine for each task does.

        ``mix_of`` says which so many would be, None where so many, or more, cannot be had. Less
        than ``least`` are known not to do. Most often so many do; else it goes up in growing steps.
        """
        low, high, step = least, len(self._requests), 1
        found = None
        while low <= high:
            count = min(low + step - 1, (low + high) // 2)
            mix = mix_of(count)
            if mix is None or self.fits(mix):
                found, high = mix or found, count - 1
            else:
                low = count + 1
            step *= 2
        return found


def _is_alone(rule: PlacementConstraint) -> bool:
    return rule.operator is ConstraintOperator.UNIQUE and rule.field in HOSTNAME_FIELDS


def _amounts(resources: Resources) -> _Amounts:
    return resources.cpus, resources.mem, resources.disk, resources.gpus


def _holds(need: Sequence[float], least: Sequence[float]) -> bool:
    return all(more >= less for more, less in zip(need, least, strict=True))


def _how_many(need: Sequence[float], has: Sequence[float]) -> int:
    """Return how many tasks that need so much go on what has so much, at most."""
    return min(
        (
            math.floor((amount + EPSILON) / (each - EPSILON))
            for each, amount in zip(need, has, strict=True)
            if each > EPSILON
        ),
        default=1_000_000,
    )
