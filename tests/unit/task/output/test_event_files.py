"""The steps and scalars of event files, from records framed as TensorFlow frames them."""

import os
import struct

import pytest

from dcos_tensorflow.task.output import event_files
from dcos_tensorflow.task.output.event_files import EventFiles, open_event_files
from dcos_tensorflow.task.output.summaries import metric_of, scalars_of, step_of

TIME = b"\x09" + struct.pack("<d", 1.7e9)


def varint(number):
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def event(step, payload=b"\x2a\x00"):
    return TIME + (b"\x10" + varint(step) if step else b"") + payload


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def scalar(tag, value):
    """Return the summary of one scalar, as tf.summary of TensorFlow 1 writes it."""
    return message(5, message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value)))


def scalar_tensor(tag, kind, number, data):
    """Return the summary of one tensor, as tf.summary of TensorFlow 2 writes a scalar."""
    tensor = b"\x08" + varint(kind) + b"\x12\x00" + message(number, data)
    metadata = message(9, message(1, message(1, b"scalars")))
    return message(5, message(1, message(1, tag.encode()) + message(8, tensor) + metadata))


def append(path, *events):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for one in events:
            file.write(record(one))


class HeldOpen(EventFiles):
    """Event files of which a process holds some open."""

    def __init__(self, paths):
        super().__init__(("/",))
        self.paths = tuple(map(str, paths))

    def read(self, monkeypatch):
        monkeypatch.setattr(event_files, "open_event_files", lambda pids, below: self.paths)
        return self.newest_step([])


def record(data):
    return struct.pack("<Q", len(data)) + b"\0" * 4 + data + b"\0" * 4


@pytest.mark.parametrize("step", [1, 127, 128, 65_000, 2**40])
def test_the_step_of_an_event_is_read(step):
    assert step_of(event(step)) == step


def test_only_the_beginning_of_an_event_is_needed():
    assert step_of(event(300, b"\x2a" + varint(9000) + b"x" * 9000)[:32]) == 300


@pytest.mark.parametrize(
    "data", [b"", TIME, event(0), b"\x10", b"\x10\xff", b"\xff" * 32, b"\x2a\x05hello"]
)
def test_an_event_without_a_step_has_none(data):
    assert step_of(data) is None


def test_what_is_appended_is_read_and_nothing_twice(tmp_path, monkeypatch):
    path = tmp_path / "events.out.tfevents.1.host"
    files = HeldOpen([path])
    path.write_bytes(record(event(0)) + record(event(10)))
    assert files.read(monkeypatch) == 10
    with path.open("ab") as file:
        file.write(record(event(20, b"\x2a" + varint(9000) + b"x" * 9000)) + record(event(30)))
    assert files.read(monkeypatch) == 30


def test_a_record_that_is_half_written_is_read_when_it_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "events"
    files = HeldOpen([path])
    whole = record(event(10)) + record(event(20))
    path.write_bytes(whole[:-6])
    assert files.read(monkeypatch) == 10
    path.write_bytes(whole)
    assert files.read(monkeypatch) == 20


def test_the_highest_step_of_all_files_counts(tmp_path, monkeypatch):
    paths = []
    for name, step in (("train", 50), ("validation", 20)):
        paths.append(str(tmp_path / name))
        (tmp_path / name).write_bytes(record(event(step)))
    assert HeldOpen(paths).read(monkeypatch) == 50


@pytest.mark.parametrize("data", [b"", b"\xff" * 999, os.urandom(4096), b"\0" * 400_000])
def test_a_file_of_something_else_has_no_step(tmp_path, monkeypatch, data):
    (tmp_path / "events").write_bytes(data)
    assert HeldOpen([tmp_path / "events"]).read(monkeypatch) is None


def test_files_that_this_process_writes_below_the_directories_are_found(tmp_path):
    (tmp_path / "train").mkdir()
    names = ["train/events.out.tfevents.1.host.2.0.v2", "other.txt"]
    held = [(tmp_path / name).open("wb") for name in names]
    try:
        found = open_event_files([os.getpid()], (str(tmp_path),))
        assert found == (str(tmp_path / names[0]),)
        assert open_event_files([os.getpid()], (str(tmp_path / "elsewhere"),)) == ()
    finally:
        for file in held:
            file.close()


