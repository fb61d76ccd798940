"""Leaving nothing behind: the way of an uninstall, which always ends.

Called by ``core.advance`` in ENDING and DONE. Tasks are killed first; what lives on agents that do
not answer is listed and left to the master, which ends every task of a framework that was torn
down when its agent comes back (master.cpp). Then TEARDOWN, then the state is erased. A crash at
any point carries on from what was committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcos_tensorflow.core import events
from dcos_tensorflow.core.actions import EraseState, Teardown
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.task import TaskRecord

EXIT_INTERRUPTED = 130
#: A call that failed is heard of by then (seconds).
HEARD_SECONDS = 2.0


def request(draft: Draft, event: events.UninstallRequested) -> None:
    """Begin the uninstall. Asking twice changes nothing."""
    if draft.job.uninstalling:
        return
    why = f"uninstall: {event.why}" if event.why else "uninstall"
    verdict = draft.job.verdict or Verdict(Outcome.STOPPED, EXIT_INTERRUPTED, why)
    draft.enter(
        JobPhase.ENDING,
        why,
        uninstalling=True,
        verdict=verdict,
        phase_since=draft.now,
        finished_at=draft.job.finished_at or draft.now,
    )


def watch_ending(draft: Draft, running: Sequence[TaskRecord]) -> None:
    """ENDING: leave when nothing runs any more, or when waiting for it has lasted long enough."""
    limit = draft.state.spec.uninstall_give_up_seconds
    overdue = draft.now - draft.job.phase_since >= limit
    unheard = bool(draft.state.framework_id) and not draft.state.registered
    if not overdue and (running or unheard):
        return
    left = [f"{r.name} on {r.hostname}" for r in draft.state.live_tasks]
    if not draft.state.registered and draft.state.framework_id:
        left.append(f"the framework {draft.state.framework_id}, which no master was told to remove")
    end = f"uninstalled; given up: {', '.join(left)}" if left else "uninstalled"
    draft.enter(JobPhase.DONE, end, given_up=tuple(left))


def watch_done(draft: Draft) -> None:
    """DONE: remove the framework, and erase the state once nothing was heard against that.

    The id is kept until then: whoever finds it in the store after a crash tears down again. Should
    the master be heard of only after the state was erased, the framework is removed all the same.
    """
    state = draft.state
    if not draft.job.uninstalling:
        return
    if state.registered and not state.torn_down_at:
        if draft.now >= state.tear_down_after:
            draft.set(torn_down_at=draft.now)
            draft.act(Teardown(), "removing the framework")
        return
    if state.erased:
        return
    if state.torn_down_at and draft.now - state.torn_down_at < HEARD_SECONDS:
        return
    if state.framework_id and not state.torn_down_at and not draft.job.given_up:
        return
    draft.set(erased=True)
    draft.act(EraseState(), "erasing the state")


def teardown_failed(draft: Draft) -> None:
    """Try again by and by: the master did not hear that the framework is to be removed."""
    draft.set(torn_down_at=0.0, tear_down_after=draft.now + HEARD_SECONDS)
