"""The project's own package on the local DC/OS: its files rendered, its scheduler run.

The scheduler's artifact is replaced by a script that starts the scheduler of this checkout.
"""

from __future__ import annotations

import io
import json
import stat
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import dcos_tensorflow
from dcos_tensorflow.package.cosmos import marathon_app
from dcos_tensorflow.package.definition import Package, package_folder, read_folder
from dcos_tensorflow.package.repository import repository_document
from waiting import eventually

from .conftest import MakeWorld
from .world import World

ROOT = Path(dcos_tensorflow.__file__).resolve().parents[1]
SCRIPT = f"""#!/bin/sh
PYTHONPATH={ROOT} exec {sys.executable} -c \\
  'from dcos_tensorflow.cli.main import main; main()' "$@"
"""


def options(name: str, workers: int = 1) -> dict[str, Any]:
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    service = {"name": name, "user": "", "python": sys.executable, "log_level": "DEBUG"}
    return {
        "service": {**service, "job_cmd": "echo training; sleep 600", "strategy": "independent"},
        "worker": {"count": workers, **small},
        "parameter_server": {"count": 0, **small},
    }


@pytest.fixture
def real(tmp_path: Path) -> Package:
    """The package, with artifacts in a folder of the test's own."""
    places = {
        "package-version": "1.0.0",
        "artifact-dir": tmp_path.as_uri(),
        "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
    }
    found = read_folder(package_folder(), places)
    uri = found.resource["assets"]["uris"]["scheduler-tar-gz"]
    with tarfile.open(tmp_path / uri.rpartition("/")[2], "w:gz") as archive:
        member = tarfile.TarInfo("dcos-tensorflow/bin/dcos-tensorflow")
        member.size, member.mode = len(SCRIPT), stat.S_IRWXU
        archive.addfile(member, io.BytesIO(SCRIPT.encode()))
    return found


@pytest.fixture
def world(make_world: MakeWorld, real: Package, tmp_path: Path) -> World:
    found = make_world()
    path = tmp_path / "real.json"
    path.write_text(json.dumps(repository_document(real, last_updated=1)))
    found.cosmos("repository/add", {"name": "real", "uri": path.as_uri()})
    return found


def install(world: World, real: Package, name: str) -> None:
    body = {"packageName": real.name, "options": options(name)}
    world.cosmos("install", body)
    world.settled(f"/{name}")


def running(world: World, name: str) -> list[str]:
    """Return the ids of a service's running tasks."""
    frameworks = world.get("/mesos/master/state")["frameworks"]
    return [
        task["id"]
        for framework in frameworks
        if framework["name"] == name
        for task in framework["tasks"]
        if task["state"] == "TASK_RUNNING"
    ]


def trains(world: World, name: str) -> bool:
    # Asked anew each time: a worker whose port was taken starts again under another id.
    logs = [f"/system/v1/logs/v2/task/{task}/file/stdout" for task in running(world, name)]
    return any(b"training" in world.ask("GET", log).body for log in logs)


def test_the_local_dcos_and_package_render_make_the_same_app(world: World, real: Package) -> None:
    given = options("tf")
    ours = marathon_app(real, given)
    theirs = world.cosmos("render", {"packageName": real.name, "options": given})["marathonJson"]
    labels = {k: v for k, v in theirs["labels"].items() if k in ours["labels"]}
    assert {**theirs, "labels": labels, "id": "tf"} == ours


def test_two_instances_live_side_by_side_and_their_uninstall_leaves_nothing(
    world: World, real: Package
) -> None:
    for name in ("tf-a", "tf-b"):
        install(world, real, name)
    for name in ("tf-a", "tf-b"):
        eventually(lambda name=name: trains(world, name), what=f"a worker of {name}")
        assert world.ask("GET", f"/service/{name}/v1/plans/deploy").status in (200, 202)
    assert len(world.cosmos("list", {})["packages"]) == 2
    world.cosmos("uninstall", {"packageName": real.name, "all": True})
    for name in ("tf-a", "tf-b"):
        world.gone(f"/{name}")
    assert world.get("/mesos/frameworks")["frameworks"] == []
    assert [one["reserved_resources"] for one in world.get("/mesos/slaves")["slaves"]] == [{}]


def test_new_options_reach_the_running_service(world: World, real: Package) -> None:
    install(world, real, "tf")
    eventually(lambda: running(world, "tf"), what="a worker")
    more = {"worker": {"count": 2}}
    world.service("update", {"appId": "tf", "options": more, "replace": False})
    eventually(lambda: len(running(world, "tf")) == 2, what="a second worker")
    world.cosmos("uninstall", {"packageName": real.name})
    world.gone("/tf")
