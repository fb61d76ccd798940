"""The scheduler's event loop without threads, and jobs to play with it.

``Scheduler`` takes an event, steps, commits, performs, with a crash possible between any two of
them. ``started`` returns one whose gang runs. Used by unit tests and by the simulation.
"""

from dataclasses import replace

from dcos_tensorflow.core.cluster.orders import order
from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, EraseState, Exit, Write
from dcos_tensorflow.core.model.report import needs_order
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
)
from dcos_tensorflow.core.step import Decision, step
from simulated.mesos import Cluster


class Crash(Exception):
    """The scheduler process is killed here."""


#: What a service owns besides its gangs: after a crash it is what it was.
KEPT = (
    *("spec", "instance", "run", "attempt", "abandoned", "controls", "reservations"),
    *("maintenance", "agent_failures", "uninstall"),
)


class Scheduler:
    """The event loop without threads: step, commit, perform. ``store`` outlives a crash."""

    def __init__(self, spec: ServiceSpec, cluster: Cluster) -> None:
        self.cluster = cluster
        self.store: dict[str, bytes] = {}
        self.decisions: list[Decision] = []
        self.exit: Exit | None = None
        #: From here on nothing is written: it would make a service of what was uninstalled.
        self.erased = False
        settings = LaunchSettings(token_key="00" * 32)
        self.state = ServiceState.of_one_gang(spec, "instance-1", settings)
        #: What the last step has committed as a whole; None after a crash in the middle of that.
        self.committed: ServiceState | None = self.state
        self.commit(first_writes(self.state))

    def commit(self, writes: tuple[Write, ...]) -> None:
        for write in writes:
            if write.value is None:
                self.store.pop(write.path, None)
            else:
                self.store[write.path] = write.value

    def handle(self, *together: events.Event) -> Decision:
        """Take events that came in together: one step, one commit."""
        before, decision = self.state, step(self.state, together, self.cluster.now)
        self.committed = None
        self.before_commit()
        if not self.erased:
            self.commit(decision.writes)
        self.committed = decision.state
        self.after_commit(before, decision)
        self.state = decision.state
        for action in decision.actions:
            self.before_action(action)
            if isinstance(action, Exit):
                self.exit = action
            elif isinstance(action, EraseState):
                self.store.clear()
                self.erased = True
            else:
                self.cluster.perform(action)
        self.decisions.append(decision)
        return decision

    def before_commit(self) -> None:
        """A place to crash."""

    def after_commit(self, before: ServiceState, decision: Decision) -> None:
        """A place to look at what a step has decided."""

    def before_action(self, action: Action) -> None:
        """A place to crash."""

    def poll(self) -> None:
        """Ask every runner, and tell it what it should be under (scheduler.runner_poll)."""
        for record in self.state.live_tasks:
            runner = self.cluster.ask(record)
            current, gang = self.state.task_by_id(record.task_id), self.state.gang_with(record.name)
            if runner is None or current is None or gang is None:
                continue
            if needs_order(current, runner.report()):
                body = order(self.state.view(gang.name), current)
                if body is not None:
                    runner.take(body)
            report = runner.report()
            if self.state.told.reports.get(record.task_id) != report:
                self.handle(events.RunnerReported(record.task_id, report))

    def restart(self) -> None:
        """A new process: only what was committed is left."""
        restored = restore(self.store, LaunchSettings(), self.cluster.now)
        assert restored is not None
        if self.committed is not None:
            for name in KEPT:
                assert getattr(restored, name) == getattr(self.committed, name), name
            jobs = [{n: g.job for n, g in s.gangs.items()} for s in (restored, self.committed)]
            assert jobs[0] == jobs[1]
        self.state = restored
        self.cluster.subscribe()

    def drain(self) -> None:
        """Handle every event that waits, and those that they lead to."""
        while self.cluster.outbox:
            self.handle(self.cluster.outbox.pop(0))

    def run(self, seconds: float, tick: float = 1.0) -> None:
        """Let time pass, event by event."""
        end = self.cluster.now + seconds
        while self.cluster.now < end:
            self.cluster.advance(tick)
            self.drain()
            self.poll()
            self.drain()
            self.handle(events.Tick())
            self.drain()

    def whys(self) -> str:
        return "\n".join(d.why for d in self.decisions if d.why)


