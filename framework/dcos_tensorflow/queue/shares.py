"""The share of the cluster that each team has and had, and the team that is next.

A share is dominant: the largest part that a team has of any one resource (Ghodsi et al., NSDI
2011). The former use of a team counts too, and is forgotten by half in each half-life, as SLURM's
usage is: present and former use each make half of the order. Called by ``line``; it never looks at
a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.queue.model import Team

Charge = NDArray[np.float64]


class TeamAccount:
    """One team's share: of now, and of before."""

    def __init__(self, team: Team, now: float) -> None:
        self.team = team
        #: What its jobs are charged: cpu_milli, mem_mib, gpu_milli by weight. Shape (3,).
        self.charged: Charge = np.zeros(3)
        #: The largest part of any resource, 0 to 1.
        self.share = 0.0
        #: The same of before, decayed.
        self.usage = 0.0
        self._told_at = now

    def decay(self, now: float, half_life: float) -> None:
        """Let the time pass until ``now``."""
        passed = now - self._told_at
        if passed > 0:
            left = 0.5 ** (passed / half_life)
            self.usage = self.share + (self.usage - self.share) * left
            self._told_at = now

    @property
    def order(self) -> float:
        """Return how far the team is ahead of others: the lowest is next."""
        return (self.share + self.usage) / max(self.team.weight, 1e-9)

    def kept(self) -> tuple[float, float]:
        """Return what a restart of the queue has to know: the usage, and when it was told."""
        return self.usage, self._told_at

    def restore(self, usage: float, told_at: float) -> None:
        """Take what was kept."""
        self.usage, self._told_at = usage, told_at


def share_of(charge: Charge, capacity: Charge) -> float:
    """Return the largest part that ``charge`` is of any resource."""
    # What is charged of a resource that the cluster has lost altogether is all of it.
    return max(
        has / there if there > 0 else float(has > 0)
        for has, there in zip(charge.tolist(), capacity.tolist(), strict=True)
    )


def due_shares(demands: Mapping[str, float], teams: Iterable[Team]) -> dict[str, float]:
    """Return the share that each team is due now, by what it could use (``demands``, shares).

    First what it is guaranteed, as far as it can use it, then the rest by weights, until each has
    what it can use, its limit, or nothing is left.
    """
    cap = {team.name: min(demands.get(team.name, 0.0), team.limit) for team in teams}
    weight = {team.name: team.weight for team in teams}
    due = {team.name: min(cap[team.name], team.guarantee) for team in teams}
    left = 1.0 - sum(due.values())
    open_teams = {name for name in due if cap[name] > due[name] and weight[name] > 0}
    while open_teams and left > 1e-12:
        part = left / sum(weight[name] for name in open_teams)
        full = {name for name in open_teams if cap[name] - due[name] <= part * weight[name]}
        for name in full or open_teams:
            more = cap[name] - due[name] if full else part * weight[name]
            due[name] += more
            left -= more
        open_teams -= full or open_teams
    return due
