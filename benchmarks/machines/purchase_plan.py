"""What it costs to plan the machines of a gang: CPU of ``capacity.planner.plan`` by how many pools.

    python -m benchmarks.machines.purchase_plan [--tasks 64] [--pools 10 100 1000] [--json FILE]

A pool is a kind of machine in one of three zones, on one of two markets; kinds are made up from a
seed. ``unlike`` tasks need five different amounts, ``apart`` ones a machine each, and ``none`` a
machine that there is not. The median of the calls counts.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from itertools import islice, product

from benchmarks import figures
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.planner import GangDemand, Owned, plan
from dcos_tensorflow.core.placement.request import TaskRequest
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole

CALLS = 5
GANGS = ("alike", "unlike", "apart", "none")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the planner of machines.")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--pools", type=int, nargs="+", default=[10, 100, 1000])
    figures.add_option(parser)
    arguments = parser.parse_args()
    found = {}
    print(f"{'pools':>6}  {'tasks':<7} {'ms':>8}")
    for count, name in product(arguments.pools, GANGS):
        pools, demand = made_up(count), gang(name, arguments.tasks)
        taken = []
        for _ in range(CALLS):
            began = time.process_time()
            plan([demand], Owned(), pools, CapacitySpec(CommandSpec(("machines",))))
            taken.append(1000 * (time.process_time() - began))
        found[f"purchase_plan_{count}_pools_{name}_ms"] = statistics.median(taken)
        print(f"{count:>6}  {name:<7} {statistics.median(taken):>8.1f}")
    figures.write(arguments.json, found)


def made_up(count: int) -> list[Pool]:
    """Return so many pools."""
    chance, pools = random.Random(1), []
    for kind in range(1 + count // 6):
        cpus, each = chance.choice([2, 4, 8, 16, 32, 48, 64, 96]), chance.choice([2, 4, 8])
        gpus = chance.choice([0, 0, 0, 1, 4]) if cpus > 4 else 0
        whole = (cpus * (0.03 + 0.004 * each) + 0.6 * gpus) * chance.uniform(0.9, 1.1)
        resources = Resources(cpus, cpus * each * 950, 45_000, gpus)
        for zone, market in product("abc", Market):
            price = whole * (chance.uniform(0.25, 0.5) if market is Market.SPOT else 1.0)
            pools.append(Pool(f"kind-{kind}", zone, market, round(price, 4), resources))
    return list(islice(pools, count))


def gang(name: str, tasks: int) -> GangDemand:
    """Return a gang of so many tasks that waits."""
    rules = (PlacementConstraint("hostname", ConstraintOperator.UNIQUE),) * (name == "apart")
    cpus = 200 if name == "none" else 2
    sizes = range(5) if name == "unlike" else range(1)
    needs = [Resources(cpus + size, 6_000 + 1_500 * size) for size in sizes]
    requests = (
        TaskRequest(f"worker-{n}", TaskRole.WORKER, needs[n % len(needs)], 2, constraints=rules)
        for n in range(tasks)
    )
    return GangDemand("main", tuple(requests))


if __name__ == "__main__":
    main()
