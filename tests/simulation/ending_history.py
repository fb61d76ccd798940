"""Histories in which members end with 0 while the job goes on, among all that goes wrong in any.

A server may be waited for in vain, and the others of a gang that steps together may fail of such an
end: the job ends with that, or all are there again when a task starts again. ``python
tests/simulation/ending_history.py SEED`` prints one of them.
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
from history_jobs import Job

from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import OutcomePolicy, Strategy, TaskRole

_ENDED = "Command exited with status 0"


class EarlyEnds(Faults):
    """What goes wrong in any history, and besides members that end with 0."""

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (*super().table(), (6, self._member_ends), (3, self._a_task_rests))

    def _member_ends(self) -> None:
        state, strategy = self._history.scheduler.state, self._history.job.strategy
        together = strategy is Strategy.MULTI_WORKER
        running = [
            (task_id, task)
            for task_id, task in self._alive()
            if task.state is TaskState.RUNNING and task.runner.state == "running"
        ]
        members = [(i, t) for i, t in running if state.task_by_id(i) is not None]
        ends = [
            (task_id, task)
            for task_id, task in members
            if (together or task.launch.name.startswith(str(TaskRole.PS)))
            and task.launch.name != state.spec.decider
            and task.launch.name in state.view().roster
        ]
        if not ends:
            return
        task_id, _ = self._dice.choice(ends)
        self._note(f"{task_id} ends by itself with 0")
        # It may be the cause of the others' end.
        self._history.rules.note_error(task_id)
        self._cluster.report(task_id, TaskState.FINISHED, _ENDED)
        for other_id, other in members:
            needs = together or other.launch.name == state.spec.decider
            sidecar = other.launch.name.startswith(str(TaskRole.EVALUATOR))
            if needs and not sidecar and other_id != task_id and self._dice.random() < 0.5:
                self._note(f"the process of {other_id} dies of it")
                other.runner.fail("peer_lost", 1, "UnavailableError")

    def _a_task_rests(self) -> None:
        for task_id, task in self._alive():
            if self._dice.random() < 0.7:
                task.runner.idle_since = self._cluster.now
                # Of all that rest together, one is named.
                self._history.rules.note_error(task_id)


class EndingHistory(History):
    """A seed, played with members that end with 0."""

    faults_kind = EarlyEnds

    def make_job(self) -> Job:
        """Return a random job of members that need each other, soon given up when all rest."""
        job = super().make_job()
        strategy = self.dice.choice(
            [Strategy.MULTI_WORKER, Strategy.BETWEEN_GRAPH, Strategy.PARAMETER_SERVER]
        )
        servers = int(strategy is not Strategy.MULTI_WORKER)
        roles = tuple(
            replace(role, count=servers * max(role.count, 1))
            if role.role is TaskRole.PS
            else replace(role, count=1)
            if role.role is TaskRole.CHIEF and strategy is Strategy.PARAMETER_SERVER
            else role
            for role in job.spec.roles
        )
        spec = replace(
            job.spec,
            roles=roles,
            strategy=strategy,
            outcome=OutcomePolicy.CHIEF,
            idle_seconds=self.dice.choice([0.0, 30.0]),
        )
        return Job(spec, strategy)

    def _check_outcome(self) -> None:
        verdict = self.scheduler.state.job.verdict
        summary = verdict.summary if verdict is not None else ""
        own = any(text in summary for text in ("ended by itself", "retry.same_failure_limit"))
        if verdict is None or verdict.outcome is not Outcome.FAILED or not own:
            super()._check_outcome()


if __name__ == "__main__":
    sys.exit(tell(EndingHistory, sys.argv[1:]))
