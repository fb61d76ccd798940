"""The file of teams that the app of a package says."""

import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.package.variables import variable_of
from dcos_tensorflow.queue_service import teams_file
from dcos_tensorflow.queue_service.teams_file import Teams, teams_file_of

TEAMS = {"teams": {"red": {"guarantee": 0.5}}, "schedulers": {"cpus": 0.2}}


def read(folder: Path, teams: Any = TEAMS, **service: str) -> Teams:
    given = {variable_of(("service", name)): value for name, value in service.items()}
    environ = {
        variable_of(("queue", "teams")): json.dumps(teams),
        "TENSORFLOW_IMAGES": json.dumps({"2.21.0": ["plain-image", "gpu-image"]}),
        "SCHEDULER_ARCHIVE": "https://repository.example/scheduler.tar.gz",
        **given,
    }
    return teams_file.read(teams_file_of(environ, WorkDirectory(folder)))


def test_a_queue_is_called_as_its_service(tmp_path: Path) -> None:
    assert read(tmp_path, name="/team/line").name == "team-line"


def test_schedulers_come_from_the_package_and_run_in_its_image(tmp_path: Path) -> None:
    found = read(tmp_path, name="line", tensorflow_version="2.21.0").scheduler
    assert (found.archive, found.image) == (
        "https://repository.example/scheduler.tar.gz",
        "plain-image",
    )
    assert found.cpus == TEAMS["schedulers"]["cpus"]


def test_schedulers_need_no_image_where_the_agents_have_a_python(tmp_path: Path) -> None:
    found = read(tmp_path, name="line", tensorflow_version="2.21.0", python="/opt/python")
    assert (found.scheduler.image, found.scheduler.python) == ("", "/opt/python")


@pytest.mark.parametrize("teams", ["", [], 5])
def test_what_is_no_object_is_refused(tmp_path: Path, teams: Any) -> None:
    with pytest.raises(UsageError, match="in the package"):
        read(tmp_path, teams, name="line")
