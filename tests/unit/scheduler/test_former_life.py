"""By what a service whose state was lost knows its own former life, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentRefused, AgentUnreachable, HttpAccess
from dcos_tensorflow.scheduler import former_life
from dcos_tensorflow.scheduler.former_life import NO_FORMER_LIFE, FormerLife, find, labels

OURS = labels("job", "zk://h1:2181/jobs")


class Master(HttpAccess):
    """Answers ``/frameworks``; an exception is raised instead."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self._answers = list(answers)

    def get(self, address: Address, path: str) -> Any:
        assert path == "/frameworks"
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return {"frameworks": answer}


def framework(identifier: str, labelled: Any = OURS, since: float = 1.0, **more: Any) -> Any:
    found = [{"key": key, "value": value} for key, value in labelled.items()]
    return {"id": identifier, "registered_time": since, "labels": found, **more}


def away(why: str) -> AgentUnreachable:
    """Return what is raised for a master that does not answer."""
    error = AgentUnreachable(why)
    error.__cause__ = ConnectionRefusedError(111, why)
    return error


def look(*answers: Any) -> FormerLife | None:
    return find("h:5050", False, Master(*answers), OURS)


def test_services_of_another_name_or_place_have_other_labels() -> None:
    places = ("zk://h1:2181/jobs", "zk://h1:2181/others", "sqlite:////tmp/a.db")
    found = [labels(name, place) for name in ("job", "other") for place in places]
    assert len({str(one) for one in found}) == len(found)


def test_the_labels_do_not_depend_on_the_password() -> None:
    assert labels("job", "zk://me:secret@h1:2181/jobs") == OURS


def test_a_framework_without_the_label_is_nobody_of_ours() -> None:
    stranger = {"id": "F-1", "name": "job"}
    assert look([stranger, framework("F-2", labels("job", "zk://h2:2181"))]) == NO_FORMER_LIFE


def test_tasks_on_agents_that_do_not_answer_are_tasks_too() -> None:
    here, away = {"id": "t-1", "slave_id": "S-1"}, {"id": "t-2", "slave_id": "S-2"}
    known = framework("F-1", tasks=[here], unreachable_tasks=[away])
    assert look([known]) == FormerLife("F-1", {"t-1": "S-1", "t-2": "S-2"})


def test_the_newest_of_several_is_taken() -> None:
    assert look([framework("F-1"), framework("F-2", since=2.0)]) == FormerLife("F-2", {})


def test_a_master_that_does_not_answer_at_once_is_asked_again() -> None:
    assert look(away("not yet"), [framework("F-1")]) == FormerLife("F-1", {})


def test_a_master_is_asked_until_it_answers_and_it_is_told_why_it_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(former_life, "_PATIENCE_SECONDS", 0.05)
    master, told = Master(away("down")), []

    def waiting(why: str) -> bool:
        told.append(why)
        if len(told) == 3:
            master._answers = [[framework("F-1")]]
        return True

    assert find("h:5050", False, master, OURS, waiting) == FormerLife("F-1", {})
    assert len(told) == 3
    assert "down" in told[0]


def test_a_master_that_answers_with_something_else_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(former_life, "_PATIENCE_SECONDS", 0.05)
    assert look(AgentUnreachable("HTTP 404")) == NO_FORMER_LIFE


def test_a_scheduler_that_ends_asks_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former_life, "_PATIENCE_SECONDS", 0.05)
    master = Master(away("down"))
    assert find("h:5050", False, master, OURS, lambda why: False) is None


def test_a_master_that_does_not_let_us_look_is_not_asked_again() -> None:
    assert look(AgentRefused("401"), [framework("F-1")]) == NO_FORMER_LIFE
