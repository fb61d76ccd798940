"""Looking at a directory, and setting a checkpoint aside so that it stays as it is."""

import errno
import os
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.task.storage import snapshot
from dcos_tensorflow.task.storage.layout import Patience, choose
from dcos_tensorflow.task.storage.s3.errors import StorageError


def saved(directory: Path, step: int) -> None:
    (directory / f"ckpt-{step}.index").write_text(f"index {step}")
    (directory / f"ckpt-{step}.data-00000-of-00001").write_text(f"data {step}")
    (directory / "checkpoint").write_text(f'model_checkpoint_path: "{directory}/ckpt-{step}"\n')


def aside(directory: Path) -> snapshot.SetAside:
    choice = choose(snapshot.look(str(directory)), Patience(ended=True))
    made = snapshot.set_aside(str(directory), "x", choice)
    assert made is not None
    return made


def test_a_directory_that_is_not_there_is_empty(tmp_path):
    assert snapshot.look(str(tmp_path / "none")).files == ()


def test_what_is_set_aside_survives_its_deletion(tmp_path):
    saved(tmp_path, 1)
    made = aside(tmp_path)
    (tmp_path / "ckpt-1.index").unlink()
    assert Path(made.path("ckpt-1.index")).read_text() == "index 1"


def test_the_files_are_linked_not_copied(tmp_path):
    saved(tmp_path, 1)
    made = aside(tmp_path)
    assert os.stat(made.path("ckpt-1.index")).st_nlink == 2


def test_where_links_are_impossible_they_are_copied(tmp_path, monkeypatch):
    def refuse(*paths: str, **options: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    saved(tmp_path, 1)
    assert Path(aside(tmp_path).path("ckpt-1.index")).read_text() == "index 1"


def test_a_full_disk_is_reported_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(*paths: str, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    saved(tmp_path, 1)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(StorageError) as failed:
        aside(tmp_path)
    assert failed.value.problem.kind == "disk_full"
    assert sorted(os.listdir(tmp_path)) == before


def test_the_state_file_that_is_set_aside_has_relative_names(tmp_path):
    saved(tmp_path, 1)
    assert str(tmp_path) not in Path(aside(tmp_path).path("checkpoint")).read_text()


def test_a_checkpoint_that_was_replaced_meanwhile_is_not_set_aside(tmp_path):
    saved(tmp_path, 1)
    choice = choose(snapshot.look(str(tmp_path)), Patience(ended=True))
    saved(tmp_path, 2)
    assert snapshot.set_aside(str(tmp_path), "x", choice) is None


def test_a_checkpoint_that_was_deleted_meanwhile_is_not_set_aside(tmp_path):
    saved(tmp_path, 1)
    choice = choose(snapshot.look(str(tmp_path)), Patience(ended=True))
    (tmp_path / "ckpt-1.index").unlink()
    assert snapshot.set_aside(str(tmp_path), "x", choice) is None


def test_a_file_that_is_written_in_place_later_is_noticed(tmp_path):
    (tmp_path / "state.bin").write_bytes(b"old")
    made = aside(tmp_path)
    assert made.changed() is None
    (tmp_path / "state.bin").write_bytes(b"newer")
    assert made.changed() == "state.bin"


def test_our_own_folders_are_not_listed(tmp_path):
    saved(tmp_path, 1)
    aside(tmp_path)
    assert len(snapshot.look(str(tmp_path)).files) == 3


def test_folders_of_a_killed_publisher_are_removed(tmp_path):
    saved(tmp_path, 1)
    aside(tmp_path)
    snapshot.discard_left_behind(str(tmp_path))
    assert not any(name.startswith(".dcos") for name in os.listdir(tmp_path))


def test_a_keras_file_that_is_cut_short_is_not_whole(tmp_path):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "{}" * 100)
    assert not snapshot.look(str(tmp_path)).unreadable
    path.write_bytes(path.read_bytes()[:-30])
    assert snapshot.look(str(tmp_path)).unreadable == {"model.keras"}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_hdf5_file_shorter_than_it_says_is_not_whole(tmp_path, version):
    head = bytearray(b"\x89HDF\r\n\x1a\n" + bytes(120))
    head[8] = version
    base = {0: 24, 1: 28}.get(version, 12)
    head[13 if version < 2 else 9] = 8
    head[base + 16 : base + 24] = (128).to_bytes(8, "little")
    (tmp_path / "w.weights.h5").write_bytes(head)
    assert not snapshot.look(str(tmp_path)).unreadable
    (tmp_path / "w.weights.h5").write_bytes(head[:-1])
    assert snapshot.look(str(tmp_path)).unreadable


def test_a_link_to_a_file_is_taken_as_the_file(tmp_path):
    (tmp_path / "a-1.bin").write_bytes(b"content")
    (tmp_path / "newest.bin").symlink_to("a-1.bin")
    made = aside(tmp_path)
    assert Path(made.path("newest.bin")).read_bytes() == b"content"
    assert not os.path.islink(made.path("newest.bin"))
