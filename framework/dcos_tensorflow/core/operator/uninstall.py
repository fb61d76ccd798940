"""Leaving nothing behind: the way of an uninstall, which always ends.

Asked for through ``core.operator.requests``; ``core.step`` goes on with it once a step. Tasks are
killed first, then volumes are destroyed and reservations given back. Machines that were bought are
given back, too (``scheduler.machines.buying``), and it does not end while one of them is left.
Tasks on agents that do not answer are listed; the master ends every task of a framework that was
torn down when its agent comes back (master.cpp). Then TEARDOWN, then the state is erased. After a
crash at any point the next scheduler carries on from the committed state.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import EraseState, Teardown
from dcos_tensorflow.core.model.controls import unreserve_key
from dcos_tensorflow.core.model.events import UninstallRequested
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import ServiceState, Uninstall
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.restarts.gang_queries import still_running
from dcos_tensorflow.core.spec.volume_spec import Reservation

EXIT_INTERRUPTED = 130
#: A call that failed is heard of by then (seconds).
HEARD_SECONDS = 2.0


def request(draft: Draft, event: UninstallRequested) -> None:
    """Begin the uninstall. Asking twice changes nothing."""
    if draft.state.uninstall.asked:
        return
    why = f"uninstall: {event.why}" if event.why else "uninstall"
    draft.state = replace(draft.state, uninstall=Uninstall(asked=True))
    for gang in draft.gangs():
        job = gang.job
        gang.job = replace(
            job,
            verdict=job.verdict or Verdict(Outcome.STOPPED, EXIT_INTERRUPTED, why),
            finished_at=job.finished_at or draft.now,
        )
        gang.enter(JobPhase.ENDING, why)
        gang.job = replace(gang.job, phase_since=draft.now)


def go_on(draft: Draft) -> None:
    """Go on with an uninstall that was asked for."""
    if not draft.state.uninstall.asked:
        return
    if any(gang.job.phase is JobPhase.ENDING for gang in draft.gangs()):
        _watch_ending(draft)
    if all(gang.job.phase is JobPhase.DONE for gang in draft.gangs()):
        _finish(draft)


def _watch_ending(draft: Draft) -> None:
    """Leave when nothing runs any more, or when waiting for it has lasted long enough.

    The process may leave at DONE: by then the framework is removed, and the state erased with it.
    """
    state = draft.state
    if not state.removal.torn_down_at and not _is_overdue(draft) and _is_something_left(draft):
        return
    machines = machines_left(state.capacity)
    if machines and not state.removal.torn_down_at:
        # However long it takes: no record of them would be left afterwards, and they cost money.
        for gang in draft.gangs():
            gang.explain(f"uninstall: waits for the end of {counted(machines, 'bought machine')}")
        return
    if not _is_torn_down(draft):
        return
    left = _given_up(draft.state)
    end = f"uninstalled; given up: {', '.join(left)}" if left else "uninstalled"
    draft.state = replace(draft.state, uninstall=Uninstall(asked=True, given_up=left))
    for gang in draft.gangs():
        gang.enter(JobPhase.DONE, end)


def _is_overdue(draft: Draft) -> bool:
    since = max(gang.job.phase_since for gang in draft.gangs())
    return draft.now - since >= draft.state.spec.uninstall_give_up_seconds


def _is_something_left(draft: Draft) -> bool:
    """Say whether tasks run, volumes are reserved, or the master is not heard of."""
    state = draft.state
    running = any(still_running(view) for view in state.views())
    unheard = state.seeks_former_life or (bool(state.framework_id) and not state.registered)
    return running or unheard or bool(_still_reserved(state))


def _still_reserved(state: ServiceState) -> tuple[Reservation, ...]:
    """Return what is to be given back before the framework goes: afterwards it cannot be."""
    if not state.framework_id:
        return ()
    given_up = state.controls.completed
    return tuple(
        found
        for found in reservations.left(state)
        if unreserve_key(found.hostname, found.resource_id) not in given_up
    )


def _given_up(state: ServiceState) -> tuple[str, ...]:
    left = [f"{r.name} on {r.hostname}" for r in state.live_tasks]
    left += [f"the volume of {r.task} on {r.hostname}" for r in reservations.left(state)]
    if state.seeks_former_life:
        left.append("an earlier framework of the service, which no master has confirmed or denied")
    if not state.removal.torn_down_at and state.framework_id:
        left.append(f"the framework {state.framework_id}, maybe still registered with a master")
    return tuple(left)


def _is_torn_down(draft: Draft) -> bool:
    """Remove the framework; say whether nothing was heard against that, or no master can be told.

    The id is kept until then: a scheduler that finds it after a crash tears down again.
    """
    state = draft.state
    if state.removal.torn_down_at:
        return draft.now - state.removal.torn_down_at >= HEARD_SECONDS
    if not state.registered:
        return True
    if draft.now >= state.removal.not_before:
        draft.state = replace(state, removal=replace(state.removal, torn_down_at=draft.now))
        draft.act(Teardown(), "removing the framework")
    return False


def _finish(draft: Draft) -> None:
    """Erase the state. Should the master be heard of only now, the framework is removed."""
    if draft.state.registered and not draft.state.removal.torn_down_at:
        _is_torn_down(draft)
    if not draft.state.removal.erased:
        erased = replace(draft.state.removal, erased=True)
        draft.state = replace(draft.state, removal=erased, framework_id="")
        draft.act(EraseState(), "erasing the state")
