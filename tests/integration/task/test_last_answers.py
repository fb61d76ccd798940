"""What was asked of a task runner just before its end is answered all the same."""

import json
import threading
import time
import urllib.request

import pytest

from dcos_tensorflow.task.report.authentication import signed_headers
from dcos_tensorflow.task.report.listening import listen
from dcos_tensorflow.task.report.server import RunnerServer
from free_ports import free_port
from runner_process import TOKEN
from waiting import eventually, stays


class SlowToTell:
    """A runner whose status takes until ``told`` is set."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.told = threading.Event()

    def stop(self, reason: str, grace_seconds: float | None) -> None:
        self.stopped.set()

    def status(self) -> dict[str, str]:
        self.told.wait(60)
        return {"state": "exited"}

    def log(self, message: str) -> None: ...


class Asked:
    """``POST /v1/stop`` under way, and the server's end after it."""

    def __init__(self) -> None:
        self.runner = SlowToTell()
        port = free_port()
        self.server = RunnerServer(self.runner, TOKEN, listen(port))
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.threads = [
            threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True),
            threading.Thread(target=self.ask, args=(port,), daemon=True),
        ]
        for thread in self.threads:
            thread.start()
        assert self.runner.stopped.wait(60)
        self.end = threading.Thread(target=self.server.end, daemon=True)
        self.end.start()

    def ask(self, port: int) -> None:
        headers = signed_headers(TOKEN, "POST", "/v1/stop", int(time.time()), b"")
        url = f"http://127.0.0.1:{port}/v1/stop"
        request = urllib.request.Request(url, None, headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            self.answers.append((answer.status, json.load(answer)))

    def close(self) -> None:
        self.runner.told.set()
        for thread in (*self.threads, self.end):
            thread.join(60)


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr("dcos_tensorflow.task.report.server.LAST_ANSWERS_SECONDS", 60.0)
    asked = Asked()
    yield asked
    asked.close()


def test_the_end_waits_for_an_answer_that_is_under_way(asked):
    assert stays(asked.end.is_alive, 0.3)


def test_who_asked_for_the_end_gets_the_answer(asked):
    asked.runner.told.set()
    eventually(lambda: asked.answers == [(202, {"state": "exited"})])


def test_after_the_answer_the_end_comes(asked):
    asked.runner.told.set()
    eventually(lambda: not asked.end.is_alive())


def test_an_answer_that_takes_too_long_does_not_keep_the_task(asked, monkeypatch):
    monkeypatch.setattr("dcos_tensorflow.task.report.server.LAST_ANSWERS_SECONDS", 0.1)
    late = threading.Thread(target=asked.server.end, daemon=True)
    late.start()
    eventually(lambda: not late.is_alive())
