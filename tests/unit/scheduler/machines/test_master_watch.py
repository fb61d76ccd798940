"""Asking the master about a quota, and about silent machines, while a gang waits."""

from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.model.events import AgentsSeen, QuotaSeen
from dcos_tensorflow.core.model.gang import Misfit, Placing
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentRefused
from dcos_tensorflow.scheduler import master_watch
from dcos_tensorflow.scheduler.master_watch import (
    AGENTS,
    QUOTA,
    MasterWatch,
    Question,
    quota_in,
)
from samples.states import a_spec, a_state, changed, with_job

#: As a master of Mesos 1.12 answers, with a quota on a role and one without.
ROLES = {
    "roles": [
        {
            "name": "team",
            "weight": 1.0,
            "quota": {
                "role": "team",
                "guarantee": {},
                "limit": {"cpus": 4.0, "mem": 1024.0},
                "consumed": {"cpus": 3.0, "mem": 512.0, "ports": "[31000-31001]"},
            },
        },
        {
            "name": "other",
            "weight": 1.0,
            "quota": {"role": "other", "guarantee": {}, "limit": {}, "consumed": {}},
        },
    ]
}
FOUND = Quota("team", {"cpus": 4.0, "mem": 1024.0}, {"cpus": 3.0, "mem": 512.0})
MASTER = Address("master.example.org", 5050)


class Master:
    """Answers or refuses, and counts how often it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = ROLES if answer is None else answer
        self.asked: list[str] = []

    def get(self, address: Address, path: str) -> Any:
        self.asked.append(f"{address.url}{path}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class AtOnce(Executor):
    """Does what it is given in the caller's thread."""

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **named))
        return done


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_watch, "LOOK_SECONDS", 0.0)


class Watched:
    """A watch, the state that it looks at, and what it has told."""

    def __init__(
        self,
        master: Master,
        phase: JobPhase = JobPhase.PLACING,
        question: Question[Any] = QUOTA,
    ) -> None:
        self.state = a_state(phase, spec=a_spec(mesos_role="team/vision"))
        self.told: list[Any] = []
        self.watch = MasterWatch(question, lambda: MASTER, master, self._take, AtOnce())

    def look(self) -> None:
        self.watch.follow(self.state)

    def _take(self, event: Any) -> None:
        self.told.append(event)
        found = {"quota": event.quota} if isinstance(event, QuotaSeen) else {"silent": event.silent}
        self.state = changed(self.state, **found)


@pytest.mark.parametrize("mesos_role", ["team", "team/vision", "team/vision/night"])
def test_a_quota_holds_for_a_role_and_those_below_it(mesos_role: str) -> None:
    assert quota_in(ROLES, mesos_role) == FOUND


@pytest.mark.parametrize("mesos_role", ["other", "*", "teams", "unknown"])
def test_a_role_without_limits_has_no_quota(mesos_role: str) -> None:
    assert quota_in(ROLES, mesos_role) is None


def test_while_a_gang_waits_the_master_is_asked() -> None:
    master = Master()
    watched = Watched(master)
    watched.look()
    assert (master.asked, watched.told) == (
        ["http://master.example.org:5050/roles"],
        [QuotaSeen(FOUND)],
    )


def test_the_master_is_not_asked_at_every_look() -> None:
    master = Master()
    watched = Watched(master)
    watched.look()
    watched.look()
    assert len(master.asked) == 1


def test_what_is_known_already_is_not_told_again() -> None:
    watched = Watched(Master(), question=replace(QUOTA, every_seconds=0.0))
    watched.look()
    watched.look()
    assert watched.told == [QuotaSeen(FOUND)]


def test_when_nothing_waits_no_master_is_asked() -> None:
    master = Master()
    Watched(master, JobPhase.RUNNING).look()
    assert master.asked == []


def test_when_nothing_waits_any_more_the_quota_is_forgotten() -> None:
    watched = Watched(Master())
    watched.look()
    watched.state = with_job(watched.state, phase=JobPhase.RUNNING)
    watched.look()
    assert watched.told[-1] == QuotaSeen(None)


@pytest.mark.parametrize(
    "answer",
    [
        AgentRefused("403"),
        {"roles": [{}]},
        {"other": 1},
        [],
        {"roles": [{"name": "team", "quota": 3}]},
    ],
)
def test_a_master_that_does_not_tell_is_no_error(answer: Any) -> None:
    watched = Watched(Master(answer))
    watched.look()
    assert watched.told == []


def test_a_gang_that_has_just_begun_to_wait_is_no_reason_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(master_watch, "LOOK_SECONDS", 60.0)
    master = Master()
    Watched(master).look()
    assert master.asked == []


#: As a master of Mesos 1.12 answers, shortened: an agent that no job without GPUs is offered, one
#: that does not answer, and one that has not come back.
SLAVES = {
    "slaves": [
        {
            "id": "S0",
            "hostname": "gpu-1",
            "resources": {"cpus": 4.0, "mem": 8192.0, "gpus": 1.0, "ports": "[31000-31999]"},
            "used_resources": {"cpus": 0.0, "mem": 0.0, "gpus": 0.0},
            "reserved_resources": {},
            "active": True,
            "deactivated": False,
        },
        {"id": "S1", "hostname": "h1", "resources": {}, "active": False, "deactivated": False},
    ],
    "recovered_slaves": [{"id": "S2", "hostname": "h2", "resources": {}}],
}


def test_while_a_gang_waits_the_master_is_asked_which_machines_make_no_offers() -> None:
    master = Master(SLAVES)
    watched = Watched(master, question=AGENTS)
    watched.look()
    (event,) = watched.told
    assert isinstance(event, AgentsSeen)
    assert master.asked == ["http://master.example.org:5050/slaves"]
    assert [(one.hostnames, one.count) for one in event.silent] == [
        (("gpu-1",), 1),
        (("h1",), 1),
        (("h2",), 1),
    ]
    watched.state = with_job(watched.state, phase=JobPhase.RUNNING)
    watched.look()
    assert watched.told[-1] == AgentsSeen(())


def test_a_member_that_fits_nowhere_while_the_others_train_waits_too() -> None:
    watched = Watched(Master(SLAVES), JobPhase.RUNNING, AGENTS)
    waiting = Placing(misfits=(Misfit("worker-2", "no room"),))
    gangs = {name: replace(g, placing=waiting) for name, g in watched.state.gangs.items()}
    watched.state = replace(watched.state, gangs=gangs)
    watched.look()
    assert len(watched.told) == 1


@pytest.mark.parametrize("answer", [{"slaves": [{}]}, {"slaves": 3}, {"other": 1}, []])
def test_a_list_that_cannot_be_read_is_no_error(answer: Any) -> None:
    watched = Watched(Master(answer), question=AGENTS)
    watched.look()
    assert watched.told == []


def test_an_answer_that_takes_long_is_asked_for_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(master_watch, "RARELY", 1e12)
    master = Master()
    watched = Watched(master, question=replace(QUOTA, every_seconds=0.0))
    for _ in range(4):
        watched.look()
    assert len(master.asked) == 2
