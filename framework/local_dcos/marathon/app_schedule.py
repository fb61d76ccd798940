"""Decides which tasks of an app are started and killed, and when. Pure.

``marathon`` asks after every event and carries out the answer. It looks at the whole app each
time: an order that was lost is given again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from local_dcos.marathon.app_definition import App
from local_dcos.marathon.app_records import KILLING, RUNNING, AppRecord, TaskRecord

#: A task that ran so long and then failed did not fail because it was started too soon.
_STABLE_SECONDS = 60.0


@dataclass(frozen=True)
class Decision:
    """What to do now. ``wake_at`` is when to ask again although nothing happens."""

    kill: tuple[str, ...] = ()
    launch: int = 0
    complete: bool = False
    wake_at: float | None = None


def decide(app: App, record: AppRecord, tasks: Sequence[TaskRecord], now: float) -> Decision:
    """Return what brings the tasks nearer to the definition."""
    target = 0 if record.deleting else app.instances
    alive = [one for one in tasks if one.state != KILLING]
    current = [one for one in alive if one.config_version == record.config_version]
    old = [one for one in alive if one.config_version != record.config_version]
    ready = [one for one in current if is_ready(app, one)]
    # Marathon: the youngest go first.
    surplus = sorted(current, key=lambda one: -one.staged_at)[: max(0, len(current) - target)]
    minimum, maximum = _capacity(app, target)
    spare = max(0, len(ready) + len(old) - minimum) if target else len(old)
    kill = tuple(one.task_id for one in [*surplus, *old[:spare]])
    wanted = min(target - len(current), maximum - len(tasks))
    complete = len(ready) == target == len(current) and len(tasks) == target
    if wanted <= 0:
        return Decision(kill, complete=complete)
    if now < record.not_before:
        return Decision(kill, wake_at=record.not_before)
    return Decision(kill, launch=wanted)


def _capacity(app: App, target: int) -> tuple[int, int]:
    minimum = math.ceil(target * app.minimum_health)
    maximum = target + math.floor(target * app.maximum_over)
    # With neither room for one more nor leave to have one less nothing could ever change.
    return (minimum - 1 if minimum >= maximum > 0 else minimum), maximum


def is_ready(app: App, task: TaskRecord) -> bool:
    """Say whether a deployment may count on the task."""
    return task.state == RUNNING and (app.health_check is None or task.healthy is True)


def after_failure(record: AppRecord, app: App, ran: float, now: float) -> AppRecord:
    """Return the app with a longer delay before its next launch, after a task that ``ran`` so."""
    before = 0.0 if ran >= _STABLE_SECONDS else record.delay
    longer = before * app.backoff_factor if before else app.backoff
    delay = min(longer, app.max_launch_delay)
    return replace(record, delay=delay, not_before=now + delay)
