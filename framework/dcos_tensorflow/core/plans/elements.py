"""The elements of plans: words, statuses and how they add up, names and ids.

Used by the modules that derive one plan each (``core.plans.deploy`` and its neighbours) and by
``core.operator.plan_control``. The words and rules are the DC/OS SDK's (its ``scheduler/plan``:
``Status``, ``PlanUtils``). Knows no state.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from enum import StrEnum

from dcos_tensorflow.records import dataclass

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_OID, "dcos-tensorflow/plan")


class Status(StrEnum):
    """The SDK's status values of a step, a phase or a plan."""

    ERROR = "ERROR"
    #: An operator has to say go on.
    WAITING = "WAITING"
    PENDING = "PENDING"
    #: A place was found; the rest of the gang has none yet.
    PREPARED = "PREPARED"
    STARTING = "STARTING"
    #: Runs, but the rest of the gang does not yet.
    STARTED = "STARTED"
    COMPLETE = "COMPLETE"
    IN_PROGRESS = "IN_PROGRESS"
    #: Waits for a back-off to pass.
    DELAYED = "DELAYED"


class PlanStrategy(StrEnum):
    """In which order the children of a plan or phase are worked on."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    CANARY = "canary"


@dataclass(frozen=True)
class Step:
    """One task's part of a phase. ``message`` says why it waits or where it runs."""

    id: str
    name: str
    task: str
    status: Status
    message: str


@dataclass(frozen=True)
class Phase:
    """Steps that belong together: the tasks of one role, or a restart set."""

    id: str
    name: str
    strategy: PlanStrategy
    status: Status
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Plan:
    """One plan. ``errors`` is empty unless the plan can not be completed any more."""

    name: str
    strategy: PlanStrategy
    status: Status
    phases: tuple[Phase, ...] = ()
    errors: tuple[str, ...] = ()


def aggregate(statuses: Iterable[Status]) -> Status:
    """Return the status of a parent from those of its children; COMPLETE when it has none."""
    seen = set(statuses)
    active = {Status.PREPARED, Status.STARTING, Status.STARTED, Status.IN_PROGRESS}
    if Status.ERROR in seen:
        return Status.ERROR
    if seen <= {Status.COMPLETE}:
        return Status.COMPLETE
    if Status.WAITING in seen:
        return Status.WAITING
    if seen & active:
        return Status.IN_PROGRESS
    if Status.DELAYED in seen:
        return Status.DELAYED
    return Status.IN_PROGRESS if Status.COMPLETE in seen else Status.PENDING


def identify(service: str, *path: str) -> str:
    """Return the id of a phase or step: the same after every restart of the scheduler."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join((service, *path))))
