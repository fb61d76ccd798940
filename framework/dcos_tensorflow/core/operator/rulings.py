"""The answer to an operator's command: its form, and the checks that all verbs share.

Used by ``core.operator.plan_control`` and ``core.operator.pod_control``.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dcos_tensorflow.core.model.controls import Controls, deploy_key
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Effects:
    """What is to happen to tasks, by name, once."""

    #: A new start of the process in its container, with the members that must restart with it.
    restart: tuple[str, ...] = ()
    #: The plan whose verb restarts them, and which shows it; empty for a pod's.
    plan: str = ""
    #: A new container.
    replace: tuple[str, ...] = ()
    #: Their end is not waited for any more.
    give_up: tuple[str, ...] = ()


class CommandAnswer(StrEnum):
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
    answer: CommandAnswer
    why: str


class CommandRefused(Exception):
    """A command that cannot be carried out; the text says why."""


def unchanged(controls: Controls, answer: CommandAnswer, why: str) -> Ruling:
    """Return a ruling that changes nothing."""
    return Ruling(controls, Effects(), answer, why)


def check_goes_on(view: GangView) -> None:
    """Raise Refused when nothing of the job is started any more."""
    if view.service.uninstall.asked:
        raise CommandRefused("the service is being uninstalled")
    if view.job.is_over:
        raise CommandRefused(f"the job is over: {view.gang.why}")


def restartable(view: GangView, names: Iterable[str]) -> tuple[str, ...]:
    """Return those whose process can be started again and is not about to be.

    A process that has finished has done its part. A sidecar that has failed starts again at once.
    """
    found, about_to = [], frozenset(view.job.restart.members)
    for name in dict.fromkeys(names):
        record = view.tasks.get(name)
        if record is None or record.state is TaskState.FINISHED or name in about_to:
            continue
        if not record.terminal or not record.role.is_in_gang:
            found.append(name)
    return tuple(found)


def deploy_keys(names: Iterable[str]) -> tuple[str, ...]:
    """Return what stands for the deployment of these tasks in ``Controls.completed``."""
    return tuple(deploy_key(name) for name in names)
