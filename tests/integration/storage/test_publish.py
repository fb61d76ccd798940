"""Checkpoints go up: complete ones, once, and old ones go away."""

import hashlib
import os
import threading

from dcos_tensorflow.task.storage import status
from jobs.checkpoint_job import PREFIX, step_in
from servers.s3_server import Fault
from waiting import eventually

BIG = 160 << 10


def test_a_checkpoint_is_published_and_restored(engines, job, fresh):
    job.save(10)
    assert engines.publisher(job.directory).publish_once()
    target = fresh()
    restored = engines.restorer().restore(str(target))
    assert (restored.source, restored.step, step_in(target)) == ("published", 10, 10)


def test_how_much_of_a_checkpoint_is_published_is_told(engines, job, monkeypatch):
    told, add = [], status.Transfer.add

    def adds(transfer: status.Transfer, count: int) -> None:
        add(transfer, count)
        told.append(publisher.leaving())

    monkeypatch.setattr(status.Transfer, "add", adds)
    for number in range(2):
        job.write(f"weights-{number}.bin", os.urandom(1_000_000))
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    assert "100 % of 2.0 MB" in told
    assert len({*told}) > 1
    assert publisher.leaving() == ""


def test_nothing_new_is_not_published_again(engines, s3, job):
    job.save(10)
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    s3.requests.clear()
    assert not publisher.publish_once()
    assert s3.count("PUT") == 0


def test_a_state_file_that_is_only_rewritten_is_nothing_new(engines, s3, job):
    job.save(10)
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    job.save(10)
    state = job.directory / "checkpoint"
    state.write_text(state.read_text())
    s3.requests.clear()
    assert not publisher.publish_once()
    assert s3.count("PUT", "manifests") == 0


def test_only_what_changed_goes_up(engines, s3, job):
    for number in range(5):
        job.write(f"weights-{number}.bin", os.urandom(1000))
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    job.write("weights-3.bin", os.urandom(1000))
    s3.requests.clear()
    assert publisher.publish_once()
    assert s3.count("PUT", "/data/") == 1


def test_a_new_attempt_does_not_upload_what_it_just_restored(engines, s3, job, fresh):
    job.save(10)
    engines.publisher(job.directory).publish_once()
    target = fresh()
    engines.restorer().restore(str(target))
    s3.requests.clear()
    assert not engines.publisher(target, attempt=2).publish_once()
    assert s3.count("PUT", "/data/") == 0


def test_a_meta_graph_that_comes_late_is_published_alone(engines, s3, job):
    job.save(10)
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    job.write("ckpt-10.meta", b"graph")
    s3.requests.clear()
    assert publisher.publish_once()
    assert s3.count("PUT", "/data/") == 1


def test_a_large_file_goes_up_in_parts(engines, s3, job, fresh):
    job.save(10, size=BIG)
    engines.publisher(job.directory).publish_once()
    assert s3.count("PUT", "partNumber=") == 3
    target = fresh()
    engines.restorer().restore(str(target))
    assert step_in(target) == 10


def test_s3_is_given_the_checksum_of_every_object(engines, s3, job):
    job.save(10)
    engines.publisher(job.directory).publish_once()
    puts = [request for request in s3.requests if request.method == "PUT"]
    assert puts
    assert all("X_AMZ_CHECKSUM_SHA256" in request.headers for request in puts)


def test_only_so_many_are_kept_and_their_files_with_them(engines, s3, job):
    publisher = engines.publisher(job.directory, keep=2)
    for step in range(1, 6):
        job.save(step)
        publisher.publish_once()
    assert [line.step for line in engines.restorer().published()] == [5, 4]
    assert len(s3.list_keys(f"{PREFIX}/manifests/")) == 2
    assert len(s3.list_keys(f"{PREFIX}/data/")) == 6


def test_a_file_of_an_old_checkpoint_stays_while_a_newer_one_uses_it(engines, job, fresh):
    publisher = engines.publisher(job.directory, keep=1)
    job.write("vocabulary.txt", b"words")
    for step in range(1, 4):
        job.save(step)
        assert publisher.publish_once()
    target = fresh()
    engines.restorer().restore(str(target))
    assert (target / "vocabulary.txt").read_bytes() == b"words"


