"""A training that lives long while everything around it dies: what grows, and what must not.

``make soak-long`` plays it for two hours with a kill every 20 seconds; ``LONG_RUN_SECONDS``,
``LONG_RUN_KILL_SECONDS`` and ``LONG_RUN_SEED`` change that, and ``LONG_RUN_REPORT`` names a file
for the slopes as JSON. The scheduler dies once, early, and of each of its lives what comes before
the 200th kill does not count: until the recorder of its last turns is full and its heaps have their
size, its memory grows, and must (measured with a kill every 5 s: 75 to 84 MB within 150 kills, and
1 MB in the next 190, as its 500 incidents fill). Growth is judged from half an hour on.
"""

import dataclasses
import json
import os
import time
from pathlib import Path

import pytest

from growth import Slope, Watch
from jobs.killed_training import KilledTraining, finish, killed_training

SECONDS = float(os.environ.get("LONG_RUN_SECONDS", "300"))
KILL_SECONDS = float(os.environ.get("LONG_RUN_KILL_SECONDS", "20"))
SEED = int(os.environ.get("LONG_RUN_SEED", "1"))
REPORT = os.environ.get("LONG_RUN_REPORT")
SCHEDULER_SECONDS = SECONDS / 8
WARM_SECONDS = 200 * KILL_SECONDS
JUDGED_SECONDS = 1800.0
#: So many ended tasks are kept by each agent: that they are is no growth.
KEPT_TASKS = 5
#: What may grow an hour at most, beyond two standard errors.
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
    with (
        killed_training(tmp_path, own_zookeeper, SEED, kept_tasks=KEPT_TASKS) as training,
        Watch(tmp_path, os.getpid(), own_zookeeper.address, min(5.0, KILL_SECONDS / 2)) as watch,
    ):
        begin = next_kill = time.monotonic()
        first_life = True
        while (now := time.monotonic()) < begin + SECONDS:
            if first_life and now >= begin + SCHEDULER_SECONDS:
                training.kills.append(training.kill_scheduler())
                first_life = False
            else:
                training.kill_something(but_the_scheduler=True)
            training.trains_on()
            next_kill += KILL_SECONDS
            time.sleep(max(0.0, next_kill - time.monotonic()))
        settled = dict.fromkeys(("masters and agents", "agents' folders"), SECONDS / 6)
        slopes = watch.growth(scheduler=WARM_SECONDS, **settled).slopes()
        tell(slopes, training)
        finish(training)
    grown = [one for one in slopes if one.surely > AN_HOUR[one.measure]]
    assert grown == [] or SECONDS < JUDGED_SECONDS


def tell(slopes: list[Slope], training: KilledTraining) -> None:
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
