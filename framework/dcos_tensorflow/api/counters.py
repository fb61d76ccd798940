"""What only passes by (calls to the master, changes of tasks), counted for ``metrics``.

The scheduler calls ``Metrics.observe`` after each step, from its first one on; so this imports
nothing of what shows the numbers. Counters start at 0 with each scheduler.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from dcos_tensorflow.core.model.actions import Accept, Action, Decline, Kill, Revive, Suppress
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.step import Decision

#: The Mesos state that stands for each of ours (mesos.proto, TaskState).
MESOS_STATES = {
    TaskState.LAUNCHING: "TASK_STAGING",
    TaskState.STAGING: "TASK_STAGING",
    TaskState.STARTING: "TASK_STARTING",
    TaskState.RUNNING: "TASK_RUNNING",
    TaskState.UNREACHABLE: "TASK_UNREACHABLE",
    TaskState.FINISHED: "TASK_FINISHED",
    TaskState.FAILED: "TASK_FAILED",
    TaskState.KILLED: "TASK_KILLED",
    TaskState.LOST: "TASK_LOST",
}

#: A decline for longer than this is a long one.
_LONG_DECLINE_SECONDS = 60.0


class Metrics:
    """Counts what passes by. ``observe`` is called by one thread, the rest by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        names = ("declines.long", "declines.short", "operation.launch", "revives", "suppresses")
        self._counts: Counter[str] = Counter(dict.fromkeys(names, 0))
        self._before: Mapping[str, TaskRecord] = {}

    def observe(self, decision: Decision) -> None:
        """Count the actions of a step and the changes of tasks since the last one."""
        seen = Counter[str]()
        for action in decision.actions:
            seen.update(_counted(action))
        after = decision.state.tasks
        for name in decision.changed:
            record, old = after.get(name), self._before.get(name)
            if record is None:
                continue
            if old is None or (old.task_id, old.state) != (record.task_id, record.state):
                seen[f"task_status.{MESOS_STATES[record.state].lower()}"] += 1
        self._before = after
        with self._lock:
            self._counts.update(seen)

    def counts(self) -> dict[str, int]:
        """Return the counters by the SDK's dotted names."""
        with self._lock:
            return dict(self._counts)


def _counted(action: Action) -> dict[str, int]:
    match action:
        case Decline(offer_ids, seconds):
            kind = "long" if seconds > _LONG_DECLINE_SECONDS else "short"
            return {f"declines.{kind}": len(offer_ids)}
        case Accept():
            return {"operation.launch": len(action.launches)}
        case Kill():
            return {"operation.kill": 1}
        case Revive():
            return {"revives": 1}
        case Suppress():
            return {"suppresses": 1}
    return {}