def test_the_files_of_others_under_the_prefix_are_never_deleted(engines, s3, job):
    for key in ("notes.txt", "data/photo.jpg", "manifests/x.json"):
        s3.client.put_object(Bucket="bucket", Key=f"{PREFIX}/{key}", Body=b"mine")
    publisher = engines.publisher(job.directory, keep=1)
    for step in range(1, 4):
        job.save(step)
        publisher.publish_once()
    assert {f"{PREFIX}/{key}" for key in ("notes.txt", "data/photo.jpg", "manifests/x.json")} <= (
        set(s3.list_keys())
    )


def test_what_a_killed_attempt_left_is_swept_by_the_next(engines, s3, job):
    job.save(1, size=BIG)
    s3.fault = lambda request: Fault(503) if "uploadId" in request.query else None
    killed = engines.publisher(job.directory, connection=engines.connection(attempts=2))
    assert not killed.publish_once()
    assert s3.uploads()
    s3.fault = lambda request: None
    job.save(2)
    assert engines.publisher(job.directory, attempt=2).publish_once()
    assert s3.uploads() == []
    assert {key.split("/")[3][9:17] for key in s3.list_keys(f"{PREFIX}/data/")} == {"00000002"}


def test_nothing_of_ours_stays_in_the_checkpoint_directory(engines, job):
    job.save(1)
    engines.publisher(job.directory).publish_once()
    assert not [name for name in os.listdir(job.directory) if name.startswith(".")]


def test_an_empty_file_is_published_and_restored(engines, job, fresh):
    job.write("empty.txt", b"")
    job.save(1)
    engines.publisher(job.directory).publish_once()
    target = fresh()
    engines.restorer().restore(str(target))
    assert (target / "empty.txt").read_bytes() == b""


def test_the_objects_are_the_files_themselves(engines, s3, job):
    job.save(3)
    engines.publisher(job.directory).publish_once()
    key = next(key for key in s3.list_keys() if key.endswith("ckpt-3.index"))
    body = s3.client.get_object(Bucket="bucket", Key=key)["Body"].read()
    assert hashlib.sha256(body).digest() == (
        hashlib.sha256((job.directory / "ckpt-3.index").read_bytes()).digest()
    )


def test_a_job_that_saves_without_pause_is_published_and_never_torn(engines, job, fresh):
    stop = threading.Event()
    # Before the first state file, what lies there is published without a step.
    job.save(1, size=5000, shards=2)

    def train() -> None:
        step = 1
        while not stop.is_set():
            step += 1
            job.save(step, size=5000, shards=2)

    training = threading.Thread(target=train)
    training.start()
    try:
        publisher = engines.publisher(job.directory, keep=2)
        for _ in range(20):
            eventually(publisher.publish_once)
            target = fresh()
            restored = engines.restorer().restore(str(target))
            assert step_in(target) == restored.step == publisher.status().published_step
    finally:
        stop.set()
        training.join()


def test_a_file_that_is_written_in_place_during_its_upload_is_not_published(engines, s3, job):
    job.write("state.bin", b"old" * 100)

    def rewrite(request):
        if "/data/" in request.path and request.method == "PUT":
            s3.fault = lambda request: None
            job.write("state.bin", b"new" * 100)

    publisher = engines.publisher(job.directory)
    s3.fault = rewrite
    assert not publisher.publish_once()
    assert engines.restorer().published() == ()
    assert publisher.publish_once()


def test_the_thread_publishes_every_interval_and_what_is_left_at_the_end(engines, job, fresh):
    publisher = engines.publisher(job.directory, interval_seconds=0.05)
    publisher.start()
    job.save(1)
    eventually(lambda: publisher.status().published_step == 1)
    job.save(2)
    assert publisher.finish(20.0)
    assert publisher.status().state == status.STATE_STOPPED
    assert engines.restorer().published()[0].step == 2


def test_the_last_checkpoint_does_not_wait_for_the_interval(engines, job):
    publisher = engines.publisher(job.directory, interval_seconds=3600.0)
    publisher.start()
    eventually(lambda: publisher.status().state == status.STATE_IDLE)
    job.save(7)
    assert publisher.finish(20.0)
    assert engines.restorer().published()[0].step == 7


def test_how_long_something_waits_is_shown(engines, s3, job):
    job.save(1)
    s3.fault = lambda request: Fault(503)
    publisher = engines.publisher(job.directory, connection=engines.connection(attempts=1))
    publisher.publish_once()
    assert eventually(lambda: publisher.status().lag_seconds > 0)
    s3.fault = lambda request: None
    publisher.publish_once()
    assert publisher.status().lag_seconds == 0
