"""How many tasks a second are placed, and how full the agents get.

Read it so: ``to loop`` says how many times as many tasks a second as the plain loop over as many
agents (below 1 x the loop is faster); ``fill`` is the share of all cpus in use at the end.

    python benchmarks/placement.py [--agents 200 2000 10000] [--batch 200] [--loop-seconds 5]

Agents of 8 cpus, 32 GB and 1,000 ports are filled with batches of tasks of 1, 3 or 6 cpus, as long
as more than a twentieth of a batch still fits. Each batch is one call of ``place`` with an offer
of every agent, as the service makes it: building the table of agents is part of the time.

Beside it, in the same run: the same best fit as a plain Python loop over the agents of each task,
with the same exact arithmetic, on as many batches as fit into ``--loop-seconds``. It knows no
ports, constraints, explanations or second attempts. One more line places gangs of which every
task has two constraints that count (rack:GROUP_BY and hostname:UNIQUE).
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.resources import PortRanges, Resources
from dcos_tensorflow.core.model.spec import ConstraintOperator, PlacementConstraint, TaskRole
from dcos_tensorflow.core.placement.place import TaskRequest, place

AGENT = Resources(cpus=8, mem=32768, disk=100_000)
PORTS = PortRanges(((31000, 31999),))
TASK_CPUS = (1, 3, 6)
RACKS = 40
SPREAD = (
    PlacementConstraint("rack", ConstraintOperator.GROUP_BY),
    PlacementConstraint("hostname", ConstraintOperator.UNIQUE),
)


@dataclass(frozen=True)
class Measured:
    """Milliseconds of each call, tasks placed, and the share of all cpus in use at the end."""

    milliseconds: tuple[float, ...]
    placed: int
    fill: float | None = None

    @property
    def tasks_per_second(self) -> float:
        return 1000 * self.placed / sum(self.milliseconds)


def offers_of(agents: int) -> list[Offer]:
    return [
        Offer(
            offer_id=f"o{number:05}",
            agent_id=f"a{number:05}",
            hostname=f"h{number:05}",
            address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            mesos_role="*",
            resources=AGENT,
            ports=PORTS,
            attributes={"rack": f"r{number % RACKS}"},
        )
        for number in range(agents)
    ]


def batch_of(
    size: int, chance: random.Random, rules: tuple[PlacementConstraint, ...] = ()
) -> list[TaskRequest]:
    return [
        TaskRequest(
            name=f"worker-{number}",
            role=TaskRole.WORKER,
            resources=Resources(cpus=cpus, mem=cpus * 1024),
            port_count=2,
            constraints=rules,
        )
        for number, cpus in enumerate(chance.choices(TASK_CPUS, k=size))
    ]


def fill_with_place(agents: int, batch: int) -> Measured:
    """Fill the agents batch by batch until less than a twentieth of a batch is placed."""
    chance = random.Random(agents)
    offers = {offer.agent_id: offer for offer in offers_of(agents)}
    times, placed = [], 0
    while True:
        requests = batch_of(batch, chance)
        wanted = {request.name: request.resources for request in requests}
        began = time.perf_counter()
        found = place(requests, tuple(offers.values()))
        times.append(1000 * (time.perf_counter() - began))
        for assignment in found.assignments:
            offer = offers[assignment.agent_id]
            offers[assignment.agent_id] = replace(
                offer,
                resources=offer.resources - wanted[assignment.task],
                ports=offer.ports.without(assignment.ports),
            )
        placed += len(found.assignments)
        if len(found.assignments) < batch / 20:
            free = sum(offer.resources.cpus for offer in offers.values())
            return Measured(tuple(times), placed, 1 - free / (agents * AGENT.cpus))


def spread_with_place(agents: int, batch: int, calls: int = 5) -> Measured:
    """Place gangs with two counted rules on empty agents."""
    offers = offers_of(agents)
    times, placed = [], 0
    for call in range(calls):
        requests = batch_of(batch, random.Random(call), SPREAD)
        began = time.perf_counter()
        found = place(requests, offers)
        times.append(1000 * (time.perf_counter() - began))
        placed += len(found.assignments)
    return Measured(tuple(times), placed)


def fill_with_a_loop(agents: int, batch: int, seconds: float) -> Measured:
    """Do the same by looking at every agent for every task, for about ``seconds``."""
    chance = random.Random(agents)
    free = [[round(AGENT.cpus * 1000), round(AGENT.mem * 1000)] for _ in range(agents)]
    largest = tuple(free[0])
    times: list[float] = []
    placed = 0
    while sum(times) < 1000 * seconds:
        requests = batch_of(batch, chance)
        began = time.perf_counter()
        done = sum(_place_by_loop(request, free, largest) for request in requests)
        times.append(1000 * (time.perf_counter() - began))
        placed += done
        if done < batch / 20:
            break
    return Measured(tuple(times), placed)


def _place_by_loop(request: TaskRequest, free: list[list[int]], largest: Sequence[int]) -> bool:
    cpus, mem = round(request.resources.cpus * 1000), round(request.resources.mem * 1000)
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


def row(name: str, agents: int, found: Measured, loop: Measured | None) -> str:
    times = sorted(found.milliseconds)
    ratio = f"{found.tasks_per_second / loop.tasks_per_second:6.1f} x" if loop else "      1 x"
    fill = "" if found.fill is None else f"{100 * found.fill:6.1f} %"
    return (
        f"{agents:>7,}  {name:<22} {found.tasks_per_second:>9,.0f} {ratio:>9} "
        f"{statistics.median(times):>10.1f} {times[-1]:>9.1f} {fill:>9}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure placement.")
    parser.add_argument("--agents", type=int, nargs="+", default=[200, 2000, 10_000])
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--loop-seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    print(f"batches of {arguments.batch} tasks of {TASK_CPUS} cpus; agents of {AGENT.cpus} cpus")
    print(
        f"{'agents':>7}  {'way':<22} {'tasks/s':>9} {'to loop':>9} {'median ms':>10} "
        f"{'most ms':>9} {'fill':>9}"
    )
    for agents, batch in itertools.product(arguments.agents, [arguments.batch]):
        loop = fill_with_a_loop(agents, batch, arguments.loop_seconds)
        print(row("loop", agents, loop, None), flush=True)
        print(row("place", agents, fill_with_place(agents, batch), loop), flush=True)
        spread = spread_with_place(agents, min(batch, agents))
        print(row("place, two counted rules", agents, spread, loop), flush=True)


if __name__ == "__main__":
    main()
