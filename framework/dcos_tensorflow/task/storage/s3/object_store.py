"""The one place that talks to S3: requests on one bucket, each retried and its errors classified.

The engines call it from several threads. Every method may raise StorageError, whose problem says
whether waiting can help; requests are tried again here already, as far as that is safe. It never
decides about completeness or about the writer.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from dataclasses import field
from types import MappingProxyType
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage.s3.errors import (
    ObjectChanged,
    S3Problem,
    StorageError,
    problem_error,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import MEBIBYTE, S3Settings
from dcos_tensorflow.task.storage.s3.retry import JITTER, Cancellation, Retrier, RetryBackoff
from dcos_tensorflow.task.storage.status import Transfer

#: Content is read from the network in pieces of this size.
CHUNK_SIZE = MEBIBYTE
#: S3 deletes so many objects with one request.
DELETE_BATCH = 1_000

Body = Union[bytes, bytearray]


@dataclass(frozen=True)
class Listed:
    """An object in a listing. ``etag`` has its quotes."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True)
class Upload:
    """A multipart upload that is neither completed nor aborted."""

    key: str
    upload_id: str


def connect(settings: S3Settings, credentials: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Return a boto3 S3 client. It may be shared between threads. Raises StorageError.

    ``credentials`` are variables as boto3 reads them, where it is not to find its own.
    """
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        raise problem_error(
            "no_boto3",
            f"this Python cannot import boto3: {error}",
            "install boto3 (1.36 or newer) beside TensorFlow in the task's image or environment",
        ) from None
    style = {None: "auto", True: "path", False: "virtual"}[settings.uses_path_style]
    try:
        key = {name.lower(): value for name, value in credentials.items()}
        client = boto3.session.Session(**key).client(
            "s3",
            region_name=settings.region or None,
            endpoint_url=settings.endpoint_url or None,
            verify=settings.ca_bundle or None,
            config=Config(
                # Retries are ours: they must stop when the task's grace period ends.
                retries={"total_max_attempts": 1},
                connect_timeout=settings.connect_timeout,
                read_timeout=settings.read_timeout,
                max_pool_connections=settings.threads + 2,
                tcp_keepalive=True,
                signature_version="s3v4",
                s3={"addressing_style": style},
                # Other makers' endpoints refuse the checksums that boto3 adds by itself. Ours are
                # given with each request, and verified again by the task that restores.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
        client.meta.events.register("before-call.s3.HeadBucket", _led_nowhere)
        return client
    except Exception as error:
        if isinstance(error, ValueError) or "Region" in type(error).__name__:
            raise problem_error(
                "bad_endpoint",
                f"no S3 client can be made for {settings.shown_endpoint}: {type(error).__name__}",
                "check endpoint_url, region and ca_bundle",
            ) from None
        raise storage_error(error, "make an S3 client") from error


def _led_nowhere(params: Dict[str, Any], **_more: Any) -> None:
    """Have botocore follow no redirection of its own question for a bucket's region.

    It asks that because it was redirected, and would ask again for as long as Python lets it.
    """
    params["context"].setdefault("s3_redirect", {})["redirected"] = True


class ObjectStore:
    """The objects of one bucket."""

    def __init__(self, client: Any, bucket: str, retrier: Retrier, gate: Cancellation) -> None:
        self._client = client
        self._bucket = bucket
        self._retrier = retrier
        self._gate = gate

    @property
    def bucket(self) -> str:
        """Return the bucket's name."""
        return self._bucket

    def get(self, key: str, limit: int = 64 * MEBIBYTE) -> Tuple[bytes, str]:
        """Return content and ETag of a small object. Raises ObjectMissing."""

        def request() -> Tuple[bytes, str]:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            with contextlib.closing(answer["Body"]) as body:
                if answer["ContentLength"] > limit:
                    raise problem_error("damaged", f"{self._uri(key)} is too large to be ours")
                return body.read(), answer["ETag"]

        return self._retrier.call(f"read {self._uri(key)}", request)

    def head(self, key: str, part: Optional[int] = None) -> Mapping[str, Any]:
        """Return the headers of an object, of one part of it if asked. Raises ObjectMissing."""
        more: Dict[str, Any] = {} if part is None else {"PartNumber": part}
        return self._retrier.call(
            f"look at {self._uri(key)}",
            lambda: self._client.head_object(Bucket=self._bucket, Key=key, **more),
        )

    def chunks(self, key: str, start: int, length: int, etag: str = "") -> Iterator[bytes]:
        """Yield ``length`` bytes from ``start`` on, in pieces. One try: the caller goes on.

        With ``etag`` the object must still be that one (ConditionFailed). Raises ObjectChanged when
        it is too short, and StorageError for what the network does, also between two pieces.
        """
        what = f"read {self._uri(key)}"
        self._gate.check()
        more: Dict[str, Any] = {"IfMatch": etag} if etag else {}
        left = length
        try:
            answer = self._client.get_object(
                Bucket=self._bucket, Key=key, Range=f"bytes={start}-{start + length - 1}", **more
            )
            with contextlib.closing(answer["Body"]) as body:
                if answer["ContentLength"] != length:
                    short = f"{what}: it is shorter than it was"
                    raise ObjectChanged(S3Problem("changed", False, short))
                while left:
                    piece = body.read(min(CHUNK_SIZE, left))
                    if not piece:
                        raise _cut(what)
                    left -= len(piece)
                    yield piece
                    self._gate.check()
        except Exception as error:
            raise storage_error(error, what) from error

    def put(
        self,
        key: str,
        body: Body,
        if_match: str = "",
        if_absent: bool = False,
        digest: Optional[bytes] = None,
        *,
        metadata: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """Write an object and return its ETag. Raises ConditionFailed when a condition is not met.

        S3 compares the content with ``digest`` (its SHA-256) before it takes it.
        """
        more: Dict[str, Any] = {"ChecksumSHA256": _base64(digest or hashlib.sha256(body).digest())}
        if if_match:
            more["IfMatch"] = if_match
        if if_absent:
            more["IfNoneMatch"] = "*"
        if metadata:
            more["Metadata"] = dict(metadata)
        answer = self._retrier.call(
            f"write {self._uri(key)}",
            lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=body, **more),
        )
        return str(answer["ETag"])

    def list(self, prefix: str) -> Iterator[Listed]:
        """Yield the objects whose keys begin with ``prefix``."""
        follows = {"ContinuationToken": "NextContinuationToken"}
        what = f"list {self._uri(prefix)}"
        for answer in self._pages(what, self._client.list_objects_v2, prefix, follows):
            for item in answer.get("Contents", ()):
                yield Listed(item["Key"], item["Size"], item["ETag"])

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already do not matter."""
        for start in range(0, len(keys), DELETE_BATCH):
            batch = [{"Key": key} for key in keys[start : start + DELETE_BATCH]]
            answer = self._retrier.call(
                f"delete {len(batch)} objects of {self._uri('')}",
                lambda batch=batch: self._client.delete_objects(  # type: ignore[misc]
                    Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True}
                ),
            )
            for failed in answer.get("Errors", ()):
                refusal = _Answer({"Error": failed, "ResponseMetadata": {"HTTPStatusCode": 403}})
                raise storage_error(refusal, f"delete {self._uri(failed['Key'])}")

    def create_upload(self, key: str, metadata: Mapping[str, str] = MappingProxyType({})) -> str:
        """Begin a multipart upload and return its id."""
        answer = self._retrier.call(
            f"begin {self._uri(key)}",
            lambda: self._client.create_multipart_upload(
                Bucket=self._bucket, Key=key, ChecksumAlgorithm="SHA256", Metadata=dict(metadata)
            ),
        )
        return str(answer["UploadId"])

    def put_part(self, key: str, upload_id: str, number: int, body: Body, digest: bytes) -> str:
        """Write part ``number`` (from 0) and return its ETag."""
        answer = self._retrier.call(
            f"write part {number + 1} of {self._uri(key)}",
            lambda: self._client.upload_part(
                Bucket=self._bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number + 1,
                Body=body,
                ChecksumSHA256=_base64(digest),
            ),
        )
        return str(answer["ETag"])

    def complete_upload(
        self, key: str, upload_id: str, parts: List[Tuple[str, bytes]], if_absent: bool = False
    ) -> None:
        """Make the object of its parts: their ETags and SHA-256 digests in order.

        Raises ConditionFailed where there is one already and must not be.
        """
        more: Dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        listed = [
            {"PartNumber": number, "ETag": etag, "ChecksumSHA256": _base64(digest)}
            for number, (etag, digest) in enumerate(parts, 1)
        ]
        self._retrier.call(
            f"complete {self._uri(key)}",
            lambda: self._client.complete_multipart_upload(
                Bucket=self._bucket,
                Key=key,
                UploadId=upload_id,
                MultipartUpload={"Parts": listed},
                **more,
            ),
        )

    def abort_upload(self, upload: Upload) -> None:
        """Give up a multipart upload; one that is gone already does not matter."""
        try:
            self._retrier.call(
                f"give up {self._uri(upload.key)}",
                lambda: self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=upload.key, UploadId=upload.upload_id
                ),
            )
        except StorageError as error:
            if not is_gone_upload(error):
                raise

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """Yield the multipart uploads under way below ``prefix``."""
        follows = {"KeyMarker": "NextKeyMarker", "UploadIdMarker": "NextUploadIdMarker"}
        what = f"list the uploads of {self._uri(prefix)}"
        for answer in self._pages(what, self._client.list_multipart_uploads, prefix, follows):
            for item in answer.get("Uploads", ()):
                # Not every endpoint filters by the prefix.
                if item["Key"].startswith(prefix):
                    yield Upload(item["Key"], item["UploadId"])

    def _pages(
        self, what: str, ask: Callable[..., Any], prefix: str, follows: Mapping[str, str]
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the pages of a listing. Raises StorageError where it never ends.

        ``follows`` says which words of a request are which of the answer before it. A page that
        leads back to one before, or nowhere, is the endpoint's error: it would be read for ever.
        """
        more: Dict[str, Any] = {}
        asked: Set[Tuple[Any, ...]] = set()
        first: Any = None
        while True:
            answer = self._retrier.call(
                what,
                lambda more=more: ask(Bucket=self._bucket, Prefix=prefix, **more),  # type: ignore[misc]
            )
            if more and first is not None and first == _first_of(answer):
                raise _endless(what)
            yield answer
            if not answer.get("IsTruncated"):
                return
            first = _first_of(answer)
            more = {word: answer.get(told) for word, told in follows.items()}
            place = tuple(more.values())
            if None in place or place in asked:
                raise _endless(what)
            asked.add(place)

    def _uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"


class _Answer(Exception):
    """A refusal inside of an answer that was a success as a whole."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        super().__init__()
        self.response = response


def is_gone_upload(error: StorageError) -> bool:
    """Say whether ``error`` means that a multipart upload does not exist (any more)."""
    return error.problem.kind == "missing" or "NoSuchUpload" in error.problem.summary


def _first_of(page: Mapping[str, Any]) -> Any:
    """Return what a page of a listing begins with; None for an empty one."""
    found = page.get("Contents") or page.get("Uploads")
    return found[0] if found else None


def _endless(what: str) -> StorageError:
    return problem_error(
        "unsupported",
        f"{what}: the endpoint's pages lead in a circle",
        "see the endpoint's own log",
    )


def _cut(what: str) -> StorageError:
    return StorageError(S3Problem("connection", True, f"{what}: the answer was cut", ""))


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


@dataclass
class Connection:
    """How an engine reaches S3. ``log`` takes one sentence a line; ``draw`` is the jitter's.

    ``noticed`` is told of each failed try that is followed by another, ``arrival`` of what comes.

    The client is made at the first use, so that nothing here fails before the engine can tell it.
    """

    settings: S3Settings
    gate: Cancellation = field(default_factory=Cancellation)
    backoff: RetryBackoff = field(default_factory=RetryBackoff)
    log: Callable[[str], None] = lambda text: None
    noticed: Callable[[S3Problem], None] = lambda problem: None
    arrival: Transfer = field(default_factory=Transfer)
    draw: Callable[[], float] = JITTER
    client: Any = None

    def store(self, bucket: str) -> ObjectStore:
        """Return the objects of ``bucket``. Raises StorageError when no client can be made."""
        if self.client is None:
            self.client = connect(self.settings)
        return ObjectStore(self.client, bucket, self.retrier(), self.gate)

    def retrier(self) -> Retrier:
        """Return what tries requests again."""
        return Retrier(self.gate, self.backoff, self.noticed, self.draw)
