"""How fast the state stores are: commits a second, and the time to load a large service.

    python benchmarks/state_store.py sqlite:////tmp/bench.db zk://127.0.0.1:2181/bench

Each URL is measured with a service of its own, which is erased at the end. Commits are those of
one task: TaskInfo (2 KB) and TaskStatus, durable when they return; how fast that is depends on
the disk more than on anything else.
"""

from __future__ import annotations

import argparse
import os
import time

from dcos_tensorflow.core.actions import Write
from dcos_tensorflow.state.store import StateStore, open_store

TASK_INFO = b"x" * 2_000
TASK_STATUS = b"y" * 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=500)
    arguments = parser.parse_args()
    for url in arguments.urls:
        store = open_store(url, f"benchmark-{os.getpid()}")
        store.lead("benchmark", 10.0, print)
        measure(store, arguments.tasks, arguments.commits)
        store.close()


def measure(store: StateStore, tasks: int, commits: int) -> None:
    print(store)
    began = time.perf_counter()
    store.commit([write for number in range(tasks) for write in task(number)])
    show(f"write {tasks:,} tasks in one commit", time.perf_counter() - began)

    began = time.perf_counter()
    for number in range(commits):
        store.commit(task(number))
    seconds = time.perf_counter() - began
    show(f"{commits:,} commits of one task", seconds, f"{commits / seconds:,.0f} commits/s")

    began = time.perf_counter()
    values = store.load()
    seconds = time.perf_counter() - began
    show(f"load {tasks:,} tasks", seconds, f"{len(values) / seconds:,.0f} values/s")

    began = time.perf_counter()
    store.erase()
    show(f"erase {tasks:,} tasks", time.perf_counter() - began)


def task(number: int) -> list[Write]:
    folder = f"Tasks/worker-{number}"
    return [Write(f"{folder}/TaskInfo", TASK_INFO), Write(f"{folder}/TaskStatus", TASK_STATUS)]


def show(what: str, seconds: float, rate: str = "") -> None:
    print(f"  {what:36} {seconds:8.3f} s  {rate}")


if __name__ == "__main__":
    main()
