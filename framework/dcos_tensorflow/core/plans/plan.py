"""Work in progress as plans, phases and steps, as users of the DC/OS SDK know them.

Called by the API and the command line, with the state of the moment. A plan is a view: it is
derived from the state alone, nothing of it is stored and nothing is decided here. The words, the
statuses and how they add up are the SDK's (its ``scheduler/plan``: ``Status``, ``PlanUtils``).
``Controls`` has the steps that an operator holds back or forces; ``core.operator.plan_control``
changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dcos_tensorflow.core.model.controls import DECOMMISSION, DEPLOY, RECOVERY, UPDATE
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.plans import deploy
from dcos_tensorflow.core.plans.changes import is_updating, recovery_plan, update_plan
from dcos_tensorflow.core.plans.elements import Plan, Status
from dcos_tensorflow.core.plans.removal import decommission_plan, uninstall_plan, unwanted


def plans(view: GangView) -> Mapping[str, Plan]:
    """Return every plan of the service by name, in the order in which they are listed."""
    found, refused = dict(work(view)), view.service.told.why_not_updated
    if refused and not view.service.uninstall.asked:
        # Clients of the SDK see of an update what ``deploy`` shows.
        plan = found[DEPLOY]
        found[DEPLOY] = replace(plan, status=Status.ERROR, errors=(refused, *plan.errors))
    return found


def names(view: GangView) -> tuple[str, ...]:
    """Return the names of the same plans; none of them is made for that."""
    found = [DEPLOY, RECOVERY]
    if not view.service.uninstall.asked:
        found += [UPDATE] if is_updating(view) else []
        found += [DECOMMISSION] if unwanted(view) and view.job.verdict is None else []
    return tuple(found)


def work(view: GangView) -> Mapping[str, Plan]:
    """Return every plan as far as there is something to do, or was: what verbs act upon.

    An update that was refused is no work.
    """
    found = {DEPLOY: _deploy_work(view), RECOVERY: recovery_plan(view)}
    if view.service.uninstall.asked:
        return found
    if is_updating(view):
        found[UPDATE] = update_plan(view)
    if unwanted(view) and view.job.verdict is None:
        found[DECOMMISSION] = decommission_plan(view)
    return found


def _deploy_work(view: GangView) -> Plan:
    """Return the first deployment, an update once that is complete, or an uninstall."""
    if view.service.uninstall.asked:
        return uninstall_plan(view)
    return update_plan(view, DEPLOY) if shows_update(view) else deploy.deploy_plan(view)


def shows_update(view: GangView) -> bool:
    """Say whether the plan ``deploy`` stands for an update: then its verbs do so too."""
    return view.job.deployed and not view.service.uninstall.asked and is_updating(view)
