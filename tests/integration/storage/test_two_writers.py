"""Two attempts of the chief write at once, and uploads are cut: no reader sees half a checkpoint.

Each of the many rounds is small; ``make soak`` plays the numbers that the project promises to have
tried.
"""

import os
import random
import threading

import pytest

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.s3.errors import DamagedCheckpoint
from dcos_tensorflow.task.storage.s3.location import Location
from jobs.checkpoint_job import PREFIX, Job, step_in
from servers.s3_server import Fault

CUTS = int(os.environ.get("CUTS", "40"))
FIGHTS = int(os.environ.get("FIGHTS", "40"))
NEWER = "00000002"


def test_a_newer_attempt_takes_over_and_the_older_one_stops(engines, job):
    job.save(1)
    old = engines.publisher(job.directory, attempt=1)
    assert old.publish_once()
    new = engines.publisher(job.directory, attempt=2)
    job.save(2)
    assert new.publish_once()
    job.save(3)
    assert not old.publish_once()
    assert old.status().state == status.STATE_LOST
    assert "attempt 2 publishes here" in old.status().problem.summary


def test_a_claim_alone_stops_the_older_attempt(engines, job, fresh):
    job.save(1)
    old = engines.publisher(job.directory, attempt=1)
    old.publish_once()
    engines.publisher(fresh(), attempt=2).publish_once()
    job.save(2)
    assert not old.publish_once()
    assert engines.restorer().published()[0].step == 1


def test_an_older_attempt_that_comes_late_never_writes(engines, s3, job):
    job.save(1)
    engines.publisher(job.directory, attempt=2).publish_once()
    s3.requests.clear()
    late = engines.publisher(job.directory, attempt=1)
    late.publish_once()
    assert late.status().state == status.STATE_LOST
    assert s3.count("PUT") + s3.count("DELETE") + s3.count("POST") == 0


def test_a_lost_writer_asks_s3_for_nothing_any_more(engines, s3, job):
    job.save(1)
    engines.publisher(job.directory, attempt=2).publish_once()
    late = engines.publisher(job.directory, attempt=1, interval_seconds=0.01)
    late.start()
    late.finish(5.0)
    s3.requests.clear()
    late.publish_once()
    assert s3.requests == []


def test_a_new_service_takes_a_place_over_for_good(engines, job):
    job.save(1)
    old = engines.publisher(job.directory, attempt=7, lineage="old")
    old.publish_once()
    job.save(2)
    assert engines.publisher(job.directory, attempt=1, lineage="new").publish_once()
    job.save(3)
    assert not old.publish_once()
    assert not engines.publisher(job.directory, attempt=8, lineage="old").publish_once()
    assert engines.restorer().published()[0].step == 2


def test_an_older_attempt_deletes_nothing_that_the_newer_one_uses(engines, s3, job, fresh):
    job.write("vocabulary.txt", b"words")
    job.save(1)
    old = engines.publisher(job.directory, attempt=1, keep=1)
    old.publish_once()
    job.save(2)
    new_job = engines.publisher(job.directory, attempt=2, keep=1)
    # The older one stands between its look and its next write while the newer one publishes.
    s3.fault = _at_the_first_file(new_job.publish_once)
    assert not old.publish_once()
    target = fresh()
    assert engines.restorer().restore(str(target)).step == 2
    assert (target / "vocabulary.txt").read_bytes() == b"words"


def _at_the_first_file(action):
    """Return what does ``action`` before the first request for a file, of several at a time."""
    first = threading.Lock()

    def act(request):
        if "/data/" in request.path and first.acquire(blocking=False):
            action()

    return act


def test_two_writers_fight_and_the_newer_one_always_wins(engines, tmp_path, fresh):
    """Both publish at the same time, again and again; a reader looks after each round."""
    draw = random.Random(4)
    for fight in range(FIGHTS):
        place = Location("bucket", f"fight-{fight}")
        jobs = [Job(tmp_path / f"{fight}-{attempt}") for attempt in (1, 2)]
        writers = [
            engines.publisher(
                job.directory,
                attempt=attempt,
                place=place,
                keep=1,
                connection=engines.connection(threads=1),
            )
            for attempt, job in enumerate(jobs, 1)
        ]
        for job, name in zip(jobs, (b"old", b"new"), strict=True):
            job.write("weights.bin", name)
        at_once = [threading.Thread(target=writer.publish_once) for writer in writers]
        draw.shuffle(at_once)
        for thread in at_once:
            thread.start()
        for thread in at_once:
            thread.join()
        jobs[0].write("weights.bin", b"older")
        assert not writers[0].publish_once()
        assert writers[0].status().state == status.STATE_LOST
        writers[1].publish_once()
        target = fresh()
        assert engines.restorer(place, threads=1).restore(str(target)).id.split("-")[1] == NEWER
        assert (target / "weights.bin").read_bytes() == b"new"


def test_an_upload_that_is_cut_anywhere_never_shows_a_partial_checkpoint(engines, s3, job, fresh):
    """Each attempt is killed at another request; what can be restored is always whole."""
    draw = random.Random(3)
    whole = 0
    for attempt in range(1, CUTS + 1):
        job.save(attempt, size=150 << 10 if attempt % 10 == 0 else 300, shards=2)
        publisher = engines.publisher(
            job.directory, attempt=attempt, keep=2, connection=engines.connection(attempts=1)
        )
        s3.requests.clear()
        last = draw.randrange(1, 14)
        how = draw.choice(
            [Fault(cut_request=True), Fault(lost_answer=True), Fault(503), Fault(cut_answer=0)]
        )
        s3.fault = lambda request, last=last, how=how: how if request.number >= last else None
        published = publisher.publish_once()
        publisher.stop()
        s3.fault = lambda request: None
        target = fresh()
        restored = engines.restorer().restore(str(target))
        found = step_in(target)
        assert found == restored.step
        assert restored.warnings == ()
        if published:
            assert found == attempt
        if found is not None:
            assert found >= whole
            whole = found
    assert whole > CUTS // 2


def test_after_all_cuts_one_whole_attempt_leaves_a_clean_place(engines, s3, job):
    for attempt in range(1, 6):
        job.save(attempt, size=200 << 10)
        s3.fault = lambda request: Fault(cut_request=True) if request.number > 9 else None
        s3.requests.clear()
        engines.publisher(
            job.directory, attempt=attempt, connection=engines.connection(attempts=1)
        ).publish_once()
    s3.fault = lambda request: None
    job.save(6)
    engines.publisher(job.directory, attempt=6, keep=1).publish_once()
    assert len(s3.list_keys(f"{PREFIX}/")) == 1 + 1 + 3
    assert s3.uploads() == []


def test_a_reader_that_is_overtaken_reads_the_next_one(engines, s3, job, fresh):
    """The checkpoint it reads is deleted in the middle: it says so, and a second try is whole."""
    publisher = engines.publisher(job.directory, keep=1)
    job.save(1)
    publisher.publish_once()
    job.save(2)
    s3.fault = _at_the_first_file(publisher.publish_once)
    target = fresh()
    with pytest.raises(DamagedCheckpoint):
        engines.restorer().restore(str(target))
    assert engines.restorer().restore(str(target)).step == 2
    assert step_in(target) == 2
