"""Commands in tasks over HTTP: what the runner is asked, what is written down and refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api.audit import AuditLog
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.scheduler.runners.runner_request import RunnerRefused, RunnerSilent
from samples.states import a_record, a_state, running

EXEC = "/v1/pod/worker-0/exec"
ID = "0123456789abcdef" * 2


def began(client: Any, **body: Any) -> Any:
    return client.post(EXEC, json={"command": ["ls", "a b"], **body})


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def client(source: Any, client_of: Any, audited: Path) -> Any:
    source.current = running()
    return client_of(audit=AuditLog(audited))


def test_the_runner_of_the_task_starts_it_within_a_time(source: Any, client: Any) -> None:
    answer = began(client, timeout_seconds=7)
    assert answer.status_code == 200
    ((name, method, path, body),) = source.asked
    assert (name, method, path) == ("worker-0", "POST", "/v1/command")
    identifier = answer.json()["id"]
    assert json.loads(body) == {"id": identifier, "command": ["ls", "a b"], "seconds": 7.0}


def test_it_is_written_down_before_the_runner_hears_of_it(
    source: Any, client: Any, audited: Path
) -> None:
    written = []

    def runner() -> Any:
        written.extend(json.loads(line) for line in audited.read_text().splitlines())
        return {}

    source.runner = runner
    began(client)
    assert [entry["message"] for entry in written] == ["Received cmd: exec ls 'a b'"]


def test_a_secret_is_neither_in_what_is_printed_nor_in_what_is_written_down(
    source: Any, client: Any, audited: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "secret_texts", lambda: frozenset({"hunter2-is-secret"}))
    client.post(EXEC, json={"command": ["echo", "hunter2-is-secret"]})
    source.runner = {"output": [["stdout", "it is hunter2-is-secret\n"]], "next": 1}
    told = client.get(f"{EXEC}/{ID}").json()
    assert told["output"] == [["stdout", "it is <redacted>\n"]]
    assert "hunter2" not in audited.read_text()


def test_what_it_prints_is_asked_for_from_a_part_on(source: Any, client: Any) -> None:
    client.get(f"{EXEC}/{ID}?after=3")
    assert source.asked[0][1:3] == ("GET", f"/v1/command/output?id={ID}&after=3&wait=5")


def test_it_can_be_ended(source: Any, client: Any) -> None:
    assert client.post(f"{EXEC}/{ID}/stop").status_code == 200
    assert source.asked[0][1:3] == ("POST", f"/v1/command/end?id={ID}")


@pytest.mark.parametrize(
    ("raised", "status", "told"),
    [
        (RunnerRefused(409, "a command runs already: ls"), 409, "a command runs already: ls"),
        (RunnerRefused(404, "there is no /v1/command"), 409, "is of an earlier release"),
        (RunnerSilent("no answer in time"), 503, "no answer in time"),
    ],
)
def test_what_the_runner_refuses_is_told(
    source: Any, client: Any, raised: Exception, status: int, told: str
) -> None:
    source.runner = raised
    answer = began(client)
    assert answer.status_code == status
    assert told in answer.json()["message"]


def test_a_task_that_does_not_run_is_refused(source: Any, client: Any) -> None:
    source.current = a_state(records=[a_record("worker-0", TaskState.FINISHED)])
    answer = began(client)
    assert (answer.status_code, source.asked) == (409, [])
    assert answer.json()["message"] == "worker-0 is finished: a command runs in a task that runs"
    assert client.post("/v1/pod/worker-9/exec", json={"command": ["ls"]}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", '{"command": "ls"}', '{"command": []}', '{"command": ["a\\u0000"]}'),
        *('{"command": ["ls"], "timeout_seconds": 0}', '{"command": ["ls"], "shell": true}'),
        '{"command": ["ls"], "timeout_seconds": true}',
    ],
)
def test_nonsense_is_refused(source: Any, client: Any, body: str) -> None:
    answer = client.post(EXEC, content=body)
    assert (answer.status_code, source.asked) == (400, [])


@pytest.mark.parametrize("path", [f"{EXEC}/x", f"{EXEC}/{ID}?after=-1", f"{EXEC}/{ID}?after=x"])
def test_a_question_that_makes_no_sense_is_refused(client: Any, path: str) -> None:
    assert client.get(path).status_code == 400
