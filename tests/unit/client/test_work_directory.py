"""Where a user's services lie."""

import os
import pwd
from pathlib import Path

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import WorkDirectory, work_directory
from dcos_tensorflow.mesos.wire.convert import framework_info
from samples.states import a_spec


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


@pytest.fixture
def homeless(monkeypatch):
    """A user whom the machine does not know, without HOME: the name of containers' users."""

    def unknown(number):
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DCOS_TENSORFLOW_HOME", raising=False)


@pytest.mark.parametrize("command", [["status"], ["list"], ["local", "status"], ["stop", "x"]])
def test_without_a_home_folder_one_sentence_says_how_to_name_one(homeless, command, capsys):
    assert run_command_line(command) == 1
    told = capsys.readouterr().err
    assert "has no home folder" in told
    assert "--work-dir" in told
    assert told.count("\n") == 1


def test_without_a_home_folder_another_one_can_be_named(homeless, tmp_path, capsys):
    assert run_command_line(["list", "--work-dir", str(tmp_path)]) == 0


def test_what_needs_no_folder_needs_no_home(homeless, capsys):
    assert run_command_line(["status", "--api", "http://127.0.0.1:1"]) == 1
    assert "does not answer at http://127.0.0.1:1" in capsys.readouterr().err


def test_a_tilde_without_a_home_folder_is_a_wrong_setting(homeless, capsys):
    assert run_command_line(["scheduler", "--ca-file", "~/ca.pem"]) == 2
    assert "no home folder that the ~ of ~/ca.pem could stand for" in capsys.readouterr().err


def test_a_framework_of_an_unknown_user_is_that_of_its_number(homeless):
    info = framework_info(a_spec(user=""), None, "host", "")
    assert info["user"] == str(os.getuid())


def test_a_folder_that_another_user_made_is_refused(tmp_path, monkeypatch):
    (tmp_path / "services").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CliError, match="belongs to another user"):
        WorkDirectory(tmp_path).service("job").prepare()


@pytest.mark.parametrize("below", ["", "services", "services/job"])
def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path, below):
    (tmp_path / below).mkdir(parents=True, exist_ok=True)
    (tmp_path / below).chmod(0o777)
    with pytest.raises(CliError, match="Every user of this machine may write"):
        WorkDirectory(tmp_path).service("job").prepare()


def test_the_folders_are_made_for_this_user_alone(tmp_path):
    service = WorkDirectory(tmp_path / "work").service("job")
    service.prepare()
    for folder in (service.path, service.path.parent, tmp_path / "work"):
        assert folder.stat().st_mode & 0o777 == 0o700
