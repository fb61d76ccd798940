"""``update start`` asks the scheduler whether it can take the options, before anybody gets them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.plugin.main import run
from servers.web_server import Handler, served

DESCRIBE, UPDATE = "/cosmos/service/describe", "/cosmos/service/update"
CHECK = "/service/tensorflow/v1/job/check?restart=true"
TARGET = "/service/tensorflow/v1/configurations/target"
CONFIG = {
    "properties": {
        "service": {"properties": {"name": {"default": "tensorflow"}}},
        "worker": {"properties": {"count": {"default": 3}, "mem": {"default": 4096}}},
    }
}
DESCRIBED = {
    "package": {"name": "tensorflow", "version": "1.0.0", "config": CONFIG},
    "resolvedOptions": {"service": {"name": "tensorflow"}, "worker": {"count": 7, "mem": 4096}},
}
WRONG = {
    "message": "the options are wrong",
    "problems": [{"path": "worker.count", "message": "must be at least 1", "given": "0"}],
}

Answers = dict[str, tuple[int, Any]]
Update = Callable[..., tuple[int, str]]


class Cluster:
    """A cluster with one service: answers by path, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.answers: Answers = {DESCRIBE: (200, DESCRIBED), CHECK: (200, {}), UPDATE: (200, {})}
        cluster = self

        class Answering(Handler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                cluster.asked.append((self.path, body))
                self.give(*cluster.answers[self.path])

            def do_GET(self) -> None:
                self.give(*cluster.answers.get(self.path, (404, "")))

            def give(self, status: int, answer: Any) -> None:
                self.answer(status, json.dumps(answer).encode())

        self.handler, self.url = Answering, ""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    with served(found.handler) as address:
        found.url = f"http://{address}"
        yield found


@pytest.fixture
def update(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Update:
    """Run ``dcos tensorflow update start``; return its exit code and what it prints."""

    def start(options: Any, *words: str) -> tuple[int, str]:
        file = tmp_path / "more.json"
        file.write_text(json.dumps(options))
        command = ["tensorflow", "update", "start", f"--options={file}", *words]
        code = run(command, {"DCOS_URL": cluster.url})
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return start


def test_options_that_the_scheduler_refuses_reach_no_package_manager(
    cluster: Cluster, update: Update
) -> None:
    cluster.answers[CHECK] = (400, WRONG)
    code, printed = update({"worker": {"count": 0}})
    assert (code, "worker.count: must be at least 1 (given: 0)" in printed) == (1, True), printed
    assert UPDATE not in cluster.paths


def test_a_problem_of_no_single_option_is_told_without_a_path(
    cluster: Cluster, update: Update
) -> None:
    problems = [{"path": "", "message": "the job cannot run"}]
    cluster.answers[CHECK] = (400, {"message": "wrong", "problems": problems})
    assert update({"worker": {"mem": 1}})[1].splitlines()[-1] == "  the job cannot run"


def test_a_change_that_the_job_cannot_make_reaches_no_package_manager(
    cluster: Cluster, update: Update
) -> None:
    cluster.answers[CHECK] = (417, {"message": "the strategy would change"})
    assert update({"service": {"strategy": "multi_worker"}}) == (
        1,
        "dcos-tensorflow: error: tensorflow cannot be changed so: the strategy would change\n",
    )
    assert UPDATE not in cluster.paths


def test_the_scheduler_is_asked_about_the_options_in_force_and_those_over_them(
    cluster: Cluster, update: Update
) -> None:
    update({"worker": {"mem": 1}})
    assert cluster.paths == [DESCRIBE, CHECK, UPDATE]
    whole = {"service": {"name": "tensorflow"}, "worker": {"count": 7, "mem": 1}}
    assert dict(cluster.asked)[CHECK] == whole


def test_with_replace_it_is_asked_about_the_defaults_and_those_over_them(
    cluster: Cluster, update: Update
) -> None:
    update({"worker": {"mem": 1}}, "--replace")
    whole = {"service": {"name": "tensorflow"}, "worker": {"count": 3, "mem": 1}}
    assert dict(cluster.asked)[CHECK] == whole


def test_the_options_of_a_scheduler_that_does_not_answer_can_be_mended(
    cluster: Cluster, update: Update
) -> None:
    cluster.answers[CHECK] = (502, {})
    code, printed = update({"worker": {"count": 1}})
    assert (code, cluster.paths[-1]) == (0, UPDATE)
    assert "only the package's own rules were checked" in printed


def test_of_another_version_of_the_package_the_scheduler_is_not_asked(
    cluster: Cluster, update: Update
) -> None:
    update({"worker": {"count": 1}}, "--package-version=2.0.0")
    assert cluster.paths == [UPDATE]


def test_a_service_that_cannot_be_described_is_the_package_managers_to_refuse(
    cluster: Cluster, update: Update
) -> None:
    refusal = (400, {"type": "MarathonAppNotFound", "message": "none"})
    cluster.answers |= {DESCRIBE: refusal, UPDATE: refusal}
    code, printed = update({"worker": {"count": 1}})
    assert (code, "There is no service tensorflow" in printed) == (1, True), printed


def test_options_that_are_no_object_are_refused_here(cluster: Cluster, update: Update) -> None:
    code, printed = update(["worker"])
    assert (code, "holds no JSON object" in printed, cluster.asked) == (1, True, [])


REFUSED = {"why": "no", "in_force": {"service.strategy": "auto", "worker.min_count": None}}
STORED = {"service": {"strategy": "multi_worker"}, "worker": {"count": 7, "min_count": 2}}


def test_what_was_refused_before_is_not_asked_for_again(cluster: Cluster, update: Update) -> None:
    cluster.answers[TARGET] = (200, {"name": "tensorflow", "refused": REFUSED})
    cluster.answers[DESCRIBE] = (200, {**DESCRIBED, "userProvidedOptions": STORED})
    code, printed = update({"worker": {"mem": 8192}})
    assert (code, "are refused, and those before stay in force: no" in printed) == (0, True)
    whole = {"service": {"strategy": "auto"}, "worker": {"count": 7, "mem": 8192}}
    asked = {"appId": "tensorflow", "options": whole, "replace": True}
    assert cluster.asked[-1] == (UPDATE, asked)


def test_describe_shows_what_is_in_force(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    resolved = {**DESCRIBED, "resolvedOptions": STORED}
    cluster.answers |= {TARGET: (200, {"refused": REFUSED}), DESCRIBE: (200, resolved)}
    assert run(["tensorflow", "describe"], {"DCOS_URL": cluster.url}) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"service": {"strategy": "auto"}, "worker": {"count": 7}}
    assert "stay in force: no" in printed.err
