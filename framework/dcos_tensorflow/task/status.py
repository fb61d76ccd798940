"""The body of ``GET /v1/status``, put together from what the runner knows.

``runner`` calls it for each request. Pure: what has to be looked at was looked at before.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from dcos_tensorflow.task.checkpoints import Checkpoint
from dcos_tensorflow.task.exit_analysis import ExitReport
from dcos_tensorflow.task.exit_file import failure_as_json
from dcos_tensorflow.task.lifecycle_events import Lifecycle, Phase
from dcos_tensorflow.task.progress import Progress
from dcos_tensorflow.task.spec import RunnerSpec

_SENTENCES = {
    Phase.PREPARING: "Prepares the sandbox",
    Phase.RUNNING: "The job's process runs",
    Phase.HELD: "Held: no process is to run before the scheduler says so",
}


def document(
    spec: RunnerSpec,
    state: Lifecycle,
    *,
    contract: str,
    strategy: str,
    pid: Optional[int],
    started_at: Optional[float],
    missing_peers: Tuple[str, ...],
    report: Optional[ExitReport],
    progress: Progress,
    checkpoint: Optional[Checkpoint],
    memory_bytes: Optional[int],
    frozen_seconds: float,
    dropped_log_bytes: int,
    storage: Optional[Dict[str, Any]] = None,
    revision: int,
) -> Dict[str, Any]:
    """Return the status as docs/task-runner.md tells it. ``report`` is that of the task's end."""
    waits = state.phase is Phase.WAITING
    if report is None and state.phase is Phase.FAILED and state.failure:
        report = state.failure.report
    return {
        "service": spec.service,
        "task": spec.task,
        "attempt": spec.attempt,
        "epoch": (state.current or state.order).cluster.epoch,
        "start": state.order.start,
        "run": state.order.run,
        "state": state.phase.value,
        "waiting_for": list(missing_peers) if waits else [],
        "pid": pid,
        "started_at": started_at,
        "starts": state.starts,
        "exit_code": report.exit_code if report else None,
        "contract": contract,
        "strategy": strategy,
        "summary": report.summary if report else _sentence(state, missing_peers),
        "hint": report.hint if report else "",
        "exit": failure_as_json(state.failure) if state.failure else None,
        "progress": progress.as_json(),
        "result": progress.result,
        "checkpoint": checkpoint.as_json() if checkpoint else None,
        "memory_bytes": memory_bytes,
        "frozen_seconds": round(frozen_seconds, 1),
        "dropped_log_bytes": dropped_log_bytes,
        "storage": storage,
        "revision": revision,
    }


def _sentence(state: Lifecycle, missing_peers: Tuple[str, ...]) -> str:
    if state.phase is Phase.WAITING:
        return f"Waits for {', '.join(missing_peers) or 'nobody'}"
    if state.fetching:
        return "Brings data and checkpoint to the sandbox"
    if state.keeping is not None:
        return "The process has ended; its last checkpoint is published"
    if state.phase is Phase.STOPPING:
        return f"Stopping: {_why_stopping(state)}"
    return _SENTENCES.get(state.phase, "")


def _why_stopping(state: Lifecycle) -> str:
    if state.stop_reason:
        return state.stop_reason
    if state.condemned:
        return state.condemned.summary
    return f"start {state.order.start} is to {'follow' if state.order.run else 'be held'}"
