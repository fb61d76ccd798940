"""Histories of jobs with a tf.data service, whose tasks are lost, replaced and changed in number.

Beside what holds in any history: once nothing goes wrong any more, all that reads is led to the
dispatcher that runs. ``.venv/bin/python tests/simulation/data_history.py SEED`` prints one of them.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import History, tell
from history_faults import Faults
from history_jobs import PATIENT, Job, room_for
from history_rules import RuleBroken

from dcos_tensorflow.core.cluster.addresses import reached_at
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from simulated_mesos import Cluster
from simulated_scheduler import with_data_workers

DISPATCHER = "data-dispatcher-0"
MOST_DATA_WORKERS = 3


class DataFaults(Faults):
    """What goes wrong in any history, and besides what concerns the service."""

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (
            *super().table(),
            (5, self._a_container_of_it_dies),
            (3, self._one_is_replaced),
            (3, self._its_size_changes),
        )

    def _of_the_service(self) -> list[str]:
        return [r.name for r in self._history.scheduler.state.live_tasks if r.role.serves_data]

    def _a_container_of_it_dies(self) -> None:
        names = self._of_the_service()
        own = [task_id for task_id, t in self._alive() if t.launch.name in names]
        if own:
            task_id = self._dice.choice(own)
            self._note(f"the container of {task_id} is killed")
            self._cluster.report(task_id, TaskState.FAILED, "Command terminated with signal Killed")

    def _one_is_replaced(self) -> None:
        names = self._of_the_service()
        if names:
            self._pod(events.PodVerb.REPLACE, self._dice.choice(names))

    def _its_size_changes(self) -> None:
        state = self._history.scheduler.state
        count = self._dice.randint(0, MOST_DATA_WORKERS)
        if state.job.phase is not JobPhase.DONE:
            self._note(f"{count} data workers are wanted")
            changed = with_data_workers(state.spec, count)
            self._history.handle(events.ConfigurationChanged(changed))


class DataHistory(History):
    """A seed, played with a tf.data service."""

    faults_kind = DataFaults

    def make_job(self) -> Job:
        """Return a random job with a dispatcher and data workers."""
        job = super().make_job()
        spec = with_data_workers(job.spec, self.dice.randint(1, MOST_DATA_WORKERS))
        return replace(job, spec=replace(spec, retry=PATIENT))

    def make_cluster(self) -> Cluster:
        """Return machines on which the largest service of the history fits, too."""
        largest = with_data_workers(self.job.spec, MOST_DATA_WORKERS)
        return room_for(self.dice, replace(self.job, spec=largest))

    def come_to_the_end(self) -> None:
        """Make no more faults; all that reads must find the dispatcher, and the job end well."""
        self._calm()
        for _ in range(self.calm_steps):
            self.step()
            self.work(0.0)
            if self._is_over() or not self._astray():
                break
        else:
            raise RuleBroken(f"not led to the dispatcher: {', '.join(self._astray())}")
        super().come_to_the_end()

    def _astray(self) -> list[str]:
        """Return what reads, or is to, and is not led to the dispatcher that runs."""
        state = self.scheduler.state
        dispatcher, wanted = state.tasks.get(DISPATCHER), state.spec.fingerprints
        uses = {role.role for role in state.spec.roles if role.data_service and role.count}
        if not uses:
            return []
        names = {n for n in state.spec.task_names() if n.rpartition("-")[0] in uses}
        names -= set(state.job.membership.absent)
        if dispatcher is None or dispatcher.state is not TaskState.RUNNING:
            return [DISPATCHER]
        led = set()
        for name in names:
            record = state.tasks.get(name)
            task = self.cluster.tasks.get(record.task_id) if record is not None else None
            if record is not None and (
                record.state is TaskState.FINISHED
                or (
                    task is not None
                    and record.fingerprint == wanted[record.role]
                    # Beside the gang none is replaced for what its runner does not do.
                    and (
                        task.runner.data_service == reached_at(dispatcher) or not task.runner.obeys
                    )
                )
            ):
                led.add(name)
        return sorted(names - led)


if __name__ == "__main__":
    sys.exit(tell(DataHistory, sys.argv[1:]))
