"""The types of the options about S3, and what a key looks like that must not stand in them.

Used by ``storage_models``. A rule that needs more than one option is in ``storage_checks``.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.options.values import Allowed, problem, shaped, single_line, whole

#: The schemes that stand for S3; s3a and s3n are Hadoop's.
S3_SCHEMES = ("s3", "s3a", "s3n")

# docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; upper case and "_" are in
# old buckets and with other makers.
_BUCKET = r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}"
# docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html.
_LOG_GROUP = r"[.\-_/#A-Za-z0-9]{1,512}"

#: What a place in S3 looks like, for messages.
BUCKET_PLACE = "s3://bucket/prefix"


def is_s3(uri: str) -> bool:
    """Say whether ``uri`` is one of S3."""
    return uri.partition("://")[0] in S3_SCHEMES and "://" in uri


def bucket_flaw(uri: str) -> str:
    """Return why a URI of S3 names no place in it; '' when it does."""
    bucket, _, prefix = uri.partition("://")[2].partition("/")
    if "@" in bucket or ":" in bucket:
        return (
            "names more than a bucket before the first slash; credentials and endpoints have "
            "options of their own, in s3"
        )
    if not re.fullmatch(_BUCKET, bucket):
        return "names no bucket that can exist"
    return "has . or .. in its path" if {".", ".."} & set(prefix.split("/")) else ""


def _s3(value: str) -> str:
    """Check a URI of S3 and return it without slashes at its end."""
    flaw = bucket_flaw(value)
    if flaw:
        raise problem(flaw)
    return value.rstrip("/")


def _shared_directory(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "file":
        raise problem(f"{parts.scheme}:// is not supported")
    if parts.netloc not in ("", "localhost"):
        raise problem(f"a file:// URL names no machine, this one names {parts.netloc}")
    if not parts.path.strip("/"):
        raise problem("names no directory")
    return value


def _place(value: str) -> str:
    """Check a URI of S3, a file:// URL or an absolute path."""
    single_line(value)
    if is_s3(value):
        return _s3(value)
    if "://" in value:
        return _shared_directory(value)
    if value and not value.startswith("/"):
        raise problem("must be an absolute path, found by all machines at the same place")
    return value


def _data_uri(value: str) -> str:
    single_line(value)
    if is_s3(value):
        return _s3(value)
    if "://" in value and not value.startswith("file://"):
        raise problem(
            "is neither in S3 nor a path; service.job_uris brings what is elsewhere", BUCKET_PLACE
        )
    if "://" in value:
        return _shared_directory(value)
    if not value.strip("/. ") and not value.startswith(".."):
        raise problem("names no file or folder beside the code", "./data")
    return value


def _data_path(value: str) -> str:
    single_line(value)
    if value.startswith("/") or ".." in value.split("/"):
        raise problem("must be a path below the sandbox", value.replace("..", "").strip("/"))
    if not value.strip("/."):
        raise problem("must name a place below the sandbox, not the sandbox itself", "data")
    return value.rstrip("/")


def _log_uri(value: str) -> str:
    single_line(value)
    if not value:
        return value
    if is_s3(value):
        return _s3(value)
    scheme, separator, group = value.partition("://")
    if scheme != "cloudwatch" or not separator:
        shown = f"{scheme}://" if separator else "a path"
        raise problem(f"{shown} is no place for logs", BUCKET_PLACE)
    if not re.fullmatch(_LOG_GROUP, group):
        raise problem("is not the name of a log group", "cloudwatch://group")
    return value


def _endpoint(value: str) -> str:
    single_line(value)
    if not value:
        return value
    try:
        parts = urlsplit(value)
        host, user, _ = parts.hostname, parts.username or parts.password, parts.port
    except ValueError as error:
        raise problem(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise problem("is not the URL of an endpoint", "" if user else f"https://{value}")
    if user:
        raise problem("holds a user name, which would be stored and shown to everyone")
    if parts.query or parts.fragment:
        raise problem("has a query, and an endpoint has none")
    return value.rstrip("/")


def _absolute(value: str) -> str:
    single_line(value)
    if value and (not value.startswith("/") or ".." in value.split("/")):
        raise problem("must be an absolute path")
    return value


def looks_like_key(value: str) -> bool:
    """Say whether ``value`` may be an access key of AWS: its id, the secret or a session token.

    docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html (ids); secrets are 40
    characters of base64, tokens much longer.
    """
    if re.search(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{12,}(?![A-Z0-9])", value):
        return True
    mixed = all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    return mixed and bool(re.fullmatch(r"[A-Za-z0-9+/=]{40}|[A-Za-z0-9+/=]{100,}", value))


KeepCheckpoints = Annotated[int, Field(ge=1, le=10_000), BeforeValidator(whole)]
RollBytes = Annotated[int, Field(ge=1024, le=1_000_000_000), BeforeValidator(whole)]
CacheBytes = Annotated[int, Field(ge=0, le=10**15), BeforeValidator(whole)]
CheckpointUri = Annotated[
    str,
    AfterValidator(_place),
    Allowed(
        "s3://bucket/prefix, or an absolute path or a file:// URL of a directory that all "
        "machines share"
    ),
]
InitialUri = Annotated[
    str, AfterValidator(_place), Allowed("s3://bucket/prefix, an absolute path or a file:// URL")
]
DataUri = Annotated[
    str,
    AfterValidator(_data_uri),
    Allowed(f"{BUCKET_PLACE}, a path beside the options file, or an absolute path"),
]
DataPath = Annotated[str, AfterValidator(_data_path), Allowed("a path below the sandbox")]
LogUri = Annotated[
    str, AfterValidator(_log_uri), Allowed("s3://bucket/prefix, cloudwatch://group, or empty text")
]
EndpointUrl = Annotated[
    str, AfterValidator(_endpoint), Allowed("a URL such as https://host:port, or empty text")
]
HostDirectory = Annotated[
    str, AfterValidator(_absolute), Allowed("an absolute path, or empty text")
]
CredentialsFile = Annotated[
    str,
    AfterValidator(_absolute),
    Allowed("an absolute path, or empty text"),
]
VariablePrefix = Annotated[
    str,
    shaped(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "is not the beginning of a variable's name",
        "AWS_",
        or_empty=True,
    ),
    Allowed("letters, digits and underscores, no digit first, or empty text"),
]