def small_job(**changes: object) -> ServiceSpec:
    """Return a service of 1 ps and 2 workers."""
    small = Resources(cpus=1, mem=1024, disk=100)
    spec = ServiceSpec(
        name="mnist",
        roles=(RoleSpec(TaskRole.PS, 1, small), RoleSpec(TaskRole.WORKER, 2, small)),
        job=JobSpec(uri="http://127.0.0.1/job.zip", name="job"),
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def begun(spec: ServiceSpec, cluster: Cluster, seconds: float = 2) -> Scheduler:
    """Return a scheduler that has been subscribed for so long; what it launched is not heard of."""
    scheduler = Scheduler(spec, cluster)
    cluster.subscribe()
    scheduler.run(seconds)
    return scheduler


def started(spec: ServiceSpec | None = None, cluster: Cluster | None = None) -> Scheduler:
    """Return a scheduler whose gang runs."""
    scheduler = begun(spec or small_job(), cluster or Cluster())
    scheduler.cluster.run_everything()
    scheduler.run(3)
    return scheduler


def training(
    strategy: Strategy,
    *,
    chief: int = 1,
    worker: int = 2,
    ps: int = 2,
    evaluator: int = 0,
    min_count: int | None = None,
    **changes: object,
) -> ServiceSpec:
    """Return a service with a chief, workers and parameter servers, recovered by ``strategy``."""
    small = Resources(cpus=1, mem=1024, disk=100)
    roles = (
        RoleSpec(TaskRole.PS, ps, small),
        RoleSpec(TaskRole.CHIEF, chief, small),
        RoleSpec(TaskRole.WORKER, worker, small, min_count=min_count),
        RoleSpec(TaskRole.EVALUATOR, evaluator, small),
    )
    return small_job(roles=roles, strategy=strategy, **changes)


def with_data_workers(spec: ServiceSpec, count: int) -> ServiceSpec:
    """Return the same service with a tf.data service of so many workers."""
    small = Resources(cpus=1, mem=1024, disk=100)
    others = (
        replace(role, data_service=count > 0 and role.role.uses_data)
        for role in spec.roles
        if not role.role.serves_data
    )
    served = (
        RoleSpec(TaskRole.DATA_DISPATCHER, int(count > 0), small),
        RoleSpec(TaskRole.DATA_WORKER, count, small, data_service=True),
    )
    return replace(spec, roles=(*others, *served))


def room_for_one_each(agents: int) -> Cluster:
    """Return a cluster whose agents have room for one task each."""
    return Cluster(agents, Resources(cpus=1.5, mem=1500, disk=1000))


def task_ids(scheduler: Scheduler) -> dict[str, str]:
    """Return the task id of each task's attempt."""
    return {name: record.task_id for name, record in scheduler.state.tasks.items()}


def starts(scheduler: Scheduler) -> dict[str, int]:
    """Return how often each live task's process has been started in its container."""
    return {
        name: len(scheduler.cluster.tasks[record.task_id].runner.starts)
        for name, record in scheduler.state.tasks.items()
        if not record.terminal
    }


def lose_agent_of(scheduler: Scheduler, name: str) -> str:
    """Let the agent of a task stop answering, and return its id."""
    agent_id = scheduler.state.tasks[name].agent_id
    scheduler.cluster.lose(agent_id)
    scheduler.run(1)
    return agent_id


def with_evaluator() -> ServiceSpec:
    """Return a service of 1 ps, 2 workers and an evaluator."""
    spec = small_job()
    small = Resources(cpus=1, mem=1024, disk=100)
    return replace(spec, roles=(*spec.roles, RoleSpec(TaskRole.EVALUATOR, 1, small)))


def fail(
    scheduler: Scheduler, name: str, message: str = "Command exited with status 1", reason: str = ""
) -> None:
    """Let a task fail, and the scheduler see it."""
    cluster = scheduler.cluster
    cluster.report(cluster.id_of(name), TaskState.FAILED, message, reason)
    scheduler.run(1)


def fail_process(
    scheduler: Scheduler, name: str, exit_class: str = "user_error", code: int = 1
) -> None:
    """Let a task's process fail in its container, and the scheduler see it."""
    scheduler.cluster.runner(name).fail(exit_class, code, f"{name} ended as {exit_class}")
    scheduler.run(1)


def recover(scheduler: Scheduler, seconds: float = 150) -> None:
    """Let back-off pass and everything that was launched reach RUNNING."""
    scheduler.run(seconds)
    scheduler.cluster.run_everything()
    # Staged, told to start, seen to run.
    scheduler.run(3)