def test_a_process_that_is_gone_has_no_files(tmp_path):
    assert open_event_files([2**22 + 1], (str(tmp_path),)) == ()


@pytest.mark.parametrize("summary", [
    scalar("auc", 0.5),
    scalar_tensor("auc", 1, 4, struct.pack("<f", 0.5)),
    scalar_tensor("auc", 1, 5, struct.pack("<f", 0.5)),
    scalar_tensor("auc", 2, 4, struct.pack("<d", 0.5)),
    scalar_tensor("auc", 2, 6, struct.pack("<d", 0.5)),
])  # fmt: skip
def test_a_scalar_is_read_however_tensorflow_writes_it(summary):
    assert scalars_of(event(7, summary)) == {"auc": 0.5}


@pytest.mark.parametrize("summary", [
    scalar_tensor("histogram", 2, 4, struct.pack("<6d", *range(6))),
    scalar_tensor("text", 7, 8, b"words"),
    message(5, message(1, message(1, b"picture") + message(4, b"\x08\x01" + b"x" * 300))),
    message(4, b"a graph"),
    b"\xff" * 40,
    scalar("auc", 0.5)[:-1],
])  # fmt: skip
def test_what_is_no_scalar_tells_none(summary):
    assert scalars_of(event(7, summary)) == {}


@pytest.mark.parametrize(("tag", "folder", "name"), [
    ("auc", "trial-3", "auc"),
    ("epoch_accuracy", "train", "accuracy"),
    ("epoch_accuracy", "validation", "val_accuracy"),
    ("accuracy", "test", "test_accuracy"),
    ("accuracy", "eval", "eval_accuracy"),
])  # fmt: skip
def test_a_metric_is_called_as_keras_calls_it(tag, folder, name):
    assert metric_of(tag, f"/logs/{folder}/events.out.tfevents.1.host") == name


@pytest.mark.parametrize("tag", ["batch_loss", "evaluation_loss_vs_iterations"])
def test_a_metric_that_keras_tells_twice_has_one_name(tmp_path, tag):
    path = tmp_path / "train" / "events.out.tfevents.1.host"
    files = EventFiles((str(tmp_path),), own=True)
    append(path, event(9, scalar(tag, 0.75)), event(2, scalar("epoch_loss", 0.5)))
    assert files.newest_step([]) == 9
    assert files.take_scalars() == [(2, "loss", 0.5)]
    append(path, event(3, scalar("batch_size", 32.0)))
    assert (files.newest_step([]), files.take_scalars()) == (9, [(3, "batch_size", 32.0)])


def test_the_scalars_of_a_file_that_was_held_open_are_read_to_its_end(tmp_path, monkeypatch):
    path = tmp_path / "events.out.tfevents.1.host"
    append(path, event(1, scalar("loss", 0.5)))
    files = HeldOpen([path])
    files.read(monkeypatch)
    append(path, event(2, scalar("loss", 0.25)))
    files.paths = ()
    files.read(monkeypatch)
    assert files.take_scalars() == [(1, "loss", 0.5), (2, "loss", 0.25)]


def test_scalars_are_read_once_of_whatever_is_written_into_an_own_directory(tmp_path):
    path = tmp_path / "validation" / "events.out.tfevents.1.host"
    files = EventFiles((str(tmp_path),), own=True)
    append(path, event(0, b"\x1a\x0dbrain.Event:2"), event(1, scalar("epoch_auc", 0.5)))
    assert files.newest_step([]) == 1
    assert files.take_scalars() == [(1, "val_auc", 0.5)]
    append(path, event(2, b"\x22" + varint(90_000) + b"x" * 90_000), event(3, scalar("b", 0.25)))
    assert files.newest_step([]) == 3
    assert files.take_scalars() == [(3, "val_b", 0.25)]


def test_scalars_of_an_earlier_start_are_not_those_of_this_one(tmp_path):
    path = tmp_path / "events.out.tfevents.1.host"
    append(path, event(9, scalar("auc", 0.5)))
    files = EventFiles((str(tmp_path),), own=True)
    assert (files.newest_step([]), files.take_scalars()) == (None, [])
