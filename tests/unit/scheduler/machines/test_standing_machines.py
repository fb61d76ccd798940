"""Machines of a whole cluster: as many as were asked for, whatever the command dies of."""

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.capacity.provider import Denied
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.deploy import cluster_machines
from dcos_tensorflow.deploy.cluster_machines import MachineGroup
from dcos_tensorflow.deploy.settings import collect
from dcos_tensorflow.scheduler.machines.standing_machines import StandingMachines
from dcos_tensorflow.state.store import StateStore, open_store
from unit.capacity.simulated_market import KEPT, SPOT, Killed, MarketInMemory

SPEC = CapacitySpec(CommandSpec(("rack",)), at_least=Resources(cpus=2.0))


class Place:
    """A market, a master whose agents are its machines, and a folder that survives commands."""

    def __init__(self, folder: Path, spec: CapacitySpec = SPEC) -> None:
        self.url = f"sqlite:///{folder / 'machines.db'}"
        self.spec = spec
        self.market = MarketInMemory(SPOT, KEPT)
        self.now = 1000.0
        self.busy: set[str] = set()
        self.closed: set[str] = set()
        self.dies = lambda: False

    def agents(self) -> Sequence[KnownAgent]:
        return [
            KnownAgent(
                name,
                name,
                deactivated=name in self.closed,
                used={"cpus": 1.0} if name in self.busy else {},
            )
            for name in self.market.named()
        ]

    @contextmanager
    def command(self) -> Iterator[StandingMachines]:
        """A command that leads, for as long as it lives."""
        with (
            closing(open_store(self.url, "cluster/machines")) as store,
            store.lead("a test", 5.0, lambda _: None),
        ):
            yield StandingMachines(
                _Mortal(store, self),  # type: ignore[arg-type]
                "cluster",
                self.spec,
                self.agents,
                self.offer,
                open_provider=lambda *_: _Dying(self),  # type: ignore[return-value]
                clock=self.clock,
            )

    def offer(self, agent_id: str, is_offered: bool) -> None:
        (self.closed.discard if is_offered else self.closed.add)(agent_id)

    def clock(self) -> float:
        self.now += 1.0
        self.market.now = self.now
        return self.now

    def until(self, machines: StandingMachines, wanted: int, **how: bool) -> None:
        for _ in range(200):
            machines.run_round(wanted, **how)
            if machines.there == wanted == machines.ledger.left:
                return
        raise AssertionError(machines.ledger)


class _Dying:
    """The market, asked by a process that may die before a call and after it."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __getattr__(self, call: str) -> object:
        def made(*given: object) -> object:
            self._may_die()
            answer = getattr(self.place.market, call)(*given)
            self._may_die()
            return answer

        return made

    def _may_die(self) -> None:
        if self.place.dies():
            raise Killed


class _Mortal:
    """The store of such a process."""

    def __init__(self, store: StateStore, place: Place) -> None:
        self.load = store.load
        self._store, self._place = store, place

    def commit(self, writes: Sequence[Write]) -> None:
        if self._place.dies():
            raise Killed
        self._store.commit(writes)
        if self._place.dies():
            raise Killed


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_so_many_machines_come_as_were_asked_for_and_no_more(place: Place) -> None:
    with place.command() as machines:
        place.until(machines, 3)
        machines.run_round(3)
    with place.command() as machines:
        place.until(machines, 4)
    assert len(place.market.all) == 4


def test_tasks_that_run_there_change_nothing(place: Place) -> None:
    with place.command() as machines:
        place.until(machines, 2)
        place.busy = set(place.market.named())
        machines.run_round(2)
    assert len(place.market.all) == 2


def test_a_machine_that_is_taken_back_is_replaced(place: Place) -> None:
    with place.command() as machines:
        place.until(machines, 2)
        place.market.end("i-0", "taken back")
        place.until(machines, 2)
    assert len(place.market.alive) == 2


def test_who_stays_replaces_what_is_taken_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def between_two_looks(_: float) -> None:
        if len(place.market.all) == 2:
            place.market.end("i-0", "taken back")
        elif len(place.market.alive) == 2:
            raise Killed

    monkeypatch.setattr(cluster_machines, "_led", lambda _: place.command())
    monkeypatch.setattr(cluster_machines, "sleep", between_two_looks)
    with suppress(Killed):
        asked = MachineGroup("cluster", SPEC, collect(None, {}, {}), WorkDirectory(Path("nowhere")))
        cluster_machines.up(asked, 2, wait=0.0, stay=True, say=lambda _: None)
    assert [m.machine_id for m in place.market.alive] == ["i-1", "i-2"]


def test_a_limit_is_held_and_told(place: Place) -> None:
    place.spec = replace(SPEC, max_instances=2)
    with place.command() as machines:
        found = machines.run_round(3)
    assert found.waits == (("the cluster", "it would take 3 machines; max_instances is 2"),)


def test_a_budget_that_is_spent_is_told(place: Place) -> None:
    place.spec = replace(SPEC, budget=0.35)
    with place.command() as machines:
        place.until(machines, 3)
        assert machines.run_round(3).stop == ""
        place.now += 4000.0
        assert "the budget of 0.35 is spent" in machines.run_round(3).stop


def test_a_refusal_is_told_and_nothing_more_is_asked_for_a_while(place: Place) -> None:
    place.market.fails["buy"] = [Denied("no right to buy")]
    with place.command() as machines:
        machines.run_round(1)
        found = machines.run_round(1)
    assert "no right to buy" in found.waits[0][1]


def test_where_tasks_run_machines_stay_and_are_offered_to_no_framework(place: Place) -> None:
    with place.command() as machines:
        place.until(machines, 2)
        place.busy = {"host-i-0"}
        assert machines.offer_agents(False) == ""
        for _ in range(5):
            machines.run_round(release=True)
        assert (machines.busy, [m.machine_id for m in place.market.alive]) == (1, ["i-0"])
        assert place.closed == {"host-i-0", "host-i-1"}
        place.busy = set()
        place.until(machines, 0, release=True)


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_step_nothing_is_bought_twice_and_none_is_forgotten(
    place: Place, seed: int
) -> None:
    chance = random.Random(seed)
    deaths = [0]

    def dies() -> bool:
        deaths[0] += chance.random() < 0.1
        return deaths[0] > before

    place.dies = dies
    for wanted, how in ((3, {}), (5, {}), (0, {"end": True})):
        for _ in range(100):
            before = deaths[0]
            with suppress(Killed), place.command() as machines:
                place.until(machines, wanted, **how)
                break
        else:
            pytest.fail("it died too often")
        assert len(place.market.alive) == wanted
    assert len(place.market.all) == 5
    assert deaths[0] > 0


def test_machines_of_another_cluster_of_the_same_name_are_left_alone(
    place: Place, tmp_path: Path
) -> None:
    with place.command() as machines:
        place.until(machines, 1)
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    other.market = place.market
    with other.command() as machines:
        other.until(machines, 0, end=True)
    assert len(place.market.alive) == 1
