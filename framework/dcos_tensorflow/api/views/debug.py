"""For the search for a fault: ``/v1/debug/plans``, ``taskStatuses``, ``reservations``, ``offers``.

The first two can be narrowed to a plan, a phase and a step; a name that does not exist is answered
as the SDK does, with ``invalid-input``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dcos_tensorflow.api.counters import MESOS_STATES
from dcos_tensorflow.core.model.service_state import OfferVerdict, ServiceState
from dcos_tensorflow.core.plans.elements import Phase, Plan, Status, Step
from dcos_tensorflow.core.plans.plan import plans

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas


class NoSuchElement(LookupError):
    """A plan, phase or step was asked for that does not exist."""


def debug_plans(
    state: ServiceState, plan: str | None, phase: str | None, step: str | None
) -> schemas.PlansOutline | schemas.InvalidInput:
    """Return the state of the scheduler, how many steps stand where, and the plans' outline."""
    try:
        chosen = list(_chosen(state, plan, phase, step))
    except NoSuchElement as error:
        return {"invalid-input": str(error)}
    steps = [s for _, parts in chosen for _, members in parts for s in members]
    known = plans(state.view())
    counts = {str(status): sum(s.status is status for s in steps) for status in Status}
    return {
        "schedulerState": str(state.job.phase),
        "registered": state.registered,
        "suppressed": state.desk.suppressed,
        "activePlans": [n for n, p in known.items() if p.status is not Status.COMPLETE],
        "totalSteps": len(steps),
        "completedSteps": counts[Status.COMPLETE],
        "stepsByStatus": {status: count for status, count in counts.items() if count},
        "plans": [
            {
                "name": p.name,
                "status": str(p.status),
                "strategy": str(p.strategy),
                "errors": list(p.errors),
                "phases": [
                    {
                        "name": part.name,
                        "status": str(part.status),
                        "strategy": str(part.strategy),
                        "steps": [{"name": s.name, "status": str(s.status)} for s in members],
                    }
                    for part, members in parts
                ],
            }
            for p, parts in chosen
        ],
    }


def task_statuses(
    state: ServiceState, plan: str | None, phase: str | None, step: str | None
) -> schemas.TaskStatuses | schemas.InvalidInput:
    """Return plan -> phase -> step -> name, Mesos task id and Mesos state of its tasks."""
    try:
        chosen = list(_chosen(state, plan, phase, step))
    except NoSuchElement as error:
        return {"invalid-input": str(error)}
    return {
        p.name: {
            part.name: {s.name: [_task_status(state, s.task)] for s in members}
            for part, members in parts
        }
        for p, parts in chosen
    }


def reservations(state: ServiceState) -> dict[str, list[str]]:
    """Return the resource ids of what is reserved on each host."""
    found: dict[str, list[str]] = {}
    for reservation in state.reservations.values():
        found.setdefault(reservation.hostname, []).append(reservation.resource_id)
    return found


def _task_status(state: ServiceState, name: str) -> schemas.TaskStatus:
    record = state.tasks.get(name)
    if record is None:
        return {"name": name, "taskId": None, "taskState": None}
    return {"name": name, "taskId": record.task_id, "taskState": MESOS_STATES[record.state]}


_Parts = list[tuple[Phase, list[Step]]]


def _chosen(
    state: ServiceState, plan: str | None, phase: str | None, step: str | None
) -> Iterator[tuple[Plan, _Parts]]:
    """Yield plans with the phases and steps that were asked for. Raises InvalidInput."""
    if (phase and not plan) or (step and not phase):
        raise NoSuchElement("a phase needs a plan, and a step needs a phase")
    known = plans(state.view())
    if plan and plan not in known:
        raise NoSuchElement(f"there is no plan {plan!r}; there are {', '.join(known)}")
    for name, found in known.items():
        if plan and name != plan:
            continue
        parts = [
            (part, [s for s in part.steps if not step or step in (s.name, s.id)])
            for part in found.phases
            if not phase or phase in (part.name, part.id)
        ]
        if phase and not parts:
            raise NoSuchElement(f"plan {name!r} has no phase {phase!r}")
        if step and not any(members for _, members in parts):
            raise NoSuchElement(f"phase {phase!r} of plan {name!r} has no step {step!r}")
        yield found, parts


def offers(state: ServiceState) -> schemas.Offers:
    """Return counts since the start of this scheduler, and the newest verdicts, newest last.

    ``failureReasons`` and ``rejectedAgents`` count over those verdicts only.
    """
    log = state.desk.log
    failed = [verdict for verdict in log.verdicts if not verdict.passed]
    return {
        "acceptedCount": log.accepted,
        "rejectedCount": log.rejected,
        "failureReasons": dict(Counter(verdict.explanation for verdict in failed)),
        "rejectedAgents": dict(Counter(verdict.agent_id for verdict in failed)),
        "offers": [verdict_body(verdict) for verdict in log.verdicts],
    }


def verdict_body(verdict: OfferVerdict) -> schemas.Offer:
    """Return one verdict; ``timestamp`` is unix milliseconds, as everywhere in the SDK."""
    return {
        "timestamp": round(verdict.at * 1000),
        "pod-instance-name": ",".join(verdict.tasks),
        "outcome": "pass" if verdict.passed else "fail",
        "explanation": [verdict.explanation],
        "offer": {
            "id": {"value": verdict.offer_id},
            "slaveId": {"value": verdict.agent_id},
            "hostname": verdict.hostname,
        },
    }
