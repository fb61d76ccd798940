"""How long an evaluator needs for a checkpoint, as its runner's reports show it.

Measured by the scheduler's clock alone, and never kept: a scheduler that starts anew measures anew.
``core.absorb`` follows each report; ``core.restarts.evaluations`` asks at the job's end.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.contract import RUNNER_RUNNING
from dcos_tensorflow.core.model.report import Report, checkpoint_step_of, told_of
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Evaluation:
    """What the reports of one evaluator say, one after the other. Times are unix seconds.

    ``told`` is what it told last, its step first; ``due_since`` when the checkpoint came, or was
    the next one, that it works on, 0 for none; with ``has_newer`` another one came since. While an
    operator holds its process, and where it starts again, no evaluation takes time.
    """

    told: tuple[int | None, float | None] = (None, None)
    told_at: float = 0.0
    checkpoint: int | None = None
    due_since: float = 0.0
    #: Its process ran when it was heard last.
    runs: bool = False
    has_newer: bool = False
    #: The longest that one took; 0 while none was seen.
    seconds: float = 0.0


def follow(known: Evaluation | None, report: Report, now: float) -> Evaluation:
    """Return what is known of an evaluator after another report of its runner."""
    told, checkpoint = told_of(report), checkpoint_step_of(report)
    runs = report.get("state") == RUNNER_RUNNING
    if known is None:
        # When it began with this checkpoint, and told this, is not known.
        return Evaluation(told, now if told != (None, None) else 0.0, checkpoint, runs=runs)
    due_since, has_newer = known.due_since, known.has_newer
    if due_since and not (runs and known.runs):
        due_since = now
    if checkpoint is not None and checkpoint != known.checkpoint:
        due_since, has_newer = due_since or now, due_since > 0
    if told == known.told:
        due = replace(known, checkpoint=checkpoint, due_since=due_since, has_newer=has_newer)
        return replace(due, runs=runs)
    took = now - due_since if due_since else 0.0
    # What came meanwhile is the next one to be evaluated.
    longest = max(known.seconds, took)
    return Evaluation(told, now, checkpoint, now if has_newer else 0.0, runs, seconds=longest)
