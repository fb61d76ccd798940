"""How long a scheduler of many tasks takes to be back after its end.

Read it so: seconds from the question to the store until the core has decided whom to ask about:
``load`` reads every value, ``restore`` makes the state of them, ``ask`` is the step of the first
subscription, which ends with the reconciliation of all tasks. ``cpu`` is what this process itself
used of it.

    python -m benchmarks.scheduler.restart [--tasks 10000] [--json FILE]

The store is a ZooKeeper server of its own; the start of Python itself (0.5 s) is not counted.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.scheduler.commits import stores
from benchmarks.scheduler.large_service import running_service
from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Reconcile
from dcos_tensorflow.core.model.events import Registered, Tick
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.step import step
from dcos_tensorflow.state.store import StateStore, open_store
from samples.states import NOW


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a restart of the scheduler.")
    parser.add_argument("--tasks", type=int, default=10_000)
    figures.add_option(parser)
    arguments = parser.parse_args()
    state = running_service(arguments.tasks)
    found: dict[str, float] = {}
    print(f"{'store':<10} {'load':>8} {'restore':>8} {'ask':>8} {'all':>8} {'cpu':>8}")
    with tempfile.TemporaryDirectory(prefix="restart-") as folder, stores(Path(folder)) as urls:
        for name, url in urls.items():
            store = open_store(url, state.spec.name, timeout_seconds=60.0)
            store.lead("benchmark", 10.0, print)
            empty = ServiceState(state.spec, "")
            store.commit([*first_writes(state), *writes_between(empty, state)])
            times = restart(store, arguments.tasks)
            store.close()
            print(f"{name:<10} " + " ".join(f"{seconds:>6.2f} s" for seconds in times))
            suffix = "" if name == "zookeeper" else f"_{name}"
            found[f"restart_{arguments.tasks}_tasks_seconds{suffix}"] = times[3]
            found[f"restart_{arguments.tasks}_tasks_cpu_seconds{suffix}"] = times[4]
    figures.write(arguments.json, found)


def restart(store: StateStore, tasks: int) -> tuple[float, float, float, float, float]:
    """Return the seconds of each part, of all, and the CPU of all."""
    times, used = [time.monotonic()], time.process_time()
    values = store.load()
    times.append(time.monotonic())
    state = restore(values, LaunchSettings(), NOW)
    assert state is not None
    times.append(time.monotonic())
    decision = step(state, (Registered(state.framework_id, "master"), Tick()), NOW)
    times.append(time.monotonic())
    asked = sum(len(a.tasks) for a in decision.actions if isinstance(a, Reconcile))
    if asked != tasks:
        raise SystemExit(f"{asked} of {tasks} tasks were asked about")
    load, restored, ask = (after - before for before, after in itertools.pairwise(times))
    return load, restored, ask, times[-1] - times[0], time.process_time() - used


if __name__ == "__main__":
    main()
