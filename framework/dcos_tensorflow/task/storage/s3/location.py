"""Where objects are and how the endpoint is reached: plain values, checked when they are made.

The runner builds both from its spec. Credentials are never part of them: they come from the
environment, a profile or the instance's role, as boto3 finds them.
"""

from __future__ import annotations

import os
import re
from typing import Optional
from urllib.parse import urlsplit

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage_spec import S3_SCHEMES, S3Access

#: docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; upper case and "_" are in
#: old buckets and with other makers.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}\Z")

MEBIBYTE = 1 << 20


class LocationError(ValueError):
    """A URI or a setting cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Location:
    """A place in a bucket. ``prefix`` has no slash at its ends and may be empty."""

    bucket: str
    prefix: str = ""

    def key(self, *names: str) -> str:
        """Return the key of ``names`` below this place."""
        return "/".join(part for part in (self.prefix, *names) if part)

    def below(self, *names: str) -> "Location":
        """Return the place ``names`` below this one."""
        return Location(self.bucket, self.key(*names))

    @property
    def uri(self) -> str:
        """Return the place as ``s3://bucket/prefix``."""
        return f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}"


def parse_uri(uri: str) -> Location:
    """Return the place that ``s3://bucket/prefix`` names. Raises LocationError."""
    scheme, separator, rest = uri.partition("://")
    if scheme not in S3_SCHEMES or not separator:
        raise LocationError(f"{uri!r} is no S3 URI: it must look like s3://bucket/prefix")
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.match(bucket):
        raise LocationError(f"{uri!r} names no bucket that can exist: {bucket!r}")
    parts = [part for part in prefix.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise LocationError(f"{uri!r} has '.' or '..' in its path")
    return Location(bucket, "/".join(parts))


@dataclass(frozen=True)
class S3Settings:
    """How to reach the S3 endpoint. Times are seconds, sizes bytes.

    ``path_style`` None: path style where an endpoint is given, else as boto3 chooses. At most
    ``threads`` requests run at a time, and together they hold at most ``memory_bytes`` of content.
    """

    endpoint_url: str = ""
    region: str = ""
    path_style: Optional[bool] = None
    ca_bundle: str = ""
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    threads: int = 8
    memory_bytes: int = 48 * MEBIBYTE

    @staticmethod
    def of(access: S3Access, sandbox: str) -> "S3Settings":
        """Return how a task reaches S3. Raises LocationError."""
        return S3Settings(
            endpoint_url=access.endpoint_url,
            region=access.region,
            path_style=access.path_style,
            ca_bundle=os.path.join(sandbox, access.ca_file) if access.ca_file else "",
        )

    def __post_init__(self) -> None:
        if self.endpoint_url:
            parts = urlsplit(self.endpoint_url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise LocationError(
                    f"endpoint_url must look like https://host:port, got {self.shown_endpoint!r}"
                )
            if parts.username or parts.password:
                raise LocationError(
                    "endpoint_url must hold no user name or password: credentials come from the "
                    "environment or the instance's role"
                )
        if self.threads < 1:
            raise LocationError(f"threads must be at least 1, got {self.threads}")

    @property
    def shown_endpoint(self) -> str:
        """Return the endpoint without anything that could be a secret."""
        host = self.endpoint_url.rpartition("@")[2] if "@" in self.endpoint_url else ""
        return host or self.endpoint_url.partition("?")[0] or "AWS"

    @property
    def uses_path_style(self) -> Optional[bool]:
        """Say whether the bucket goes into the path; None leaves it to boto3."""
        if self.path_style is None and self.endpoint_url:
            return True
        return self.path_style
