"""A training that lives long while everything around it dies: what grows, and what must not.

``make soak-long`` plays it for two hours with a kill every 20 seconds; ``LONG_RUN_SECONDS``,
``LONG_RUN_KILL_SECONDS`` and ``LONG_RUN_SEED`` change that, and ``LONG_RUN_REPORT`` names a file
for the slopes as JSON. The scheduler dies every 20 minutes only, so that its growth can be seen.
Growth is judged from half an hour on; before, processes still warm up.
"""

import dataclasses
import json
import os
import time
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from growth import Growth, folder_values, process_values
from killed_training import KilledTraining, finish, killed_training
from processes import processes

SECONDS = float(os.environ.get("LONG_RUN_SECONDS", "300"))
KILL_SECONDS = float(os.environ.get("LONG_RUN_KILL_SECONDS", "20"))
SEED = int(os.environ.get("LONG_RUN_SEED", "1"))
REPORT = os.environ.get("LONG_RUN_REPORT")
SCHEDULER_KILL_SECONDS = 1200.0
JUDGED_SECONDS = 1800.0
#: What may grow an hour at most, beyond two standard errors. Files and nodes come and go with every
#: task that ends, up to the 150 sandboxes of each agent.
AN_HOUR = {
    "memory_mb": 2.0,
    "descriptors": 1.0,
    "threads": 0.5,
    "files": 20.0,
    "size_mb": 2.0,
    "nodes": 1.0,
}


@pytest.mark.soak
@pytest.mark.zookeeper
@pytest.mark.timeout(600 + 2 * SECONDS)
def test_nothing_grows_while_a_training_lives_long_among_kills(tmp_path, own_zookeeper):
    growth = Growth()
    with killed_training(tmp_path, own_zookeeper, SEED) as training:
        begin = next_kill = time.monotonic()
        next_scheduler_kill = begin + SCHEDULER_KILL_SECONDS
        while (now := time.monotonic()) < begin + SECONDS:
            if now >= next_scheduler_kill:
                training.kills.append(training.kill_scheduler())
                next_scheduler_kill = now + SCHEDULER_KILL_SECONDS
            else:
                training.kill_something(but_the_scheduler=True)
            training.trains_on()
            next_kill += KILL_SECONDS
            while time.monotonic() < next_kill:
                look(training, growth)
                time.sleep(min(5.0, KILL_SECONDS / 2))
        slopes = growth.slopes()
        tell(slopes, training)
        finish(training)
    grown = [one for one in slopes if one.surely > AN_HOUR[one.measure]]
    assert grown == [] or SECONDS < JUDGED_SECONDS


def look(training: KilledTraining, growth: Growth) -> None:
    now = time.monotonic()
    growth.take(now, "masters and agents", 0, **process_values(os.getpid()))
    scheduler = training.scheduler.process.pid
    growth.take(now, "scheduler", scheduler, **process_values(scheduler))
    for one in processes(str(training.folder)):
        kind = "runner" if "task-runner.pyz" in one.command else None
        kind = "executor" if "executor" in one.command and kind is None else kind
        if kind:
            growth.take(now, kind, one.pid, **process_values(one.pid))
    growth.take(now, "agents' folders", 0, **folder_values(training.folder / "mesos"))
    home = training.folder / "scheduler-home"
    growth.take(now, "scheduler's folder", 0, **folder_values(home))
    nodes = znodes(training)
    if nodes is not None:
        growth.take(now, "ZooKeeper", 0, nodes=nodes)


def znodes(training: KilledTraining) -> int | None:
    """Return how many nodes the service has; None while ZooKeeper starts again."""
    client = KazooClient(training.zookeeper.address, timeout=5)
    try:
        client.start(timeout=5)
        return count(client, "/dcos-service-target")
    except Exception:  # it may be killed at any moment
        return None
    finally:
        client.stop()
        client.close()


def count(client: KazooClient, path: str) -> int:
    return 1 + sum(count(client, f"{path}/{child}") for child in client.get_children(path))


def tell(slopes, training: KilledTraining) -> None:
    print(f"{len(training.kills)} kills, {training.highest()} steps")
    for one in slopes:
        print(
            f"{one.kind:20} {one.measure:12} mean {one.mean:10.2f}"
            f" {one.per_hour:+9.3f} +- {one.error:.3f} an hour ({one.values} values)"
        )
    if REPORT:
        told = {
            "kills": len(training.kills),
            "steps": training.highest(),
            "seconds": SECONDS,
            "slopes": [dataclasses.asdict(one) for one in slopes],
        }
        Path(REPORT).write_text(json.dumps(told, indent=1))
