"""The loop that buys machines for gangs that find no place, beside the event loop.

Used by ``scheduler.scheduler`` once a service's options have the section ``capacity``. A thread of
its own looks again and again: the newest stored state says which gangs wait, the provider and the
master which machines there are, and ``capacity.reconcile`` decides. Its ledger goes to the core as
CapacityNoted; only when CapacityKept says that it is stored is anything bought
or ended. So it is never done by two, and never forgotten: leadership and fencing are the store's.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.observation import Observation
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import Machine, Provider
from dcos_tensorflow.capacity.reconcile import Round, reconcile
from dcos_tensorflow.core.model.actions import CapacityKept, ReleaseIdleMachines
from dcos_tensorflow.core.model.events import CapacityNoted, Event, StopRequested
from dcos_tensorflow.core.model.job import ENDED_PHASES
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.offers.waiting import waiting
from dcos_tensorflow.core.restarts.gang_queries import stays
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.mesos.agent_files import AgentFilesError, FileNotFound
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.machines import observing as capacity_sight
from dcos_tensorflow.scheduler.machines.deadline_fleet import DeadlineWatch
from dcos_tensorflow.scheduler.machines.ledger_records import changes_between, ledger_of
from dcos_tensorflow.scheduler.machines.machine_provider import PRICES_SECONDS, Desk

log = logging.getLogger(__name__)

#: A scheduler that stops waits so long for a call to the provider. What it was about is kept, and
#: the next leader finds it; nothing more is begun.
STOP_SECONDS = 5.0
#: A master that does not do what it is told of agents is told nothing for so long.
REFUSED_SECONDS = 60.0
#: So many slots are bought for at a time: the next look sees how many more.
SLOTS_AT_ONCE = 50


class BuyingLoop:
    """Looks what is wanted and what there is, and acts on it when that is kept.

    ``state`` returns the newest stored state, ``emit`` takes events, ``agents`` asks the master and
    returns None where it does not say, ``offer`` tells it whether an agent is to be offered to
    anybody (raising AgentFilesError); all from the thread. ``leads`` says whether no other one
    can lead now. ``also_waits`` says what waits for machines beside the service's gangs, by our
    clock. It looks every ``look_seconds``; offers have twice that to come before a machine
    is bought in their place.
    """

    def __init__(
        self,
        state: Callable[[], ServiceState],
        emit: Callable[[Event], None],
        agents: Callable[[], Sequence[KnownAgent] | None],
        leads: Callable[[], bool],
        open_provider: Callable[[CapacitySpec, str], Provider],
        *,
        offer: Callable[[str, bool], None],
        also_waits: Callable[[float], Sequence[GangDemand]] = lambda now: (),
        look_seconds: float = 5.0,
        clock: Callable[[], float] = steady_time,
    ) -> None:
        self._state = state
        self._emit = emit
        self._ask_agents = agents
        self._offer = offer
        self._also_waits = also_waits
        #: When the budget of what is no one work was spent, and by which options.
        self._spent: tuple[float, CapacitySpec | None] = (0.0, None)
        self._leads = leads
        self._look_seconds = look_seconds
        self._clock = clock
        self._thread = threading.Thread(target=self._run, name="capacity", daemon=True)
        self._stopping = threading.Event()
        #: Numbers of what was noted, each with whether it is kept; None to stop.
        self._kept: queue.SimpleQueue[tuple[int, bool] | None] = queue.SimpleQueue()
        self._noted = 0
        self._release = threading.Event()
        self._desk = Desk(open_provider, self._may_act)
        self._listed_at = float("-inf")
        self._told: Mapping[str, str] = {}
        self._deadline = DeadlineWatch()
        #: As the master listed them last, and until when it is not told of any.
        self._agents: Sequence[KnownAgent] = ()
        self._not_told_until = float("-inf")
        self._refusal = ""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a call to the provider that lasts is left to itself.

        What was bought stays, and is known.
        """
        self._stopping.set()
        self._kept.put(None)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def perform(self, action: CapacityKept | ReleaseIdleMachines) -> None:
        """Go on with what is kept, or give back what is idle. Any thread; never blocks."""
        if isinstance(action, CapacityKept):
            self._kept.put((action.number, True))
        else:
            self._release.set()

    def not_kept(self, number: int) -> None:
        """Take it that what was noted cannot be kept: the next look begins anew. Any thread."""
        self._kept.put((number, False))

    def _run(self) -> None:
        busy = False
        while not self._stopping.wait(0.0 if busy else self._look_seconds):
            try:
                busy = self.run_round()
            except Exception as error:
                # What runs goes on, and a gang that waits for machines is told.
                log.exception("a look at the machines failed")
                self._note({}, {"": f"internal error: {type(error).__name__}: {error}"})
                busy = False

    def run_round(self) -> bool:
        """Take one look and do what is due; say whether anything was done."""
        state = self._state()
        spec = state.spec.capacity
        if spec is None or not state.instance:
            return False
        ledger = ledger_of(state.capacity)
        release = self._release.is_set()
        found = reconcile(
            ledger,
            self._sight(state, spec, ledger, release=release),
            capacity_sight.rules_of_service(spec, state, 2 * self._look_seconds),
        )
        changes = changes_between(ledger, found.ledger)
        told = dict(found.waits)
        if (changes or told != self._told) and not self._note(changes, told):
            return False
        for sentence in found.why:
            log.info("%s", sentence)
        if release:
            self._release.clear()
        if found.stop:
            self._end(state, spec, found.stop)
        if self._may_act():
            self._tell_master(found)
        return self._desk.do(found) or bool(changes)

    def _end(self, state: ServiceState, spec: CapacitySpec, why: str) -> None:
        """End what the machines are for: the budget is spent."""
        units = state.spec.units
        if units is None or units.is_one_work:
            self._emit(StopRequested(why))
        elif self._spent[1] != spec:
            # The machines go, and whatever is on them has to find others.
            self._spent = self._clock(), spec
            log.warning("all machines that were bought are given back: %s", why)

    def _over_since(self, state: ServiceState) -> float:
        spent_at, by = self._spent
        return _over_since(state) or (spent_at if by == state.spec.capacity else 0.0)

    def _demands(self, state: ServiceState, now: float) -> tuple[GangDemand, ...]:
        if self._over_since(state):
            return ()
        found = waiting(state, now, SLOTS_AT_ONCE)
        own = (capacity_sight.demand_of(each, now) for each in found)
        return (*own, *self._also_waits(now))

    def _note(self, changes: Mapping[str, CapacityRecord | None], told: Mapping[str, str]) -> bool:
        """Have changes kept; False when that was not to be."""
        self._noted += 1
        self._emit(CapacityNoted(self._noted, changes, told))
        self._told = told
        while (answer := self._kept.get()) is not None:
            if answer[0] == self._noted:
                return answer[1]
        # For the next question.
        self._kept.put(None)
        return False

    # What there is.

    def _sight(
        self, state: ServiceState, spec: CapacitySpec, ledger: Ledger, *, release: bool
    ) -> Observation:
        now = self._clock()
        needed = bool(ledger.left or self._demands(state, now))
        self._desk.follow(spec, capacity_sight.owner_of(state))
        held = ledger.account.provider.holds(now)
        machines = None if held else self._listed(ledger, now)
        pools = self._desk.pools(now, may_ask=not held) if needed else None
        agents = self._ask_agents() if needed else None
        self._agents = agents or ()
        # Only now: a gang that has got a place meanwhile needs no machine; the agents were asked
        # before that.
        state, now = self._state(), self._clock()
        demands = self._demands(state, now)
        return Observation(
            now=now,
            demands=demands,
            offers=capacity_sight.offers_of(agents, state),
            agents=capacity_sight.agents_of(
                agents, state, ledger, can_be_closed=now >= self._not_told_until
            ),
            pauses=capacity_sight.pauses_of(state),
            machines=machines,
            pools=pools,
            fleet=self._deadline.fleet(
                state,
                spec,
                ledger,
                demands=demands,
                pools=pools,
                now=now,
                next_look=self._look_seconds,
            ),
            over_since=self._over_since(state),
            is_spent=not _over_since(state),
            release=release,
            **self._desk.outcome(),
        )

    def _listed(self, ledger: Ledger, now: float) -> tuple[Machine, ...] | None:
        """Return what there is; that is asked for rarely while there should be none."""
        if not ledger.left and now - self._listed_at < PRICES_SECONDS:
            return None
        found = self._desk.machines()
        self._listed_at = self._listed_at if found is None else now
        return found

    # What is done.

    def _tell_master(self, found: Round) -> None:
        """Have machines offered to no framework, or to all again, if the master lets us."""
        told = [(names, False) for names in found.close] + [(names, True) for names in found.reopen]
        for names, is_offered in told:
            for agent_id in capacity_sight.called(self._agents, names):
                try:
                    self._offer(agent_id, is_offered)
                except FileNotFound:
                    log.info("%s has gone already", agent_id)
                except AgentFilesError as error:
                    self._not_told(str(error))
                    return
                else:
                    whom = "all frameworks again" if is_offered else "no framework any more"
                    log.info("the master is told to offer %s to %s", agent_id, whom)

    def _not_told(self, why: str) -> None:
        self._not_told_until = self._clock() + REFUSED_SECONDS
        if why != self._refusal:
            log.warning("machines that go are kept from our own tasks alone: %s", why)
        self._refusal = why

    def _may_act(self) -> bool:
        """Say whether the provider may still be asked for something: each call may last."""
        return self._leads() and not self._stopping.is_set()


def _over_since(state: ServiceState) -> float:
    """Return since when nothing of the service is to run; 0 while something is."""
    if any(gang.job.phase not in ENDED_PHASES for gang in state.gangs.values()):
        return 0.0
    if any(stays(view, record.name) for view in state.views() for record in view.tasks.live):
        return 0.0
    return max(max(gang.job.phase_since, 1.0) for gang in state.gangs.values())
