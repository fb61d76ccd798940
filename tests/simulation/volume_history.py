"""Histories of jobs with persistent volumes: none is destroyed that is wanted, and none is left.

Everything goes wrong that goes wrong in any history. ``python tests/simulation/volume_history.py
SEED`` prints one of them.
"""

import sys
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import History, tell
from history_jobs import Job
from history_rules import RuleBroken

from dcos_tensorflow.core.model.actions import Action, Release
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, TaskRole
from dcos_tensorflow.core.spec.volume_spec import Reservation, VolumeSpec
from simulated.reservations import Held

#: A volume takes as much of the agents' disks as these tasks would without one.
SIZE = 100.0
_WITH_VOLUME = (TaskRole.CHIEF, TaskRole.WORKER, TaskRole.EVALUATOR)


class VolumeHistory(History):
    """A seed, played with volumes."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.released = 0
        #: Resource ids: those that were seen to be there, and those that were given up since.
        self._made: set[str] = set()
        self._given_up: set[str] = set()
        self._perform = self.cluster.perform
        self.cluster.perform = self._watched  # type: ignore[method-assign]

    def make_job(self) -> Job:
        """Return a random job, most of its roles with volumes."""
        job = super().make_job()
        roles = tuple(self._role(role) for role in job.spec.roles)
        return replace(job, spec=replace(job.spec, roles=roles))

    def _role(self, role: RoleSpec) -> RoleSpec:
        if role.role not in _WITH_VOLUME:
            return role
        small = replace(role.resources, disk=0.0)
        return replace(role, resources=small, volume=VolumeSpec(SIZE, "tf-volume"))

    def _watched(self, action: Action) -> None:
        if isinstance(action, Release):
            self.released += 1
            self._look()
            for _, resource_id in action.everything:
                found = self.scheduler.state.reservations.get(resource_id)
                if found is not None and self._is_in_need(found):
                    raise RuleBroken(f"the volume of {found.task} is destroyed, and it is wanted")
                if resource_id in self._made - self._given_up and not self._uninstalls():
                    raise RuleBroken(f"{resource_id} is destroyed, which was never given up")
        self._perform(action)

    def _uninstalls(self) -> bool:
        return self.scheduler.state.uninstall.asked

    def handle(self, *together: Event) -> None:
        """Note what is there, and what is wanted no more."""
        super().handle(*together)
        self._look()

    def _look(self) -> None:
        for resource_id, found in self.scheduler.state.reservations.items():
            if found.given_up:
                self._given_up.add(resource_id)
            elif found.confirmed:
                self._made.add(resource_id)

    def _is_in_need(self, found: Reservation) -> bool:
        state = self.scheduler.state
        record = state.tasks.get(found.task)
        own = record is not None and record.resource_id == found.resource_id
        wanted = found.task in state.spec.wanted_names
        return own and wanted and not found.given_up and not state.uninstall.asked

    def _held(self) -> dict[tuple[str, str], Held]:
        return {
            key: held
            for agent in self.cluster.agents.values()
            for key, held in agent.reservations.held.items()
        }

    def _check_end(self) -> None:
        super()._check_end()
        state, held = self.scheduler.state, self._held()
        if state.uninstall.asked:
            left = [key for key, one in held.items() if one.volume]
            if left and self.scheduler.knew_framework and not state.uninstall.given_up:
                raise RuleBroken(f"reserved after the uninstall: {left}")
            return
        unknown = {resource_id for _, resource_id in held} - state.reservations.keys()
        if unknown:
            raise RuleBroken(f"reserved, and not known: {unknown}")
        assert state.job.phase is JobPhase.DONE
        busy = [key for key, one in held.items() if one.resources != Resources()]
        known = [state.reservations[resource_id] for _, resource_id in busy]
        if any(not found.given_up for found in known):
            raise RuleBroken(f"more than volumes is kept after the end: {busy}")


if __name__ == "__main__":
    sys.exit(tell(VolumeHistory, sys.argv[1:]))
