"""A service with units of work on a simulated cluster, for tests of slots."""

from collections.abc import Sequence

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Action, UnitEnded, UnitsWanted
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.units import Unit
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, TaskRole, UnitKind, UnitsSpec
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, small_job

SMALL = Resources(cpus=1, mem=1024, disk=100)
ONE_TASK = (RoleSpec(TaskRole.WORKER, 1, SMALL),)
PAIR = (RoleSpec(TaskRole.WORKER, 2, SMALL),)
A_FEW = (
    RoleSpec(TaskRole.PS, 1, SMALL),
    RoleSpec(TaskRole.CHIEF, 1, SMALL),
    RoleSpec(TaskRole.WORKER, 1, SMALL),
)


class Work:
    """A service with units of work, and the producer that gives them."""

    def __init__(
        self,
        total: int,
        cluster: Cluster,
        kind: UnitKind = UnitKind.SHARD,
        *,
        parallelism: int = 0,
        roles: tuple[RoleSpec, ...] = ONE_TASK,
        share: float = 1.0,
        objective: str = "",
        are_the_rest: bool = False,
        shapes: Sequence[Sequence[object]] = (),
        **changes: object,
    ) -> None:
        self.total = total
        #: What each unit changes of its roles; the last one holds for all after it.
        self.shapes = shapes
        self.ended: list[int] = []
        self.asked: list[UnitsWanted] = []
        units = UnitsSpec(kind, parallelism, 3, share, objective, are_the_rest)
        spec = small_job(roles=roles, units=units, **changes)
        cluster.producer = self.hear
        self.cluster = cluster
        self.scheduler = Scheduler(spec, cluster)
        cluster.subscribe()
        self.go(4)

    def hear(self, action: Action) -> None:
        if isinstance(action, UnitEnded):
            self.ended.append(action.number)
        elif isinstance(action, UnitsWanted):
            self.asked.append(action)
            last = min(action.first + action.count, self.total)
            payloads = tuple(map(self.payload, range(action.first, last)))
            answer = events.UnitsGiven(action.first, payloads, last >= self.total)
            self.cluster.outbox.append(answer)

    def payload(self, number: int) -> dict[str, object]:
        if not self.shapes:
            return {"shard": number}
        return {"shard": number, "shape": self.shapes[min(number, len(self.shapes) - 1)]}

    def go(self, seconds: float) -> None:
        """Let time pass; what is launched comes up."""
        for _ in range(int(seconds)):
            self.scheduler.run(1)
            self.cluster.run_everything()

    @property
    def runs(self) -> dict[str, int]:
        """Return which unit each slot runs."""
        gangs = self.scheduler.state.gangs
        return {name: gang.unit.number for name, gang in gangs.items() if gang.unit is not None}

    def unit(self, number: int) -> Unit:
        return self.scheduler.state.units[number]

    def record(self, task: str) -> TaskRecord:
        return self.scheduler.state.tasks[task]

    def finish(self, slot: str, role: str = "worker-0", result: object = None) -> None:
        """Let the process of a slot's decider end with 0."""
        self.cluster.runner(f"{slot}-{role}").finish(result or {"by": slot})
        self.scheduler.run(1)

    def fail(self, slot: str, line: int = 7) -> None:
        """Let a slot's process fail of the user's code."""
        error = ("ValueError", line)
        self.cluster.runner(f"{slot}-worker-0").fail("user_error", 1, "bad shard", error)
        self.scheduler.run(1)

    def finish_all(self) -> None:
        """Let every unit be done that runs."""
        for slot in list(self.runs):
            self.finish(slot)

    def finish_everything(self, seconds: int = 200) -> None:
        """Let every unit be done as soon as it runs, until the work is over."""
        for _ in range(seconds):
            self.go(1)
            for task in self.cluster.tasks.values():
                if task.alive and task.runner.unit is not None and task.runner.state == "running":
                    task.runner.finish({})
            if self.scheduler.state.job.phase is JobPhase.DONE:
                return
        raise AssertionError(self.scheduler.state.job)


def accepts(scheduler: Scheduler) -> list[Accept]:
    return [a for d in scheduler.decisions for a in d.actions if isinstance(a, Accept)]
