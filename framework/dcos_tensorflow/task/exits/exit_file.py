"""Leaves the report of an end in the sandbox, for later readers.

``runner`` calls it for each start that failed, ``main`` for the end of the task. ``task-exit.json``
holds that of the present start or of the task; ``task-exits.jsonl`` keeps those of all starts that
failed, so that the next one hides nothing.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.exits.exit_analysis import ExitReport
from dcos_tensorflow.task.job_files import replace_text
from dcos_tensorflow.task.supervise.lifecycle_events import FailedStart

#: A history that is longer begins anew, and the old one stays beside it as ``.1``.
MAX_HISTORY_BYTES = 4 << 20


def write_report(sandbox: str, report: ExitReport, log: Callable[[str], None]) -> None:
    """Write ``report`` as the newest; what cannot be written is said to ``log``."""
    path = os.path.join(sandbox, contract.EXIT_REPORT_FILE)
    try:
        replace_text(path, json.dumps(report.as_json(), indent=2) + "\n")
    except OSError as error:
        log(f"{path} cannot be written: {error}")


def withdraw_report(sandbox: str, log: Callable[[str], None]) -> None:
    """Remove the newest report as another start begins; the history keeps it.

    Should the container be killed, the end of the start before must not be taken for its end.
    """
    path = os.path.join(sandbox, contract.EXIT_REPORT_FILE)
    try:
        os.unlink(path)
    except FileNotFoundError:
        # It could not be written, or the job has removed it.
        return
    except OSError as error:
        log(f"{path} cannot be removed: {error}")


def _open(path: str, flags: int) -> int:
    # The job may have put a named pipe in its place, or a link.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)


def write_failure(sandbox: str, failure: FailedStart, log: Callable[[str], None]) -> None:
    """Write the report of a start that failed, and add it to the history."""
    write_report(sandbox, failure.report, log)
    path = os.path.join(sandbox, contract.EXIT_HISTORY_FILE)
    line = json.dumps({"start": failure.start, "ended_at": failure.at, **failure.report.as_json()})
    try:
        if os.path.exists(path) and os.path.getsize(path) > MAX_HISTORY_BYTES:
            os.replace(path, f"{path}.1")
        with open(path, "a", encoding="utf-8", opener=_open) as file:
            file.write(f"{line}\n")
    except OSError as error:
        log(f"{path} cannot be written: {error}")


#: What ``GET /v1/status`` carries of each line at most: it is asked for again and again.
STATUS_LINE_LENGTH = 400


def failure_as_json(failure: FailedStart) -> Dict[str, Any]:
    """Return what ``GET /v1/status`` shows under ``exit``."""
    report = failure.report
    return {
        "class": report.exit_class.value,
        "code": report.exit_code,
        "summary": report.summary,
        "hint": report.hint,
        "error": report.error.as_json() if report.error else None,
        "last_lines": [line[:STATUS_LINE_LENGTH] for line in report.last_lines],
        "ended_at": failure.at,
        "start": failure.start,
    }
