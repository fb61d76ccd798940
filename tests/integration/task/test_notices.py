"""What a spot machine says of its own end, and how the task's status says it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dcos_tensorflow.task.notices import (
    ENDPOINT_VARIABLE,
    MetadataService,
    Notice,
    NoticeWatch,
    read_notice,
)
from free_ports import free_port
from metadata_service import MetadataService as Served
from runner_process import Starter

WAIT = "print('ready', flush=True)\nimport time\nwhile True: time.sleep(60)\n"
INTERRUPTION = "spot/instance-action"
REBALANCE = "events/recommendations/rebalance"
TIME = "2026-11-23T17:00:00Z"
AT = 1795453200.0


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as service:
        yield service


def told(served: Served) -> Notice | None:
    return read_notice(MetadataService(served.url))


def test_a_machine_that_stays_says_nothing(served: Served) -> None:
    assert told(served) is None


def test_a_machine_that_goes_says_when(served: Served) -> None:
    served.facts[REBALANCE] = f'{{"noticeTime": "{TIME}"}}'
    assert told(served) == Notice("rebalance", AT)
    served.facts[INTERRUPTION] = f'{{"action": "terminate", "time": "{TIME}"}}'
    assert told(served) == Notice("interruption", AT)


def test_one_token_does_for_many_looks(served: Served) -> None:
    service = MetadataService(served.url)
    for _ in range(3):
        read_notice(service)
    assert [method for method, _ in served.requests].count("PUT") == 1


@pytest.mark.parametrize("text", ["", "soon", "[]", "{}", '{"time": 3}', '{"time": "soon"}'])
def test_an_answer_that_says_nothing_is_an_error(served: Served, text: str) -> None:
    served.facts[INTERRUPTION] = text
    with pytest.raises(ValueError):  # noqa: PT011
        told(served)


def watch(url: str) -> tuple[NoticeWatch, threading.Event, list[str]]:
    changed, lines = threading.Event(), []
    found = NoticeWatch({ENDPOINT_VARIABLE: url}, changed.set, lines.append, look_seconds=0.01)
    return found, changed, lines


def test_a_watch_ends_when_the_machine_is_known_to_go(served: Served) -> None:
    found, changed, lines = watch(served.url)
    found.start()
    at = served.interrupt()
    assert changed.wait(20)
    assert found.notice == Notice("interruption", at)
    assert lines[0].startswith("this machine is taken back in ")


def test_an_answer_that_fails_once_is_asked_for_again(served: Served) -> None:
    found, changed, _ = watch(served.url)
    served.facts[INTERRUPTION] = "soon"
    found.start()
    served.interrupt()
    assert changed.wait(20)


def test_a_machine_without_such_a_service_is_not_asked_for_ever() -> None:
    found, changed, lines = watch(f"http://127.0.0.1:{free_port()}")
    found._watch()
    assert not changed.is_set()
    assert len(lines) == 1
    assert lines[0].startswith("nothing is told of the end of this spot machine at http://")


def test_the_status_tells_of_the_end_of_the_machine(start: Starter, served: Served) -> None:
    task = start(WAIT, variables={ENDPOINT_VARIABLE: served.url}, is_spot=True)
    assert task.wait_for_state("running")["notice"] is None
    at = served.interrupt()
    status = task.wait_for_status(lambda status: status["notice"], "the notice")
    assert status["notice"] == {"kind": "interruption", "at": at}


def test_no_other_machine_is_asked(start: Starter, served: Served) -> None:
    task = start(WAIT, variables={ENDPOINT_VARIABLE: served.url})
    task.wait_for_text("ready")
    task.wait_for_state("running")
    assert task.status()["notice"] is None
    assert served.requests == []
