"""Following a job whose scheduler runs in another process, to its end, wherever that scheduler is.

Used by ``status --follow`` and by jobs that were begun in Python.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.api_client import SchedulerAway
from dcos_tensorflow.client.asked import Service
from dcos_tensorflow.client.following.job import View
from dcos_tensorflow.client.snapshot import Snapshot

LOOK_SECONDS = 0.5


def follow_service(
    service: Service,
    view: View,
    *,
    left: Callable[[], bool],
    tell: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, Any] | None:
    """Show progress until the job has ended, and return how; None once it is ``left`` alone.

    ``tell`` is what a person hears while the scheduler is away. Raises CliError for an answer
    that is none of its scheduler.
    """
    ended: dict[str, Any] | None = None
    told_away = ""
    try:
        while ended is None and not left():
            try:
                snapshot = service.snapshot()
            except SchedulerAway as away:
                ended = service.last_end()
                if ended is None and str(away) != told_away:
                    told_away = str(away)
                    view.close()
                    tell(f"{away} Waiting for it to come back.")
            else:
                told_away = ""
                view.show(snapshot, time.time())
                ended = _end_in(snapshot, service)
            if ended is None:
                pause(LOOK_SECONDS)
    finally:
        view.close()
    return ended


def _end_in(snapshot: Snapshot, service: Service) -> dict[str, Any] | None:
    """Return how the job ended, as its scheduler here tells it, or as the API does."""
    if not snapshot.done:
        return None
    # What is kept here knows places on this machine, too, and is written a moment later.
    return ending.document(snapshot, {}) if service.directory is None else service.last_end()
