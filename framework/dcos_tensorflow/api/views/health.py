"""The service's health as the SDK's numbers: ``/v1/health``; the HTTP status *is* the number.

Marathon counts 200 to 399 as healthy. A job that failed is no reason to restart the scheduler, so
it is 206 and not the SDK's 500: the service stays to answer questions.
"""

from __future__ import annotations

from enum import IntEnum

from dcos_tensorflow.api.views import storage
from dcos_tensorflow.core.model.controls import DEPLOY, RECOVERY
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.plans.elements import Plan, Status
from dcos_tensorflow.core.plans.plan import plans


class Health(IntEnum):
    """The SDK's service status codes (its ``HealthResource``), as far as they can occur here."""

    RUNNING = 200
    DEPLOYING_STARTING = 202
    RECOVERING_PENDING = 203
    DEPLOYING_PENDING = 204
    RECOVERING_STARTING = 205
    DEGRADED = 206
    WAITING_USER = 207
    DELAYED = 208
    INITIALIZING = 318
    #: Nothing of the SDK's: another scheduler leads, and clients of the service belong there.
    STANDBY = 503


def health(state: ServiceState | None, leader: str = "") -> tuple[Health, list[str]]:
    """Return the number and why it is that; ``state`` is None while it is not loaded.

    ``leader`` is who leads while this scheduler is a standby.
    """
    if state is None and leader:
        return Health.STANDBY, [f"standby: the service is led by {leader}"]
    if state is None:
        return Health.INITIALIZING, ["the state is not loaded"]
    verdict = state.job.verdict
    if verdict is not None:
        over = Health.DEGRADED if verdict.outcome is Outcome.FAILED else Health.RUNNING
        return over, [f"the job has {verdict.outcome}: {verdict.summary}"]
    if not state.registered:
        return Health.INITIALIZING, ["not registered with a Mesos master"]
    known = plans(state.view())
    if state.told.why_not_updated:
        return Health.DEGRADED, [state.told.why_not_updated]
    for name, pending, starting in (
        (DEPLOY, Health.DEPLOYING_PENDING, Health.DEPLOYING_STARTING),
        (RECOVERY, Health.RECOVERING_PENDING, Health.RECOVERING_STARTING),
    ):
        if known[name].status is not Status.COMPLETE:
            return _unfinished(known[name], pending, starting), [state.only_gang.why]
    broken = [
        f"{step.name}: {step.message}"
        for phase in known[DEPLOY].phases
        for step in phase.steps
        if step.status is Status.ERROR
    ]
    broken += [
        f"{name}: {storage.sentence(problem)}"
        for name, found in storage.problems_by_task(state).items()
        for problem in found
        if problem["state"] in storage.NEEDS_SOMEBODY
    ]
    return (Health.DEGRADED, broken) if broken else (Health.RUNNING, [state.only_gang.why])


def _unfinished(plan: Plan, pending: Health, starting: Health) -> Health:
    known = {
        Status.PENDING: pending,
        Status.DELAYED: Health.DELAYED,
        Status.WAITING: Health.WAITING_USER,
    }
    return known.get(plan.status, starting)
