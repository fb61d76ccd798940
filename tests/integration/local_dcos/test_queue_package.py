"""The package with a queue in its options: installed, asked by Admin Router, uninstalled."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.package.definition import Package, marathon_app
from samples.checkout_package import package_in, repository_of
from waiting import eventually

from .conftest import MakeWorld
from .world import World

TEAMS = {"teams": {"red": {"guarantee": 0.5}, "blue": {}}}
OPTIONS = {
    "service": {"name": "team/line", "user": ""},
    "queue": {"teams": json.dumps(TEAMS)},
}
LINE = "/service/team/line/v1"
SECONDS = 120.0


@pytest.fixture
def real(tmp_path: Path) -> Package:
    return package_in(tmp_path)


@pytest.fixture
def world(make_world: MakeWorld, real: Package, tmp_path: Path) -> World:
    found = make_world()
    found.cosmos("repository/add", {"name": "real", "uri": repository_of(real, tmp_path)})
    found.cosmos("install", {"packageName": real.name, "options": OPTIONS})
    found.settled("/team/line")
    return found


def job(name: str, command: str) -> dict[str, Any]:
    return {
        "options": {
            "service": {"name": name, "job_cmd": command, "python": sys.prefix},
            "worker": {"count": 1, "cpus": 0.1, "mem": 32, "disk": 10},
        },
        "team": "red",
    }


def submitted(world: World, name: str, command: str) -> None:
    def is_taken() -> bool:
        # It does not know the machines yet.
        return world.ask("POST", f"{LINE}/jobs", job(name, command)).status == 201

    eventually(is_taken, seconds=SECONDS, what=f"{name} to be taken")


def state_of(world: World, name: str) -> str:
    found = world.ask("GET", f"{LINE}/jobs/{name}")
    return str(found.json()["state"]) if found.status == 200 else ""


def frameworks(world: World) -> set[str]:
    return {one["name"] for one in world.get("/mesos/master/state")["frameworks"]}


def test_an_app_without_teams_serves_a_job(real: Package) -> None:
    assert " scheduler " in marathon_app(real, {"service": {"job_cmd": "true"}})["cmd"]


def test_a_queue_is_installed_runs_jobs_and_leaves_nothing(world: World, real: Package) -> None:
    submitted(world, "short", "true")
    eventually(lambda: state_of(world, "short") == "succeeded", seconds=SECONDS, what="the end")
    submitted(world, "long", "sleep 600")
    eventually(lambda: "long" in frameworks(world), seconds=SECONDS, what="a job that runs")
    world.cosmos("uninstall", {"packageName": real.name})
    eventually(lambda: "/team/line" not in world.app_ids(), seconds=SECONDS, what="the app's end")
    assert frameworks(world) <= {"marathon"}
