"""``logs`` of a service whose scheduler is gone: what lies here is shown, or where it lies."""

import json
from pathlib import Path

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceDirectory:
    """The folder of a service without a scheduler."""
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    found = WorkDirectory(tmp_path).service("mnist")
    found.prepare()
    return found


def ended(directory: ServiceDirectory, **places: str) -> None:
    directory.last_end.write_text(json.dumps({"exit_code": 0, "places": places}))


def printed(directory: ServiceDirectory, task: str, text: str) -> None:
    run = directory.cluster / f"work/agents/0/slaves/S/frameworks/F/executors/{task}-id/runs/r"
    run.mkdir(parents=True)
    (run / "stdout").write_text(text)
    directory.task_logs.mkdir(exist_ok=True)
    (directory.task_logs / task).symlink_to(run)


def test_the_output_of_a_job_that_has_ended_is_shown(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    ended(directory)
    printed(directory, "worker-0", "a\nb\n")
    printed(directory, "worker-1", "c\nno end")
    assert run_command_line(["logs", "--lines", "1"]) == 0
    assert capsys.readouterr().out == "worker-0 | b\nworker-1 | no end\n"


def test_following_it_ends_at_once(directory: ServiceDirectory, capsys: Captured) -> None:
    ended(directory)
    printed(directory, "worker-0", "a\n")
    assert run_command_line(["logs", "--follow"]) == 0
    assert capsys.readouterr().out == "a\n"


def test_a_line_can_be_had_as_json(directory: ServiceDirectory, capsys: Captured) -> None:
    ended(directory)
    printed(directory, "worker-0", "a\n")
    assert run_command_line(["logs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "task": "worker-0",
        "line": "a",
        "task_id": "worker-0-id",
    }


def test_without_a_file_it_is_what_was_printed_to_both_streams(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    ended(directory)
    printed(directory, "worker-0", "out\n")
    (directory.task_logs / "worker-0" / "task-console.log").write_text("out\nerr\n")
    assert run_command_line(["logs"]) == 0
    assert capsys.readouterr().out == "out\nerr\n"
    assert run_command_line(["logs", "--file", "stdout"]) == 0
    assert capsys.readouterr().out == "out\n"


@pytest.mark.parametrize(
    "words", [("mnist",), ("mnist", "worker-0"), ("worker-0",), ("--name", "mnist", "worker-0")]
)
def test_a_service_is_named_before_its_tasks_or_by_the_flag(
    directory: ServiceDirectory, capsys: Captured, words: tuple[str, ...]
) -> None:
    ended(directory)
    printed(directory, "worker-0", "a\n")
    assert run_command_line(["logs", *words]) == 0
    assert capsys.readouterr().out == "a\n"


def test_logs_beside_a_job_that_is_not_followed_are_refused(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "train.py").touch()
    assert run_command_line(["run", str(tmp_path / "train.py"), "--detach", "--logs"]) == 2
    assert "logs SERVICE --follow" in capsys.readouterr().err


def test_the_tasks_of_a_role_are_meant_by_its_name(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    ended(directory)
    for task in ("gpu-worker-0", "ps-0", "worker-0", "worker-10"):
        printed(directory, task, f"{task}\n")
    assert run_command_line(["logs", "worker", "ps-0", "--json"]) == 0
    lines = [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["ps-0", "worker-0", "worker-10"]


def test_output_on_other_machines_is_told_to_be_there(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    ended(directory, **{"task logs": "in the tasks' sandboxes on node1"})
    assert run_command_line(["logs"]) == 1
    assert "Its output is in the tasks' sandboxes on node1." in capsys.readouterr().err


def test_output_of_the_job_before_is_not_taken_for_that_of_one_that_has_not_ended(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    printed(directory, "worker-0", "of the job before\n")
    assert run_command_line(["logs"]) == 1
    told = capsys.readouterr()
    assert (told.out, "No scheduler of mnist runs" in told.err) == ("", True)


def test_a_task_that_has_no_such_file_keeps_the_others_from_nothing(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    ended(directory)
    printed(directory, "worker-0", "a\n")
    printed(directory, "worker-1", "b\n")
    (directory.task_logs / "worker-0" / "stdout").unlink()
    assert run_command_line(["logs", "--file", "stdout"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("worker-1 | b\n", "worker-0: there is no stdout\n")


def test_a_path_out_of_the_sandbox_is_refused(
    directory: ServiceDirectory, capsys: Captured
) -> None:
    assert run_command_line(["logs", "--file", "../stdout"]) == 2
    assert "no path below a sandbox" in capsys.readouterr().err
