"""A log directory is copied to S3: grown files whole, models when they are whole."""

import os

import pytest

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.mirror import Mirror
from dcos_tensorflow.task.storage.s3.location import Location
from servers.s3_server import Fault
from waiting import eventually

EVENTS = "events.out.tfevents.1.host"


@pytest.fixture
def logs(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    return path


def mirror(engines, logs, **plan) -> Mirror:
    plan = {"interval_seconds": 0.0, "quiet_seconds": 0.0, **plan}
    connection = engines.connection(attempts=2)
    return Mirror(str(logs), Location("bucket", "logs"), connection, **plan)


def body(s3, key: str) -> bytes:
    return s3.client.get_object(Bucket="bucket", Key=f"logs/{key}")["Body"].read()


def test_files_keep_their_names(engines, s3, logs):
    (logs / "train").mkdir()
    (logs / "train" / EVENTS).write_bytes(b"one")
    mirror(engines, logs).copy_once()
    assert s3.list_keys() == [f"logs/train/{EVENTS}"]


def test_a_grown_file_is_put_again_whole(engines, s3, logs):
    copies = mirror(engines, logs)
    (logs / EVENTS).write_bytes(b"one")
    copies.copy_once()
    with (logs / EVENTS).open("ab") as file:
        file.write(b" two")
    assert copies.copy_once() == 1
    assert body(s3, EVENTS) == b"one two"


def test_an_unchanged_file_is_not_put_again(engines, s3, logs):
    copies = mirror(engines, logs)
    (logs / EVENTS).write_bytes(b"one")
    copies.copy_once()
    s3.requests.clear()
    assert copies.copy_once() == 0
    assert s3.requests == []


def test_a_file_is_put_no_more_often_than_its_interval(engines, logs):
    copies = mirror(engines, logs, interval_seconds=3600.0)
    (logs / EVENTS).write_bytes(b"one")
    copies.copy_once()
    (logs / EVENTS).write_bytes(b"one two")
    assert copies.copy_once() == 0
    assert copies.copy_once(ended=True) == 1


def test_an_event_file_goes_up_while_it_grows_and_a_model_when_it_rests(engines, s3, logs):
    (logs / EVENTS).write_bytes(b"one")
    (logs / "model.bin").write_bytes(b"half")
    mirror(engines, logs, quiet_seconds=3600.0).copy_once()
    assert s3.list_keys() == [f"logs/{EVENTS}"]


def test_what_makes_a_model_visible_goes_up_last(engines, s3, logs):
    (logs / "m" / "variables").mkdir(parents=True)
    for name in ("saved_model.pb", "variables/variables.index", "zzz.txt"):
        (logs / "m" / name).write_bytes(b"x")
    mirror(engines, logs).copy_once()
    puts = [request.path for request in s3.requests if request.method == "PUT"]
    assert puts[-1].endswith("saved_model.pb")


def test_the_parts_of_a_checkpoint_are_not_its_business(engines, job):
    job.save(1)
    (job.directory / EVENTS).write_bytes(b"one")
    assert mirror(engines, job.directory).copy_once() == 1


def test_nothing_in_the_bucket_is_deleted(engines, s3, logs):
    copies = mirror(engines, logs)
    (logs / EVENTS).write_bytes(b"one")
    copies.copy_once()
    os.unlink(logs / EVENTS)
    copies.copy_once(ended=True)
    assert body(s3, EVENTS) == b"one"


def test_a_large_file_is_put_in_parts(engines, s3, logs):
    (logs / EVENTS).write_bytes(os.urandom(200 << 10))
    mirror(engines, logs).copy_once()
    assert body(s3, EVENTS) == (logs / EVENTS).read_bytes()
    assert s3.count("PUT", "partNumber") == 4


def test_an_outage_is_shown_and_made_good(engines, s3, logs):
    (logs / EVENTS).write_bytes(b"one")
    copies = mirror(engines, logs)
    s3.fault = lambda request: Fault(503)
    copies.copy_once()
    assert copies.status().state == status.STATE_RETRYING
    assert copies.status().lag_seconds > 0
    s3.fault = lambda request: None
    assert copies.copy_once() == 1
    assert (copies.status().problem, copies.status().lag_seconds) == (None, 0)


def test_an_end_whose_time_is_over_before_anybody_looked_is_not_called_complete(engines, logs):
    (logs / EVENTS).write_bytes(b"one")
    assert not mirror(engines, logs).finish(0.0)


def test_the_end_brings_what_is_left(engines, s3, logs):
    copies = mirror(engines, logs, interval_seconds=0.02)
    copies.start()
    (logs / EVENTS).write_bytes(b"one")
    eventually(s3.list_keys)
    (logs / EVENTS).write_bytes(b"one two")
    (logs / "model.bin").write_bytes(b"final")
    assert copies.finish(10.0)
    assert (body(s3, EVENTS), body(s3, "model.bin")) == (b"one two", b"final")
