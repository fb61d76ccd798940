"""What becomes of an operator's command: the answer's form, and the checks that all verbs share.

Used by ``core.operator.plan_control`` and ``core.operator.pod_control``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import GANG_ROLES, split_task_name
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import DEPLOY, step_key, step_name


@dataclass(frozen=True)
class Effects:
    """What is to happen to tasks, by name, once.

    ``restart``: a new start of the process in its container, with whoever must restart with it.
    ``replace``: a new container. ``give_up``: their end is not waited for any more.
    """

    restart: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()


class Answer(StrEnum):
    """What becomes of a command; the API has a status for each."""

    RECEIVED = "received"
    #: It is so already: nothing changes.
    ALREADY = "already"
    #: There is no such plan, phase, step or task.
    UNKNOWN = "unknown"
    #: It cannot be done now, or never.
    REFUSED = "refused"


@dataclass(frozen=True)
class Ruling:
    """A command's whole answer: what holds from now on, what happens once, why in one sentence."""

    controls: Controls
    effects: Effects
    answer: Answer
    why: str


class Refused(Exception):
    """A command that cannot be carried out; the text says why."""


def unchanged(state: ServiceState, answer: Answer, why: str) -> Ruling:
    """Return a ruling that changes nothing."""
    return Ruling(state.controls, Effects(), answer, why)


def with_completed(controls: Controls, keys: Iterable[str]) -> Controls:
    """Return the controls with these steps forced complete."""
    return replace(controls, completed=tuple(dict.fromkeys((*controls.completed, *keys))))


def without_completed(controls: Controls, keys: Iterable[str]) -> Controls:
    """Return the controls with these steps forced no more."""
    dropped = set(keys)
    left = tuple(key for key in controls.completed if key not in dropped)
    return replace(controls, completed=left)


def check_goes_on(state: ServiceState) -> None:
    """Raise Refused when nothing of the job is started any more."""
    if state.job.uninstalling:
        raise Refused("the service is being uninstalled")
    if state.job.verdict is not None or state.job.phase is JobPhase.FINISHING:
        raise Refused(f"the job is over: {state.job.why}")


def restartable(state: ServiceState, names: Iterable[str]) -> tuple[str, ...]:
    """Return those whose process can be started again and is not about to be.

    A process that has finished has done its part. A sidecar that has failed starts again at once.
    """
    found = []
    for name in dict.fromkeys(names):
        record = state.tasks.get(name)
        if record is None or record.state is TaskState.FINISHED or name in state.job.restarting:
            continue
        if not record.terminal or record.role not in GANG_ROLES:
            found.append(name)
    return tuple(found)


def deploy_keys(names: Iterable[str]) -> tuple[str, ...]:
    """Return what stands for the deployment of these tasks in ``Controls.completed``."""
    return tuple(step_key(DEPLOY, str(split_task_name(n)[0]), step_name(n)) for n in names)
