"""S3 and the disk fail: nothing stops, everything is shown, and what passes is made good."""

import dataclasses
import itertools
import json
import time

import pytest

from dcos_tensorflow.task.storage import status
from dcos_tensorflow.task.storage.s3.errors import StorageError
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import ObjectStore
from dcos_tensorflow.task.storage.s3.retry import Cancellation, Retrier
from jobs.checkpoint_job import PREFIX, step_in, step_in_nothing
from servers.s3_server import SECRET_KEY, Fault
from waiting import eventually

BIG = 160 << 10


def test_passing_errors_are_tried_again_until_it_works(engines, s3, job):
    job.save(1)
    s3.fault = lambda request: Fault(503) if request.number % 2 else None
    assert engines.publisher(job.directory).publish_once()


def test_a_long_outage_is_shown_and_made_good(engines, s3, job):
    job.save(1)
    s3.fault = lambda request: Fault(503)
    publisher = engines.publisher(job.directory, connection=engines.connection(attempts=2))
    assert not publisher.publish_once()
    assert publisher.status().state == status.STATE_RETRYING
    s3.fault = lambda request: None
    assert publisher.publish_once()
    assert (publisher.status().state, publisher.status().problem) == (status.STATE_IDLE, None)


@pytest.mark.parametrize(
    ("fault", "kind", "what_to_do"),
    [
        (Fault(403, "AccessDenied"), "denied", "s3:PutObject"),
        (Fault(403, "InvalidAccessKeyId"), "credentials", "AWS_ACCESS_KEY_ID"),
        (Fault(403, "ExpiredToken"), "credentials", "renew the session token"),
        (Fault(403, "RequestTimeTooSkewed"), "clock_skew", "NTP"),
        (Fault(400, "AuthorizationHeaderMalformed"), "wrong_region", "region"),
    ],
)
def test_a_permanent_error_is_reported_at_once_with_what_to_do(
    engines, job, fault, kind, what_to_do
):
    engines.s3.fault = lambda request: fault
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    shown = publisher.status()
    assert (shown.state, shown.problem.kind) == (status.STATE_BLOCKED, kind)
    assert what_to_do in shown.problem.hint
    assert engines.s3.count("GET") == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(301, "wrong_region"), (302, "refused"), (307, "unavailable")]
)
def test_a_redirection_is_not_followed_in_a_circle(engines, s3, status, kind):
    s3.fault = lambda request: Fault(status, "")
    store = engines.connection(attempts=1).store("bucket")
    for ask in (lambda: store.head("x"), lambda: store.get("x"), lambda: list(store.list("x"))):
        s3.requests.clear()
        with pytest.raises(StorageError) as told:
            ask()
        assert told.value.problem.kind == kind
        assert len(s3.requests) <= 2


class Circle:
    """A client whose listings never end; each answer is the next of ``pages``, over and over."""

    def __init__(self, *pages):
        self.pages = itertools.cycle(pages)
        self.asked = 0

    def list_objects_v2(self, **more):
        self.asked += 1
        return next(self.pages)

    list_multipart_uploads = list_objects_v2


def page(*keys, token):
    objects = [{"Key": key, "Size": 1, "ETag": "e", "UploadId": "u"} for key in keys]
    told = {} if token is None else {"NextContinuationToken": token, "NextKeyMarker": token}
    return {
        "Contents": objects,
        "Uploads": objects,
        "IsTruncated": True,
        **({"NextUploadIdMarker": "u"} if told else {}),
        **told,
    }


@pytest.mark.parametrize("listing", ["list", "uploads"])
@pytest.mark.parametrize(
    "pages",
    [
        [page("a", token="1")],
        [page("a", token="1"), page("b", token="2")],
        [page(token="1"), page("a", token="1")],
        [page("a", token=None)],
        [page("a", token=str(number)) for number in range(100)],
    ],
    ids=["same", "two in turn", "empty", "no token", "same page"],
)
def test_a_listing_that_leads_in_a_circle_ends(pages, listing):
    client = Circle(*pages)
    store = ObjectStore(client, "bucket", Retrier(Cancellation()), Cancellation())
    with pytest.raises(StorageError, match="lead in a circle") as told:
        list(getattr(store, listing)(""))
    assert told.value.problem.refused
    assert client.asked <= 3


def test_a_missing_bucket_is_reported_before_there_is_a_checkpoint(engines, job):
    publisher = engines.publisher(job.directory, place=Location("nowhere", "x"))
    publisher.publish_once()
    assert publisher.status().problem.kind == "no_bucket"


