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
from dcos_tensorflow.core.spec.service_spec import TaskRole
from simulated.mesos import Cluster
from simulated.scheduler import with_data_workers

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
        """Return what reads and is not led to the dispatcher that runs.

        What an operator keeps from an update has other options, and beside the gang no task is
        replaced for what its runner does not do.
        """
        state = self.scheduler.state
        dispatcher = state.tasks.get(DISPATCHER)
        if dispatcher is None or dispatcher.state is not TaskState.RUNNING:
            asked = state.spec.role(TaskRole.DATA_DISPATCHER) is not None
            held = state.controls.paused or state.controls.completed
            return [DISPATCHER] if asked and not held else []
        found = []
        for record in state.live_tasks:
            role, task = state.spec.role(record.role), self.cluster.tasks.get(record.task_id)
            if role is None or not role.data_service or task is None or not task.runner.obeys:
                continue
            is_new = record.fingerprint == state.spec.fingerprints[record.role]
            if is_new and task.runner.data_service != reached_at(dispatcher):
                found.append(record.name)
        return found


if __name__ == "__main__":
    sys.exit(tell(DataHistory, sys.argv[1:]))
