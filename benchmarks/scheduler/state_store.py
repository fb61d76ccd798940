"""How fast the state stores are: commits a second, and the time to load a large service.

Read it so: each operation has one row per store, and ``to first`` says how many times as fast as
the first store it is (0.5 x takes twice as long).

    python -m benchmarks.scheduler.state_store [URL ...] [--tasks 10000] [--commits 500]
        [--json FILE]

Without URLs: SQLite in a folder of its own and, where it is installed, a ZooKeeper server of its
own. Each URL is measured with a service of its own, which is erased at the end. Commits are those
of one task: TaskInfo (2 KB) and TaskStatus, durable when they return; how fast that is depends on
the disk more than on anything else.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import figures
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.store import StateStore, open_store

TASK_INFO = b"x" * 2_000
TASK_STATUS = b"y" * 300

#: Operation -> seconds, and how many things of which kind it handled.
Measured = dict[str, tuple[float, int, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the state stores.")
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=500)
    figures.add_option(parser)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        urls = arguments.urls or stack.enter_context(own_stores())
        found = {}
        for number, url in enumerate(urls, 1):
            name = f"{number} {url.partition(':')[0]}"
            found[name] = measured(name, url, arguments.tasks, arguments.commits)
    show(found)
    values = (rates(name, rows) for name, rows in found.items())
    figures.write(arguments.json, dict(itertools.chain.from_iterable(values)))


@contextlib.contextmanager
def own_stores() -> Iterator[list[str]]:
    """Yield the URLs of an SQLite file and, where there is one, of a ZooKeeper server."""
    from servers.zookeeper_server import ZooKeeperServer, available

    with tempfile.TemporaryDirectory(prefix="state-store-") as folder:
        urls = [f"sqlite:///{folder}/state.db"]
        problem = available()
        if problem is not None:
            print(f"SQLite alone: no ZooKeeper: {problem}")
            yield urls
            return
        server = ZooKeeperServer(Path(folder) / "zookeeper")
        server.start()
        try:
            yield [*urls, f"zk://{server.address}/benchmark"]
        finally:
            server.close()


def measured(name: str, url: str, tasks: int, commits: int) -> Measured:
    store = open_store(url, f"benchmark-{os.getpid()}")
    print(f"{name}: {store}", flush=True)
    store.lead("benchmark", 10.0, print)
    try:
        return measure(store, tasks, commits)
    finally:
        store.close()


def one_by_one(store: StateStore, commits: int) -> None:
    for number in range(commits):
        store.commit(task(number))


def measure(store: StateStore, tasks: int, commits: int) -> Measured:
    found: Measured = {}

    def take(what: str, count: int, kind: str, operation: Callable[[], Any]) -> None:
        began = time.perf_counter()
        operation()
        found[what] = (time.perf_counter() - began, count, kind)

    everything = [write for number in range(tasks) for write in task(number)]
    take(f"write {tasks:,} tasks in one commit", tasks, "tasks/s", lambda: store.commit(everything))
    take(
        f"{commits:,} commits of one task",
        commits,
        "commits/s",
        lambda: one_by_one(store, commits),
    )
    take(f"load {tasks:,} tasks", tasks, "tasks/s", store.load)
    take(f"erase {tasks:,} tasks", tasks, "tasks/s", store.erase)
    return found


def task(number: int) -> list[Write]:
    folder = f"Tasks/worker-{number}"
    return [Write(f"{folder}/TaskInfo", TASK_INFO), Write(f"{folder}/TaskStatus", TASK_STATUS)]


def rates(store: str, rows: Measured) -> Iterator[tuple[str, float]]:
    """Yield the figures of a store, by names such as ``store_zk_load_tasks_per_second``."""
    backend = store.partition(" ")[2]
    for what, (seconds, count, kind) in rows.items():
        verb = "commit" if "commits" in what else what.partition(" ")[0]
        yield f"store_{backend}_{verb}_{kind.replace('/s', '_per_second')}", count / seconds


def show(found: dict[str, Measured]) -> None:
    print(f"{'operation':<32} {'store':<10} {'seconds':>9} {'rate':>10} {'':<10} {'to first':>9}")
    first = next(iter(found.values()))
    for what, (basis, _, _) in first.items():
        for name, rows in found.items():
            seconds, count, kind = rows[what]
            print(
                f"{what:<32} {name:<10} {seconds:>9.3f}"
                f" {count / seconds:>10,.0f} {kind:<10} {basis / seconds:>7.2f} x"
            )


if __name__ == "__main__":
    main()
