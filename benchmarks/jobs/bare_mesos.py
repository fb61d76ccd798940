"""What Mesos itself needs to start tasks: `sleep` by a scheduler that does nothing else.

Used by ``start.py``, on the embedded cluster; on any other it would be that one's. From the
subscription to the last task that runs: offer, one ACCEPT, container, status update. No runner, no
state store and nothing to fetch: below this no scheduler of Mesos can come.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from embedded_mesos import ClusterStatus
from masters.mesos_scheduler import Scheduler, task


def seconds_of_sleepers(cluster: ClusterStatus, names: Iterable[str]) -> float:
    """Return the seconds from the subscription until all these tasks run; they are ended then."""
    began = time.monotonic()
    with Scheduler(cluster.master, credentials=cluster.credential) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, *(task(offer, name, "exec sleep 100") for name in names))
        for name in names:
            scheduler.run_until(name, "TASK_RUNNING")
        ended = time.monotonic()
        scheduler.call("TEARDOWN")
    return ended - began
