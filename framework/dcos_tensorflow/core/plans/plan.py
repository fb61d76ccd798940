"""Work in progress as plans, phases and steps: what the DC/OS SDK's users know how to read.

Called by the API and the command line, with the state of the moment. A plan is a view: it is
derived from the state alone, nothing of it is stored and nothing is decided here. The words, the
statuses and how they add up are the SDK's (its ``scheduler/plan``: ``Status``, ``PlanUtils``). What
an operator holds back or forces is kept in ``Controls``; ``core.operator.plan_control`` changes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.plans import deploy
from dcos_tensorflow.core.plans.changes import is_updating, recovery_plan, update_plan
from dcos_tensorflow.core.plans.elements import (
    DECOMMISSION,
    DEPLOY,
    RECOVERY,
    START_ORDER,
    UPDATE,
    Phase,
    Plan,
    PlanStrategy,
    Status,
    Step,
    aggregate,
    names_of,
    roles_in_start_order,
    step_name,
)
from dcos_tensorflow.core.plans.removal import decommission_plan, uninstall_plan, unwanted

__all__ = [
    "DECOMMISSION",
    "DEPLOY",
    "RECOVERY",
    "START_ORDER",
    "UPDATE",
    "Phase",
    "Plan",
    "PlanStrategy",
    "Status",
    "Step",
    "aggregate",
    "decommission_plan",
    "deploy_plan",
    "names_of",
    "plans",
    "recovery_plan",
    "roles_in_start_order",
    "shows_update",
    "step_name",
    "update_plan",
]


def plans(state: ServiceState) -> Mapping[str, Plan]:
    """Return every plan of the service by name, in the order in which they are listed."""
    found = {DEPLOY: deploy_plan(state), RECOVERY: recovery_plan(state)}
    if state.job.uninstalling:
        return found
    if is_updating(state):
        found[UPDATE] = update_plan(state)
    if unwanted(state) and state.job.verdict is None:
        found[DECOMMISSION] = decommission_plan(state)
    return found


def deploy_plan(state: ServiceState) -> Plan:
    """Return the plan ``deploy``: the first deployment, an update under way, or an uninstall.

    An update takes the deployment's place once that is complete, as in the SDK: its clients'
    ``update status`` shows ``deploy``.
    """
    if state.job.uninstalling:
        return uninstall_plan(state)
    if shows_update(state):
        return update_plan(state, DEPLOY)
    return deploy.deploy_plan(state)


def shows_update(state: ServiceState) -> bool:
    """Say whether the plan ``deploy`` stands for an update: then its verbs do so too."""
    return state.job.deployed and not state.job.uninstalling and is_updating(state)
