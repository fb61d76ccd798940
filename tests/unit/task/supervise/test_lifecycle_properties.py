"""What holds for the user's process whatever is ordered, happens or fails, in whatever order."""

import signal

from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.task.exits.exit_analysis import (
    ExitVerdict,
    ProcessEnding,
    analyse,
    storage_failed,
)
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.spec import StartOrder, TaskCluster
from dcos_tensorflow.task.supervise.lifecycle import StaleOrder, TaskEnding, step
from dcos_tensorflow.task.supervise.lifecycle_events import (
    Condemned,
    Fetched,
    Finish,
    HandOver,
    Lifecycle,
    LifecycleSettings,
    OrderReceived,
    OutputKept,
    PeersAnswered,
    Prepared,
    ProcessEnded,
    SendSignal,
    StartProcess,
    StopAsked,
    TaskPhase,
    Tick,
    UnitDone,
)
from dcos_tensorflow.task.unit_order import Payload, UnitOrder

KINDS = ("order", "hold", "peers", "end", "time", "fetched", "kept", "done")
#: What may happen: a name, and a number that it is about. The rarer things would end most plays.
HAPPENINGS = st.lists(
    st.tuples(st.sampled_from((*KINDS, *KINDS, "condemn", "stop")), st.integers(0, 5)),
    max_size=60,
)


