"""A service of many tasks lives for a week: it heals all the time, and what it keeps stays small.

The core plays against the model of Mesos under a virtual clock. Processes fail, containers end,
machines vanish and come back, the subscription breaks, the scheduler dies; meanwhile tasks tell of
progress. ``pytest -s`` prints what each day has left.
"""

import gc
import random
import sys
from dataclasses import dataclass, fields

import pytest

from dcos_tensorflow.core.cluster.orders import order
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Acknowledge, Action, Kill
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.report import needs_order
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy
from dcos_tensorflow.core.step import Decision
from simulated.mesos import Cluster, RunningTask
from simulated.scheduler import Scheduler, training

DAY = 86_400.0
#: Between two looks of the scheduler (seconds): what it does not take for a pause of its own.
TICK = 10.0
#: Tasks of a machine, and the share of machines beyond those that are needed.
EACH, SPARE = 4, 0.05
#: A machine vanishes so often, and a process or a container ends so often (seconds).
MACHINE_LIVES, PROCESS_LIVES = 50 * DAY, 60 * DAY
#: The subscription breaks, and the scheduler dies, so often (seconds).
SUBSCRIPTION_LIVES, SCHEDULER_LIVES = DAY / 4, DAY / 3
#: A machine is away for so long at most (seconds): those whom the service has replaced come back.
AWAY = 3600.0
#: Tasks that tell of progress at each tick.
TELL = 5


class Machines(Cluster):
    """A cluster that forgets what has ended, and looks at what moves alone."""

    def __init__(self, agents: int) -> None:
        self.moving: set[str] = set()
        super().__init__(agents, Resources(cpus=EACH, mem=EACH * 1024, disk=EACH * 100))

    def advance(self, seconds: float) -> None:
        self.now += seconds
        if self.connected and not self.suppressed:
            self.make_offers()
        for task_id in self.launch_history:
            self.report(task_id, TaskState.RUNNING)
        self.launch_history.clear()
        for task_id in tuple(self.moving):
            task = self.tasks[task_id]
            task.runner.pass_time(seconds)
            self._perhaps_dies(task_id, task)
            if task.unacknowledged and self.now >= task.retry_at:
                task.retry_at = self.now + 10.0
                if self._listens(task.launch.agent_id):
                    self.outbox.append(task.unacknowledged[0])
            if not task.unacknowledged and task.dies_at is None:
                self.moving.discard(task_id)
            if not task.unacknowledged and not task.alive:
                self.moving.discard(task_id)
                del self.tasks[task_id]

    def report(self, task_id: str, state: TaskState, message: str = "", reason: str = "") -> None:
        self.moving.add(task_id)
        super().report(task_id, state, message, reason)

    def perform(self, action: Action) -> None:
        super().perform(action)
        if isinstance(action, Kill | Acknowledge) and action.task_id in self.tasks:
            self.moving.add(action.task_id)


class LongLife(Scheduler):
    """A scheduler that asks the runners of tasks that have just changed."""

    def __init__(self, tasks: int, machines: Machines) -> None:
        #: When the runner of a task is asked no more, by the task's name.
        self.asked: dict[str, float] = {}
        super().__init__(training(Strategy.INDEPENDENT, chief=0, ps=0, worker=tasks), machines)

    def handle(self, *together: events.Event) -> Decision:
        decision = super().handle(*together)
        self.decisions.clear()
        self.asked.update(dict.fromkeys(decision.changed, self.cluster.now + 6 * TICK))
        return decision

    def restart(self) -> None:
        super().restart()
        self.asked = dict.fromkeys(self.state.tasks, self.cluster.now + TICK)

    def poll(self) -> None:
        reports = []
        for name in tuple(self.asked):
            record, gang = self.state.tasks.get(name), self.state.gang_with(name)
            if record is None or gang is None or self.cluster.now > self.asked[name]:
                del self.asked[name]
                continue
            runner = self.cluster.ask(record)
            if runner is None:
                continue
            if needs_order(record, runner.report()):
                body = order(self.state.view(gang.name), record)
                if body is not None:
                    runner.take(body)
            if self.state.told.reports.get(record.task_id) != (report := runner.report()):
                reports.append(events.RunnerReported(record.task_id, report))
        if reports:
            self.handle(*reports)


@dataclass(frozen=True)
class Left:
    """What a service keeps."""

    #: Objects that Python looks after, in thousands.
    objects: float
    #: Memory of the incidents, of what is said of tasks, of abandoned attempts: how many of each.
    incidents: int
    reports: int
    abandoned: int
    #: The store: its values, and MB.
    values: int
    megabytes: float


