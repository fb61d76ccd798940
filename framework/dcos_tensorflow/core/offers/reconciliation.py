"""Asking the master what our tasks do: explicit with agent ids, implicit, with back-off.

Called by ``core.step.step`` after the job was advanced. Mesos' own advice (docs,
"Task Reconciliation"): explicit until every task has answered, with truncated exponential back-off;
implicit, which finds tasks that we do not know; both again from time to time. ``core.absorb`` asks
what an answer is worth.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Reconcile
from dcos_tensorflow.core.model.events import TaskUpdate
from dcos_tensorflow.core.model.job import WATCHED_PHASES
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.recovery.backoff import spread

FIRST_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 300.0
PERIOD_SECONDS = 900.0
#: A launch that nobody spoke of for so long is asked about.
LAUNCH_SILENCE_SECONDS = 30.0
#: The update that says how a task failed is waited for so long. Its agent sends it at once after a
#: subscription, and again after 10 s and 20 s (recorded: unacked_retry).
EXPLANATION_SECONDS = 60.0
#: What every answer gives as its reason; why a task ended is in the task's own update only.
ANSWER_REASON = "REASON_RECONCILIATION"
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


def answered(draft: Draft, task_id: str) -> None:
    """Note that the master has spoken of a task."""
    state = draft.state.reconciliation
    if task_id in state.waiting or task_id in state.unexplained:
        unexplained = {k: v for k, v in state.unexplained.items() if k != task_id}
        draft.set(
            reconciliation=replace(
                state, waiting=state.waiting - {task_id}, unexplained=unexplained
            )
        )


def wants_explanation(draft: Draft, record: TaskRecord, update: TaskUpdate) -> bool:
    """Say whether to wait for the update that says how this task failed, and note that.

    An answer names the state only. Until the task's own update is acknowledged its agent sends it
    again, so it is lost only together with the agent.
    """
    told = update.state is TaskState.FAILED and update.reason == ANSWER_REASON
    watched = draft.job.phase in WATCHED_PHASES and not record.kill_reason
    if not told or not watched or record.terminal:
        return False
    state = draft.state.reconciliation
    since = state.unexplained.get(record.task_id, draft.now)
    if draft.waited(since) >= EXPLANATION_SECONDS:
        return False
    if record.task_id not in state.unexplained:
        draft.reasons.append(f"{record.name} has failed, and how is still to be told")
        draft.set(
            reconciliation=replace(
                state,
                waiting=state.waiting | {record.task_id},
                unexplained={**state.unexplained, record.task_id: since},
                next_at=draft.now + FIRST_WAIT_SECONDS,
                round=0,
            )
        )
    return True


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
