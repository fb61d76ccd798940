"""What is worth trying again, what is not, and what a person is told."""

import errno

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

from dcos_tensorflow.task.storage.s3.errors import ConditionFailed, ObjectMissing, storage_error


def answered(code: str, status: int = 400) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "secret AKIAXXXX"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutObject")


@pytest.mark.parametrize(
    ("code", "status"),
    [("SlowDown", 503), ("InternalError", 500), ("RequestTimeout", 400), ("", 502), ("", 429)],
)
def test_a_busy_endpoint_is_tried_again(code, status):
    assert storage_error(answered(code, status), "write x").problem.retryable


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDenied", 403, "denied"),
        ("403", 403, "denied"),
        ("Unheard", 403, "denied"),
        ("InvalidAccessKeyId", 403, "credentials"),
        ("SignatureDoesNotMatch", 403, "credentials"),
        ("ExpiredToken", 400, "credentials"),
        ("NoSuchBucket", 404, "no_bucket"),
        ("PermanentRedirect", 301, "wrong_region"),
        ("RequestTimeTooSkewed", 403, "clock_skew"),
        ("NotImplemented", 501, "unsupported"),
        ("XMinioStorageFull", 507, "bucket_full"),
    ],
)
def test_what_an_operator_must_change_is_permanent_and_says_what_to_do(code, status, kind):
    problem = storage_error(answered(code, status), "write x").problem
    assert (problem.kind, problem.retryable) == (kind, False)
    assert problem.hint


def test_what_s3_says_in_its_message_is_never_repeated():
    assert "AKIA" not in storage_error(answered("AccessDenied", 403), "write x").problem.text


def test_a_missing_object_is_told_from_a_missing_bucket():
    assert isinstance(storage_error(answered("NoSuchKey", 404), "x"), ObjectMissing)


@pytest.mark.parametrize(
    ("code", "status"), [("PreconditionFailed", 412), ("ConditionalRequestConflict", 409)]
)
def test_a_condition_that_is_not_met_is_an_error_of_its_own(code, status):
    assert isinstance(storage_error(answered(code, status), "x"), ConditionFailed)


@pytest.mark.parametrize(
    "error",
    [
        boto.EndpointConnectionError(endpoint_url="http://x"),
        boto.ConnectTimeoutError(endpoint_url="http://x"),
        boto.ReadTimeoutError(endpoint_url="http://x"),
        boto.ConnectionClosedError(endpoint_url="http://x"),
        boto.ResponseStreamingError(error="cut"),
        ConnectionResetError(errno.ECONNRESET, "reset"),
    ],
)
def test_a_lost_connection_is_tried_again(error):
    problem = storage_error(error, "x").problem
    assert (problem.kind, problem.retryable) == ("connection", True)


def test_redirects_without_end_are_permanent_and_told_by_what_was_asked():
    problem = storage_error(RecursionError("maximum recursion depth"), "look at s3://b/k").problem
    assert not problem.retryable
    assert "s3://b/k" in problem.summary


def test_missing_credentials_are_permanent():
    assert storage_error(boto.NoCredentialsError(), "x").problem.kind == "credentials"


def test_a_bad_certificate_is_permanent():
    error = boto.SSLError(endpoint_url="https://x", error="certificate verify failed")
    assert storage_error(error, "x").problem.kind == "certificate"


def test_a_full_disk_is_named():
    error = OSError(errno.ENOSPC, "No space left on device")
    assert storage_error(error, "x").problem.kind == "disk_full"
