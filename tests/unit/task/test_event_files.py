"""The steps of event files, from records framed as TensorFlow frames them."""

import os
import struct

import pytest

from dcos_tensorflow.task.event_files import EventFiles, open_event_files, step_of

TIME = b"\x09" + struct.pack("<d", 1.7e9)


def varint(number):
    data = b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


def event(step, payload=b"\x2a\x00"):
    return TIME + (b"\x10" + varint(step) if step else b"") + payload


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


def test_what_is_appended_is_read_and_nothing_twice(tmp_path):
    path, files = tmp_path / "events.out.tfevents.1.host", EventFiles()
    path.write_bytes(record(event(0)) + record(event(10)))
    assert files.newest_step([str(path)]) == 10
    with path.open("ab") as file:
        file.write(record(event(20, b"\x2a" + varint(9000) + b"x" * 9000)) + record(event(30)))
    assert files.newest_step([str(path)]) == 30


def test_a_record_that_is_half_written_is_read_when_it_is_whole(tmp_path):
    path, files = tmp_path / "events", EventFiles()
    whole = record(event(10)) + record(event(20))
    path.write_bytes(whole[:-6])
    assert files.newest_step([str(path)]) == 10
    path.write_bytes(whole)
    assert files.newest_step([str(path)]) == 20


def test_the_highest_step_of_all_files_counts(tmp_path):
    paths = []
    for name, step in (("train", 50), ("validation", 20)):
        paths.append(str(tmp_path / name))
        (tmp_path / name).write_bytes(record(event(step)))
    assert EventFiles().newest_step(paths) == 50


@pytest.mark.parametrize("data", [b"", b"\xff" * 999, os.urandom(4096), b"\0" * 400_000])
def test_a_file_of_something_else_has_no_step(tmp_path, data):
    (tmp_path / "events").write_bytes(data)
    assert EventFiles().newest_step([str(tmp_path / "events")]) is None


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
