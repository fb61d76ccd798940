"""What is kept of the tasks of a job on another cluster."""

from pathlib import Path

from dcos_tensorflow.client.following.task_output import FolderOutput
from dcos_tensorflow.client.kept.output import keep_output
from dcos_tensorflow.client.work_directory import ServiceDirectory


def task(name: str) -> dict[str, str]:
    return {"task_id": f"job__{name}", "agent_id": "a1"}


def tail(_agent: str, task_id: str, file: str) -> list[str]:
    if file != "stdout":
        raise OSError("there is no such file")
    return [f"{task_id} told", "the end"]


def kept(tmp_path: Path, *names: str) -> FolderOutput:
    directory = ServiceDirectory(tmp_path)
    directory.prepare()
    keep_output(directory, {**{n: task(n) for n in names}, "ps-0": {"task_id": ""}}, tail)
    return FolderOutput(directory)


def test_the_last_lines_of_each_task_are_read_as_those_of_a_sandbox(tmp_path: Path) -> None:
    output = kept(tmp_path, "worker-0", "worker-1")
    assert output.tasks() == ["worker-0", "worker-1"]
    found = output.attempt("worker-1")
    assert found is not None
    assert output.read(found, "stdout", 0).text == "job__worker-1 told\nthe end\n"


def test_nothing_stays_of_the_job_before(tmp_path: Path) -> None:
    kept(tmp_path, "worker-0", "worker-1")
    assert kept(tmp_path, "worker-0").tasks() == ["worker-0"]


def test_of_many_tasks_the_first_are_kept(tmp_path: Path) -> None:
    assert len(kept(tmp_path, *(f"worker-{number}" for number in range(100))).tasks()) == 20


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "tasks").touch()
    keep_output(ServiceDirectory(tmp_path), {"worker-0": task("worker-0")}, tail)


def test_an_uninstalled_service_leaves_none_of_it(tmp_path: Path) -> None:
    kept(tmp_path / "services" / "job", "worker-0")
    ServiceDirectory(tmp_path / "services" / "job").remove()
    assert list(tmp_path.iterdir()) == []
