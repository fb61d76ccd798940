"""Which faults are played on which training: data.

The restart sets are those of TensorFlow itself (docs/recovery.md says where from): who has to start
again so that the training is whole. By hand exactly they are restarted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Way(StrEnum):
    """How a victim is lost."""

    PROCESS = "process death"
    CONTAINER = "container death"
    FREEZE = "freeze"
    SILENT = "silent loss"
    AGENT = "agent lost"
    SCHEDULER = "scheduler death"
    MISTAKE = "error of the job"
    PORT = "port taken"


@dataclass(frozen=True)
class Training:
    """One job: how it is distributed, its tasks, and which of them note steps (decider first)."""

    strategy: str
    tasks: tuple[str, ...]
    trainers: tuple[str, ...]
    #: Workers of a coordinator note no steps; each touches a file in its own directory.
    touching: tuple[str, ...] = ()

    @property
    def participants(self) -> tuple[str, ...]:
        """Return the tasks whose part in the training can be seen."""
        evaluators = tuple(task for task in self.tasks if task.startswith("evaluator"))
        return (*self.trainers, *self.touching, *evaluators)

    @property
    def job(self) -> str:
        """Return the module of the job."""
        return self.strategy


@dataclass(frozen=True)
class Case:
    """One fault: who is lost, how, and who must start again for it."""

    strategy: str
    way: Way
    victims: tuple[str, ...]
    restarts: tuple[str, ...]

    @property
    def retries(self) -> int:
        """Return how many retries it may cost: only the job's own errors cost one."""
        return 1 if self.way is Way.MISTAKE else 0

    @property
    def victim(self) -> str:
        """Return the kind of victim, as the table names it."""
        if self.way is Way.SCHEDULER:
            return "scheduler"
        roles = [task.rpartition("-")[0] for task in self.victims]
        if len(roles) == 2 and roles[0] == roles[1]:
            return f"two {roles[0]}s"
        text = " and ".join(roles)
        return f"agent of {text}" if self.way is Way.AGENT else text


PARAMETER_SERVER = Training(
    "parameter_server",
    tasks=("ps-0", "chief-0", "worker-0", "worker-1", "evaluator-0"),
    trainers=("chief-0",),
    touching=("worker-0", "worker-1"),
)
MULTI_WORKER = Training(
    "multi_worker",
    tasks=("chief-0", "worker-0", "worker-1", "evaluator-0"),
    trainers=("chief-0", "worker-0", "worker-1"),
)
BETWEEN_GRAPH = Training(
    "between_graph",
    tasks=("ps-0", "chief-0", "worker-0"),
    trainers=("chief-0", "worker-0"),
)
INDEPENDENT = Training("independent", tasks=("worker-0",), trainers=("worker-0",))

TRAININGS = {
    training.strategy: training
    for training in (PARAMETER_SERVER, MULTI_WORKER, BETWEEN_GRAPH, INDEPENDENT)
}


def _cases(strategy: str, *rows: tuple[Way, str, str]) -> tuple[Case, ...]:
    return tuple(
        Case(strategy, way, tuple(victims.split()), tuple(restarts.split()))
        for way, victims, restarts in rows
    )


_EVERYBODY = "chief-0 worker-0 worker-1"

CASES: tuple[Case, ...] = (
    *_cases(
        "parameter_server",
        (Way.PROCESS, "worker-1", "worker-1"),
        (Way.PROCESS, "worker-0 worker-1", "worker-0 worker-1"),
        (Way.PROCESS, "chief-0", "chief-0"),
        (Way.PROCESS, "ps-0", "ps-0 chief-0"),
        (Way.PROCESS, "ps-0 worker-1", "ps-0 worker-1 chief-0"),
        (Way.PROCESS, "evaluator-0", "evaluator-0"),
        (Way.CONTAINER, "worker-1", "worker-1 chief-0"),
        (Way.CONTAINER, "ps-0", "ps-0 chief-0"),
        (Way.CONTAINER, "chief-0", "chief-0"),
        (Way.FREEZE, "worker-1", "worker-1"),
        (Way.FREEZE, "ps-0", "ps-0 chief-0"),
        (Way.FREEZE, "chief-0", "chief-0"),
        (Way.FREEZE, "evaluator-0", "evaluator-0"),
        (Way.AGENT, "worker-1", "worker-1 chief-0"),
        (Way.AGENT, "ps-0", "ps-0 chief-0 worker-0 worker-1"),
        (Way.SILENT, "worker-1", "worker-1 chief-0"),
        (Way.SILENT, "ps-0", "ps-0 chief-0 worker-0 worker-1"),
        (Way.SILENT, "chief-0", "chief-0"),
        (Way.MISTAKE, "chief-0", "chief-0"),
        (Way.PORT, "worker-1", "worker-1 chief-0"),
        (Way.SCHEDULER, "", ""),
    ),
    *_cases(
        "multi_worker",
        (Way.PROCESS, "worker-1", _EVERYBODY),
        (Way.PROCESS, "chief-0", _EVERYBODY),
        (Way.PROCESS, "worker-0 worker-1", _EVERYBODY),
        (Way.PROCESS, "evaluator-0", "evaluator-0"),
        (Way.CONTAINER, "worker-1", _EVERYBODY),
        (Way.FREEZE, "worker-1", _EVERYBODY),
        (Way.FREEZE, "chief-0", _EVERYBODY),
        (Way.AGENT, "worker-1", _EVERYBODY),
        (Way.SILENT, "worker-1", _EVERYBODY),
        (Way.SILENT, "chief-0", _EVERYBODY),
        (Way.MISTAKE, "worker-1", _EVERYBODY),
        (Way.PORT, "worker-1", _EVERYBODY),
        (Way.SCHEDULER, "", ""),
    ),
    *_cases(
        "between_graph",
        (Way.PROCESS, "worker-0", "worker-0"),
        (Way.PROCESS, "chief-0", "chief-0"),
        (Way.PROCESS, "ps-0", "ps-0"),
        (Way.PROCESS, "ps-0 worker-0", "ps-0 worker-0"),
        (Way.CONTAINER, "worker-0", "ps-0 chief-0 worker-0"),
        (Way.CONTAINER, "ps-0", "ps-0 chief-0 worker-0"),
        (Way.FREEZE, "worker-0", "worker-0"),
        (Way.FREEZE, "chief-0", "chief-0"),
        (Way.FREEZE, "ps-0", "ps-0"),
        (Way.AGENT, "ps-0", "ps-0 chief-0 worker-0"),
        (Way.SILENT, "worker-0", "ps-0 chief-0 worker-0"),
        (Way.SILENT, "ps-0", "ps-0 chief-0 worker-0"),
        (Way.SILENT, "chief-0", "ps-0 chief-0 worker-0"),
        (Way.MISTAKE, "worker-0", "worker-0"),
        (Way.PORT, "ps-0", "ps-0 chief-0 worker-0"),
        (Way.SCHEDULER, "", ""),
    ),
    *_cases(
        "independent",
        (Way.PROCESS, "worker-0", "worker-0"),
        (Way.CONTAINER, "worker-0", "worker-0"),
        (Way.FREEZE, "worker-0", "worker-0"),
        (Way.AGENT, "worker-0", "worker-0"),
        (Way.SILENT, "worker-0", "worker-0"),
        (Way.MISTAKE, "worker-0", "worker-0"),
        (Way.SCHEDULER, "", ""),
    ),
)
