"""Errors of S3 or the disk, and whether trying again can help: a table.

``object_store`` and the engines turn every failure into a ``S3Problem`` here; the runner shows it
in its status. Pure; knows botocore's errors by their names and answers only, so that it works
without it. Texts are our own sentences: no header, signature or credential gets into them.
"""

from __future__ import annotations

import errno
from typing import Any, Dict, FrozenSet, Mapping, Tuple

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class S3Problem:
    """One failure. ``hint`` says what a person can do; with ``retryable`` waiting may be enough.

    With ``refused`` neither waiting nor another machine is, where it has never worked.
    """

    kind: str
    retryable: bool
    summary: str
    hint: str = ""
    refused: bool = False

    def as_json(self) -> Dict[str, Any]:
        """Return what the status shows."""
        return {name: value for name, value in vars(self).items() if name != "refused"}

    @property
    def text(self) -> str:
        """Return summary and hint as one line for the log."""
        return f"{self.summary} ({self.hint})" if self.hint else self.summary


class StorageError(Exception):
    """A step could not be done; ``problem`` says why."""

    def __init__(self, problem: S3Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


class ObjectMissing(StorageError):
    """There is no such object."""


class ObjectChanged(StorageError):
    """The object is shorter than it was when it was written."""


class ConditionFailed(StorageError):
    """A conditional write found another object than it expected; nothing was written."""


class WriterLost(StorageError):
    """Another writer owns the place now. This one must stop for good."""


class DamagedCheckpoint(StorageError):
    """A published checkpoint is not what its manifest says."""


class Cancelled(StorageError):
    """The work was given up because it was told to stop or its time was up."""


def problem_error(kind: str, summary: str, hint: str = "") -> StorageError:
    """Return a permanent error of ``kind``."""
    return StorageError(S3Problem(kind, False, summary, hint, refused=kind in _REFUSALS))


_CREDENTIALS_HINT = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as secrets of the tasks, or give the agents "
    "an instance role"
)
_DENIED_HINT = (
    "allow s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket, s3:AbortMultipartUpload and "
    "s3:ListBucketMultipartUploads on the bucket and prefix"
)
_CLOCK_HINT = "set the agent's clock (NTP): S3 refuses requests that are 15 minutes off"
_REGION_HINT = "set the region of the bucket"

#: S3's error codes -> kind, hint. All of these stay until an operator changes something.
_PERMANENT: Mapping[str, Tuple[str, str]] = {
    "AccessDenied": ("denied", _DENIED_HINT),
    "AllAccessDisabled": ("denied", _DENIED_HINT),
    "AccountProblem": ("denied", _DENIED_HINT),
    "Forbidden": ("denied", _DENIED_HINT),
    "403": ("denied", _DENIED_HINT),
    "KMS.DisabledException": ("denied", "enable the bucket's KMS key"),
    "InvalidAccessKeyId": ("credentials", _CREDENTIALS_HINT),
    "SignatureDoesNotMatch": ("credentials", _CREDENTIALS_HINT),
    "ExpiredToken": ("credentials", "renew the session token"),
    "ExpiredTokenException": ("credentials", "renew the session token"),
    "TokenRefreshRequired": ("credentials", "renew the session token"),
    "InvalidToken": ("credentials", _CREDENTIALS_HINT),
    "AuthorizationHeaderMalformed": ("wrong_region", _REGION_HINT),
    "PermanentRedirect": ("wrong_region", _REGION_HINT),
    "IllegalLocationConstraintException": ("wrong_region", _REGION_HINT),
    "301": ("wrong_region", _REGION_HINT),
    "NoSuchBucket": ("no_bucket", "create the bucket, or correct the URI"),
    "InvalidBucketName": ("no_bucket", "correct the URI"),
    "RequestTimeTooSkewed": ("clock_skew", _CLOCK_HINT),
    "RequestExpired": ("clock_skew", _CLOCK_HINT),
    "NotImplemented": ("unsupported", "the endpoint must know conditional writes (If-Match)"),
    "QuotaExceeded": ("bucket_full", "make room in the bucket, or raise its quota"),
    "XMinioStorageFull": ("bucket_full", "make room in the bucket, or raise its quota"),
    "InsufficientStorage": ("bucket_full", "make room in the bucket, or raise its quota"),
    "507": ("bucket_full", "make room in the bucket, or raise its quota"),
    "EntityTooLarge": ("unsupported", "the endpoint takes no objects of this size"),
}

