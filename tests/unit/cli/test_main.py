"""The command as a whole: what is refused, how errors look, where crashes go."""

import json
import logging

import pytest

from dcos_tensorflow.cli.main import cli, run_command_line
from dcos_tensorflow.deploy.job.given_options import GivenOptions


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def options(tmp_path):
    def write(**document):
        file = tmp_path / "options.json"
        file.write_text(json.dumps(document))
        return str(file)

    return write


COMMAND = {"service": {"job_cmd": "true"}, "worker": {"count": 2, "cpus": 0.5}}


def test_what_the_machine_refuses_is_told_as_that_and_as_no_mistake_of_ours(home, capsys):
    home.write_text("a file where the folder of all services was to be")
    assert run_command_line(["local", "up"]) == 1
    assert capsys.readouterr().err == f"Error: {home}/local/for-jobs: Not a directory.\n"


def test_good_options_are_shown_as_what_would_run(options, capsys):
    assert run_command_line(["validate", options(**COMMAND)]) == 0
    out = capsys.readouterr().out
    assert "2 worker" in out
    assert "ps-0" not in out


def test_the_published_defaults_are_a_flag(options, capsys):
    file = options(**COMMAND)
    assert run_command_line(["validate", file, "--published-defaults"]) == 0
    assert "ps: ps-0, ps-1" in capsys.readouterr().out
    command = ["validate", file, "--published-defaults", "--set", "service.strategy=multi_worker"]
    assert run_command_line(command) == 2
    assert "2 parameter servers come by the published default" in capsys.readouterr().err


def test_a_refusal_counts_who_comes_by_default(options, capsys):
    file = options(**COMMAND, parameter_server={"cpus": 0.5})
    assert run_command_line(["validate", file, "--set", "service.python=/nowhere/python"]) == 2
    told = capsys.readouterr().err
    assert "there is no /nowhere/python on this machine. 2 parameter servers come by the" in told


def test_what_would_run_is_shown_for_this_machine_or_for_mesos(options, home, capsys):
    file = options(**COMMAND)
    assert run_command_line(["validate", file]) == 0
    here = capsys.readouterr().out
    assert "on this machine" in here
    assert str(home / "services" / "tensorflow" / "checkpoints") in here
    assert not home.exists()
    version = "service.tensorflow_version=2.15.1"
    assert run_command_line(["validate", file, "--master", "m:5050", "--set", version]) == 0
    there = capsys.readouterr().out
    assert "on Mesos" in there
    assert "image tensorflow/tensorflow:2.15.1" in there
    assert "in each task's sandbox" in there


def test_a_python_is_looked_for_where_the_job_would_run(options, capsys):
    file = options(service={"job_cmd": "true", "python": "/nowhere/python"})
    assert run_command_line(["validate", file]) == 2
    assert "there is no /nowhere/python on this machine" in capsys.readouterr().err
    assert run_command_line(["validate", file, "--master", "m:5050"]) == 0
    assert "python /nowhere/python" in capsys.readouterr().out


def test_where_nothing_says_which_tensorflow_it_is_said_before_anything_starts(options, capsys):
    file = options(service={"job_url": "https://example.org/job.zip", "job_name": "train"})
    assert run_command_line(["validate", file, "--master", "m:5050"]) == 0
    told = capsys.readouterr().out
    assert "note: Nothing says which TensorFlow: worker run with the python3" in told


def test_overrides_count(options, capsys):
    run_command_line(["validate", options(**COMMAND), "--set", "worker.count=5", "--json"])
    assert len(json.loads(capsys.readouterr().out)["tasks"]) == 5


def test_all_problems_are_told_on_standard_error(options, capsys):
    wrong = {"service": {"job_cmd": "true", "nmae": "x"}, "worker": {"count": -1}}
    assert run_command_line(["validate", options(**wrong)]) == 2
    told = capsys.readouterr()
    assert "service.nmae" in told.err
    assert "worker.count" in told.err
    assert told.out == ""


def test_problems_can_be_had_as_json(options, capsys):
    wrong = {"service": {"job_cmd": "true", "nmae": "x"}}
    assert run_command_line(["validate", options(**wrong), "--json"]) == 2
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["path"], problem["suggestion"]) == ("service.nmae", "service.name")


def test_a_job_that_cannot_run_is_a_problem_too(options, capsys):
    asked = {"service": {"job_url": "nowhere.zip", "job_name": "x"}}
    assert run_command_line(["validate", options(**asked), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["valid"] is False


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "/nowhere.json"],
        ["run"],
        ["rnu"],
        ["run", "OPTIONS", "--local", "--master", "127.0.0.1:5050"],
        ["validate", "OPTIONS", "--local", "--master", "127.0.0.1:5050"],
        ["run", "OPTIONS", "--master", "127.0.0.1:5050", "--cpus", "4"],
        ["run", "OPTIONS", "--master", "ftp://x"],
        ["run", "OPTIONS", "--agents", "0"],
        ["scheduler"],
        ["scheduler", "OPTIONS"],
        ["scheduler", "OPTIONS", "--master", "x:1", "--local"],
        ["status", "nobody"],
        ["status"],
        ["stop"],
        ["local", "up", "--attributes", "rack"],
    ],
)
def test_a_call_that_makes_no_sense_is_answered_in_words(arguments, options, capsys):
    file = options(**COMMAND)
    code = run_command_line([file if a == "OPTIONS" else a for a in arguments])
    told = capsys.readouterr()
    assert code == 2
    assert "Error: " in told.err
    assert "Traceback" not in told.err


def test_local_commands_without_a_cluster_say_so(capsys):
    assert run_command_line(["local", "status"]) == 1
    assert run_command_line(["local", "down"]) == 0
    assert "No embedded cluster" in capsys.readouterr().out


def test_a_crash_of_ours_goes_to_a_file_and_the_message_says_where(
    options, capsys, home, monkeypatch
):
    def broken(*_, **__):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(GivenOptions, "load", broken)
    assert run_command_line(["validate", options(**COMMAND)]) == 70
    told = capsys.readouterr().err
    assert str(home / "crash.log") in told
    assert "Traceback" not in told
    assert "ZeroDivisionError" in (home / "crash.log").read_text()


def test_help_names_every_command(capsys):
    assert run_command_line(["--help"]) == 0
    out = capsys.readouterr().out
    for name, command in cli.commands.items():
        assert command.hidden or name in out


def test_the_version_is_told(capsys):
    assert run_command_line(["--version"]) == 0
    assert "dcos-tensorflow" in capsys.readouterr().out


def test_what_a_library_logs_is_no_message_to_a_person(monkeypatch, capsys):
    monkeypatch.setattr(logging.Logger.manager, "emittedNoHandlerWarning", False)
    assert run_command_line(["--version"]) == 0
    logging.Logger("a library").warning("no server answers")
    assert capsys.readouterr().err == ""
