"""A directory follows what is published, under the eyes of a process that reads it."""

import dataclasses
import itertools

import pytest

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.follower import KEPT, CheckpointFollower
from jobs.checkpoint_job import PLACE, content
from servers.s3_server import Fault
from waiting import eventually


def follower(engines, directory, restored=None, **plan) -> CheckpointFollower:
    plan = {"interval_seconds": 0.02, **plan}
    return CheckpointFollower(
        str(directory), PLACE, engines.connection(attempts=2), restored, **plan
    )


def named(directory) -> str:
    """Return the prefix that a reader finds in the state file."""
    return (directory / "checkpoint").read_text().partition('"')[2].partition('"')[0]


@pytest.fixture
def publish(engines, job):
    publisher = engines.publisher(job.directory, keep=2)

    def publish_step(step: int, **content) -> None:
        job.save(step, **content)
        assert publisher.publish_once()

    return publish_step


def test_a_newer_checkpoint_comes_beside_the_restored_one(engines, publish, fresh):
    publish(1)
    directory = fresh()
    restored = engines.restorer().restore(str(directory))
    follows = follower(engines, directory, restored)
    publish(2)
    assert follows.follow_once()
    assert named(directory) == "ckpt-2"
    assert (directory / "ckpt-1.index").exists()
    assert (follows.status().published_step, follows.status().lag_seconds) == (2, 0)


def test_what_is_here_already_does_not_come_again(engines, s3, publish, fresh):
    publish(1)
    directory = fresh()
    follows = follower(engines, directory, engines.restorer().restore(str(directory)))
    s3.requests.clear()
    assert not follows.follow_once()
    assert s3.count("GET") == 1


def test_a_follower_begins_with_nothing(engines, publish, fresh):
    directory = fresh()
    follows = follower(engines, directory)
    assert not follows.follow_once()
    publish(1)
    assert follows.follow_once()
    assert named(directory) == "ckpt-1"


def test_only_the_newest_ones_stay_and_what_others_wrote(engines, publish, fresh):
    directory = fresh()
    follows = follower(engines, directory)
    (directory / "best.txt").write_text("0.9")
    for step in range(1, 7):
        publish(step)
        assert follows.follow_once()
    assert sorted(path.name for path in directory.glob("*.index")) == [
        f"ckpt-{step}.index" for step in range(7 - KEPT, 7)
    ]
    assert (directory / "best.txt").read_text() == "0.9"


def test_whatever_a_reader_is_told_is_whole(engines, publish, fresh):
    directory = fresh()
    follows = follower(engines, directory)
    follows.start()
    seen = set()

    def looks() -> bool:
        if (directory / "checkpoint").exists():
            prefix = named(directory)
            step = int(prefix.rpartition("-")[2])
            for shard in range(3):
                data = (directory / f"{prefix}.data-{shard:05d}-of-00003").read_bytes()
                assert data == content(step, shard, len(data))
            assert (directory / f"{prefix}.index").read_bytes() == content(step, 999, 40)
            seen.add(step)
        return len(seen) >= 10

    try:
        steps = itertools.count(1)
        while not looks():
            publish(next(steps), shards=3, size=5000)
            count = len(seen)
            eventually(lambda count=count: looks() or len(seen) > count)
    finally:
        follows.stop()


def test_an_outage_is_shown_and_made_good(engines, s3, publish, fresh):
    directory = fresh()
    publish(1)
    follows = follower(engines, directory)
    s3.fault = lambda request: Fault(403, "AccessDenied")
    assert not follows.follow_once()
    shown = follows.status()
    assert (shown.state, shown.problem.kind) == (status.STATE_BLOCKED, "denied")
    s3.fault = lambda request: None
    assert follows.follow_once()
    assert follows.status().problem is None


def test_a_damaged_checkpoint_is_passed_over(engines, s3, publish, fresh):
    directory = fresh()
    publish(1)
    follows = follower(engines, directory)
    follows.follow_once()
    publish(2)
    (damaged,) = [key for key in s3.list_keys() if key.endswith("ckpt-2.index")]
    s3.client.put_object(Bucket="bucket", Key=damaged, Body=b"x" * 40)
    assert not follows.follow_once()
    assert "damaged" in follows.status().warning
    assert named(directory) == "ckpt-1"
    publish(3)
    assert follows.follow_once()
    assert (named(directory), follows.status().warning) == ("ckpt-3", "")


def test_stopping_does_not_wait_for_a_back_off(engines, s3, fresh):
    s3.fault = lambda request: Fault(503)
    connection = engines.connection()
    connection.backoff = dataclasses.replace(connection.backoff, first=60.0, longest=60.0)
    follows = CheckpointFollower(str(fresh()), PLACE, connection)
    follows.start()
    eventually(lambda: follows.status().problem)
    follows.stop()
    assert follows._thread is not None
    assert not follows._thread.is_alive()
