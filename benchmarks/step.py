"""What one step of the core costs: CPU of a Tick, a report and an update, alone and in batches.

Read it so: ``ms`` is the CPU of one call of ``step``, ``ms/event`` that of one event of it, and
``growth`` the exponent from the row of fewer tasks to this one: 1 is linear, 2 is the square, 0 is
a cost that does not depend on the number of tasks. The gang is RUNNING (``large_service``); the
reports tell progress, the updates that tasks which were starting run now. Making the writes is part
of a step, committing them is not (``commits.py``).

    python benchmarks/step.py [--tasks 100 1000 10000] [--batch 200] [--json FILE]

``step`` is a pure function, so each call is made from the same state; the median of the calls
counts. Sizes that would take too long for a call (as the square of the one before) are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import math
import statistics
import time
from collections.abc import Sequence

from benchmarks import figures
from benchmarks.scheduler.large_service import reports, running_service, settled, updates
from dcos_tensorflow.core.model.events import Event, Tick
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.step import step
from samples.states import NOW

#: Seconds that each row is measured for, and the longest that a call may take.
SECONDS = 1.0
LONGEST_SECONDS = 30.0
CALLS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a step of the core.")
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--batch", type=int, default=200)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    before: dict[str, tuple[int, float]] = {}
    print(f"{'tasks':>7}  {'events':<14} {'ms':>10} {'ms/event':>10} {'growth':>7}")
    for tasks in arguments.tasks:
        state = settled(running_service(tasks, starting=min(arguments.batch, tasks // 2)))
        alone, batched = 0.0, 0.0
        for name, events in rows(state, arguments.batch).items():
            known = before.get(name)
            if known and known[1] * (tasks / known[0]) ** 2 > 1000 * LONGEST_SECONDS:
                print(f"{tasks:>7,}  {name:<14} {'too long':>10}")
                continue
            cost = measured(state, events)
            each = cost / len(events)
            growth = math.log(cost / known[1], tasks / known[0]) if known else math.nan
            print(f"{tasks:>7,}  {name:<14} {cost:>10.3f} {each:>10.4f} {growth:>7.2f}", flush=True)
            before[name] = (tasks, cost)
            found[f"step_{tasks}_{name.replace(' ', '_')}_ms"] = cost
            if len(events) == 1:
                alone = max(alone, cost)
            else:
                batched = max(batched, each)
        if alone and batched:
            found |= {f"step_{tasks}_ms": alone, f"event_{tasks}_ms": batched}
    figures.write(arguments.json, found)


def rows(state: ServiceState, batch: int) -> dict[str, Sequence[Event]]:
    """Return what is measured: events by a name."""
    return {
        "tick": (Tick(),),
        "report": reports(state, 1),
        "update": updates(state, 1),
        f"reports {batch}": reports(state, batch),
        f"updates {batch}": updates(state, batch),
    }


def measured(state: ServiceState, events: Sequence[Event]) -> float:
    """Return the CPU of one step, in milliseconds."""
    costs: list[float] = []
    began = time.monotonic()
    # The first call may make what the next ones find made.
    step(state, events, NOW + 3)
    while len(costs) < CALLS or time.monotonic() < began + SECONDS:
        before = time.process_time()
        step(state, events, NOW + 3)
        costs.append(1000 * (time.process_time() - before))
        if costs[0] > 1000 * SECONDS:
            break
    return statistics.median(costs)


if __name__ == "__main__":
    main()
