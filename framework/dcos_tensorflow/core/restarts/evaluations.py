"""Whether the evaluator has had the last checkpoint, and how long the job's end waits for that.

Called by ``core.advance`` when the deciding tasks have finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.model.evaluation import Evaluation
from dcos_tensorflow.core.model.report import checkpoint_step_of, idle_since
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.spec.service_spec import TaskRole

#: How long one is waited for of which no evaluation was seen from its beginning to its end.
FIRST_EVALUATION_SECONDS = 120.0
#: An evaluator that takes longer for one checkpoint than so many times its longest has stopped.
_SILENT_EVALUATIONS = 2
#: So many evaluations are waited for at most: code may take one checkpoint after the other.
_MOST_EVALUATIONS = 10


def waited_for(view: GangView, now: float) -> tuple[str, ...]:
    """Return the evaluators that are to have time for the last checkpoint, beyond the grace."""
    last = last_checkpoint(view)
    if last is None:
        return ()
    records = [view.tasks[name] for name in _evaluators(view) if name in view.tasks]
    return tuple(record.name for record in records if _goes_on(view, record, last, now))


def missing(view: GangView) -> str:
    """Return a clause that says which evaluator has not told the last checkpoint; empty for none.

    One that counts in other steps than the checkpoints' names is not judged.
    """
    last = last_checkpoint(view)
    if last is None:
        return ""
    steps = {name: _evaluation(view, name).told[0] for name in _without(view, last)}
    names = [name for name, step in steps.items() if step is None or step < last]
    if not names:
        return ""
    return (
        f"{listed(names)} told no evaluation of the last checkpoint (step {last});"
        " service.outcome_grace_seconds gives more time"
    )


def last_checkpoint(view: GangView) -> int | None:
    """Return the step of the newest checkpoint that the deciding task or an evaluator sees."""
    names = (view.roster.decider, *_evaluators(view))
    reports = [view.report_of(view.tasks[name]) for name in names if name in view.tasks]
    steps = [step for step in map(checkpoint_step_of, reports) if step is not None]
    return max(steps, default=None)


def _without(view: GangView, last: int) -> Iterator[str]:
    """Yield the evaluators that neither ended by themselves nor told of checkpoint ``last``."""
    for name in _evaluators(view):
        ended = view.tasks.has(name, Fact.FINISHED)
        if not ended and _evaluation(view, name).told[0] != last:
            yield name


def _goes_on(view: GangView, record: TaskRecord, last: int, now: float) -> bool:
    if record.state is not TaskState.RUNNING or record.held or record.process_failed:
        return False
    known, since = _evaluation(view, record.name), view.job.phase_since
    if idle_since(view.report_of(record)) is not None or known.checkpoint is None:
        return False
    if known.told[0] == last:
        # It has the grace to leave what it found.
        return now - known.told_at < view.spec.outcome_grace_seconds
    if not known.seconds:
        return now - since < FIRST_EVALUATION_SECONDS
    silent = now - max(since, known.told_at)
    return (
        silent < _SILENT_EVALUATIONS * known.seconds
        and now - since < _MOST_EVALUATIONS * known.seconds
    )


def _evaluators(view: GangView) -> Iterator[str]:
    for role in view.spec.roles:
        if role.role is TaskRole.EVALUATOR:
            yield from (n for n in view.roster.names_of(role) if n in view.roster.wanted)


def _evaluation(view: GangView, name: str) -> Evaluation:
    record = view.tasks.get(name)
    known = view.service.told.evaluations.get(record.task_id) if record is not None else None
    return known or Evaluation()
