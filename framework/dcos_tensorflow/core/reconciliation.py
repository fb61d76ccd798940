"""Asking the master what our tasks do: explicit with agent ids, implicit, with back-off.

Called by ``core.service.step`` after the job was advanced. Mesos' own advice (docs,
"Task Reconciliation"): explicit until every task has answered, with truncated exponential back-off;
implicit, which finds tasks that we do not know; both again from time to time.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.actions import Reconcile
from dcos_tensorflow.core.backoff import spread
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.task import TaskState

FIRST_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 300.0
PERIOD_SECONDS = 900.0
#: A launch that nobody spoke of for so long is asked about.
LAUNCH_SILENCE_SECONDS = 30.0
#: Tasks per call: large reconciliations are spread over several (reference: scale notes).
CHUNK = 1000


def reconcile(draft: Draft) -> None:
    """Ask about whoever owes an answer and whose time to be asked has come."""
    if not draft.state.registered:
        return
    _doubt_silent_launches(draft)
    state = draft.state.reconciliation
    if draft.now >= state.implicit_at:
        draft.act(Reconcile(()), "asking the master for every task it knows of ours")
        state = replace(
            state,
            waiting=state.waiting | {r.task_id for r in draft.state.live_tasks},
            implicit_at=draft.now + PERIOD_SECONDS,
        )
        draft.set(reconciliation=state)
    if state.waiting and draft.now >= state.next_at:
        _ask(draft)


def doubt(draft: Draft, task_ids: frozenset[str]) -> None:
    """Ask about these tasks soon; those that owe an answer already keep their turn."""
    state = draft.state.reconciliation
    if task_ids - state.waiting:
        draft.set(
            reconciliation=replace(
                state, waiting=state.waiting | task_ids, next_at=draft.now, round=0
            )
        )


def _doubt_silent_launches(draft: Draft) -> None:
    silent = {
        r.task_id
        for r in draft.state.live_tasks
        if r.state is TaskState.LAUNCHING and draft.now - r.changed_at > LAUNCH_SILENCE_SECONDS
    }
    state = draft.state.reconciliation
    if silent - state.waiting:
        draft.set(reconciliation=replace(state, waiting=state.waiting | silent))


def _ask(draft: Draft) -> None:
    state = draft.state.reconciliation
    known = {r.task_id: r.agent_id for r in draft.state.live_tasks} | dict(draft.state.abandoned)
    asked = sorted(pair for pair in known.items() if pair[0] in state.waiting)
    for start in range(0, len(asked), CHUNK):
        chunk = tuple(asked[start : start + CHUNK])
        draft.act(Reconcile(chunk), f"asking the master about {len(chunk)} tasks")
    wait = min(FIRST_WAIT_SECONDS * 2**state.round, MAX_WAIT_SECONDS)
    draft.set(
        reconciliation=replace(
            state,
            # Whoever ended meanwhile owes nothing any more.
            waiting=frozenset(task_id for task_id, _ in asked),
            next_at=draft.now + wait * spread(f"{draft.state.instance}/{state.round}"),
            round=state.round + 1,
        )
    )
