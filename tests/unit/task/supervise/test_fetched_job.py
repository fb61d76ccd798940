"""A job with a sum is held against it, and unpacked by the runner; what is not wanted goes."""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.core.contract import UNCHECKED_JOB_FILE
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.spec import FetchedJob
from dcos_tensorflow.task.supervise.fetched_job import take


def zipped(name: str = "train.py") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "print(1)")
    return out.getvalue()


def wanted(content: bytes, name: str = "job.zip") -> FetchedJob:
    return FetchedJob(name, hashlib.sha256(content).hexdigest())


def fetched(sandbox: Path, content: bytes) -> None:
    (sandbox / UNCHECKED_JOB_FILE).write_bytes(content)


def names(sandbox: Path) -> list[str]:
    return sorted(os.listdir(sandbox))


def test_an_archive_with_its_sum_is_unpacked(tmp_path: Path) -> None:
    fetched(tmp_path, zipped())
    take(wanted(zipped()), str(tmp_path))
    assert names(tmp_path) == ["job.zip", "train.py"]


def test_a_module_with_its_sum_gets_its_name(tmp_path: Path) -> None:
    fetched(tmp_path, b"print(1)")
    take(wanted(b"print(1)", "train.py"), str(tmp_path))
    assert names(tmp_path) == ["train.py"]


def test_another_file_is_refused_with_both_sums_and_removed(tmp_path: Path) -> None:
    other = zipped("evil.py")
    fetched(tmp_path, other)
    with pytest.raises(JobUnusable) as refused:
        take(wanted(zipped()), str(tmp_path))
    assert wanted(zipped()).sha256 in str(refused.value)
    assert wanted(other).sha256 in str(refused.value)
    assert names(tmp_path) == []


def test_an_archive_that_attacks_is_refused_and_removed(tmp_path: Path) -> None:
    fetched(tmp_path, zipped("../escaped"))
    with pytest.raises(JobUnusable, match=r"job\.zip of service\.job_url holds '\.\./escaped'"):
        take(wanted(zipped("../escaped")), str(tmp_path))
    assert names(tmp_path) == []


def test_a_module_replaces_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "task-runner.pyz").write_text("ours")
    fetched(tmp_path, b"theirs")
    with pytest.raises(JobUnusable, match="in the sandbox already"):
        take(wanted(b"theirs", "task-runner.pyz"), str(tmp_path))
    assert (tmp_path / "task-runner.pyz").read_text() == "ours"
    assert names(tmp_path) == ["task-runner.pyz"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / UNCHECKED_JOB_FILE)
    with pytest.raises(JobUnusable, match="is no file"):
        take(wanted(b""), str(tmp_path))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(zipped())
    (tmp_path / UNCHECKED_JOB_FILE).symlink_to("elsewhere")
    with pytest.raises(OSError, match=UNCHECKED_JOB_FILE):
        take(wanted(zipped()), str(tmp_path))
    assert "train.py" not in names(tmp_path)
