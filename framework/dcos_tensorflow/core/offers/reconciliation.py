"""Asking the master about our tasks: explicit with agent ids, implicit, with back-off.

Called by ``core.step.step`` after the job was advanced. Mesos' own advice (docs,
"Task Reconciliation"): explicit until every task has answered, with truncated exponential back-off;
implicit, which finds tasks that we do not know; both again from time to time. ``core.absorb`` asks
whether an answer counts.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import Reconcile
from dcos_tensorflow.core.model.events import TaskUpdate
from dcos_tensorflow.core.model.job import WATCHED_PHASES
from dcos_tensorflow.core.model.service_state import Reconciliation
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.backoff import spread

FIRST_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 300.0
PERIOD_SECONDS = 900.0
#: A launch without any answer for so long is asked about.
LAUNCH_SILENCE_SECONDS = 30.0
#: The update that says how a task failed is waited for so long. Its agent sends it at once after a
#: subscription, and again after 10 s and 20 s (recorded: unacked_retry).
EXPLANATION_SECONDS = 60.0
#: What every answer gives as its reason; why a task ended is in the task's own update only.
ANSWER_REASON = "REASON_RECONCILIATION"
#: Tasks per call: large reconciliations are spread over several (reference: scale notes).
CHUNK = 1000


def reconcile(draft: Draft) -> None:
    """Ask about tasks that owe an answer, when it is time to."""
    if not draft.state.registered:
        return
    _doubt_silent_launches(draft)
    owed = draft.state.reconciliation
    if draft.now >= owed.implicit_at:
        draft.act(Reconcile(()), "asking the master for every task it knows of ours")
        owed = replace(
            owed,
            waiting=owed.waiting | {r.task_id for r in draft.state.live_tasks},
            implicit_at=draft.now + PERIOD_SECONDS,
        )
        _set(draft, owed)
    if owed.waiting and draft.now >= owed.next_at:
        _ask(draft)


def begin_anew(draft: Draft) -> None:
    """Owe an answer about every task: what the master has told before was to another life of us."""
    draft.spoken_of.clear()
    waiting = frozenset(r.task_id for r in draft.state.live_tasks)
    waiting |= draft.state.abandoned.keys()
    _set(draft, Reconciliation(waiting=waiting, next_at=draft.now, implicit_at=draft.now))


def doubt(draft: Draft, task_ids: frozenset[str]) -> None:
    """Ask about these tasks now; those that owe an answer already keep their turn."""
    if task_ids - draft.state.reconciliation.waiting:
        ask_in(draft, 0.0, task_ids)


def ask_in(draft: Draft, seconds: float, task_ids: frozenset[str]) -> None:
    """Ask about these tasks, and all others that owe an answer, after ``seconds``."""
    draft.spoken_of -= task_ids
    owed = draft.state.reconciliation
    waiting, next_at = owed.waiting | task_ids, draft.now + seconds
    _set(draft, replace(owed, waiting=waiting, next_at=next_at, round=0))


def answered(draft: Draft, task_id: str) -> None:
    """Note that the master has spoken of a task; ``settle`` takes all of them off together."""
    draft.spoken_of.add(task_id)


def settle(draft: Draft) -> None:
    """Wait no more for those that the master has spoken of in this step."""
    owed, spoken_of = draft.state.reconciliation, draft.spoken_of
    if spoken_of.isdisjoint(owed.waiting) and spoken_of.isdisjoint(owed.unexplained):
        return
    unexplained = {k: v for k, v in owed.unexplained.items() if k not in spoken_of}
    _set(draft, replace(owed, waiting=owed.waiting - spoken_of, unexplained=unexplained))


def wants_explanation(gang: GangDraft, record: TaskRecord, update: TaskUpdate) -> bool:
    """Say whether to wait for the update that says how this task failed, and note that.

    An answer names the state only. Until the task's own update is acknowledged its agent sends it
    again, so it is lost only together with the agent.
    """
    told = update.state is TaskState.FAILED and update.reason == ANSWER_REASON
    watched = gang.job.phase in WATCHED_PHASES and not record.kill_reason
    if not told or not watched or record.terminal:
        return False
    owed = gang.service.state.reconciliation
    since = owed.unexplained.get(record.task_id, gang.now)
    if gang.service.waited(since) >= EXPLANATION_SECONDS:
        return False
    if record.task_id not in owed.unexplained:
        gang.say(f"{record.name} has failed, and how is still to be told")
        gang.service.spoken_of.discard(record.task_id)
        _set(
            gang.service,
            replace(
                owed,
                waiting=owed.waiting | {record.task_id},
                unexplained={**owed.unexplained, record.task_id: since},
                next_at=gang.now + FIRST_WAIT_SECONDS,
                round=0,
            ),
        )
    return True


def _set(draft: Draft, owed: Reconciliation) -> None:
    draft.state = replace(draft.state, reconciliation=owed)


def _doubt_silent_launches(draft: Draft) -> None:
    silent = {
        record.task_id
        for gang in draft.state.gangs.values()
        for record in map(gang.tasks.__getitem__, gang.tasks.having(Fact.LAUNCHING))
        if draft.now - record.changed_at > LAUNCH_SILENCE_SECONDS
    }
    owed = draft.state.reconciliation
    if silent - owed.waiting:
        _set(draft, replace(owed, waiting=owed.waiting | silent))


def _ask(draft: Draft) -> None:
    owed = draft.state.reconciliation
    known = {r.task_id: r.agent_id for r in draft.state.live_tasks} | dict(draft.state.abandoned)
    asked = sorted(pair for pair in known.items() if pair[0] in owed.waiting)
    for start in range(0, len(asked), CHUNK):
        chunk = tuple(asked[start : start + CHUNK])
        draft.act(Reconcile(chunk), f"asking the master about {counted(len(chunk), 'task')}")
    wait = min(FIRST_WAIT_SECONDS * 2**owed.round, MAX_WAIT_SECONDS)
    _set(
        draft,
        replace(
            owed,
            # A task that ended meanwhile owes nothing any more.
            waiting=frozenset(task_id for task_id, _ in asked),
            next_at=draft.now + wait * spread(f"{draft.state.instance}/{owed.round}"),
            round=owed.round + 1,
        ),
    )
