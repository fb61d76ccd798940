"""Why a task's state does not reach S3 just now, by its runner's words (docs/checkpoints.md).

Used by ``/v1/job``, ``/v1/why`` and ``/v1/health``. Total: whatever a runner reports, there is an
answer; a runner that keeps nothing in S3 reports nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.model.service_state import ServiceState

if TYPE_CHECKING:
    from dcos_tensorflow.api.schemas import StorageProblem

#: The parts of a report and what each of them is about, for people.
_PARTS = {
    "": "the first state",
    "checkpoints": "its checkpoints",
    "summaries": "its log directory",
    "output": "its OUTPUT_DIR",
    "followed": "newer checkpoints",
    "shown": "the logs that it shows",
    "logs": "its output",
}
_BROUGHT = frozenset({"start", "followed", "shown"})
_PLURAL = frozenset({"checkpoints", "followed", "shown"})
#: Where an operator must change something, or the task has lost its place.
NEEDS_SOMEBODY = frozenset({"blocked", "lost"})


def problems(report: Mapping[str, Any]) -> Iterator[StorageProblem]:
    """Yield what is wrong with each part of what a task keeps in S3."""
    storage = report.get("storage")
    if not isinstance(storage, Mapping):
        return
    for part, about in _PARTS.items():
        said = storage.get(part) if part else storage
        problem = said.get("problem") if isinstance(said, Mapping) else None
        if not isinstance(said, Mapping) or not isinstance(problem, Mapping):
            continue
        yield {
            "part": part or "start",
            "about": about,
            "state": str(said.get("state") or ""),
            "kind": str(problem.get("kind") or ""),
            "summary": str(problem.get("summary") or ""),
            "hint": str(problem.get("hint") or ""),
            "since": said.get("problem_since"),
        }


def problems_by_task(state: ServiceState) -> dict[str, list[StorageProblem]]:
    """Return the problems of each task that runs and has some."""
    reports = state.told.reports
    found = {
        record.name: list(problems(reports[record.task_id]))
        for record in state.live_tasks
        if record.task_id in reports and reports[record.task_id].get("storage")
    }
    return {name: some for name, some in found.items() if some}


def sentence(problem: StorageProblem) -> str:
    """Return a problem as one sentence."""
    hint = f" ({problem['hint']})" if problem["hint"] else ""
    about, stuck = problem["about"], problem["state"] in NEEDS_SOMEBODY
    done = "brought from" if problem["part"] in _BROUGHT else "kept in"
    waits = "wait for S3 and are" if problem["part"] in _PLURAL else "waits for S3 and is"
    how = f"cannot be {done} S3" if stuck else f"{waits} tried again"
    return f"{about} {how}: {problem['summary']}{hint}"
