"""The plugin against the recorded conversations of the service command of DC/OS, and packed."""

import contextlib
import glob
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from data_files import DCOS_CLI_RECORDINGS
from dcos_tensorflow.plugin.main import run as run_here
from dcos_tensorflow.plugin.pack import build_plugin
from servers.web_server import Handler, served

#: Options files that the recorded commands name.
FILES = {
    "update.json": {"worker": {"count": 3}},
    "bad.json": {"worker": {"count": "x"}},
    "rename.json": {"service": {"name": "other"}},
}
#: What is in force, should the newest options have been refused.
TARGET = "/service/tensorflow/v1/configurations/target"
#: Requests that change nothing.
LOOKS = {"/cosmos/service/describe", "/service/tensorflow/v1/job/check?restart=true", TARGET}


def recordings() -> list[str]:
    return sorted(path.stem for path in DCOS_CLI_RECORDINGS.glob("tensorflow-*.jsonl"))


class Recorded:
    """A cluster that answers one request as it was recorded, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {}
        self.asked: list[dict[str, Any]] = []
        #: Where the next request is redirected to.
        self.moved = ""
        recorded = self

        class Answers(Handler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length).decode()
                recorded.asked.append(
                    {
                        "method": self.command,
                        "path": self.path,
                        "headers": dict(self.headers),
                        "body": json.loads(text) if text else None,
                    }
                )
                moved, recorded.moved = recorded.moved, ""
                if moved:
                    self.answer(302, Location=moved)
                    return
                body = recorded.answer["body"]
                kind = recorded.answer["headers"]["Content-Type"]
                text = body if kind.startswith("text/plain") else json.dumps(body) + "\n"
                self.answer(recorded.answer["status"], text.encode(), Content_Type=kind)

            do_GET = do_POST = do_PUT = handle_any

        self.handler, self.url = Answers, ""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Recorded]:
    recorded = Recorded()
    with served(recorded.handler) as address:
        recorded.url = f"http://{address}"
        yield recorded


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_plugin(tmp_path_factory.mktemp("plugin") / "dcos-tensorflow-cli.pyz")


def run(
    plugin: Path, *arguments: str, python: str = sys.executable, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-I", str(plugin), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", recordings())
def test_a_recorded_command_asks_and_prints_the_same(
    cluster: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    *exchanges, last = [
        json.loads(line)
        for line in (DCOS_CLI_RECORDINGS / f"{name}.jsonl").read_text().splitlines()
    ]
    (exchange,) = exchanges
    for file, options in FILES.items():
        (tmp_path / file).write_text(json.dumps(options))
    words = shlex.split(last["command"])[1:]
    words = [w.replace("--options=", f"--options={tmp_path}/") for w in words]
    cluster.answer, cluster.asked = exchange["response"], []
    code = run_here(words, {"DCOS_URL": cluster.url})
    printed = capsys.readouterr()
    *looks, asked = cluster.asked
    wanted = exchange["request"]
    # Before options are changed, whether they can be is asked (test_update_check); before they are
    # shown, whether they are in force.
    allowed = LOOKS if "--options" in last["command"] else set()
    shown = {TARGET} if name == "tensorflow-describe" else allowed
    assert {look["path"] for look in looks} <= shown
    assert {k: asked[k] for k in ("method", "path", "body")} == {
        k: wanted[k] for k in ("method", "path", "body")
    }
    for header in ("Accept", "Content-Type"):
        if header in wanted["headers"]:
            assert asked["headers"][header] == wanted["headers"][header]
    assert (code, printed.out) == (last["exit"], last["stdout"])
    assert bool(printed.err) == bool(last["stderr"])


def test_the_packed_plugin_prints_the_same(plugin: Path, cluster: Recorded) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": ["a"]}
    done = run(plugin, "tensorflow", "plan", "list", DCOS_URL=cluster.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, '[\n  "a"\n]\n', "")


def test_the_token_goes_along_when_there_is_one(plugin: Path, cluster: Recorded) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": []}
    cluster.asked = []
    run(plugin, "tensorflow", "plan", "list", DCOS_URL=cluster.url, DCOS_ACS_TOKEN="secret")
    assert cluster.asked[0]["headers"]["Authorization"] == "token=secret"


def test_without_a_token_there_is_no_authorization(plugin: Path, cluster: Recorded) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": []}
    cluster.asked = []
    run(plugin, "tensorflow", "plan", "list", DCOS_URL=cluster.url)
    assert "Authorization" not in cluster.asked[0]["headers"]


def test_a_configured_service_is_asked(plugin: Path, cluster: Recorded) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": []}
    cluster.asked = []
    environ = {"DCOS_URL": cluster.url, "DCOS_TENSORFLOW_SERVICE_NAME": "team/mnist"}
    run(plugin, "tensorflow", "pod", "list", **environ)
    assert cluster.asked[0]["path"] == "/service/team/mnist/v1/pod"


@pytest.mark.parametrize(
    "words",
    [
        ("--name=mnist", "plan", "status", "deploy"),
        ("plan", "--name=mnist", "status", "deploy"),
        ("plan", "status", "deploy", "--name=mnist"),
        ("--name=other", "plan", "status", "--name=mnist", "deploy"),
    ],
)
def test_the_service_can_be_named_anywhere_in_a_command(
    cluster: Recorded, words: tuple[str, ...]
) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": {}}
    cluster.asked = []
    run_here(["tensorflow", *words], {"DCOS_URL": cluster.url})
    assert cluster.asked[0]["path"] == "/service/mnist/v1/plans/deploy"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("why", "mnist"), "why"),
        (("plan", "list", "mnist"), "plans"),
        (("--name=mnist", "pod", "list", "mnist"), "pod"),
        (("update", "status", "mnist"), "plans/deploy"),
        (("debug", "config", "target", "mnist"), "configurations/target"),
    ],
)
def test_the_service_can_be_the_argument_of_a_command_without_another(
    cluster: Recorded, words: tuple[str, ...], path: str
) -> None:
    answer = {"phase": "running", "why": "x"}
    cluster.answer = {
        "status": 200,
        "headers": {"Content-Type": "application/json"},
        "body": answer,
    }
    cluster.asked = []
    assert run_here(["tensorflow", *words], {"DCOS_URL": cluster.url}) == 0
    assert cluster.asked[0]["path"] == f"/service/mnist/v1/{path}"


def test_two_names_for_one_command_are_refused(
    cluster: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.asked = []
    assert run_here(["tensorflow", "why", "mnist", "--name=other"], {"DCOS_URL": cluster.url}) == 1
    assert "mnist or other" in capsys.readouterr().err
    assert cluster.asked == []


def test_a_token_goes_along_with_a_redirect_within_the_cluster_only(
    cluster: Recorded, tmp_path: Path
) -> None:
    environ = {"DCOS_URL": cluster.url, "DCOS_ACS_TOKEN": "secret"}
    other = cluster.url.replace("127.0.0.1", "localhost")
    for where, goes_along in ((cluster.url, True), (other, False)):
        cluster.asked = []
        cluster.moved = f"{where}/elsewhere"
        cluster.answer = {
            "status": 200,
            "headers": {"Content-Type": "application/json"},
            "body": ["a"],
        }
        assert run_here(["tensorflow", "plan", "list"], environ) == 0
        first, second = cluster.asked
        assert "Authorization" in first["headers"]
        assert ("Authorization" in second["headers"]) is goes_along


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (("-v", "pod", "list"), {}),
        (("pod", "list", "-v"), {}),
        (("pod", "list"), {"DCOS_VERBOSITY": "1"}),
    ],
)
def test_each_request_is_told_to_who_asks_for_it(
    cluster: Recorded,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    environ: dict[str, str],
) -> None:
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": []}
    of_dcos = {"DCOS_URL": cluster.url, "DCOS_ACS_TOKEN": "secret"}
    run_here(["tensorflow", *words], {**of_dcos, **environ})
    said = capsys.readouterr().err
    assert said == f"GET {cluster.url}/service/tensorflow/v1/pod: 200 OK\n"


def test_a_scheduler_that_is_not_up_is_said_to_be_starting(plugin: Path, cluster: Recorded) -> None:
    cluster.answer = {"status": 502, "headers": {"Content-Type": "text/plain"}, "body": "no"}
    done = run(plugin, "tensorflow", "plan", "list", DCOS_URL=cluster.url)
    assert (done.returncode, "may still be starting" in done.stderr) == (1, True)


def test_info_is_one_line_and_needs_no_cluster(plugin: Path) -> None:
    done = run(plugin, "tensorflow", "--info")
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_without_a_cluster_it_says_how_it_is_meant_to_be_run(plugin: Path) -> None:
    done = run(plugin, "tensorflow", "plan", "list")
    assert (done.returncode, "dcos tensorflow" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "words", [("plan",), ("plan", "fly"), ("pod", "restart"), ("nonsense",), ("plan", "force", "a")]
)
def test_wrong_words_end_with_one_line_and_1(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_here(["tensorflow", *words], {})
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (1, "", 1)


def oldest_python() -> str | None:
    """Return a Python 3.8 of this machine that works, if there is one."""
    names = ["python3.8", *glob.glob(os.path.expanduser("~/.pyenv/versions/3.8.*/bin/python3"))]
    for name in names:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([name, "-c", ""], check=True, capture_output=True)
            return name
    return None


def test_it_runs_under_python_3_8(plugin: Path, cluster: Recorded) -> None:
    python = oldest_python()
    if python is None:
        pytest.skip("there is no Python 3.8 on this machine")
    plan = {"strategy": "serial", "status": "COMPLETE", "phases": []}
    cluster.answer = {"status": 200, "headers": {"Content-Type": "application/json"}, "body": plan}
    words = ("tensorflow", "plan", "status", "deploy")
    done = run(plugin, *words, python=python, DCOS_URL=cluster.url)
    assert (done.stdout, done.stderr) == ("deploy (serial strategy) (COMPLETE)\n", "")


def test_the_file_is_a_program_and_not_an_archive_by_its_first_bytes(
    plugin: Path,
) -> None:
    assert plugin.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert os.access(plugin, os.X_OK)


def test_the_same_sources_give_the_same_bytes(plugin: Path, tmp_path: Path) -> None:
    assert build_plugin(tmp_path / "again.pyz").read_bytes() == plugin.read_bytes()
