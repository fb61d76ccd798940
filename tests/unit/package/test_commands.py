"""The commands that know of the package: ``package render``, and ``scheduler`` in its app."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.errors import EXIT_USAGE
from dcos_tensorflow.package.definition import Package, repository_document

URL = "https://repository.example.org/1"
JOB = {"service": {"job_url": "https://example.org/mnist.zip", "job_name": "mnist"}}

Render = Callable[..., tuple[int, str, str]]


@pytest.fixture
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Render:
    def run(options: dict[str, Any], *arguments: str) -> tuple[int, str, str]:
        path = tmp_path / "job.json"
        path.write_text(json.dumps(options))
        code = run_command_line(["package", "render", "--options", str(path), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_the_app_is_printed_as_json(render: Render) -> None:
    _, out, _ = render(JOB, "--artifact-url", URL)
    assert json.loads(out)["fetch"][0]["uri"].startswith(URL)


def test_an_options_file_may_hold_objects(render: Render) -> None:
    options = {"service": {**JOB["service"], "env": {"A": "1"}}}
    _, out, _ = render(options, "--artifact-url", URL)
    assert json.loads(out)["env"]["OPTION__SERVICE__ENV"] == '{"A": "1"}'


def test_another_cluster_is_where_the_scheduler_keeps_its_state(render: Render) -> None:
    _, out, _ = render(JOB, "--artifact-url", URL, "--master", "zk://a:2181,b:2181/mesos")
    env = json.loads(out)["env"]
    assert env["DCOS_TENSORFLOW_MASTER"] == "zk://a:2181,b:2181/mesos"
    assert env["DCOS_TENSORFLOW_STATE"] == "zk://a:2181,b:2181"


def test_the_login_of_zookeeper_is_in_a_file_that_the_app_names(render: Render) -> None:
    _, out, _ = render(JOB, "--artifact-url", URL, "--zookeeper-login-file", "/etc/login")
    assert json.loads(out)["env"]["DCOS_TENSORFLOW_ZOOKEEPER_LOGIN_FILE"] == "/etc/login"


def test_masters_by_name_need_a_place_for_the_state(render: Render) -> None:
    code, _, err = render(JOB, "--artifact-url", URL, "--master", "10.0.0.1:5050")
    assert (code, "--state" in err) == (EXIT_USAGE, True)


def test_a_built_repository_needs_no_address(
    render: Render, tmp_path: Path, package: Package
) -> None:
    path = tmp_path / "repository.json"
    path.write_text(json.dumps(repository_document(package, last_updated=0)))
    _, out, _ = render(JOB, "--repository", str(path), "--app-id", "/team/mnist")
    assert json.loads(out)["id"] == "/team/mnist"


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        (JOB, (), "--artifact-url"),
        (JOB, ("--artifact-url", "here"), "is no URL"),
        (JOB, ("--artifact-url", URL, "--repository", __file__), "exclude each other"),
        (JOB, ("--repository", __file__), "is not JSON"),
        (JOB, ("--artifact-url", URL, "--set", "worker.count=x"), "worker.count"),
        (JOB, ("--artifact-url", URL, "--master", "zk://"), "--master"),
        (JOB, ("--artifact-url", URL, "--state", "mysql://x"), "--state"),
        (
            JOB,
            ("--artifact-url", URL, "--set", "service.tensorflow_version=1.0.0"),
            "service.tensorflow_version",
        ),
        (
            {"service": {"job_url": "mnist.py", "job_name": "mnist"}},
            ("--artifact-url", URL),
            "service.job_url",
        ),
    ],
)
def test_what_cannot_be_rendered_is_refused_by_name(
    render: Render, options: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = render(options, *arguments)
    assert code != 0
    assert out == ""
    assert message in err


@pytest.fixture
def scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    def run(*arguments: str, **variables: str) -> tuple[int, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        work = str(tmp_path / "work")
        command = ["scheduler", "--work-dir", work, "--master", "127.0.0.1:1", *arguments]
        code = run_command_line(command)
        return code, capsys.readouterr().err

    return run


def test_the_scheduler_refuses_wrong_variables_with_their_path(scheduler) -> None:
    code, err = scheduler(OPTION__WORKER__COUNT="many", OPTION__SERVICE__JOB_NAME="t")
    assert code == EXIT_USAGE
    assert "worker.count: must be a whole number" in err


def test_the_scheduler_refuses_a_version_that_its_package_does_not_have(scheduler) -> None:
    code, err = scheduler(
        OPTION__SERVICE__JOB_NAME="t",
        OPTION__SERVICE__TENSORFLOW_VERSION="1.0.0",
        TENSORFLOW_IMAGES='{"2.21.0": ["a", "b"]}',
    )
    assert code == EXIT_USAGE
    assert "service.tensorflow_version" in err


def test_options_in_two_places_are_refused(scheduler, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(JOB))
    code, err = scheduler(str(file), OPTION__SERVICE__JOB_NAME="t")
    assert code == EXIT_USAGE
    assert "OPTION__* variables" in err


def test_a_scheduler_without_options_says_where_they_can_be(scheduler) -> None:
    _, err = scheduler()
    assert "OPTION__*" in err
