"""How many tasks a second are placed, how full the agents get, and how that grows with them.

    python benchmarks/placement.py [--agents 200 2000 10000] [--batch 200] [--json FILE]

Agents of 8 cpus, 32 GB and 1,000 ports are filled with batches of tasks, as long as more than a
twentieth of a batch still fits. Between two batches happens what happens on Mesos: the offers that
were accepted are gone, and what is left of each of those agents comes back as a new offer, with
other resources and ports.

What a batch costs is all that the service does for it in ``core.placement``: its table of agents,
kept from the batch before, is brought up to date with the offers in hand (found out by comparing
them, not told); every task gets its agent and its ports, or a sentence why not; and where a batch
is not complete, every offer that helps no task gets its reason, with which the service declines it
(for minutes: it is not offered again here). Not part of it: offers from and ACCEPT to the wire. It
is CPU time of one core, for the service has one thread.

Ways of filling:

* ``few sizes``: tasks of 1, 3 or 6 cpus. ``fill`` is the share of all cpus in use at the end.
* ``all sizes differ``: no two tasks of a batch want the same, so none shares another's work; until
  a batch no longer fits.
* ``two counted rules``: rack:GROUP_BY and hostname:UNIQUE, beside all tasks placed before; until
  every agent has one task, 2,000 tasks at most.
* ``packed``: how well mixed sizes are packed, as Fenzo's TestLotsOfTasks has it: a fifth of
  all cpus are wanted by tasks of 1 cpu, two fifths by tasks of half an agent and two fifths by
  tasks of three quarters, all that there are, in random order. Each task is tried once, in its
  batch; ``fill`` is the share of all cpus in use in the end. Fenzo comes to 97.0 to 97.4 %.
* ``packed, strict``: tasks of the same sizes in random order, without end, one at a time; ``fill``
  is the share of all cpus in use when the first of them finds no place.
* ``loop``: the few sizes by a plain Python loop over the agents of each task, best fit with the
  same exact arithmetic, on as many batches as fit into ``--loop-seconds``. It knows no ports,
  constraints, explanations or second attempts.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.agent_table import AgentTable
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import Assignment, TaskRequest
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole

AGENT = Resources(cpus=8, mem=32768, disk=100_000)
PORTS = PortRanges(((31000, 31999),))
TASK_CPUS = (1, 3, 6)
RACKS = 40
SPREAD = (
    PlacementConstraint("rack", ConstraintOperator.GROUP_BY),
    PlacementConstraint("hostname", ConstraintOperator.UNIQUE),
)
#: With rules that count: so many tasks at most.
SPREAD_TASKS = 2000
#: The mixed sizes: cpus of a task, and the share of all cpus that such tasks want.
MIXED = {1: 0.2, AGENT.cpus / 2: 0.4, AGENT.cpus * 3 / 4: 0.4}
#: One at a time takes long: on so many agents at most.
ONE_AT_A_TIME_AGENTS = 2000
Batch = Callable[[int, random.Random], Sequence[Resources]]


@dataclass(frozen=True)
class Measured:
    """Milliseconds of each batch, tasks placed, and the share of all cpus in use at the end."""

    milliseconds: tuple[float, ...]
    placed: int
    fill: float

    @property
    def tasks_per_second(self) -> float:
        return 1000 * self.placed / sum(self.milliseconds)


@dataclass
class Cluster:
    """The agents as a service sees them: the offers in hand, by id."""

    agents: int
    offers: dict[str, Offer] = field(default_factory=dict)
    made: int = 0
    declined: list[Offer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(self.agents):
            self._offer(
                Offer(
                    offer_id="",
                    agent_id=f"a{number:05}",
                    hostname=f"h{number:05}",
                    address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
                    mesos_role="*",
                    resources=AGENT,
                    ports=PORTS,
                    attributes={"rack": f"r{number % RACKS}"},
                )
            )

    def _offer(self, offer: Offer) -> None:
        self.made += 1
        self.offers[f"o{self.made}"] = replace(offer, offer_id=f"o{self.made}")

    def accept(self, assignments: Sequence[Assignment], wanted: dict[str, Resources]) -> None:
        """Take offers away and offer what is left of them, in a mapping of its own."""
        self.offers = dict(self.offers)
        left: dict[str, Offer] = {}
        for assignment in assignments:
            (offer_id,) = assignment.offer_ids
            offer = left.get(offer_id) or self.offers.pop(offer_id)
            left[offer_id] = replace(
                offer,
                resources=offer.resources - wanted[assignment.task],
                ports=offer.ports.without(assignment.ports),
            )
        for offer in left.values():
            self._offer(offer)

    def decline(self, offer_ids: Iterable[str]) -> None:
        """Take offers away; what they hold stays free."""
        self.offers = dict(self.offers)
        for offer_id in offer_ids:
            self.declined.append(self.offers.pop(offer_id))

    def fill(self) -> float:
        left = (*self.offers.values(), *self.declined)
        free = sum(offer.resources.cpus for offer in left)
        return 1 - free / (self.agents * AGENT.cpus)


def few_sizes(size: int, chance: random.Random) -> Sequence[Resources]:
    return [Resources(cpus, cpus * 1024) for cpus in chance.choices(TASK_CPUS, k=size)]


def all_sizes_differ(size: int, chance: random.Random) -> Sequence[Resources]:
    """Return sizes around those of TASK_CPUS, in thousandths of cpus and single megabytes."""
    return [
        Resources(round(cpus + chance.uniform(-0.5, 0.5), 3), cpus * 1024 + number)
        for number, cpus in enumerate(chance.choices(TASK_CPUS, k=size))
    ]


def mixed_sizes(size: int, chance: random.Random) -> Sequence[Resources]:
    often = [share / cpus for cpus, share in MIXED.items()]
    return [Resources(cpus, cpus * 1024) for cpus in chance.choices([*MIXED], often, k=size)]


def all_mixed_once(agents: int) -> Batch:
    """Return batches of tasks that together want all cpus of the agents; at the end empty ones."""
    total = round(agents * AGENT.cpus)
    wanted = [cpus for cpus, share in MIXED.items() for _ in range(math.ceil(total * share / cpus))]
    random.Random(agents).shuffle(wanted)
    left = iter(wanted)
    return lambda size, _: [Resources(cpus, cpus * 1024) for cpus in islice(left, size)]


def fill_with_place(
    agents: int,
    batch: int,
    sizes: Batch,
    rules: tuple[PlacementConstraint, ...] = (),
    *,
    most_tasks: int | None = None,
    least: float = 0.05,
) -> Measured:
    """Fill the agents batch by batch until less than that share of a batch is placed.

    Or until a batch is empty.
    """
    chance = random.Random(agents)
    cluster = Cluster(agents)
    # The first table of all is made when the service starts, not for a batch.
    hand = AgentTable().of(cluster.offers)
    running: list[Assignment] = []
    times: list[float] = []
    placed = 0
    while True:
        wanted = {
            f"worker-{placed + number}": resources
            for number, resources in enumerate(sizes(batch, chance))
        }
        requests = [
            TaskRequest(name, TaskRole.WORKER, resources, port_count=2, constraints=rules)
            for name, resources in wanted.items()
        ]
        began = time.process_time()
        hand = hand.of(cluster.offers)
        found = place(requests, hand, running)
        useless = {} if found.complete else found.useless_offers
        times.append(1000 * (time.process_time() - began))
        cluster.accept(found.assignments, wanted)
        cluster.decline(offer_id for offer_id in useless if offer_id in cluster.offers)
        running += found.assignments
        placed += len(found.assignments)
        few = len(found.assignments) < batch * least or not wanted
        if few or (most_tasks and placed + batch > most_tasks):
            return Measured(tuple(times), placed, cluster.fill())


def fill_with_a_loop(agents: int, batch: int, seconds: float) -> Measured:
    """Do the same by looking at every agent for every task, for about ``seconds``."""
    chance = random.Random(agents)
    free = [[round(AGENT.cpus * 1000), round(AGENT.mem * 1000)] for _ in range(agents)]
    largest = tuple(free[0])
    times: list[float] = []
    placed = 0
    while sum(times) < 1000 * seconds:
        requests = few_sizes(batch, chance)
        began = time.process_time()
        done = sum(_place_by_loop(resources, free, largest) for resources in requests)
        times.append(1000 * (time.process_time() - began))
        placed += done
        if done < batch / 20:
            break
    return Measured(tuple(times), placed, 1 - sum(f[0] for f in free) / (agents * largest[0]))


def _place_by_loop(resources: Resources, free: list[list[int]], largest: Sequence[int]) -> bool:
    cpus, mem = round(resources.cpus * 1000), round(resources.mem * 1000)
    best, best_left = -1, float("inf")
    for number, (free_cpus, free_mem) in enumerate(free):
        if free_cpus >= cpus and free_mem >= mem:
            left = (free_cpus - cpus) / largest[0] + (free_mem - mem) / largest[1]
            if left < best_left:
                best, best_left = number, left
    if best < 0:
        return False
    free[best][0] -= cpus
    free[best][1] -= mem
    return True


def row(name: str, agents: int, found: Measured, *, filled: bool) -> str:
    times = sorted(found.milliseconds)
    fill = f"{100 * found.fill:6.1f} %" if filled else ""
    return (
        f"{agents:>7,}  {name:<18} {found.placed:>7,} {found.tasks_per_second:>9,.0f} "
        f"{1e6 / found.tasks_per_second:>9,.0f} {statistics.median(times):>10.1f} "
        f"{times[-1]:>9.1f} {fill:>9}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure placement.")
    parser.add_argument("--agents", type=int, nargs="+", default=[200, 2000, 10_000])
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--loop-seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    batch = arguments.batch
    figures: dict[str, float] = {}
    print(f"batches of {batch} tasks; agents of {AGENT.cpus} cpus; CPU time of one core")
    print(
        f"{'agents':>7}  {'way':<18} {'tasks':>7} {'tasks/s':>9} {'us/task':>9} {'median ms':>10} "
        f"{'most ms':>9} {'fill':>9}"
    )
    for agents in arguments.agents:
        ways: dict[str, tuple[str, Callable[[int, int], Measured]]] = {
            "": ("few sizes", partial(fill_with_place, sizes=few_sizes)),
            "_all_differ": (
                "all sizes differ",
                partial(fill_with_place, sizes=all_sizes_differ, least=1),
            ),
            "_counted_rules": (
                "two counted rules",
                partial(
                    fill_with_place,
                    sizes=few_sizes,
                    rules=SPREAD,
                    most_tasks=min(agents, SPREAD_TASKS),
                ),
            ),
            "_packed": (
                "packed",
                partial(fill_with_place, sizes=all_mixed_once(agents), least=0),
            ),
            "_packed_strict": (
                "packed, strict",
                lambda agents, _: fill_with_place(agents, 1, mixed_sizes, least=1),
            ),
            "_loop": ("loop", partial(fill_with_a_loop, seconds=arguments.loop_seconds)),
        }
        if agents > ONE_AT_A_TIME_AGENTS:
            del ways["_packed_strict"]
        for suffix, (name, fill) in ways.items():
            found = fill(agents, batch)
            filled = suffix in ("", "_packed", "_packed_strict")
            print(row(name, agents, found, filled=filled), flush=True)
            if not suffix.startswith("_packed"):
                rate = round(found.tasks_per_second)
                figures[f"placement{suffix}_{agents}_tasks_per_second"] = rate
            if filled:
                figures[f"placement{suffix}_{agents}_fill"] = round(found.fill, 4)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
