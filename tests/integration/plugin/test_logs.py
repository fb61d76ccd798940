"""``logs``, ``options`` and ``tensorboard`` against a small cluster that serves just them."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dcos_tensorflow.plugin import logs
from dcos_tensorflow.plugin.main import run
from servers.web_server import Handler, served
from waiting import eventually


class SmallCluster:
    """Answers by path; event streams are cut after each event, as a bad network would."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.logs: dict[str, list[str]] = {}
        #: Tasks whose streams stay open, as those of a cluster do.
        self.lasting: set[str] = set()
        #: Tasks whose next stream gives a line and then nothing, nor an end.
        self.stalling: set[str] = set()
        #: Tasks whose log the cluster refuses, with the status.
        self.refusing: dict[str, int] = {}
        #: How often the job must be asked for until a task's second line is given.
        self.late: dict[str, int] = {}
        self.job_asked = 0
        #: At which of these questions the scheduler is away.
        self.away_at: tuple[int, ...] = ()
        self.closing = threading.Event()
        small = self

        class Answers(Handler):
            def do_GET(self) -> None:
                if self.path.startswith("/system/v1/logs/v2/task/"):
                    self.log_of(self.path.split("/")[6])
                    return
                name = self.path.partition("/v1/")[2]
                small.job_asked += name == "job"
                body = small.answers.get(name)
                if name == "job" and small.job_asked in small.away_at:
                    self.answer(502, b"no scheduler", Content_Type="text/plain")
                elif body is None:
                    self.answer(404, b"Element not found", Content_Type="text/plain")
                else:
                    self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

            def log_of(self, task_id: str) -> None:
                lines = small.logs.get(task_id)
                if task_id in small.refusing:
                    self.answer(small.refusing[task_id], b"refused", Content_Type="text/plain")
                elif lines is None:
                    self.answer(404, b"no such task", Content_Type="text/plain")
                elif "event-stream" not in self.headers["Accept"]:
                    number = int(self.path.rpartition("-")[2])
                    text = "".join(f"{line}\n" for line in lines[-number:])
                    self.answer(200 if lines else 204, text.encode(), Content_Type="text/plain")
                else:
                    self.follow(task_id, lines)

            def follow(self, task_id: str, lines: list[str]) -> None:
                after = int(self.headers.get("Last-Event-ID") or 0)
                if after == 1 and task_id in small.late:
                    eventually(lambda: small.job_asked >= small.late[task_id], seconds=10)
                stalls = task_id in small.stalling
                small.stalling.discard(task_id)
                one_only = stalls or task_id not in small.lasting
                events = [
                    f"id: {place}\ndata: {json.dumps({'fields': {'MESSAGE': line}})}\n\n"
                    for place, line in list(enumerate(lines, 1))[after:]
                ]
                text = ": a sign of life\n\n" + "".join(events[:1] if one_only else events)
                if task_id not in small.lasting:
                    self.answer(200, text.encode(), Content_Type="text/event-stream")
                    return
                # At once: how long it takes from the head to the lines is not what is tested.
                self.wfile.write(f"HTTP/1.0 200 OK\r\n\r\n{text}".encode())
                small.closing.wait()

        self.handler = Answers
        self.environ: dict[str, str] = {}

    def tasks(self, status: str, *names: str) -> None:
        instances = [
            {"name": name, "tasks": [{"id": f"tf__{name}__1", "name": name, "status": status}]}
            for name in names
        ]
        self.answers["pod/status"] = {"pods": [{"name": "worker", "instances": instances}]}


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    small = SmallCluster()
    with served(small.handler) as address:
        small.environ["DCOS_URL"] = f"http://{address}"
        yield small
        small.closing.set()


Captured = pytest.CaptureFixture[str]


