"""Histories of jobs with an evaluator, whose machine and container are lost again and again.

An evaluator is placed by itself, beside a gang that trains on: what holds for the gang's members
must hold for it by rules of its own. News are late here more often than elsewhere, so that offers
of an agent that is back come before what it says of its tasks. ``python
tests/simulation/evaluator_history.py SEED`` prints one of them.
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

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole

EVALUATOR = "evaluator-0"


class EvaluatorFaults(Faults):
    """What goes wrong in any history, and besides what takes an evaluator away."""

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (
            *super().table(),
            (8, self._its_agent_goes_or_comes),
            (4, self._its_container_dies),
            (2, self._it_is_replaced),
        )

    def _its_agent_goes_or_comes(self) -> None:
        record = self._history.scheduler.state.tasks.get(EVALUATOR)
        away = [a for a in self._cluster.agents.values() if not a.reachable and not a.frozen]
        if away and self._dice.random() < 0.5:
            agent = self._dice.choice(away)
            self._note(f"{agent.agent_id} is back")
            self._cluster.bring_back(agent.agent_id)
        elif record is not None and not record.terminal:
            agent = self._cluster.agents[record.agent_id]
            if agent.reachable and not agent.frozen:
                self._note(f"{agent.agent_id} of {EVALUATOR} is unreachable")
                self._cluster.lose(agent.agent_id)

    def _its_container_dies(self) -> None:
        own = [task_id for task_id, t in self._alive() if t.launch.name == EVALUATOR]
        if own:
            task_id = self._dice.choice(own)
            self._note(f"the container of {task_id} is killed")
            self._cluster.report(task_id, TaskState.FAILED, "Command terminated with signal Killed")

    def _it_is_replaced(self) -> None:
        self._pod(events.PodVerb.REPLACE, EVALUATOR)


class EvaluatorHistory(History):
    """A seed, played with an evaluator."""

    late_chance = 0.3
    faults_kind = EvaluatorFaults

    def make_job(self) -> Job:
        """Return a random job with an evaluator, which is replaced as soon as it is lost."""
        job = super().make_job()
        roles = tuple(
            replace(role, count=1) if role.role is TaskRole.EVALUATOR else role
            for role in job.spec.roles
        )
        return replace(job, spec=replace(job.spec, roles=roles, replace_after_seconds=0.0))


if __name__ == "__main__":
    sys.exit(tell(EvaluatorHistory, sys.argv[1:]))
