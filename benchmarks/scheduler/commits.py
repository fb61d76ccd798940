"""How many status updates a second are committed and then acknowledged, and what that delays.

Read it so: ``updates/s`` is from the first update that waits to the last acknowledgement; each is
acknowledged after the state that it caused is durable. ``events/commit`` is how many shared a
commit. ``heartbeat`` is the longest that the store took to confirm the leadership meanwhile, asked
four times a second: it must stay far below a session (10 s). All updates wait at the beginning, as
after the loss of the store; the tasks were starting and run now. ``unit_write_bytes`` is how many
bytes a unit of work writes when it is decided, as the mean of 10,000.

    python -m benchmarks.scheduler.commits [--tasks 10000] [--json FILE]

The event loop and the stores are the scheduler's own, ZooKeeper is a server of its own that syncs
every commit to its disk; SQLite lies in a temporary folder. Instead of Mesos a list takes the
acknowledgements.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from benchmarks import figures
from benchmarks.scheduler.large_service import running_service, settled, updates
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Acknowledge, Action, Write
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.scheduler.loop.event_loop import EventLoop
from dcos_tensorflow.state.store import StateStore, open_store
from samples.states import NOW, a_spec
from servers.zookeeper_server import ZooKeeperServer, available

DEADLINE_SECONDS = 300.0
UNITS = 10_000


@dataclass
class Commits:
    """A store that counts its commits."""

    store: StateStore
    count: int = 0

    def commit(self, writes: Sequence[Write]) -> None:
        self.store.commit(writes)
        self.count += 1

    def erase(self) -> None:
        self.store.erase()


@dataclass
class Heartbeat:
    """Has the leadership confirmed again and again, and keeps the longest wait for it."""

    store: StateStore
    longest: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ended.wait(0.25):
            began = time.monotonic()
            self.store.confirm()
            self.longest = max(self.longest, time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the commits of a flood of updates.")
    parser.add_argument("--tasks", type=int, default=10_000)
    figures.add_option(parser)
    arguments = parser.parse_args()
    state = settled(running_service(arguments.tasks, starting=arguments.tasks))
    found: dict[str, float] = {}
    print(f"{'store':<10} {'updates/s':>10} {'events/commit':>14} {'heartbeat':>10}")
    with tempfile.TemporaryDirectory(prefix="commits-") as folder, stores(Path(folder)) as urls:
        for name, url in urls.items():
            rate, batch, longest = flood(state, url)
            print(f"{name:<10} {rate:>10,.0f} {batch:>14,.0f} {1000 * longest:>7,.0f} ms")
            suffix = "" if name == "zookeeper" else f"_{name}"
            found[f"updates_committed_per_second{suffix}"] = rate
            found[f"flood_longest_heartbeat_ms{suffix}"] = 1000 * longest
    found["unit_write_bytes"] = unit_write_bytes(UNITS)
    print(f"{found['unit_write_bytes']:,.0f} bytes a unit")
    figures.write(arguments.json, found)


def unit_write_bytes(count: int) -> float:
    """Return what a unit writes when it succeeds, in bytes, as the mean of so many."""
    state = ServiceState.of_one_gang(a_spec(units=UnitsSpec(UnitKind.SHARD)), "an-instance")
    state = replace(state, units=state.units.given(({"shard": n} for n in range(count)), last=True))
    result = {"metrics": {"loss": 0.123456, "accuracy": 0.98765}, "result": {"rows": 123_456}}
    written = 0
    for unit in tuple(state.units):
        done = replace(unit, state=UnitState.SUCCEEDED, tries=1, begun_at=NOW, result=result)
        after = replace(state, units=state.units.put(replace(done, ended_at=NOW + 60.5)))
        written += sum(len(write.value or b"") for write in writes_between(state, after))
        state = after
    return written / count


@contextlib.contextmanager
def stores(folder: Path) -> Iterator[dict[str, str]]:
    """Yield URLs of stores, by their names."""
    urls = {"sqlite": f"sqlite:///{folder}/state.db"}
    problem = available()
    if problem is not None:
        print(f"SQLite alone: no ZooKeeper: {problem}")
        yield urls
        return
    server = ZooKeeperServer(folder, fsync=True, heap_mb=256)
    server.start()
    try:
        yield {"zookeeper": server.url("/benchmark"), **urls}
    finally:
        server.close()


def flood(state: ServiceState, url: str) -> tuple[float, float, float]:
    """Return updates a second, updates a commit, and the longest wait for a confirmation."""
    store = open_store(url, state.spec.name, timeout_seconds=60.0)
    store.lead("benchmark", 10.0, print)
    commits, heartbeat = Commits(store), Heartbeat(store)
    waiting = updates(state, len(state.tasks))
    acknowledged = threading.Semaphore(0)

    def perform(action: Action) -> None:
        if isinstance(action, Acknowledge):
            acknowledged.release()

    began = NOW - time.monotonic()
    loop = EventLoop(
        state,
        cast(StateStore, commits),
        perform,
        tick_seconds=1.0,
        clock=lambda: began + time.monotonic(),
    )
    thread = threading.Thread(target=heartbeat.run, daemon=True)
    try:
        store.commit([*first_writes(state), *writes_between(ServiceState(state.spec, ""), state)])
        for update in waiting:
            loop.submit(update)
        thread.start()
        started = time.monotonic()
        loop.start()
        for _ in waiting:
            if not acknowledged.acquire(timeout=DEADLINE_SECONDS):
                raise SystemExit(f"updates are not acknowledged: {loop.exit}")
        took = time.monotonic() - started
    finally:
        heartbeat.ended.set()
        loop.stop()
        thread.join()
        store.close()
    return len(waiting) / took, len(waiting) / commits.count, heartbeat.longest


if __name__ == "__main__":
    main()
