"""The steps that an operator holds back, forces or approves: stored under ``Plans``.

``core.operator`` changes it when a PlanCommand or PodCommand comes; deciding code and the plan
views ask it. Pauses and overrides survive a restart of the scheduler, unlike those of the DC/OS
SDK. The words are the SDK's: a step is called ``<pod>-<index>:[<task>]``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dcos_tensorflow.core.spec.service_spec import split_task_name
from dcos_tensorflow.records import dataclass

DEPLOY = "deploy"
RECOVERY = "recovery"
UPDATE = "update"
DECOMMISSION = "decommission"
#: The phases of an uninstall.
KILL_TASKS = "kill-tasks"
UNRESERVE = "unreserve-resources"
DEREGISTER_SERVICE = "deregister-service"


def step_name(task: str) -> str:
    """Return a task's step name in the SDK's form."""
    return f"{task}:[node]"


def step_key(plan: str, phase: str, step: str) -> str:
    """Return what stands for a step in ``Controls.completed``."""
    return f"{plan}/{phase}/{step}"


def deploy_key(task: str) -> str:
    """Return what stands for the deployment of a task in ``Controls.completed``."""
    return step_key(DEPLOY, str(split_task_name(task)[0]), step_name(task))


def unreserve_step(resource_id: str) -> str:
    """Return the name of the step that gives a reservation back."""
    return f"unreserve-{resource_id}"


def unreserve_key(hostname: str, resource_id: str) -> str:
    """Return what stands in ``Controls.completed`` for a reservation that was given up."""
    return step_key(DEPLOY, f"{UNRESERVE}-{hostname}", unreserve_step(resource_id))


@dataclass(frozen=True)
class Controls:
    """What was asked for and still holds."""

    #: Plans (``deploy``) and phases (``deploy/worker``) that are interrupted.
    paused: tuple[str, ...] = ()
    #: Steps (``deploy/worker/worker-1:[node]``) that were forced complete.
    completed: tuple[str, ...] = ()
    #: Tasks whose process is to stay stopped.
    paused_tasks: tuple[str, ...] = ()
    #: The configuration id whose canary the operator has approved.
    approved: str = ""
    #: Attempts (Mesos task ids) that may still run, and that the service waits for no more.
    let_go: tuple[str, ...] = ()

    def holds(self, plan: str, phase: str = "") -> bool:
        """Say whether this plan, or this phase of it, is paused."""
        return plan in self.paused or (bool(phase) and f"{plan}/{phase}" in self.paused)

    def forced(self, task: str) -> bool:
        """Say whether an operator said that the deployment is complete without this task.

        A sidecar is not started then, and the gang goes on without a member.
        """
        return bool(self.completed) and deploy_key(task) in self.completed

    def waiting_for(self, task_id: str) -> Controls:
        """Return the controls without a word about this attempt: it has ended."""
        if task_id not in self.let_go:
            return self
        return replace(self, let_go=tuple(key for key in self.let_go if key != task_id))

    def without_tasks(self, tasks: Collection[str]) -> Controls:
        """Return the controls without a word about these tasks: they are no more."""
        keys = {deploy_key(task) for task in tasks} if self.completed else set()
        paused = tuple(task for task in self.paused_tasks if task not in tasks)
        completed = tuple(key for key in self.completed if key not in keys)
        if (paused, completed) == (self.paused_tasks, self.completed):
            return self
        return replace(self, paused_tasks=paused, completed=completed)

    def with_completed(self, keys: Iterable[str]) -> Controls:
        """Return the controls with these steps forced complete."""
        return replace(self, completed=tuple(dict.fromkeys((*self.completed, *keys))))

    def without_completed(self, keys: Iterable[str]) -> Controls:
        """Return the controls with these steps forced no more."""
        dropped = set(keys)
        left = tuple(key for key in self.completed if key not in dropped)
        return replace(self, completed=left)
