"""The files that tasks fetch: what their names say, and what is made when."""

import importlib.util
import sys
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.scheduler.artifacts import Runners
from dcos_tensorflow.task import pack


def test_the_names_of_the_runners_are_known_before_they_are_packed(tmp_path: Path) -> None:
    runners = Runners.of(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert runners.plain != runners.storage
    assert runners == Runners.of(tmp_path)


def test_a_second_service_of_a_process_has_the_runner_of_the_sources_as_they_are_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Runners.of(tmp_path)
    monkeypatch.setattr(pack, "identity", lambda storage=False: f"changed-{storage}")
    assert Runners.of(tmp_path).plain != before.plain


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


def test_what_was_packed_for_one_service_is_not_packed_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep_below(tmp_path / "kept", monkeypatch)
    first, second = Runners.of(tmp_path / "first"), Runners.of(tmp_path / "second")
    first.publish(storage=False)
    monkeypatch.setattr(pack, "build_zipapp", _refuse)
    second.publish(storage=False)
    assert second.plain.read_bytes() == first.plain.read_bytes()


def test_what_an_older_release_has_packed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = _keep_below(tmp_path / "kept", monkeypatch)
    kept.mkdir(parents=True)
    (kept / "task-runner-0.pyz").touch()
    runners = Runners.of(tmp_path / "artifacts")
    runners.publish(storage=False)
    assert [each.name for each in kept.glob("*.pyz")] == [runners.plain.name]


def test_where_nothing_can_be_kept_it_is_packed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _keep_below(tmp_path / "kept", monkeypatch)
    (tmp_path / "kept").touch()
    runners = Runners.of(tmp_path / "artifacts")
    runners.publish(storage=False)
    assert zipfile.is_zipfile(runners.plain)


def _keep_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let Python keep below a folder what it compiles, and return where that of the runner is."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(folder))
    return Path(importlib.util.cache_from_source(pack.__file__)).parent


def _refuse(*_: object) -> None:
    raise AssertionError("it is packed once more")