class World:
    """Carries out what the state machine says, and checks that it may be said."""

    def __init__(
        self,
        first: StartOrder,
        *,
        gated: bool,
        keeps: bool,
        stores: bool = False,
        units: bool = False,
        serves: bool = False,
    ) -> None:
        settings = LifecycleSettings(10.0, 100.0, gated and not serves, keeps, stores)
        self.state = Lifecycle(first, settings)
        self.serves = serves
        self.units = units or serves
        self.done: set[int] = set()
        self.now = 0.0
        self.alive = 0
        self.signalled = False
        self.finished = 0
        self.failed: set[int] = set()
        self.feed(Prepared())

    def feed(self, event: object) -> None:
        before = self.state
        self.idle = before.idle
        self.cluster = before.current.cluster if before.current else None
        try:
            self.state, actions = step(before, event, self.now)
        except (StaleOrder, TaskEnding):
            return
        for action in actions:
            self.perform(action)
        if before.order.run and before.order.start == self.state.order.start:
            assert self.state.order.run, "who was let go is held again with a newer start only"
        self.check()

    def perform(self, action: object) -> None:
        assert not self.finished, "nothing happens after the end"
        if isinstance(action, StartProcess):
            assert not self.alive, "two processes never run at once"
            assert not self.state.keeping, "what a process left is not changed while it is kept"
            assert not self.state.fetching, "a process finds all that was to be fetched"
            assert action.order.run
            assert action.order.start not in self.failed, "no failed start begins again"
            assert action.order.start not in self.done, "no unit is done twice in a start"
            self.alive, self.signalled = action.process, False
        elif isinstance(action, HandOver):
            assert self.alive, "a unit is handed to a process that lives"
            assert not self.signalled, "and that has not been told to go"
            assert not self.state.keeping, "nor while what the one before left is kept"
            assert action.order.run
            assert action.order.start not in self.failed | self.done, "each start is for one unit"
            assert action.order.cluster == self.cluster, "its process knows this cluster"
        elif isinstance(action, SendSignal):
            assert self.alive, "nothing is signalled where nothing runs"
            self.signalled = True
        elif isinstance(action, Finish):
            assert not self.alive or self.idle, "the end comes after the process'"
            self.alive = 0
            self.finished += 1

    def check(self) -> None:
        state = self.state
        assert (state.current is not None) == bool(self.alive)
        assert not state.idle or self.alive
        if state.phase in (TaskPhase.HELD, TaskPhase.FAILED, TaskPhase.DONE):
            assert not self.alive or state.idle
        if state.phase is TaskPhase.EXITED:
            assert not self.alive
        if state.phase is TaskPhase.RUNNING:
            assert not state.idle
        if state.phase is TaskPhase.DONE:
            assert state.order.unit is not None
            self.done.add(state.order.start)
        if state.phase is TaskPhase.HELD:
            assert not state.order.run
        if state.phase is TaskPhase.STOPPING:
            assert self.signalled or state.keeping
        if state.failure:
            self.failed.add(state.failure.start)

    def happen(self, what: str, number: int) -> None:
        order = self.state.order
        if what in ("order", "hold"):
            start = max(1, order.start + number - 3)
            self.feed(OrderReceived(self.order(start, what == "order", number)))
        elif what == "peers":
            self.feed(PeersAnswered(order.start, order.cluster.epoch))
        elif what == "fetched":
            refusal = storage_failed("no answer") if number == 0 else None
            self.feed(Fetched(self.state.fetches - number // 4, self.now, refusal))
        elif what == "kept":
            refusal = storage_failed("no answer") if number == 0 else None
            self.feed(OutputKept(self.state.starts - number // 4, refusal))
        elif what == "done" and self.alive and self.serves:
            start = self.state.current.start if self.state.current else 0
            report = analyse(ProcessEnding(0), ())
            self.feed(UnitDone(self.alive, start - number // 4, report, self.now))
        elif what == "end" and self.alive:
            self.end([-15, 0, 1, 42, -9, 78][number])
        elif what == "time":
            self.now += 10.0 ** (number - 2)
            self.feed(Tick())
        elif what == "condemn":
            verdict = ExitVerdict(ExitClass.FROZEN, "frozen")
            self.feed(Condemned(self.state.starts - number // 3, verdict))
        elif what == "stop" and number == 0:
            self.feed(StopAsked("asked"))

    def order(self, start: int, run: bool, number: int) -> StartOrder:
        """Return an order as a scheduler may give it: what is held is for no unit."""
        if not self.units:
            return StartOrder(start, run, TaskCluster(start + number % 2))
        payload = Payload(output="part" if start % 2 else "")
        unit = UnitOrder(start, 1, payload) if run else None
        return StartOrder(start, run, TaskCluster(start // 3 + number // 3), unit=unit)

    def end(self, code: int) -> None:
        process, self.alive = self.alive, 0
        asked = self.signalled and self.state.condemned is None
        report = analyse(ProcessEnding(code, stop_reason="asked" if asked else ""), ())
        self.feed(ProcessEnded(process, report, asked, self.now))


#: What is different from task to task: whether starts are for units of work, for one.
TASKS = st.fixed_dictionaries(dict.fromkeys(("gated", "stores", "units", "serves"), st.booleans()))


@given(HAPPENINGS, st.booleans(), st.booleans(), TASKS)
def test_no_history_breaks_the_rules(happenings, keeps, run, task):
    world = World(StartOrder(1, run, TaskCluster(1)), keeps=keeps, **task)
    for what, number in happenings:
        world.happen(what, number)


@given(HAPPENINGS, st.booleans(), TASKS)
def test_a_repeated_order_is_fulfilled_in_the_end(happenings, run, task):
    world = World(StartOrder(1, True, TaskCluster(1)), keeps=True, **task)
    for what, number in happenings:
        world.happen(what, number)
    wanted = StartOrder(world.state.order.start + 1, run, TaskCluster(99))
    for _ in range(4):
        world.feed(OrderReceived(wanted))
        world.now += 200.0
        world.feed(Tick())
        if world.alive and world.state.phase is TaskPhase.STOPPING:
            world.end(-signal.SIGKILL)
        world.feed(OutputKept(world.state.starts))
        world.feed(Fetched(world.state.fetches, world.now))
    state = world.state
    ended = TaskPhase.EXITED if world.finished else None
    assert state.phase in (ended, TaskPhase.RUNNING if run else TaskPhase.HELD)
    assert ended or state.order == wanted


@given(HAPPENINGS, st.booleans(), TASKS)
def test_a_stop_ends_every_task_within_its_grace(happenings, keeps, task):
    world = World(StartOrder(1, True, TaskCluster(1)), keeps=keeps, **task)
    for what, number in happenings:
        world.happen(what, number)
    world.feed(StopAsked("at last"))
    world.now += 10.0
    world.feed(Tick())
    if world.alive and not world.state.idle:
        assert world.state.killed
        world.end(-signal.SIGKILL)
    world.feed(OutputKept(world.state.starts))
    assert world.finished == 1
