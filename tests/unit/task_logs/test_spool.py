"""A task's output on its way out: in parts on the disk, complete, each once."""

import gzip
import random
from pathlib import Path

import pytest

from dcos_tensorflow.task.output.shipping.spool import Spool


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "spool"


def taken(spool, stream=None):
    """Take all closed parts; return (start, stream, content) of each."""
    found = []
    part = spool.next_part()
    while part is not None:
        found.append((part.start, part.stream, part.read()))
        spool.shipped(part)
        part = spool.next_part()
    return found


def text_of(parts, stream="stdout"):
    return b"".join(content for _, name, content in parts if name == stream)


def test_nothing_is_closed_before_its_time(folder):
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"one\n")
    spool.roll(60.0)
    assert spool.next_part() is None
    assert spool.waiting_parts() == 1


def test_an_old_part_is_closed(folder):
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"one\n")
    spool.roll(0.0)
    assert taken(spool) == [(1, "stdout", b"one\n")]


def test_a_line_is_not_cut_in_two_parts_while_it_can_be_waited_for(folder, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"half a")
    now[0] += 10.0
    spool.roll(10.0)
    assert spool.next_part() is None
    now[0] += 10.0
    spool.roll(10.0)
    assert taken(spool) == [(1, "stdout", b"half a")]


def test_a_full_part_is_closed_at_the_end_of_a_line(folder):
    spool = Spool(str(folder), 10)
    spool.append("stdout", b"12345\n789012\nx\n")
    spool.close()
    assert [content for _, _, content in taken(spool)] == [b"12345\n", b"789012\nx\n"]


def test_a_line_longer_than_a_part_is_cut(folder):
    spool = Spool(str(folder), 10)
    spool.append("stdout", b"a" * 25 + b"\nb\n")
    spool.close()
    parts = taken(spool)
    assert text_of(parts) == b"a" * 25 + b"\nb\n"
    assert max(len(content) for _, _, content in parts) == 10


def test_each_start_has_parts_of_its_own(folder):
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"first\n")
    spool.begin_start(2)
    spool.append("stdout", b"second\n")
    spool.close()
    assert taken(spool) == [(1, "stdout", b"first\n"), (2, "stdout", b"second\n")]


def test_whatever_comes_is_there_once_and_in_order(folder):
    dice = random.Random(7)
    spool = Spool(str(folder), 100)
    written, found = {"stdout": b"", "stderr": b""}, []
    for number in range(400):
        stream = dice.choice(["stdout", "stderr"])
        data = (b"%d " % number) * dice.randrange(1, 20) + dice.choice([b"", b"\n", b"\n\n"])
        written[stream] += data
        spool.append(stream, data)
        if dice.random() < 0.05:
            found += taken(spool)
        if dice.random() < 0.05:
            # The runner is killed, and another one begins in the same sandbox.
            spool = Spool(str(folder), 100)
    spool.close()
    found += taken(spool)
    assert {stream: text_of(found, stream) for stream in written} == written
    assert spool.dropped_bytes == 0


def test_numbers_are_never_given_twice(folder):
    numbers = []
    for _ in range(3):
        spool = Spool(str(folder), 1000)
        spool.append("stdout", b"x\n")
        spool.close()
        part = spool.next_part()
        numbers.append(part.number)
        spool.shipped(part)
    assert numbers == [1, 2, 3]


def test_a_full_spool_drops_and_says_so(folder):
    spool = Spool(str(folder), 1000, max_waiting_bytes=20)
    spool.append("stdout", b"0123456789\n")
    spool.append("stdout", b"this is too much\n")
    assert spool.dropped_bytes == 17
    spool.close()
    assert text_of(taken(spool)) == b"0123456789\n"
    spool.append("stdout", b"on\n")
    spool.close()
    assert text_of(taken(spool)) == b"task-runner: 17 bytes of output are missing here\non\n"


def test_the_same_content_is_the_same_bytes(tmp_path):
    packed = []
    for name in ("a", "b"):
        spool = Spool(str(tmp_path / name), 1000)
        spool.append("stdout", b"same\n" * 50)
        spool.close()
        packed.append(Path(spool.next_part().path).read_bytes())
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]) == b"same\n" * 50


def test_what_is_compressed_and_not_yet_removed_counts_once(folder):
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"x\n")
    spool.close()
    part = spool.next_part()
    (folder / part.path.rpartition("/")[2].replace(".gz", ".log")).write_bytes(b"x\n")
    assert text_of(taken(Spool(str(folder), 1000))) == b"x\n"


def test_nothing_is_kept_of_what_is_shipped(folder):
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"x\n")
    spool.close()
    taken(spool)
    assert (spool.waiting_bytes, spool.waiting_parts()) == (0, 0)


@pytest.mark.parametrize("target", ["/proc/self/environ", "../private", "/dev/zero"])
def test_a_link_that_is_put_there_is_no_part(folder, target):
    (folder.parent / "private").write_text("the runner may read it")
    spool = Spool(str(folder), 1000)
    spool.append("stdout", b"one\n")
    (folder / "000001-00000000-stdout.log").symlink_to(target)
    spool.roll(0.0)
    assert taken(spool) == [(1, "stdout", b"one\n")]
