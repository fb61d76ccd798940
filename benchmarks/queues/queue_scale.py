"""How fast a queue decides: many jobs wait for many machines.

``python -m benchmarks.queues.queue_scale [--waiting 10000] [--hosts 5000] [--json FILE]`` fills
the machines until so many jobs wait, and prints admissions a second, the decision after one job has
ended (the usual one), and memory.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import time
from pathlib import Path

from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import Host, JobState, QueuedJob, Rules, TaskNeed, Team

TEAMS = 20
ENDS = 200


def measure(waiting: int, hosts: int) -> dict[str, float]:
    """Return the figures for so many waiting jobs and machines."""
    rng = random.Random(1)
    teams = [Team(f"team-{k}", guarantee=0.8 / TEAMS) for k in range(TEAMS)]
    queue = Queue(Rules(), teams, 0.0)
    queue.hosts_are([Host(f"host-{k}", 96_000, 786_432, 8_000) for k in range(hosts)], 0.0)
    kinds = [
        ((TaskNeed(1_000 * cpus, 8_192 * cpus, 1_000 * gpus), tasks),)
        for cpus in (2, 4, 8)
        for gpus in (1, 2, 4, 8)
        for tasks in (1, 2, 4, 8)
    ]

    def submit(number: int) -> None:
        job = QueuedJob(
            f"job-{number}",
            rng.choice(teams).name,
            rng.choice(kinds),
            number * 1e-3,
            priority=rng.randint(0, 2),
            time_limit=rng.choice((600.0, 3_600.0, 14_400.0, 86_400.0)),
        )
        assert queue.submit(job, 0.0) is None

    # The machines fill up, and then so many wait.
    number, admitted, seconds, now = 0, 0, 0.0, 0.0
    left = waiting
    while left > 0:
        for _ in range(1_000):
            submit(number)
            number += 1
        now += 1.0
        started = time.perf_counter()
        decision = queue.decide(now)
        took = time.perf_counter() - started
        if decision.admit:
            admitted += len(decision.admit)
            seconds += took
        left = waiting - len(queue.waiting())
    single = []
    running = [entry.job.id for entry in queue.running()]
    for job in rng.sample(running, min(ENDS, len(running))):
        now += 0.1
        queue.ended(job, JobState.SUCCEEDED, now)
        started = time.perf_counter()
        decision = queue.decide(now)
        single.append(time.perf_counter() - started)
    return {
        "waiting": float(waiting),
        "hosts": float(hosts),
        "running": float(len(running)),
        "admissions_per_second": admitted / seconds,
        "decision_ms_median": 1e3 * statistics.median(single),
        "decision_ms_worst": 1e3 * max(single),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--waiting", type=int, default=10_000, help="jobs that wait")
    parser.add_argument("--hosts", type=int, default=5_000, help="machines of 8 GPUs")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    figures = measure(given.waiting, given.hosts)
    for name, value in figures.items():
        print(f"{name:24} {value:,.1f}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