def test_a_permanent_error_that_an_operator_mended_is_over(engines, s3, job):
    job.save(1)
    s3.fault = lambda request: Fault(403, "AccessDenied")
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    s3.fault = lambda request: None
    assert publisher.publish_once()


def test_the_same_error_is_logged_once_and_dated_from_its_beginning(engines, s3, job):
    job.save(1)
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    job.save(2)
    s3.fault = lambda request: Fault(403, "AccessDenied")
    publisher.publish_once()
    since = publisher.status().problem_since
    publisher.publish_once()
    assert publisher.status().problem_since == since
    assert sum("AccessDenied" in line for line in engines.log) == 1


def test_no_secret_is_logged_or_shown(engines, s3, job):
    job.save(1)
    s3.fault = lambda request: Fault(403, "SignatureDoesNotMatch")
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    shown = json.dumps(publisher.status().as_json()) + "".join(engines.log)
    assert SECRET_KEY not in shown


def test_no_credentials_are_a_problem_that_says_so(engines, job, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(job.directory))
    job.save(1)
    publisher = engines.publisher(job.directory, connection=engines.connection(read_timeout=4.0))
    publisher.publish_once()
    assert publisher.status().problem.kind == "credentials"


def test_an_endpoint_without_a_server_is_tried_again_later(engines, job):
    connection = engines.connection(attempts=2, read_timeout=1.0)
    connection.client = None
    connection.settings = dataclasses.replace(
        connection.settings, endpoint_url="http://127.0.0.1:9"
    )
    publisher = engines.publisher(job.directory, connection=connection)
    publisher.publish_once()
    assert publisher.status().problem.kind == "connection"


def test_a_slow_answer_is_given_up_and_asked_for_again(engines, s3, job):
    job.save(1)
    slow = iter([Fault(delay=1.0)])
    s3.fault = lambda request: next(slow, None) if request.method == "PUT" else None
    connection = engines.connection(read_timeout=0.2)
    assert engines.publisher(job.directory, connection=connection).publish_once()


@pytest.mark.parametrize("method", ["PUT", "POST", "GET"])
def test_an_answer_that_is_lost_after_it_was_carried_out_does_no_harm(
    engines, s3, job, fresh, method
):
    job.save(1, size=BIG)
    lost: set[str] = set()

    def lose_each_once(request):
        if request.method == method and request.path + request.query not in lost:
            lost.add(request.path + request.query)
            return Fault(lost_answer=True)
        return None

    s3.fault = lose_each_once
    assert engines.publisher(job.directory).publish_once()
    assert lost
    target = fresh()
    engines.restorer().restore(str(target))
    assert step_in(target) == 1


def test_an_interrupted_upload_goes_on_where_it_stopped(engines, s3, job):
    job.save(1, size=5 * BIG)
    publisher = engines.publisher(job.directory, connection=engines.connection(attempts=1))
    s3.fault = lambda request: Fault(503) if "partNumber=9" in request.query else None
    assert not publisher.publish_once()
    done = s3.count("PUT", "partNumber=") - s3.count("PUT", "partNumber=9")
    assert done > 0
    s3.requests.clear()
    s3.fault = lambda request: None
    assert publisher.publish_once()
    assert s3.count("PUT", "partNumber=") == 13 - done
    assert s3.count("POST", "uploads") == 0


def test_an_upload_that_the_endpoint_gave_up_begins_anew(engines, s3, job, fresh):
    job.save(1, size=BIG)
    publisher = engines.publisher(job.directory, connection=engines.connection(attempts=1))
    s3.fault = lambda request: Fault(503) if "partNumber=3" in request.query else None
    assert not publisher.publish_once()
    (gone,) = s3.client.list_multipart_uploads(Bucket="bucket")["Uploads"]
    s3.client.abort_multipart_upload(Bucket="bucket", Key=gone["Key"], UploadId=gone["UploadId"])
    # moto answers 500 here; S3 answers this.
    s3.fault = lambda request: (
        Fault(404, "NoSuchUpload") if gone["UploadId"] in request.query else None
    )
    assert not publisher.publish_once()
    assert publisher.publish_once()
    target = fresh()
    engines.restorer().restore(str(target))
    assert step_in(target) == 1


def test_a_place_that_was_emptied_is_filled_again(engines, s3, job, fresh):
    job.write("vocabulary.txt", b"words")
    job.save(1)
    publisher = engines.publisher(job.directory)
    publisher.publish_once()
    for key in s3.list_keys():
        s3.client.delete_object(Bucket="bucket", Key=key)
    job.save(2)
    while not publisher.publish_once():
        assert publisher.status().state == status.STATE_RETRYING
    target = fresh()
    engines.restorer().restore(str(target))
    assert (target / "vocabulary.txt").read_bytes() == b"words"


