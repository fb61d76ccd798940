"""Histories of one run after the other, with volumes and bought machines: none is forgotten.

A job is stopped, or ends, whatever goes wrong meanwhile; machines with volumes are away at that
moment as often as not, and others are still paid. Then the next run begins, as
``scheduler.beginning`` begins it. ``python tests/simulation/runs_history.py SEED`` prints one of
them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import FAULTY_STEPS, tell
from history_faults import Faults
from history_jobs import other_options
from history_rules import RuleBroken
from volume_history import VolumeHistory

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.events import CapacityNoted, Event, StopRequested
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.scheduler.beginning import begin
from simulated.scheduler import Crash, Scheduler

RUNS = 3
#: Steps of a run before an operator stops it, and those in which it has to end then.
RUN_STEPS, ENDING_STEPS = 40, 200


class _Stored:
    """What a scheduler of the simulation has stored, as a state store."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def load(self) -> dict[str, bytes]:
        return dict(self._scheduler.store)

    def commit(self, writes: Sequence[Write]) -> None:
        self._scheduler.commit(tuple(writes))


class _MachineFaults(Faults):
    """Machines come and go besides."""

    _history: RunsHistory

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (*super().table(), (4, self._history.buy), (2, self._history.end_a_machine))


class RunsHistory(VolumeHistory):
    """A seed, played: one run of the service after the other."""

    faults_kind = _MachineFaults

    def __init__(self, seed: int) -> None:
        #: Key of each purchase that is paid, and for which instance of the service it was made.
        self.paid: dict[str, str] = {}
        self._bought = 0
        super().__init__(seed)

    def play(self) -> None:
        """Play all runs, the last one to its end. Raises RuleBroken."""
        self.cluster.kill_seconds = self.dice.choice([0.0, 2.0])
        self.cluster.subscribe()
        for _ in range(RUNS - 1):
            self._run(RUN_STEPS)
            self._come_to_its_end()
            if self._uninstalls():
                break
            self._next_run()
        self._run(FAULTY_STEPS)
        self.come_to_the_end()

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            self.faults.perhaps()
            self.step()

    def _come_to_its_end(self) -> None:
        """Let the job end before the next one; whose end was asked for may be asked again."""
        self.faults.mend()
        for _ in range(ENDING_STEPS):
            if self._uninstalls() or self.scheduler.state.job.phase is JobPhase.DONE:
                return
            if self.scheduler.state.job.verdict is None and not self.away_until:
                self._try(StopRequested("the next run is to begin"))
            self.step()
        raise RuleBroken(f"the run never ended: {self.scheduler.state.job}")

    def _next_run(self) -> None:
        """Start a scheduler that is to begin anew, while some machines may not answer."""
        state = self.scheduler.state
        for agent in self.cluster.agents.values():
            if agent.reachable and self.dice.random() < 0.4:
                self.note(f"{agent.agent_id} is away when the next run begins")
                self.cluster.lose(agent.agent_id)
        spec = other_options(self.dice, state.spec) if self.dice.random() < 0.5 else state.spec
        begun = begin(_Stored(self.scheduler), spec, state.settings, fresh=True)  # type: ignore[arg-type]
        if begun.state.run != state.run + 1:
            raise RuleBroken(f"no run follows: {begun.state.told.refused_configuration}")
        self.note(f"run {begun.state.run} begins")
        self.away_until = 0.0
        self.rules = self.scheduler.rules = self.make_rules()
        self.scheduler.state = begun.state
        self.network.scheduler_is_gone()
        self.cluster.subscribe()
        self._check_machines()

    def _try(self, event: Event) -> None:
        """Let the scheduler handle an event, or be killed meanwhile."""
        try:
            self.handle(event)
        except Crash:
            self.crashed()

    # Machines.

    def buy(self) -> None:
        """Buy one more machine, once it is kept that it is bought."""
        if self.away_until or self._uninstalls():
            return
        self._bought += 1
        owner = self.scheduler.state.instance
        key = f"{owner}-{self._bought}"
        self._try(CapacityNoted(self._bought, {key: CapacityRecord(1)}, {}))
        if f"Capacity/{key}" in self.scheduler.store:
            self.paid[key] = owner

    def end_a_machine(self) -> None:
        """End a machine, which is heard of then."""
        if not self.away_until and self.paid:
            key = self.dice.choice(sorted(self.paid))
            del self.paid[key]
            self._try(CapacityNoted(0, {key: CapacityRecord(0)}, {}))

    def handle(self, *together: Event) -> None:
        """Look that every machine that is paid is known, too."""
        super().handle(*together)
        if not self.away_until:
            self._check_machines()

    def _check_machines(self) -> None:
        state = self.scheduler.state
        known = {key for key, record in state.capacity.items() if record.machines}
        lost = [
            key for key, owner in self.paid.items() if key not in known or owner != state.instance
        ]
        if lost:
            raise RuleBroken(f"paid, and the service knows nothing of it: {lost}")

    def _calm(self) -> None:
        super()._calm()
        while self.away_until and self.scheduler.store:
            self.step()
        self.paid.clear()
        for key in self.scheduler.state.capacity if self.scheduler.store else ():
            self.handle(CapacityNoted(0, {key: CapacityRecord(0)}, {}))


if __name__ == "__main__":
    sys.exit(tell(RunsHistory, sys.argv[1:]))
