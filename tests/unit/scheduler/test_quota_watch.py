"""Asking the master about a quota while a gang waits."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import pytest

from dcos_tensorflow.core.model.events import QuotaSeen
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentRefused
from dcos_tensorflow.scheduler import quota_watch
from dcos_tensorflow.scheduler.quota_watch import QuotaWatch, quota_in
from sample_states import a_spec, a_state, changed, with_job

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
    monkeypatch.setattr(quota_watch, "LOOK_SECONDS", 0.0)


class Watched:
    """A watch, the state that it looks at, and what it has told."""

    def __init__(self, master: Master, phase: JobPhase = JobPhase.PLACING) -> None:
        self.state = a_state(phase, spec=a_spec(mesos_role="team/vision"))
        self.told: list[QuotaSeen] = []
        self.watch = QuotaWatch(lambda: MASTER, master, self._take, AtOnce())

    def look(self) -> None:
        self.watch.look(self.state)

    def _take(self, event: QuotaSeen) -> None:
        self.told.append(event)
        self.state = changed(self.state, quota=event.quota)


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


def test_what_is_known_already_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_watch, "ASK_SECONDS", 0.0)
    watched = Watched(Master())
    watched.look()
    watched.look()
    assert watched.told == [QuotaSeen(FOUND)]


def test_when_nothing_waits_nobody_is_asked() -> None:
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
    monkeypatch.setattr(quota_watch, "LOOK_SECONDS", 60.0)
    master = Master()
    Watched(master).look()
    assert master.asked == []