def test_an_endpoint_without_conditional_writes_is_refused_by_name(engines, s3, job):
    job.save(1)
    s3.ignores_conditions = True
    try:
        publisher = engines.publisher(job.directory)
        publisher.publish_once()
    finally:
        s3.ignores_conditions = False
    assert publisher.status().problem.kind == "unsupported"
    assert "If-None-Match" in publisher.status().problem.summary


def test_old_checkpoints_that_cannot_be_deleted_do_not_stop_new_ones(engines, s3, job):
    s3.fault = lambda request: Fault(403, "AccessDenied") if request.query == "delete" else None
    publisher = engines.publisher(job.directory, keep=1)
    for step in (1, 2, 3):
        job.save(step)
        assert publisher.publish_once()
    assert "cannot be deleted" in publisher.status().warning
    s3.fault = lambda request: None
    job.save(4)
    publisher.publish_once()
    assert len(s3.list_keys(f"{PREFIX}/manifests/")) == 1


def test_new_checkpoints_do_not_wait_until_old_ones_can_be_deleted(engines, s3, job):
    s3.fault = lambda request: Fault(503, "SlowDown") if request.query == "delete" else None
    publisher = engines.publisher(job.directory, keep=1)
    for step in (1, 2):
        job.save(step)
        assert publisher.publish_once()
    assert s3.count("POST", "delete") == 2
    assert (publisher.status().state, publisher.status().problem) == (status.STATE_IDLE, None)
    assert "cannot be deleted" in publisher.status().warning


def test_the_end_of_the_grace_period_is_kept_whatever_s3_does(engines, s3, job):
    job.save(1)
    publisher = engines.publisher(job.directory, interval_seconds=3600)
    s3.fault = lambda request: Fault(503)
    publisher.start()
    began = time.monotonic()
    assert not publisher.finish(0.3)
    assert time.monotonic() - began < 3.0


def test_an_end_whose_time_is_over_before_anybody_looked_is_not_called_complete(engines, job):
    job.save(1)
    publisher = engines.publisher(job.directory, interval_seconds=3600)
    assert not publisher.finish(0.0)


def test_an_end_that_came_too_late_says_that_something_waits(engines, job):
    job.save(1)
    publisher = engines.publisher(job.directory, interval_seconds=3600)
    publisher.finish(0.0)
    eventually(lambda: publisher.status().lag_seconds > 0)


def test_a_stop_looks_for_nothing_more(engines, job):
    job.save(1)
    publisher = engines.publisher(job.directory, interval_seconds=3600)
    publisher.start()
    idle = (1, status.STATE_IDLE)
    eventually(lambda: (publisher.status().published_step, publisher.status().state) == idle)
    job.save(2)
    publisher.stop()
    assert (publisher.status().state, publisher.status().problem) == (status.STATE_STOPPED, None)


def test_stopping_does_not_wait_for_a_back_off(engines, s3, job):
    job.save(1)
    connection = engines.connection()
    connection.backoff = dataclasses.replace(connection.backoff, first=60.0, longest=60.0)
    s3.fault = lambda request: Fault(503)
    publisher = engines.publisher(job.directory, connection=connection)
    publisher.start()
    began = time.monotonic()
    publisher.stop()
    assert time.monotonic() - began < 3.0


def test_a_cut_download_goes_on_within_the_part_it_was_in(engines, s3, job, fresh):
    job.save(1, size=5 * BIG)
    engines.publisher(job.directory).publish_once()
    cuts = iter([Fault(cut_answer=30 << 10)] * 5)
    s3.fault = lambda request: next(cuts, None) if "data-0" in request.path else None
    target = fresh()
    restored = engines.restorer().restore(str(target))
    assert step_in(target) == 1
    assert restored.bytes_fetched < 6 * BIG


def test_a_restore_that_was_given_up_goes_on_at_the_next_call(engines, s3, job, fresh):
    job.save(1, size=5 * BIG)
    engines.publisher(job.directory).publish_once()
    target = fresh()

    def only_the_first(request):
        return None if "bytes=0-" in request.headers.get("RANGE", "") else Fault(503)

    s3.fault = lambda request: only_the_first(request) if "data-0" in request.path else None
    with pytest.raises(StorageError):
        engines.restorer(attempts=1, threads=1).restore(str(target))
    assert step_in_nothing(target)
    s3.fault = lambda request: None
    restored = engines.restorer().restore(str(target))
    assert step_in(target) == 1
    assert restored.bytes_fetched <= 5 * BIG - (512 << 10) + 100
