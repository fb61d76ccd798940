"""What TensorBoard shows is brought from a log directory in S3, and follows it."""

import os

import pytest

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.log_copy import OVERLAP, LogCopy, is_shown
from dcos_tensorflow.task.storage.s3.location import Location
from servers.s3_server import Fault
from waiting import eventually

EVENTS = "train/events.out.tfevents.1.host"


@pytest.fixture
def here(tmp_path):
    path = tmp_path / "here"
    path.mkdir()
    return path


@pytest.fixture
def put(s3):
    def put_object(name: str, body: bytes) -> None:
        s3.client.put_object(Bucket="bucket", Key=f"logs/{name}", Body=body)

    return put_object


def log_copy(engines, here, **plan) -> LogCopy:
    return LogCopy(str(here), Location("bucket", "logs"), engines.connection(attempts=2), **plan)


def test_event_files_come_under_their_names(engines, put, here):
    put(EVENTS, b"one")
    assert log_copy(engines, here).copy_once() == 1
    assert (here / EVENTS).read_bytes() == b"one"
    assert [path.name for path in here.iterdir()] == ["train"]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("events.out.tfevents.1.host.v2", True),
        ("train/plugins/profile/2026/host.xplane.pb", True),
        ("projector_config.pbtxt", True),
        ("words/metadata.tsv", True),
        ("ckpt-1.data-00000-of-00001", False),
        ("model/saved_model.pb", False),
        ("checkpoints/latest.json", False),
    ],
)
def test_models_and_checkpoints_do_not_come(path, shown):
    assert is_shown(path) is shown


def test_of_a_grown_file_only_the_new_end_is_fetched(engines, s3, put, here):
    begin = os.urandom(4 * OVERLAP)
    put(EVENTS, begin)
    copy = log_copy(engines, here)
    copy.copy_once()
    inode = (here / EVENTS).stat().st_ino
    put(EVENTS, begin + b" and more")
    before = copy.status().uploaded_bytes
    assert copy.copy_once() == 1
    assert (here / EVENTS).read_bytes() == begin + b" and more"
    # A reader that has it open goes on reading.
    assert (here / EVENTS).stat().st_ino == inode
    assert copy.status().uploaded_bytes - before == len(b" and more")


def test_a_file_that_was_written_anew_is_fetched_anew(engines, put, here):
    put(EVENTS, b"first" * 100)
    copy = log_copy(engines, here)
    copy.copy_once()
    put(EVENTS, b"second" * 200)
    copy.copy_once()
    assert (here / EVENTS).read_bytes() == b"second" * 200


def test_what_has_not_changed_is_not_fetched(engines, s3, put, here):
    put(EVENTS, b"one")
    copy = log_copy(engines, here)
    copy.copy_once()
    s3.requests.clear()
    assert copy.copy_once() == 0
    assert s3.count("GET") == 1  # The listing.


def test_what_is_gone_there_goes_here(engines, s3, put, here):
    put(EVENTS, b"one")
    copy = log_copy(engines, here)
    copy.copy_once()
    s3.client.delete_object(Bucket="bucket", Key=f"logs/{EVENTS}")
    copy.copy_once()
    assert not (here / EVENTS).exists()


def test_a_cut_answer_goes_on_where_it_stopped(engines, s3, put, here):
    content = os.urandom(1 << 20)
    put(EVENTS, content[:1000])
    copy = log_copy(engines, here)
    copy.copy_once()
    put(EVENTS, content)
    s3.fault = lambda request: Fault(cut_answer=500_000) if "tfevents" in request.path else None
    copy.copy_once()
    assert copy.status().state == status.STATE_RETRYING
    s3.fault = lambda request: None
    assert copy.copy_once() == 1
    assert (here / EVENTS).read_bytes() == content


def test_a_missing_bucket_is_shown_with_what_to_do(engines, here):
    copy = LogCopy(str(here), Location("nowhere", "logs"), engines.connection())
    copy.copy_once()
    assert (copy.status().state, copy.status().problem.kind) == (status.STATE_BLOCKED, "no_bucket")


def test_it_follows_on_a_thread_of_its_own(engines, put, here):
    copy = log_copy(engines, here, interval_seconds=0.02)
    copy.start()
    try:
        put(EVENTS, b"one")
        eventually((here / EVENTS).exists)
        put(EVENTS, b"one two")
        eventually(lambda: (here / EVENTS).read_bytes() == b"one two")
    finally:
        copy.stop()