class Life:
    """So many tasks, and all that happens to them."""

    def __init__(self, tasks: int, seed: int, hardship: float = 1.0) -> None:
        self.dice = random.Random(seed)
        self.tasks, self.hardship = tasks, hardship
        self.machines = Machines(round(tasks / EACH * (1 + SPARE)) + 1)
        self.scheduler = LongLife(tasks, self.machines)
        self.back: dict[str, float] = {}
        self.happened = dict.fromkeys(("processes", "containers", "machines", "breaks", "lives"), 0)

    def begin(self) -> None:
        self.machines.subscribe()
        self.ticks(6)
        assert self.scheduler.state.job.phase is JobPhase.RUNNING

    def ticks(self, number: int) -> None:
        for _ in range(number):
            self.machines.advance(TICK)
            self.take()
            self.scheduler.poll()
            self.take()
            self.scheduler.handle(events.Tick())

    def take(self) -> None:
        while self.machines.outbox:
            waiting, self.machines.outbox = self.machines.outbox[:500], self.machines.outbox[500:]
            self.scheduler.handle(*waiting)

    def live(self, seconds: float) -> None:
        until = self.machines.now + seconds
        while self.machines.now < until:
            self.perhaps()
            self.tell()
            self.ticks(1)

    def perhaps(self) -> None:
        for agent_id, at in tuple(self.back.items()):
            if self.machines.now >= at:
                del self.back[agent_id]
                self.machines.bring_back(agent_id)
        if self.is_time(MACHINE_LIVES / len(self.machines.agents)):
            self.lose_a_machine()
        if self.is_time(PROCESS_LIVES / self.tasks):
            self.end_a_process()
        if self.is_time(SUBSCRIPTION_LIVES):
            self.happened["breaks"] += 1
            self.scheduler.handle(events.Disconnected("the master is gone"))
            self.machines.disconnect()
            self.machines.subscribe()
        if self.is_time(SCHEDULER_LIVES):
            self.happened["lives"] += 1
            self.machines.disconnect()
            self.machines.now += self.dice.choice([1.0, 30.0])
            self.scheduler.restart()

    def is_time(self, every: float) -> bool:
        return self.dice.random() < self.hardship * TICK / every

    def lose_a_machine(self) -> None:
        agent = self.dice.choice(list(self.machines.agents.values()))
        if agent.reachable:
            self.happened["machines"] += 1
            self.machines.lose(agent.agent_id)
            self.back[agent.agent_id] = self.machines.now + self.dice.uniform(0, AWAY)

    def end_a_process(self) -> None:
        record, task = self.a_task()
        if task is None or not task.alive or not self.machines.agents[record.agent_id].reachable:
            return
        if self.dice.random() < 0.5:
            self.happened["containers"] += 1
            message = "Command terminated with signal Killed"
            self.machines.report(record.task_id, TaskState.FAILED, message)
        elif task.runner.state == "running":
            self.happened["processes"] += 1
            task.runner.fail("interrupted", 137, "killed")
            self.scheduler.asked[record.name] = self.machines.now + 6 * TICK

    def a_task(self) -> tuple[TaskRecord, RunningTask | None]:
        record = self.scheduler.state.tasks[f"worker-{self.dice.randrange(self.tasks)}"]
        return record, self.machines.tasks.get(record.task_id)

    def tell(self) -> None:
        told = []
        for record, task in (self.a_task() for _ in range(TELL)):
            if task is not None and task.runner.state == "running":
                task.runner.step, task.runner.told_at = int(self.machines.now), self.machines.now
                told.append(events.RunnerReported(record.task_id, task.runner.report()))
        if told:
            self.scheduler.handle(*told)

    def left(self) -> Left:
        gc.collect()
        state, store = self.scheduler.state, self.scheduler.store
        return Left(
            len(gc.get_objects()) / 1000,
            len(state.job.incidents),
            len(state.told.reports),
            len(state.abandoned),
            len(store),
            sum(map(len, store.values())) / 1e6,
        )


@pytest.mark.parametrize(
    ("tasks", "parts", "seconds", "hardship"),
    [
        # Hours in which happens what happens in months.
        (100, 7, DAY / 24, 200.0),
        pytest.param(10_000, 7, DAY, 1.0, marks=(pytest.mark.soak, pytest.mark.timeout(7200))),
    ],
)
def test_what_a_service_keeps_is_as_large_after_a_week_of_losses(
    tasks: int, parts: int, seconds: float, hardship: float
) -> None:
    life = Life(tasks, 1, hardship)
    life.begin()
    found = []
    for _ in range(parts):
        life.live(seconds)
        found.append(life.left())
        print(found[-1], life.happened, file=sys.stderr)
    for agent_id in tuple(life.back):
        life.machines.bring_back(agent_id)
    life.ticks(60)
    running = [r for r in life.scheduler.state.live_tasks if r.state is TaskState.RUNNING]
    assert len(running) == tasks
    assert life.machines.double_starts == []
    first, last = found[0], found[-1]
    grown = {
        field.name: (getattr(first, field.name), getattr(last, field.name))
        for field in fields(Left)
        if getattr(last, field.name) > 1.05 * getattr(first, field.name) + 20
    }
    assert grown == {}
