"""SIGKILL of the scheduler at each step of a life on EC2: nothing is forgotten or bought twice.

The steps are those that EC2 sees: a call that does not arrive, one whose answer is lost. Then
it is killed at random moments, while machines go with and without a notice.
"""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.capacity.providers.ec2_facts import PURCHASE_TAG
from jobs.ec2_job import Ec2Job, all_given_back, machines_of
from scheduler_process import SchedulerProcess
from servers.ec2_server import Refusal
from servers.metadata_service import MetadataService
from waiting import eventually

#: Of a spot machine an hour; the budget is far more than what is spent in the test.
PRICE, BUDGET = 30.0, 200.0
MOST = 4
#: At random moments, so many of them in each life.
KILLS, KILLS_EACH = min(100, int(os.environ.get("KILLS", "10"))), 10
NEVER = Refusal("InternalError", "The answer is lost.", 500)
BEFORE_FLEET, AFTER_FLEET, AGENTLESS = "before a purchase", "after a purchase", "without agents"
TRAINING, NOTICED = "while it trains", "after a notice"
BEFORE_END, AFTER_END = "before the machines end", "after their end"
#: In the order of a life.
ALL = (BEFORE_FLEET, AFTER_FLEET, AGENTLESS, TRAINING, NOTICED, BEFORE_END, AFTER_END)
#: A machine whose end did not arrive is ended a minute later: that is not for the gate.
SOME = (AFTER_FLEET, TRAINING, AFTER_END)


class Life:
    """A job whose scheduler is killed again and again, and followed by another one."""

    def __init__(self, folder: Path, served: MetadataService) -> None:
        #: The job ends when this is there.
        self.end = folder / "end"
        self.job = Ec2Job(
            folder,
            {"job_cmd": f"until test -e {self.end}; do sleep 0.1; done", "kill_grace_seconds": 1},
            {"budget": BUDGET, "max_instances": MOST},
            worker_environment={"AWS_EC2_METADATA_SERVICE_ENDPOINT": served.url},
        )
        self.job.ec2.spot_prices = {"us-east-1a": PRICE}
        self.served = served
        self.most = self.kills = 0
        self.scheduler: SchedulerProcess = self.job.scheduler()
        self._follow = self.job.ec2.on_change
        self.job.ec2.on_change = self._changed

    def _changed(self) -> None:
        self._follow()
        self.most = max(self.most, len(self.job.alive))

    def killed(self) -> None:
        """Kill the scheduler; another one follows."""
        self.kills += 1
        self.scheduler.kill()
        self.scheduler = self.job.scheduler()

    def killed_before(self, action: str) -> None:
        """Kill it by its next call of this kind, which is not carried out."""
        heard: list[str] = []

        def refusal(name: str, _: dict[str, str]) -> Refusal | None:
            if name != action:
                return None
            self.scheduler.process.kill()
            heard.append(name)
            return NEVER

        self.job.ec2.refusal = refusal
        eventually(lambda: heard, seconds=60, what=lambda: self.scheduler.log[-2000:])
        self.job.ec2.refusal = lambda *_: None
        self.killed()

    def killed_by_chance(self, chance: random.Random) -> None:
        """Kill it soon after EC2 has heard so many calls of it, however quick this machine is."""
        calls, due = chance.randint(1, 40), threading.Event()

        def refusal(*_: object) -> None:
            nonlocal calls
            calls -= 1
            if calls == 0:
                due.set()

        self.job.ec2.refusal = refusal
        eventually(due.is_set, seconds=120, what=lambda: f"calls: {self.scheduler.log[-2000:]}")
        threading.Event().wait(chance.uniform(0.0, 0.3))
        self.killed()

    def killed_after_change(self, *, agents: bool = True) -> None:
        """Kill it when it has made or ended machines, before it hears of that."""
        heard: list[bool] = []
        process = self.scheduler.process

        def changed() -> None:
            process.kill()
            if agents:
                self._changed()
            heard.append(True)

        self.job.ec2.on_change = changed
        eventually(lambda: heard, seconds=120, what=lambda: self.scheduler.log[-2000:])
        self.job.ec2.on_change = self._changed
        self.killed()

    def taken_back(self) -> None:
        """Give the machines notice, kill the scheduler when it has it, and take them."""
        old = self.job.with_tasks()
        self.served.interrupt()
        self.scheduler.says("says that it is taken back")
        self.killed()
        eventually(
            lambda: self.served.told.count("spot/instance-action") >= 2, seconds=60, what="notices"
        )
        del self.served.facts["spot/instance-action"]
        eventually(
            lambda: len(self.job.with_tasks() - old) == 2,
            seconds=90,
            what=lambda: f"all have moved: {self.scheduler.log[-2000:]}",
        )
        self.job.ec2.take_back(old)


