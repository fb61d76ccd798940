"""The project's own package on the local DC/OS: its files rendered, its scheduler run.

The scheduler's artifact is replaced by a script that starts the scheduler of this checkout.
"""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.package.definition import Package
from dcos_tensorflow.plugin.main import run as run_plugin
from processes import processes
from samples.checkout_package import package_in, repository_of
from waiting import eventually

from .conftest import MakeWorld
from .world import World


def options(name: str, workers: int = 1) -> dict[str, Any]:
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    service = {"name": name, "user": "", "log_level": "DEBUG"}
    return {
        "service": {**service, "job_cmd": "echo training; sleep 600", "strategy": "independent"},
        "worker": {"count": workers, **small},
        "parameter_server": {"count": 0, **small},
    }


@pytest.fixture
def real(tmp_path: Path) -> Package:
    """The package, with artifacts in a folder of the test's own."""
    return package_in(tmp_path)


@pytest.fixture
def world(make_world: MakeWorld, real: Package, tmp_path: Path) -> World:
    found = make_world()
    found.cosmos("repository/add", {"name": "real", "uri": repository_of(real, tmp_path)})
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


def test_a_job_that_needs_an_image_ends_at_its_first_launch_and_says_what_helps(
    world: World, real: Package
) -> None:
    given = options("tf")
    given["service"] |= {"job_cmd": "", "job_name": "train"}
    world.cosmos("install", {"packageName": real.name, "options": given})

    def verdict() -> Any:
        answer = world.ask("GET", "/service/tf/v1/job")
        return answer.json()["verdict"] if answer.status == 200 else None

    found = eventually(verdict, seconds=60, what="the end of the job")
    assert "container images ('tensorflow/tensorflow:2.21.0')" in found["summary"]
    assert "service.python" in found["summary"]
    assert found["exit_code"] == 78
    assert len(world.get("/service/tf/v1/job")["incidents"]) == 1


def dcos_tensorflow_update(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: Any, *words: str
) -> tuple[int, str]:
    """Run ``dcos tensorflow update start``; return its exit code and what it prints."""
    file = tmp_path / "given.json"
    file.write_text(json.dumps(given))
    command = ["tensorflow", "--name=tf", "update", "start", f"--options={file}", *words]
    code = run_plugin(command, {"DCOS_URL": f"http://{world.dcos.address}"})
    printed = capsys.readouterr()
    return code, printed.out + printed.err


@pytest.fixture
def old_open(make_world: MakeWorld, real: Package, tmp_path: Path) -> Iterator[World]:
    """Return an open cluster without ``/cosmos/service``, with the service tf on it."""
    found = make_world(variant="old-open")
    found.cosmos("repository/add", {"name": "real", "uri": repository_of(real, tmp_path)})
    with deployed_service(found, real):
        yield found


@pytest.fixture
def current_open(world: World, real: Package) -> Iterator[World]:
    """Return an open cluster whose package manager can update services, with the service tf."""
    with deployed_service(world, real):
        yield world


@contextmanager
def deployed_service(world: World, real: Package) -> Iterator[None]:
    """Have the service tf, deployed."""
    install(world, real, "tf")
    eventually(lambda: deployed(world, "tf"), what="the deployment of tf")
    yield
    world.cosmos("uninstall", {"packageName": real.name})
    world.gone("/tf")


def deployed(world: World, name: str) -> bool:
    return world.ask("GET", f"/service/{name}/v1/plans/deploy").status == 200


#: Told by the scheduler alone.
JUDGED = [
    ({"worker": {"placement_constraint": "[["}}, "worker.placement_constraint: "),
    ({"service": {"strategy": "multi_worker"}}, "the strategy would change"),
]
WRONG = [
    ({"worker": {"count": "many"}}, "/worker/count"),
    ({"worker": {"cont": 2}}, "cont"),
    ({"worker": {"count": 0}}, "worker.count: "),
    ({"service": {"strategy": "multi_worker"}}, "the strategy would change"),
    ({"service": {"name": "other"}}, "cannot change from /tf to /other"),
]


def refuses(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    cases: list[tuple[dict[str, Any], str]],
) -> None:
    """Check that wrong options are told, before anybody else hears of them."""
    before = world.app("/tf")["version"]
    for given, told in cases:
        code, printed = dcos_tensorflow_update(world, tmp_path, capsys, given)
        assert (code, told in printed) == (1, True), printed
        assert world.app("/tf")["version"] == before


def test_on_an_old_open_cluster_options_that_are_not_wrong_go_through_marathon(
    old_open: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses(old_open, tmp_path, capsys, WRONG)
    before = running(old_open, "tf")
    done = dcos_tensorflow_update(old_open, tmp_path, capsys, {"worker": {"count": 2}})
    assert done[0] == 0, done
    assert "Update started." in done[1]
    eventually(lambda: len(running(old_open, "tf")) == 2, what="a second worker")
    assert set(before) < set(running(old_open, "tf"))
    environ = {"DCOS_URL": f"http://{old_open.dcos.address}"}
    assert run_plugin(["tensorflow", "--name=tf", "describe"], environ) == 0
    described = json.loads(capsys.readouterr().out)
    assert (described["worker"]["count"], described["worker"]["mem"]) == (2, 64)


def process_of(world: World) -> int:
    """Return the process of the app's command, 0 while there is none."""
    tasks = world.app("/tf")["tasks"]
    found = (one for task in tasks for one in processes(MESOS_TASK_ID=task["id"]))
    return next((one.pid for one in found if one.leads_a_session), 0)


def test_wrong_options_are_told_and_a_scheduler_that_is_killed_in_the_middle_of_an_update_goes_on(
    current_open: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses(current_open, tmp_path, capsys, JUDGED)
    world, before = current_open, running(current_open, "tf")
    old = process_of(world)
    more = {"worker": {"count": 2}}
    world.service("update", {"appId": "tf", "options": more, "replace": False})
    new = eventually(
        lambda: one if (one := process_of(world)) != old else 0,
        what="the scheduler with the new options",
    )
    os.kill(new, signal.SIGKILL)
    eventually(lambda: len(running(world, "tf")) == 2, seconds=60, what="a second worker")
    assert set(before) < set(running(world, "tf"))


def test_what_was_installed_without_a_job_can_be_uninstalled(world: World, real: Package) -> None:
    world.cosmos("install", {"packageName": real.name})
    eventually(world.ended, seconds=60, what="the scheduler that has nothing to run")
    world.cosmos("uninstall", {"packageName": real.name})
    world.gone("/tensorflow")
