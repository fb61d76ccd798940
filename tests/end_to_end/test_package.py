"""The package as its users have it: two services of two TensorFlow versions on a local DC/OS.

Their updates are in ``integration/local_dcos``, without TensorFlow.
"""

import json
import os
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import NEWEST, NO_KERAS, OLD, CommandLine
from dcos_tensorflow.plugin.main import run as run_plugin
from samples.checkout_package import package_in, repository_of
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(400)]

VERSIONS = {"old": OLD, "team/new": NEWEST}
JOB = """
import time

import tensorflow as tf


def main(server, log_dir, context):
    with tf.Graph().as_default(), tf.compat.v1.Session(server.target) as session:
        answer = session.run(tf.constant(6.0) * context["factor"])
    print("TensorFlow", tf.__version__, "says", answer, flush=True)
    time.sleep(600)
"""
SMALL = {"cpus": 0.5, "mem": 512, "disk": 16}


class Dcos:
    """A local DC/OS and the words that people say to it."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def tensorflow(self, *words: str) -> tuple[int, str]:
        """Run ``dcos tensorflow``; return its exit code and what it prints."""
        self._capsys.readouterr()
        code = run_plugin(["tensorflow", *words], {"DCOS_URL": self.url})
        said = self._capsys.readouterr()
        return code, said.out + said.err

    def complete(self, name: str) -> bool:
        code, said = self.tensorflow(f"--name={name}", "plan", "status", "deploy")
        return code == 0 and said.startswith("deploy (serial strategy) (COMPLETE)")

    def app_ids(self) -> list[str]:
        return [app["id"] for app in self.ask("/service/marathon/v2/apps")["apps"]]


@pytest.fixture
def dcos(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Dcos]:
    line = CommandLine(tmp_path / "home")
    size = ("--agents", "2", "--cpus", "2", "--mem", "3000", "--disk", "1000", "--gpus", "0")
    up = line("local", "up", "--dcos", *size, "--json")
    assert up.code == 0, up.out
    found = Dcos(json.loads(up.out)["dcos"]["url"], capsys)
    uri = repository_of(package_in(tmp_path), tmp_path)
    found.ask("/package/repository/add", {"name": "mine", "uri": uri})
    yield found
    assert line("local", "down").code == 0


def options(name: str, job: Path) -> dict[str, Any]:
    return {
        "service": {
            **{"name": name, "user": "", "tensorflow_version": VERSIONS[name]},
            **NO_KERAS,
            **{"job_url": job.as_uri(), "job_name": "job", "job_context": '{"factor": 7}'},
        },
        "worker": {"count": 1, **SMALL},
        "parameter_server": {"count": 0},
    }


def processes_of(text: str) -> list[str]:
    """Return the command lines of this machine's processes whose environment holds ``text``."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (path / "environ").read_bytes() and int(path.name) != os.getpid():
                found.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.fixture
def both(dcos: Dcos, tmp_path: Path, tensorflow: Callable[[str], str]) -> Dcos:
    """Two services side by side, both deployed."""
    for version in VERSIONS.values():
        tensorflow(version)
    job = tmp_path / "job.zip"
    with zipfile.ZipFile(job, "w") as archive:
        archive.writestr("job.py", JOB)
    for name in VERSIONS:
        body = {"packageName": "tensorflow", "options": options(name, job)}
        assert dcos.ask("/package/install", body)["appId"] == f"/{name}"
    for name in VERSIONS:
        eventually(lambda name=name: dcos.complete(name), seconds=180, what=f"{name}'s deployment")
    return dcos


def test_two_versions_live_side_by_side_and_their_end_leaves_nothing(both: Dcos) -> None:
    for name, version in VERSIONS.items():
        told = f"TensorFlow {version} says 42.0\n"

        def has_told(name: str = name, told: str = told) -> bool:
            code, said = both.tensorflow(f"--name={name}", "logs", "worker-0", "--lines", "200")
            return code == 0 and told in said

        eventually(has_told, seconds=120, what=f"TensorFlow {version} in {name}")
        code, said = both.tensorflow(f"--name={name}", "pod", "list")
        assert (code, json.loads(said)) == (0, ["worker-0"])
        code, said = both.tensorflow(f"--name={name}", "endpoints", "worker")
        assert (code, len(json.loads(said)["address"])) == (0, 1)

    both.ask("/package/uninstall", {"packageName": "tensorflow", "all": True})
    eventually(lambda: both.app_ids() == [], seconds=120, what="the end of both apps")
    state = both.ask("/mesos/master/state")
    assert [one["name"] for one in state["frameworks"]] == ["marathon"]
    # The last agent is that of the apps.
    reserved = [set(agent["reserved_resources"]) for agent in state["slaves"]]
    assert reserved == [set(), set(), {"slave_public"}]
    for name in VERSIONS:
        for mark in (f"SERVICE_NAME={name}\0", f"MARATHON_APP_ID=/{name}\0"):
            eventually(
                lambda mark=mark: processes_of(mark) == [], what=f"the end of {name}'s processes"
            )
