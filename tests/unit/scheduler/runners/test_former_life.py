"""By what a service whose state was lost knows its own former life, and no other's."""

from typing import Any

import pytest

from dcos_tensorflow.core.model.events import Disconnected, Event, FormerLifeKnown
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentRefused, AgentUnreachable, HttpAccess
from dcos_tensorflow.scheduler.former_life import labels, search

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


def told(*answers: Any, asked: int = 1000) -> list[Event]:
    """Return what is told by a search that goes on for so many questions."""
    events: list[Event] = []
    left = iter(range(asked))
    search(
        *("h:5050", False, Master(*answers), OURS),
        tell=events.append,
        goes_on=lambda seconds: next(left, None) is not None,
    )
    return events


def look(*answers: Any) -> Event:
    return told(*answers)[-1]


def test_services_of_another_name_or_place_have_other_labels() -> None:
    places = ("zk://h1:2181/jobs", "zk://h1:2181/others", "sqlite:////tmp/a.db")
    found = [labels(name, place) for name in ("job", "other") for place in places]
    assert len({str(one) for one in found}) == len(found)


def test_the_labels_do_not_depend_on_the_password() -> None:
    assert labels("job", "zk://me:secret@h1:2181/jobs") == OURS


def test_a_framework_without_the_label_is_none_of_ours() -> None:
    stranger = {"id": "F-1", "name": "job"}
    assert look([stranger, framework("F-2", labels("job", "zk://h2:2181"))]) == FormerLifeKnown()


def test_tasks_on_agents_that_do_not_answer_are_tasks_too() -> None:
    here, away = {"id": "t-1", "slave_id": "S-1"}, {"id": "t-2", "slave_id": "S-2"}
    known = framework("F-1", tasks=[here], unreachable_tasks=[away])
    assert look([known]) == FormerLifeKnown("F-1", {"t-1": "S-1", "t-2": "S-2"})


def test_the_newest_of_several_is_taken() -> None:
    found = look([framework("F-1"), framework("F-2", since=2.0)])
    assert found == FormerLifeKnown("F-2")


@pytest.mark.parametrize("failures", [1, 500])
def test_a_master_is_asked_until_it_answers(failures: int) -> None:
    slow = [AgentUnreachable("not yet")] * failures
    assert look(*slow, [framework("F-1")]) == FormerLifeKnown("F-1")


def test_an_answer_that_makes_no_sense_is_none() -> None:
    assert look([{"id": "F-0", "labels": 3}], [framework("F-1")]) == FormerLifeKnown("F-1")


def test_a_master_that_never_answers_leaves_it_unknown_and_it_is_told_why() -> None:
    assert told(AgentUnreachable("down")) == [Disconnected("down")]


def test_a_master_that_does_not_let_us_look_is_not_asked_again() -> None:
    assert told(AgentRefused("401"), [framework("F-1")]) == [FormerLifeKnown()]
