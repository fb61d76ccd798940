"""Folders of secrets whose runner was killed are removed by the next one, and no others."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.task.secrets import secret_files


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks as old as it has to be."""
    monkeypatch.setattr(secret_files, "_YOUNG_SECONDS", -1.0)
    folder = tmp_path / ".dcos-tensorflow-left"
    folder.mkdir(mode=0o700)
    (folder / "key").write_text("hush")
    return folder


@pytest.fixture
def locked(left: Path) -> Iterator[Path]:
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield left
    os.close(descriptor)


def test_what_a_killed_runner_left_is_removed(left: Path, tmp_path: Path) -> None:
    secret_files.remove_left_behind(str(tmp_path))
    assert not left.exists()


def test_what_a_runner_still_has_stays(locked: Path, tmp_path: Path) -> None:
    secret_files.remove_left_behind(str(tmp_path))
    assert (locked / "key").exists()


def test_what_is_young_stays(left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "_YOUNG_SECONDS", 60.0)
    secret_files.remove_left_behind(str(tmp_path))
    assert left.exists()


def test_files_of_another_task_stay(tmp_path: Path, left: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    secret_files.remove_left_behind(str(tmp_path))
    assert other.exists()


def test_a_task_without_a_place_in_memory_says_that_its_secrets_lie_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(secret_files, "_MEMORY", str(tmp_path / "none"))
    variables: dict[str, str] = {}
    path = secret_files.write(variables, str(tmp_path), b"hush")
    assert Path(path).is_relative_to(tmp_path)
    assert "the task's secrets lie in its sandbox on the disk" in capsys.readouterr().err
    secret_files.remove(variables)
