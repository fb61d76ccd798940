"""Histories of a service with volumes and bought machines that runs one job after another.

What the service owns outlives each of its runs. Everything goes wrong that goes wrong in any
history. ``python tests/simulation/renewal_history.py SEED`` prints one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import FAULTY_STEPS, tell
from history_rules import RuleBroken
from volume_history import VolumeHistory

from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.kept.writes import writes_between
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, Release, Write
from dcos_tensorflow.core.model.capacity import CapacityRecord
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.scheduler.beginning import begin

RUNS = 3
_MACHINES = {"p-1": CapacityRecord(machines=2, body={"purchase_id": "p-1"})}


class KeptValues:
    """The simulated scheduler's store, as a beginning reads and writes it."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values

    def load(self) -> dict[str, bytes]:
        return dict(self.values)

    def commit(self, writes: Sequence[Write]) -> None:
        for write in writes:
            if write.value is None:
                self.values.pop(write.path, None)
            else:
                self.values[write.path] = write.value


class RenewalHistory(VolumeHistory):
    """A seed, played through several runs of one service."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        #: What the service owned when its last run began.
        self.owned: set[str] = set()

    def play(self) -> None:
        """Play run after run, with faults in each. Raises RuleBroken."""
        self.cluster.subscribe()
        self.handle_safely(events.CapacityNoted(1, _MACHINES))
        for number in range(RUNS):
            if number:
                self._renew()
            self.scheduler.faulty = self.network.faulty = True
            for _ in range(FAULTY_STEPS // 2):
                self.faults.perhaps()
                self.step()
            self.come_to_the_end()
            if self.scheduler.state.uninstall.asked or not self.scheduler.store:
                return

    def _calm(self) -> None:
        super()._calm()
        if self.scheduler.state.uninstall.asked and self.scheduler.store:
            self.handle_safely(events.CapacityNoted(2, dict.fromkeys(_MACHINES)))

    def handle_safely(self, event: events.Event) -> None:
        """Have an event handled that a crash must not lose."""
        faulty, self.scheduler.faulty = self.scheduler.faulty, False
        self.handle(event)
        self.scheduler.faulty = faulty

    def _renew(self) -> None:
        before = self.scheduler.state
        begun = begin(
            KeptValues(self.scheduler.store),  # type: ignore[arg-type]
            before.spec,
            LaunchSettings(),
            fresh=True,
        )
        self.note(f"run {begun.state.run} begins")
        self.scheduler.state = begun.state
        # A new process, which knows of a job that ended nothing that a rule could count on.
        self.rules = self.scheduler.rules = self.make_rules()
        self.checkpoint = None
        self.away_until = 0.0
        self.cluster.finished.clear()
        self.cluster.subscribe()
        self._check_kept()
        owned = {key for key, one in before.reservations.items() if not one.given_up}
        if begun.state.capacity != before.capacity:
            raise RuleBroken("bought machines are forgotten by a new run")
        if not owned <= begun.state.reservations.keys():
            raise RuleBroken("volumes are forgotten by a new run")
        if begun.state.instance != before.instance:
            raise RuleBroken("a new run has another id of the instance: it owns no machine")
        if not before.abandoned.items() <= begun.state.abandoned.items():
            raise RuleBroken("attempts that were given up are forgotten by a new run")
        self.owned = owned

    def _check_kept(self) -> None:
        kept = restore(self.scheduler.store, LaunchSettings(), self.cluster.now)
        assert kept is not None
        settings = self.scheduler.state.settings
        differing = writes_between(replace(kept, settings=settings), self.scheduler.state)
        if differing:
            raise RuleBroken(f"memory and store differ: {[write.path for write in differing]}")

    def _watched(self, action: Action) -> None:
        if isinstance(action, Release):
            state = self.scheduler.state
            for _, resource_id in action.everything:
                found = state.reservations.get(resource_id)
                asked = state.uninstall.asked or (found is not None and found.given_up)
                if resource_id in self.owned and not asked:
                    raise RuleBroken(f"the volume {resource_id} of the run before is destroyed")
        super()._watched(action)


if __name__ == "__main__":
    sys.exit(tell(RenewalHistory, sys.argv[1:]))