@pytest.fixture
def served() -> Iterator[MetadataService]:
    with MetadataService() as made:
        yield made


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(SOME, id="some"),
        *(pytest.param((step,), id=step, marks=pytest.mark.soak) for step in ALL),
        pytest.param(ALL, id="all", marks=pytest.mark.soak),
    ],
)
def test_no_machine_is_forgotten_or_bought_twice(
    steps: tuple[str, ...], tmp_path: Path, served: MetadataService
) -> None:
    life = Life(tmp_path, served)
    job = life.job
    try:
        if BEFORE_FLEET in steps:
            life.killed_before("CreateFleet")
        if AFTER_FLEET in steps or AGENTLESS in steps:
            life.killed_after_change(agents=AGENTLESS not in steps)
        if AGENTLESS in steps:
            eventually(
                lambda: len(machines_of(life.scheduler)["machines"]) == 2,
                seconds=60,
                what="the next scheduler knows of them",
            )
            life.killed()
            job.ec2.on_change()
        life.scheduler.wait_for("running")
        if TRAINING in steps:
            life.killed()
            life.scheduler.wait_for("running")
        if NOTICED in steps:
            life.taken_back()
            life.scheduler.wait_for("running")
        assert len(job.alive) == 2
        spent = machines_of(life.scheduler)["spent"]

        life.end.touch()
        if BEFORE_END in steps:
            life.killed_before("TerminateInstances")
            assert len(job.alive) == 2
        if AFTER_END in steps:
            life.killed_after_change()
        eventually(
            lambda: not job.alive,
            seconds=120,
            what=lambda: f"the end of every machine: {life.scheduler.log[-2000:]}",
        )
    finally:
        job.close()
    bought = 4 if NOTICED in steps else 2
    assert len(job.instances) == bought
    assert life.most <= bought
    assert spent < BUDGET


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(0, KILLS, KILLS_EACH))
def test_no_machine_is_forgotten_or_bought_twice_whenever_the_scheduler_is_killed(
    seed: int, tmp_path: Path, served: MetadataService
) -> None:
    life, chance = Life(tmp_path, served), random.Random(seed)
    job = life.job
    try:
        while life.kills < KILLS_EACH:
            happens = chance.choice(("a notice", "a loss", "nothing"))
            going = {each.id for each in job.alive if happens != "nothing"}
            if happens == "a notice":
                served.interrupt()
                life.killed_by_chance(chance)
            served.facts.clear()
            job.ec2.take_back(going)
            life.killed_by_chance(chance)
        life.scheduler.wait_for("running")
        life.end.touch()
        life.scheduler.wait_for("done")
        found = all_given_back(life.scheduler)
        assert not job.alive
    finally:
        job.close()
    assert {machine["machine_id"] for machine in found["ended"]} == {i.id for i in job.instances}
    tags = [{t["key"]: t["value"] for t in each.get_tags()} for each in job.instances]
    # Each order is one for two machines, or for one in the place of another.
    assert max(Counter(each[PURCHASE_TAG] for each in tags).values()) <= 2
    assert life.most <= MOST
    assert float(found["bill"]["total"]["paid"]) <= float(found["spent"]) <= BUDGET
