"""The output of a shard: whole under its name, or not at all."""

import os

import pytest

from dcos_tensorflow.task.supervise import shard_output
from dcos_tensorflow.task.supervise.shard_output import NothingWritten, ShardOutput


@pytest.fixture
def output(tmp_path):
    def make(owner="1-slot-0-worker-0-1", name="out/part-1.jsonl"):
        made = ShardOutput(name, str(tmp_path), owner)
        made.prepare()
        return made

    return make


def write(output, text):
    with open(output.path, "w") as file:
        file.write(text)


def test_it_is_written_under_its_own_name_elsewhere(output):
    assert os.path.basename(output().path) == "part-1.jsonl"


def test_only_the_first_is_published(output, tmp_path):
    one, other = output(), output("2-slot-1-worker-0-1")
    write(one, "one")
    write(other, "other")
    assert other.publish()
    with pytest.raises(NothingWritten):
        one.publish()
    assert (tmp_path / "out/part-1.jsonl").read_text() == "other"
    assert os.listdir(tmp_path / "out") == ["part-1.jsonl"]


def test_one_that_is_there_already_stays(output, tmp_path):
    made = output()
    (tmp_path / "out/part-1.jsonl").write_text("before")
    write(made, "after")
    assert not made.publish()
    assert (tmp_path / "out/part-1.jsonl").read_text() == "before"
    assert os.listdir(tmp_path / "out") == ["part-1.jsonl"]


@pytest.mark.parametrize("there", [False, True])
def test_a_file_system_without_links_will_do(output, tmp_path, monkeypatch, there):
    def refuse(*arguments, **named):
        raise OSError(95, "Operation not supported")

    made = output()
    write(made, "after")
    if there:
        (tmp_path / "out/part-1.jsonl").write_text("before")
    monkeypatch.setattr(shard_output.os, "link", refuse)
    assert made.publish() is not there
    assert (tmp_path / "out/part-1.jsonl").read_text() == ("before" if there else "after")


def test_a_folder_takes_the_place_of_no_other(output, tmp_path):
    for owner, expected in (("1-a-1", True), ("2-b-1", False)):
        made = output(owner, "out/part-1")
        os.mkdir(made.path)
        open(os.path.join(made.path, owner), "w").close()
        assert made.publish() is expected
    assert os.listdir(tmp_path / "out/part-1") == ["1-a-1"]


def test_what_a_killed_attempt_has_left_is_removed_by_the_one_that_is_published(output, tmp_path):
    write(output(), "half")
    winner = output("2-slot-1-worker-0-1")
    write(winner, "whole")
    assert winner.publish()
    assert os.listdir(tmp_path / "out") == ["part-1.jsonl"]


def test_other_shards_are_left_alone(output, tmp_path):
    other = output(name="out/part-1.jsonl.gz")
    write(other, "other")
    mine = output()
    write(mine, "mine")
    assert mine.publish()
    assert other.publish()
    assert sorted(os.listdir(tmp_path / "out")) == ["part-1.jsonl", "part-1.jsonl.gz"]


def test_one_that_is_given_up_leaves_nothing(output, tmp_path):
    made = output()
    os.mkdir(made.path)
    open(os.path.join(made.path, "half"), "w").close()
    made.discard()
    assert os.listdir(tmp_path / "out") == []