#: Kinds that say the same to every machine, until the options or the bucket change. Not
#: the others: a clock or an instance role is one machine's, and a full bucket may be emptied.
_REFUSALS = frozenset(
    (
        "denied",
        "credentials",
        "wrong_region",
        "no_bucket",
        "unsupported",
        "certificate",
        "bad_endpoint",
        "no_boto3",
    )
)

#: Codes that go away by waiting; every other 5xx and 429 does too.
_PASSING: FrozenSet[str] = frozenset(
    (
        "SlowDown",
        "ServiceUnavailable",
        "InternalError",
        "InternalFailure",
        "RequestTimeout",
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequests",
        "OperationAborted",
        # A bucket that is new: the endpoint's name does not lead to it yet.
        "TemporaryRedirect",
        "307",
        # What arrived is not what was sent: the next try sends it again.
        "BadDigest",
        "IncompleteBody",
        "XAmzContentSHA256Mismatch",
        "XAmzContentChecksumMismatch",
    )
)
_MISSING = frozenset(("NoSuchKey", "404", "NotFound", "NoSuchVersion"))
_CONDITION = frozenset(("PreconditionFailed", "412", "ConditionalRequestConflict", "409"))

_CONNECTION = frozenset(
    (
        "EndpointConnectionError",
        "ConnectionClosedError",
        "ConnectionError",
        "ConnectTimeoutError",
        "ReadTimeoutError",
        "HTTPClientError",
        "ResponseStreamingError",
        "IncompleteReadError",
        "ProtocolError",
        "TimeoutError",
        "ResponseParserError",
    )
)
_NO_CREDENTIALS = frozenset(
    (
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "ProfileNotFound",
        "SSOError",
        "RefreshWithMFAUnsupportedError",
    )
)
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


def storage_error(error: BaseException, what: str) -> StorageError:
    """Return ``error`` as what the engines handle. ``what`` says what was being done, to what."""
    if isinstance(error, StorageError):
        return error
    response = getattr(error, "response", None)
    if isinstance(response, dict) and "Error" in response:
        return _answered(response, what)
    names = {base.__name__ for base in type(error).__mro__}
    if names & {"SSLError", "SSLCertVerificationError"} and "certificate" in str(error).lower():
        hint = "give the authority's certificate as ca_bundle, or correct the endpoint's name"
        return problem_error("certificate", f"{what}: the endpoint's certificate is not good", hint)
    if names & _NO_CREDENTIALS:
        return StorageError(
            S3Problem("credentials", False, f"{what}: no credentials were found", _CREDENTIALS_HINT)
        )
    if names & _CONNECTION or "SSLError" in names:
        summary = f"{what}: no answer ({type(error).__name__})"
        return StorageError(S3Problem("connection", True, summary, "is the endpoint reachable?"))
    if "RecursionError" in names:
        # botocore follows a redirect, or a refusal, to the bucket's region, and asks again for it.
        said = f"{what}: the endpoint refuses or redirects each question for the bucket's region"
        return StorageError(S3Problem("refused", False, said, "is the region right?"))
    if isinstance(error, OSError):
        return StorageError(_local(error, what))
    summary = f"{what}: {type(error).__name__}"
    return StorageError(S3Problem("unknown", False, summary, "see the task's log"))


def _answered(response: Mapping[str, Any], what: str) -> StorageError:
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code = str(response["Error"].get("Code") or status)
    said = f"{what}: S3 answered {code}"
    if code == "InvalidRange" or status == 416:
        return ObjectChanged(S3Problem("changed", False, said))
    if code in _MISSING:
        return ObjectMissing(S3Problem("missing", False, said))
    if code in _CONDITION or status in (409, 412):
        return ConditionFailed(S3Problem("condition", True, said))
    if code in _PERMANENT:
        kind, hint = _PERMANENT[code]
        return problem_error(kind, said, hint)
    if code in _PASSING or status == 429 or (500 <= status < 600 and status != 501):
        return StorageError(S3Problem("unavailable", True, said, "it is tried again"))
    if status in (401, 403):
        return problem_error("denied", said, _DENIED_HINT)
    if status == 404:
        return ObjectMissing(S3Problem("missing", False, said))
    return StorageError(S3Problem("refused", False, said, "see the endpoint's own log"))


def _local(error: OSError, what: str) -> S3Problem:
    reason = error.strerror or type(error).__name__
    if error.errno in _FULL_DISK:
        return S3Problem("disk_full", False, f"{what}: {reason}", "make room on the task's disk")
    return S3Problem("local_io", True, f"{what}: {reason}", "is the task's disk in order?")
