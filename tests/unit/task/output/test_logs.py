"""Output is passed on, kept within bounds and cut into lines."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dcos_tensorflow.task.output.logs import (
    BoundedOutput,
    Console,
    LineScanner,
    ProgressFile,
    RecentLines,
    lines_of,
)


@pytest.fixture(params=["append", "offset"])
def log(request, tmp_path):
    path = tmp_path / "stdout"
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if request.param == "append" else 0)
    descriptor = os.open(path, flags)
    yield path, descriptor
    os.close(descriptor)


def test_a_full_file_is_copied_aside_and_begun_anew(log):
    path, descriptor = log
    output = BoundedOutput(descriptor, max_bytes=10, keep=2)
    for text in (b"11111111\n", b"22222222\n", b"33333333\n", b"44444444\n"):
        output.write(text)
    assert path.read_bytes() == b"44444444\n"
    assert path.with_name("stdout.1").read_bytes() == b"33333333\n"
    assert path.with_name("stdout.2").read_bytes() == b"22222222\n"
    assert not path.with_name("stdout.3").exists()


def test_without_copies_to_keep_a_full_file_is_only_begun_anew(log):
    path, descriptor = log
    output = BoundedOutput(descriptor, max_bytes=10, keep=0)
    output.write(b"11111111\n")
    output.write(b"22222222\n")
    assert path.read_bytes() == b"22222222\n"
    assert [child.name for child in path.parent.iterdir()] == ["stdout"]


def test_what_was_in_the_file_before_counts(log):
    path, descriptor = log
    os.write(descriptor, b"by Mesos\n")
    BoundedOutput(descriptor, max_bytes=10, keep=1).write(b"by us\n")
    assert path.with_name("stdout.1").read_bytes() == b"by Mesos\n"


@pytest.fixture
def streams(tmp_path):
    """stdout and stderr of a task, as files that no bound cuts."""
    with open(tmp_path / "stdout", "wb") as stdout, open(tmp_path / "stderr", "wb") as stderr:
        yield [BoundedOutput(file.fileno(), 0, 0) for file in (stdout, stderr)]


def test_what_comes_out_of_both_streams_is_also_in_one_file_in_that_order(streams, tmp_path):
    stdout, stderr = streams
    Console(tmp_path / "both", streams, 1000, 1)
    for stream, text in ((stdout, b"1\n"), (stderr, b"2\n"), (stderr, b"3\n"), (stdout, b"4\n")):
        stream.write(text)
    assert (tmp_path / "both").read_bytes() == b"1\n2\n3\n4\n"
    assert (tmp_path / "stdout").read_bytes() == b"1\n4\n"


def test_a_line_of_one_stream_is_no_part_of_a_line_of_the_other(streams, tmp_path):
    stdout, stderr = streams
    Console(tmp_path / "both", streams, 1000, 1)
    for stream, text in (
        (stdout, b"7/45"),
        (stdout, b"\r8/45"),
        (stderr, b"E\n"),
        (stdout, b"\r9"),
    ):
        stream.write(text)
    assert (tmp_path / "both").read_bytes() == b"7/45\r8/45\nE\n\r9"


def test_the_file_of_both_is_kept_within_their_bounds(streams, tmp_path):
    Console(tmp_path / "both", streams, 10, 1)
    for text in (b"11111111\n", b"22222222\n"):
        streams[0].write(text)
    assert (tmp_path / "both").read_bytes() == b"22222222\n"
    assert (tmp_path / "both.1").read_bytes() == b"11111111\n"


def test_where_the_file_of_both_cannot_be_made_the_streams_go_on(streams, tmp_path):
    Console(tmp_path / "no folder" / "both", streams, 1000, 1).close()
    streams[0].write(b"1\n")
    assert (tmp_path / "stdout").read_bytes() == b"1\n"


def test_a_pipe_is_written_to_and_never_rotated():
    reader, writer = os.pipe()
    output = BoundedOutput(writer, max_bytes=4, keep=1)
    output.write(b"12345678")
    output.write(b"12345678")
    os.close(writer)
    assert os.read(reader, 100) == b"1234567812345678"
    os.close(reader)


def test_output_without_a_reader_is_dropped_and_counted():
    reader, writer = os.pipe()
    os.close(reader)
    output = BoundedOutput(writer, max_bytes=0, keep=0)
    output.write(b"123")
    os.close(writer)
    assert output.dropped_bytes == 3


def test_lines_are_cut_wherever_the_blocks_end():
    scanner = LineScanner()
    assert lines_of(scanner.feed(b"one\ntw")) == ["one"]
    assert lines_of(scanner.feed(b"o\r")) == ["two"]
    assert lines_of(scanner.feed(b"\nthr")) == []
    assert lines_of(scanner.close()) == ["thr"]
    assert lines_of(scanner.close()) == []


def test_a_carriage_return_ends_a_line():
    assert lines_of(LineScanner().feed(b"10%\r20%\r30%\n")) == ["10%", "20%", "30%"]


def test_bytes_that_are_no_text_are_shown_as_such():
    assert lines_of(LineScanner().feed(b"\xff!\n")) == ["\ufffd!"]


def test_a_line_without_end_takes_bounded_memory():
    lines = lines_of(LineScanner().feed(b"x" * 200_000))
    assert [len(line) for line in lines] == [65536, 65536, 65536]


def test_the_recent_lines_forget_the_oldest():
    recent = RecentLines(2, max_line=3)
    for line in (b"one\n", b"two\n", b"three\n"):
        recent.add(line)
    assert recent.lines() == ["two", "thr"]


def test_the_recent_lines_have_one_state_of_each_progress_bar():
    recent = RecentLines(10)
    printed = b"Epoch 1/2\n\r 1/45 a\x08\x08\r\x1b[1m 2/45\x1b[0m b\n1/9 c\r2/9 d\nend\n"
    recent.add(LineScanner().feed(printed))
    assert recent.lines() == ["Epoch 1/2", "\x1b[1m 2/45\x1b[0m b", "2/9 d", "end"]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "1/9 x", "2/9 y", "1/5 z", " 10%| w", " 20%| v"]), max_size=30),
    st.integers(1, 6),
    st.integers(1, 40),
)
def test_the_recent_lines_are_the_same_wherever_the_blocks_end(
    printed: list[str], count: int, size: int
) -> None:
    one_by_one, at_once, cut = (RecentLines(count) for _ in range(3))
    data = "".join(f"{line}\n" for line in printed).encode()
    for line in printed:
        one_by_one.add(f"{line}\n".encode())
        one_by_one.lines()
    at_once.add(data)
    scanner = LineScanner()
    for begin in range(0, len(data), size):
        cut.add(scanner.feed(data[begin : begin + size]))
    assert one_by_one.lines() == at_once.lines() == cut.lines()


def test_a_progress_file_is_read_on_from_where_it_was(tmp_path):
    path = tmp_path / "progress"
    file = ProgressFile(str(path))
    assert file.new_lines() == []
    path.write_text("a\nb")
    assert file.new_lines() == ["a"]
    path.write_text("a\nbc\n")
    assert file.new_lines() == ["bc"]


def test_a_progress_file_that_is_written_anew_is_read_from_its_start(tmp_path):
    path = tmp_path / "progress"
    file = ProgressFile(str(path))
    path.write_text("first\n")
    file.new_lines()
    path.write_text("2\n")
    assert file.new_lines() == ["2"]


def test_at_the_end_a_last_line_without_line_end_counts(tmp_path):
    path = tmp_path / "progress"
    path.write_text("a\nb")
    assert ProgressFile(str(path)).close() == ["a", "b"]


def test_a_block_larger_than_the_bound_is_cut_between_lines(log):
    path, descriptor = log
    BoundedOutput(descriptor, max_bytes=10, keep=1).write(b"11\n22\n33\n44\n55\n")
    assert path.read_bytes() == b"44\n55\n"
    assert path.with_name("stdout.1").read_bytes() == b"11\n22\n33\n"


def test_a_line_larger_than_the_bound_is_cut(log):
    path, descriptor = log
    BoundedOutput(descriptor, max_bytes=10, keep=1).write(b"x" * 25)
    assert path.read_bytes() == b"x" * 5
