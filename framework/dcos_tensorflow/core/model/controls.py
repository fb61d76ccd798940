"""What an operator holds back, forces or approves: kept in the state store under ``Plans``.

``core.operator.plan_control`` changes it when a PlanCommand or PodCommand comes; ``core.advance``,
``core.offers.use`` and the plan views ask it. Pauses and overrides survive a restart of the
scheduler, unlike those of the DC/OS SDK.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Controls:
    """What was asked for and still holds.

    ``paused`` names plans (``deploy``) and phases (``deploy/worker``) that are interrupted.
    ``completed`` names steps (``deploy/worker/worker-1:[node]``) that were forced complete.
    ``paused_tasks`` are tasks whose process is to stay stopped. ``approved`` is the configuration
    id whose canary the operator has approved.
    """

    paused: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    paused_tasks: tuple[str, ...] = ()
    approved: str = ""

    def holds(self, plan: str, phase: str = "") -> bool:
        """Say whether this plan, or this phase of it, is paused."""
        return plan in self.paused or (bool(phase) and f"{plan}/{phase}" in self.paused)

    def forced(self, task: str) -> bool:
        """Say whether somebody said that the deployment is complete without this task.

        A sidecar is not started then, and the gang goes on without a member.
        """
        return any(
            key.startswith("deploy/") and key.split("/")[2] == f"{task}:[node]"
            for key in self.completed
        )
