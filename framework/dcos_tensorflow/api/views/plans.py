"""The plans in the SDK's form: ``/v1/plans`` and ``/v1/plans/<plan>``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.core.model.controls import DECOMMISSION, UPDATE
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.plans.elements import Phase, Plan, PlanStrategy, Status
from dcos_tensorflow.core.plans.plan import names, plans

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas


def plan_names(state: ServiceState) -> list[str]:
    """Return the names of all plans."""
    return list(names(state.view()))


def known(state: ServiceState) -> Mapping[str, Plan]:
    """Return all plans by name."""
    return plans(state.view())


def plan_and_status(state: ServiceState, name: str) -> tuple[schemas.Plan, int]:
    """Return a plan's body and its HTTP status: 417 with errors, 200 complete, 202 otherwise.

    A plan that has nothing to do, and is listed while it has, is complete: clients wait for that.
    Raises ElementNotFound.
    """
    plan = known(state).get(name)
    if plan is None and name in (DECOMMISSION, UPDATE):
        plan = Plan(name, PlanStrategy.PARALLEL, Status.COMPLETE)
    if plan is None:
        raise ElementNotFound(name)
    return plan_body(plan), _http_status(plan)


def _http_status(plan: Plan) -> int:
    if plan.errors:
        return 417
    return 200 if plan.status is Status.COMPLETE else 202


def plan_body(plan: Plan) -> schemas.Plan:
    """Return a plan as the SDK's clients expect it."""
    return {
        "phases": [_phase_body(phase) for phase in plan.phases],
        "errors": list(plan.errors),
        "strategy": plan.strategy,
        "status": plan.status,
    }


def _phase_body(phase: Phase) -> schemas.Phase:
    return {
        "id": phase.id,
        "name": phase.name,
        "steps": [
            {"id": step.id, "name": step.name, "status": step.status, "message": step.message}
            for step in phase.steps
        ],
        "strategy": phase.strategy,
        "status": phase.status,
    }
