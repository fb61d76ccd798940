"""Leaving nothing behind: the way of an uninstall, which always ends.

Called by ``core.advance`` in ENDING and DONE. Tasks are killed first, then volumes are destroyed
and reservations given back. What is on agents that do not answer is listed; the master ends every
task of a framework that was torn down when its agent comes back (master.cpp). Then TEARDOWN, then
the state is erased. A crash at any point carries on from what was committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import EraseState, Teardown
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.volume_spec import Reservation
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.plans.removal import unreserve_key

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
    """ENDING: leave when nothing runs any more, or when waiting for it has lasted long enough.

    Whoever sees DONE may leave: by then the framework is removed, and the state is erased with it.
    """
    limit = draft.state.spec.uninstall_give_up_seconds
    overdue = draft.now - draft.job.phase_since >= limit
    unheard = bool(draft.state.framework_id) and not draft.state.registered
    reserved = _still_reserved(draft)
    if draft.state.torn_down_at:
        running, unheard, reserved = (), False, ()
    if (not overdue and (running or unheard or reserved)) or not _is_torn_down(draft):
        return
    left = [f"{r.name} on {r.hostname}" for r in draft.state.live_tasks]
    left += [f"the volume of {r.task} on {r.hostname}" for r in reservations.left(draft.state)]
    if not draft.state.torn_down_at and draft.state.framework_id:
        left.append(f"the framework {draft.state.framework_id}, which no master was told to remove")
    end = f"uninstalled; given up: {', '.join(left)}" if left else "uninstalled"
    draft.enter(JobPhase.DONE, end, given_up=tuple(left))


def _still_reserved(draft: Draft) -> tuple[Reservation, ...]:
    """Return what is to be given back before the framework goes: afterwards nobody can."""
    state = draft.state
    if not state.framework_id:
        return ()
    return tuple(r for r in reservations.left(state) if r.resource_id not in given_up(state))


def given_up(state: ServiceState) -> frozenset[str]:
    """Return the reservations that an operator does not want to be waited for."""
    return frozenset(
        r.resource_id
        for r in state.reservations.values()
        if unreserve_key(r) in state.controls.completed
    )


def _is_torn_down(draft: Draft) -> bool:
    """Remove the framework; say whether nothing was heard against that, or nobody can be told.

    The id is kept until then: whoever finds it in the store after a crash tears down again.
    """
    state = draft.state
    if state.torn_down_at:
        return draft.now - state.torn_down_at >= HEARD_SECONDS
    if not state.registered:
        return True
    if draft.now >= state.tear_down_after:
        draft.set(torn_down_at=draft.now)
        draft.act(Teardown(), "removing the framework")
    return False


def watch_done(draft: Draft) -> None:
    """DONE: erase the state. Should the master be heard of only now, the framework is removed."""
    if not draft.job.uninstalling:
        return
    if draft.state.registered and not draft.state.torn_down_at:
        _is_torn_down(draft)
    if not draft.state.erased:
        draft.set(erased=True, framework_id="")
        draft.act(EraseState(), "erasing the state")


def teardown_failed(draft: Draft) -> None:
    """Try again by and by: the master did not hear that the framework is to be removed."""
    draft.set(torn_down_at=0.0, tear_down_after=draft.now + HEARD_SECONDS)
