"""Where a user's services lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcos_tensorflow.cli.work_directory import WorkDirectory, work_directory


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("/flag", {"DCOS_TENSORFLOW_HOME": "/variable"}, "/flag"),
        (None, {"DCOS_TENSORFLOW_HOME": "/variable", "XDG_DATA_HOME": "/data"}, "/variable"),
        (None, {"XDG_DATA_HOME": "/data", "HOME": "/home/me"}, "/data/dcos-tensorflow"),
        (
            None,
            {"XDG_DATA_HOME": "data", "HOME": "/home/me"},
            "/home/me/.local/share/dcos-tensorflow",
        ),
        (None, {"HOME": "/home/me"}, "/home/me/.local/share/dcos-tensorflow"),
    ],
)
def test_the_flag_goes_before_the_variable_and_that_before_the_data_folder(
    given, environ, expected
):
    found = work_directory(Path(given) if given else None, environ)
    assert found.path == Path(expected)


def test_a_service_in_a_group_has_one_folder():
    assert WorkDirectory(Path("/srv")).service("/team/mnist").path == Path(
        "/srv/services/team__mnist"
    )


def test_the_default_state_is_a_file_in_the_service_s_folder():
    directory = WorkDirectory(Path("/srv")).service("mnist")
    assert directory.state_url == "sqlite:////srv/services/mnist/state.db"


def test_the_folders_are_for_their_owner_alone(tmp_path):
    directory = WorkDirectory(tmp_path / "work").service("mnist")
    directory.prepare()
    assert directory.checkpoints.stat().st_mode & 0o777 == 0o700