def test_all_tasks_are_printed_with_their_names(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.tasks("RUNNING", "worker-0", "worker-10")
    cluster.logs = {"tf__worker-0__1": ["a", "b", "c"], "tf__worker-10__1": ["d"]}
    assert run(["tensorflow", "logs", "--lines", "2"], cluster.environ) == 0
    assert capsys.readouterr().out == "worker-0  | b\nworker-0  | c\nworker-10 | d\n"


def test_one_task_is_printed_as_it_is(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.tasks("RUNNING", "worker-0", "worker-1")
    cluster.logs = {"tf__worker-0__1": ["a"], "tf__worker-1__1": ["b"]}
    assert run(["tensorflow", "logs", "worker-1"], cluster.environ) == 0
    assert capsys.readouterr().out == "b\n"


def test_a_task_without_output_prints_nothing(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.tasks("RUNNING", "worker-0")
    cluster.logs = {"tf__worker-0__1": []}
    assert run(["tensorflow", "logs"], cluster.environ) == 0
    assert capsys.readouterr() == ("", "")


def test_a_log_that_cannot_be_read_is_told_and_the_others_are_printed(
    cluster: SmallCluster, capsys: Captured
) -> None:
    cluster.tasks("RUNNING", "worker-0", "worker-1")
    cluster.logs = {"tf__worker-1__1": ["b"]}
    assert run(["tensorflow", "logs"], cluster.environ) == 0
    printed = capsys.readouterr()
    assert printed.out == "worker-1 | b\n"
    assert "worker-0: stdout cannot be read (404" in printed.err


def test_a_task_that_was_never_started_is_named(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.tasks("RUNNING", "worker-0")
    assert run(["tensorflow", "logs", "worker-7"], cluster.environ) == 1
    assert "No task worker-7 has been started; there are worker-0" in capsys.readouterr().err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that follows a log looks more often than for a person."""
    monkeypatch.setattr(logs, "_LOOK_SECONDS", 0.3)
    monkeypatch.setattr(logs, "_AGAIN_SECONDS", 0.02)


@pytest.fixture
def done(cluster: SmallCluster, quick: None) -> SmallCluster:
    """A cluster with two tasks of a job that is done."""
    cluster.tasks("FINISHED", "worker-0", "worker-1")
    cluster.answers["job"] = {"phase": "done"}
    cluster.logs = {"tf__worker-0__1": ["a", "b", "c"], "tf__worker-1__1": ["d", "e"]}
    return cluster


def all_lines_once(printed: str) -> bool:
    """Say whether all lines of ``done`` were printed, those of a task in their order."""
    lines = printed.splitlines()
    of_each = [[line for line in lines if f"worker-{n} |" in line] for n in (0, 1)]
    return len(lines) == 5 and of_each == [
        [f"worker-0 | {x}" for x in "abc"],
        [f"worker-1 | {x}" for x in "de"],
    ]


def test_following_prints_each_line_once_over_broken_streams_and_ends_with_the_job(
    done: SmallCluster, capsys: Captured
) -> None:
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    printed = capsys.readouterr()
    assert all_lines_once(printed.out), printed
    assert printed.err == ""


def test_following_goes_on_when_the_scheduler_is_back(done: SmallCluster, capsys: Captured) -> None:
    done.away_at = (2, 3)
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    printed = capsys.readouterr()
    assert all_lines_once(printed.out), printed
    assert printed.err.count("Waiting for it to come back.") == 1


def test_a_scheduler_that_is_away_from_the_beginning_is_not_waited_for(
    done: SmallCluster, capsys: Captured
) -> None:
    done.away_at = (1,)
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 1
    assert "may still be starting" in capsys.readouterr().err


def test_following_waits_for_a_log_that_is_given_late(done: SmallCluster, capsys: Captured) -> None:
    # Each time it is asked whether the job is done, it is.
    done.late["tf__worker-0__1"] = 5
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    printed = capsys.readouterr()
    assert all_lines_once(printed.out), printed


def test_following_ends_with_the_job_though_the_streams_stay_open(
    done: SmallCluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_LOOK_SECONDS", 1.0)
    done.lasting = set(done.logs)
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    printed = capsys.readouterr()
    assert all_lines_once(printed.out), printed


def test_what_a_stream_that_hangs_did_not_give_is_asked_for_again_at_the_end(
    done: SmallCluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_LOOK_SECONDS", 1.0)
    done.lasting, done.stalling = set(done.logs), {"tf__worker-0__1"}
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    printed = capsys.readouterr()
    assert all_lines_once(printed.out), printed


def test_following_a_task_that_has_written_nothing_ends_with_the_job(
    done: SmallCluster, capsys: Captured
) -> None:
    done.logs = {"tf__worker-0__1": []}
    assert run(["tensorflow", "logs", "--follow"], done.environ) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("status", [403, 503])
def test_following_a_log_that_the_cluster_does_not_give_ends_and_says_so(
    done: SmallCluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(logs, "_PATIENCE_SECONDS", 1.0)
    done.refusing["tf__worker-0__1"] = status
    assert run(["tensorflow", "logs", "--follow", "worker-0"], done.environ) == 0
    assert f"worker-0: stdout cannot be read to its end ({status}" in capsys.readouterr().err


def test_the_options_in_force_are_printed(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.answers["configurations/target"] = {"options": {"worker": {"count": 2}}}
    assert run(["tensorflow", "options"], cluster.environ) == 0
    assert json.loads(capsys.readouterr().out) == {"worker": {"count": 2}}


def test_tensorboard_tells_its_address(cluster: SmallCluster, capsys: Captured) -> None:
    cluster.answers["endpoints/tensorboard"] = {"address": ["10.0.0.1:6006"], "dns": []}
    assert run(["tensorflow", "tensorboard"], cluster.environ) == 0
    assert capsys.readouterr().out == "http://10.0.0.1:6006\n"


def test_a_service_without_tensorboard_says_how_to_get_one(
    cluster: SmallCluster, capsys: Captured
) -> None:
    assert run(["tensorflow", "tensorboard"], cluster.environ) == 1
    assert "service.use_tensorboard" in capsys.readouterr().err


def test_why_is_a_sentence_for_the_job_and_one_for_each_task(
    cluster: SmallCluster, capsys: Captured
) -> None:
    cluster.answers["why"] = {
        "phase": "placing",
        "why": "2 tasks wait",
        "tasks": {"worker-0": {"why": "needs 2 gpus"}},
    }
    assert run(["tensorflow", "why"], cluster.environ) == 0
    assert capsys.readouterr().out == (
        "tensorflow is placing: 2 tasks wait\n  worker-0: needs 2 gpus\n"
    )
