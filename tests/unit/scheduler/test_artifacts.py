"""The files that tasks fetch: what their names say, and what is made when."""

from __future__ import annotations

import zipfile
from pathlib import Path

from dcos_tensorflow.scheduler.artifacts import Runners


def test_the_names_of_the_runners_are_known_before_they_are_packed(tmp_path: Path) -> None:
    runners = Runners.of(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert runners.plain != runners.storage
    assert runners == Runners.of(tmp_path)


def test_a_runner_is_packed_once(tmp_path: Path) -> None:
    runners = Runners.of(tmp_path / "artifacts")
    runners.publish(storage=False)
    made = runners.plain.stat()
    runners.publish(storage=False)
    again = runners.plain.stat()
    assert (again.st_ino, again.st_mtime_ns) == (made.st_ino, made.st_mtime_ns)
    assert made.st_mode & 0o777 == 0o644


def test_the_runner_with_boto3_is_packed_for_jobs_with_storage_only(tmp_path: Path) -> None:
    runners = Runners.of(tmp_path)
    runners.publish(storage=False)
    assert [runners.plain.exists(), runners.storage.exists()] == [True, False]
    runners.publish(storage=True)
    brought = []
    for file in (runners.plain, runners.storage):
        with zipfile.ZipFile(file) as runner:
            brought.append("libraries/boto3/__init__.py" in runner.namelist())
    assert brought == [False, True]
