"""Which checkpoint a start would restore, from files as TensorFlow writes them."""

import os

import pytest

from dcos_tensorflow.task.checkpoints import Checkpoint, is_complete, named, restorable


def save(directory, prefix, shards=1, missing=None):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{prefix}.index").touch()
    for shard in range(shards):
        if shard != missing:
            (directory / f"{prefix}.data-{shard:05}-of-{shards:05}").touch()


def state(directory, latest, *others):
    lines = [f'model_checkpoint_path: "{latest}"']
    lines += [f'all_model_checkpoint_paths: "{path}"' for path in others]
    lines += ["all_model_checkpoint_timestamps: 1700000000.5", "last_preserved_timestamp: 1.7e9"]
    (directory / "checkpoint").write_text("\n".join(lines) + "\n")


def test_the_checkpoint_that_the_state_file_names_is_restored(tmp_path):
    save(tmp_path, "model.ckpt-1200")
    state(tmp_path, "model.ckpt-1200", "model.ckpt-1200")
    assert restorable(str(tmp_path)) == Checkpoint(1200, "model.ckpt-1200")


def test_the_size_of_all_its_files_is_told_and_when_the_last_was_written(tmp_path):
    save(tmp_path, "ckpt-1", shards=2)
    state(tmp_path, "ckpt-1")
    sizes = {"ckpt-1.index": 5, "ckpt-1.data-00001-of-00002": 70, "ckpt-10.index": 9}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
        os.utime(tmp_path / name, (1000 + size, 1000 + size))
    os.utime(tmp_path / "ckpt-1.data-00000-of-00002", (1, 1))
    found = restorable(str(tmp_path))
    assert (found.bytes, found.saved_at) == (75, 1070)


def test_an_absolute_path_of_a_version_1_saver_counts(tmp_path):
    save(tmp_path, "model.ckpt-7", shards=2)
    state(tmp_path, tmp_path / "model.ckpt-7")
    assert restorable(str(tmp_path)) == Checkpoint(7, str(tmp_path / "model.ckpt-7"))


def test_an_absolute_path_of_another_sandbox_does_not_count(tmp_path):
    save(tmp_path, "model.ckpt-7")
    state(tmp_path, "/gone/model.ckpt-7")
    assert restorable(str(tmp_path)) is None


@pytest.mark.parametrize("missing", [0, 1])
def test_a_checkpoint_without_one_of_its_shards_does_not_count(tmp_path, missing):
    save(tmp_path, "ckpt-2", shards=2, missing=missing)
    state(tmp_path, "ckpt-2")
    assert restorable(str(tmp_path)) is None


def test_a_checkpoint_without_its_index_does_not_count(tmp_path):
    save(tmp_path, "ckpt-2")
    (tmp_path / "ckpt-2.index").unlink()
    assert not is_complete(str(tmp_path / "ckpt-2"))


def test_the_newest_complete_one_stands_in_for_one_that_is_not(tmp_path):
    for number in (1, 2):
        save(tmp_path, f"ckpt-{number}")
    save(tmp_path, "ckpt-3", shards=2, missing=1)
    state(tmp_path, "ckpt-3", "ckpt-1", "ckpt-2", "ckpt-3")
    assert restorable(str(tmp_path)) == Checkpoint(2, "ckpt-2")


def test_a_checkpoint_that_the_state_file_does_not_name_is_not_restored(tmp_path):
    save(tmp_path, "ckpt-9")
    assert restorable(str(tmp_path)) is None


def test_a_longer_name_is_not_taken_for_a_shard(tmp_path):
    save(tmp_path, "ckpt-1")
    os.rename(
        tmp_path / "ckpt-1.data-00000-of-00001", tmp_path / "ckpt-1.data-x.data-00000-of-00001"
    )
    assert not is_complete(str(tmp_path / "ckpt-1"))


def test_a_checkpoint_whose_name_has_no_number_is_of_step_0(tmp_path):
    save(tmp_path, "best")
    state(tmp_path, "best")
    assert restorable(str(tmp_path)) == Checkpoint(0, "best")


def test_a_checkpoint_in_a_directory_below_counts(tmp_path):
    save(tmp_path / "deep", "ckpt-4")
    state(tmp_path, "deep/ckpt-4")
    assert restorable(str(tmp_path)) == Checkpoint(4, "deep/ckpt-4")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (b'model_checkpoint_path: "a-1"', ["a-1"]),
        (b"model_checkpoint_path:'a-1'", ["a-1"]),
        (b'  model_checkpoint_path : "a-1" all_model_checkpoint_paths: "a-0"', ["a-1", "a-0"]),
        (b'model_checkpoint_path: "say \\"a\\"-1"', ['say "a"-1']),
        (b'model_checkpoint_path: "\\303\\244-1"', ["ä-1"]),
        ('model_checkpoint_path: "ä-1"'.encode(), ["ä-1"]),
        (b'# model_checkpoint_path: "a-1"', []),
        (b'model_checkpoint_path: "cut', []),
        (b'my_model_checkpoint_path: "a-1"', []),
        (b'model_checkpoint_path: "a\\000-1"', []),
        (os.urandom(999), []),
    ],
)
def test_the_state_file_is_read_as_a_text_protocol_buffer(text, paths):
    assert named(text) == paths


@pytest.mark.parametrize("act", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_nothing_in_the_place_of_the_state_file_stops_the_reading(tmp_path, act):
    act(tmp_path / "checkpoint")
    assert restorable(str(tmp_path)) is None


def test_a_directory_that_is_not_there_holds_nothing(tmp_path):
    assert restorable(str(tmp_path / "none")) is None
