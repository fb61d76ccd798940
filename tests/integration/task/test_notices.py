"""What a spot machine says of its own end, and how the task's status says it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import dcos_tensorflow
from dcos_tensorflow.task.supervise.notices import (
    ENDPOINT_VARIABLE,
    MetadataService,
    Notice,
    NoticeWatch,
    read_notice,
)
from free_ports import free_port
from runner_process import Starter, Task
from servers.metadata_service import MetadataService as Served

WAIT = "print('ready', flush=True)\nimport time\nwhile True: time.sleep(60)\n"
FRAMEWORK = Path(dcos_tensorflow.__file__).parents[1]
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
    assert lines[0].startswith("no notice of this spot machine can be read at http://")


def test_the_status_tells_of_the_end_of_the_machine(start: Starter, served: Served) -> None:
    task = start(WAIT, variables={ENDPOINT_VARIABLE: served.url}, is_spot=True)
    assert task.wait_for_state("running")["notice"] is None
    at = served.interrupt()
    status = task.wait_for_status(lambda status: status["notice"], "the notice")
    assert status["notice"] == {"kind": "interruption", "at": at}


def going_down(folder: Path) -> list[str]:
    """The runner's program on a machine that says that it goes down, while a file is there."""
    code = (
        f"import sys; sys.path.insert(0, {str(FRAMEWORK)!r});"
        " from dcos_tensorflow.task import program, runner;"
        f" runner.NO_LOGIN = {str(folder / 'nologin')!r}; sys.exit(program.main(sys.argv[1:]))"
    )
    return ["-c", code]


SAVES = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{WAIT}"


def ended(start: Starter) -> Task:
    """A task that saves because it got SIGTERM."""
    task = start(SAVES, grace_seconds=60)
    task.wait_for_text("ready")
    task.process.terminate()
    return task


def test_who_is_ended_with_its_machine_says_so(tmp_path: Path) -> None:
    start = Starter(tmp_path, going_down(tmp_path))
    (tmp_path / "nologin").touch()
    try:
        found = ended(start).wait_for_status(lambda status: status["notice"], "the notice")
    finally:
        start.close()
    assert found["notice"]["kind"] == "interruption"


def test_who_is_ended_alone_says_nothing_of_its_machine(start: Starter) -> None:
    task = ended(start)
    task.wait_for_text("SIGTERM", "stderr")
    assert task.wait_for_state("stopping")["notice"] is None


def test_no_other_machine_is_asked(start: Starter, served: Served) -> None:
    task = start(WAIT, variables={ENDPOINT_VARIABLE: served.url})
    task.wait_for_text("ready")
    task.wait_for_state("running")
    assert task.status()["notice"] is None
    assert served.requests == []
