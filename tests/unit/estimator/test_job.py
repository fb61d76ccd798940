"""What a job's tasks have told, as it is read of their files."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job_output import JobOutput
from dcos_tensorflow.client.following.task_output import Attempt, Lost, NotThere, OutputPart
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.estimator.job import Job


class Files:
    """The files of a task, and which of them were read."""

    def __init__(self, files: Mapping[str, str], *, lost: str = "") -> None:
        self.files = files
        self.lost = lost
        self.asked: list[str] = []

    def read(self, attempt: Attempt, file: str, offset: int, length: int = 0) -> OutputPart:
        self.asked.append(file)
        if self.lost:
            raise Lost(self.lost)
        if file not in self.files:
            raise NotThere(file)
        text = self.files[file]
        return OutputPart(text, len(text), len(text))


def job_of(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    job = Job("train", WorkDirectory(tmp_path))
    told = JobOutput(files, ("worker-0",), (Attempt("worker-0", "a-task-id"),))
    monkeypatch.setattr(job, "_output", lambda task: told)
    monkeypatch.setattr("dcos_tensorflow.estimator.metric_rows.frame", lambda rows: rows)
    return job


def test_what_was_printed_is_not_read_where_there_is_a_progress_file(tmp_path, monkeypatch):
    files = Files({"progress.jsonl": '{"step": 1, "loss": 0.5}\n', "stdout": "step 9 loss 9\n"})
    rows = job_of(files, tmp_path, monkeypatch).metrics()
    assert rows == [{"task": "worker-0", "step": 1, "loss": 0.5}]
    assert "stdout" not in files.asked


def test_without_a_progress_file_what_was_printed_tells(tmp_path, monkeypatch):
    files = Files({"stdout": "step 9 loss 9\n"})
    rows = job_of(files, tmp_path, monkeypatch).metrics()
    assert rows == [{"task": "worker-0", "step": 9, "loss": 9.0}]


def test_files_that_are_gone_are_an_error_that_names_the_task(tmp_path, monkeypatch):
    job = job_of(Files({}, lost="its sandbox is not on this machine"), tmp_path, monkeypatch)
    with pytest.raises(CliError, match="worker-0: its sandbox is not on this machine"):
        job.metrics()
