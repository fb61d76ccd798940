"""What the scheduler says of S3: the storage sections of ``TASK_RUNNER_SPEC``, as frozen values.

Read by ``spec.parse_spec``; the runner makes its engines (``task.storage``) of them. Needs no
boto3: a task that keeps nothing in S3 has none. Credentials are in the environment, never here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from dcos_tensorflow.task.spec_fields import Fields, SpecError

S3_SCHEMES = ("s3", "s3a", "s3n")
CLOUDWATCH = "cloudwatch"


@dataclass(frozen=True)
class S3Access:
    """How S3 is reached. Empty texts and None leave it to boto3.

    ``ca_file`` is absolute, or below the sandbox.
    """

    endpoint_url: str = ""
    region: str = ""
    path_style: Optional[bool] = None
    ca_file: str = ""


@dataclass(frozen=True)
class CheckpointWriter:
    """Who publishes: this attempt. ``generation`` is its number within the ``lineage``, and
    ``owner`` its own name; a higher generation of the same lineage wins.
    """

    lineage: str
    generation: int
    owner: str


@dataclass(frozen=True)
class CheckpointPlace:
    """Where checkpoints are published. Seconds.

    ``writer`` None: this task restores and publishes nothing. ``initial_uri`` is what is restored
    while nothing is published; empty for nothing. With ``follow`` each newer one is brought while
    the process runs.
    """

    uri: str
    initial_uri: str = ""
    interval_seconds: float = 60.0
    keep: int = 5
    writer: Optional[CheckpointWriter] = None
    follow: bool = False


@dataclass(frozen=True)
class DataSource:
    """Input data: an object or a prefix, and where it is put below the sandbox."""

    uri: str
    path: str


@dataclass(frozen=True)
class DataCachePlace:
    """A folder that the tasks of an agent share; above ``max_bytes`` old data goes, 0 never."""

    directory: str
    max_bytes: int = 0


@dataclass(frozen=True)
class LogPlace:
    """Where the task's output is copied: ``s3://bucket/prefix`` or ``cloudwatch://group``.

    ``region`` and ``endpoint_url`` are those of CloudWatch Logs. Seconds, bytes.
    """

    uri: str
    interval_seconds: float = 30.0
    roll_bytes: int = 4_194_304
    region: str = ""
    endpoint_url: str = ""

    @property
    def log_group(self) -> str:
        """Return the log group of CloudWatch Logs; empty where the logs go to S3."""
        scheme, _, group = self.uri.partition("://")
        return group if scheme == CLOUDWATCH else ""


@dataclass(frozen=True)
class Storage:
    """Everything that this task keeps in S3 or gets from there.

    ``summaries_uri`` is where the task's log directory is copied to, ``shown_uri`` where it is
    copied from, for TensorBoard; empty for nowhere.
    """

    checkpoints: Optional[CheckpointPlace] = None
    summaries_uri: str = ""
    shown_uri: str = ""
    data: Tuple[DataSource, ...] = ()
    data_cache: Optional[DataCachePlace] = None
    logs: Optional[LogPlace] = None
    s3: S3Access = S3Access()

    @property
    def is_used(self) -> bool:
        """Say whether this task needs boto3."""
        return bool(self.checkpoints or self.copies_logs or self.data or self.logs)

    @property
    def copies_logs(self) -> bool:
        """Say whether the task's log directory is copied, in whichever direction."""
        return bool(self.summaries_uri or self.shown_uri)


def storage(fields: Fields) -> Storage:
    """Return what the document says of S3; nothing where it says nothing. Raises SpecError."""
    checkpoints = fields.optional_part("checkpoints")
    summaries = fields.optional_part("summaries")
    shown = fields.optional_part("shown")
    cache = fields.optional_part("data_cache")
    logs = fields.optional_part("logs")
    s3 = fields.optional_part("s3")
    return Storage(
        checkpoints=_checkpoints(checkpoints) if checkpoints else None,
        summaries_uri=_uri(summaries, "uri") if summaries else "",
        shown_uri=_uri(shown, "uri") if shown else "",
        data=tuple(_data(part) for part in fields.parts("data")),
        data_cache=_cache(cache) if cache else None,
        logs=_logs(logs) if logs else None,
        s3=_s3(s3) if s3 else S3Access(),
    )


def _checkpoints(fields: Fields) -> CheckpointPlace:
    writer = fields.optional_part("writer")
    return CheckpointPlace(
        uri=_uri(fields, "uri"),
        initial_uri=fields.text("initial_uri", ""),
        interval_seconds=_some(fields, "interval_seconds", 60.0),
        keep=_at_least_one(fields, "keep", 5),
        writer=_writer(writer) if writer else None,
        follow=fields.boolean("follow", False),
    )


def _writer(fields: Fields) -> CheckpointWriter:
    return CheckpointWriter(
        lineage=fields.text("lineage"),
        generation=fields.integer("generation"),
        owner=fields.text("owner"),
    )


def _data(fields: Fields) -> DataSource:
    path = fields.text("path")
    if not path.strip("/.") or path.startswith("/") or ".." in path.split("/"):
        raise SpecError(f"{fields.path('path')} must be a path below the sandbox, got {path!r}")
    return DataSource(_uri(fields, "uri"), path)


def _cache(fields: Fields) -> DataCachePlace:
    directory = fields.text("directory")
    if not directory.startswith("/"):
        raise SpecError(f"{fields.path('directory')} must be an absolute path, got {directory!r}")
    return DataCachePlace(directory, fields.integer("max_bytes", 0))


def _logs(fields: Fields) -> LogPlace:
    return LogPlace(
        uri=_uri(fields, "uri", (*S3_SCHEMES, CLOUDWATCH)),
        interval_seconds=_some(fields, "interval_seconds", 30.0),
        roll_bytes=_at_least_one(fields, "roll_bytes", 4_194_304),
        region=fields.text("region", ""),
        endpoint_url=fields.text("endpoint_url", ""),
    )


def _s3(fields: Fields) -> S3Access:
    return S3Access(
        endpoint_url=fields.text("endpoint_url", ""),
        region=fields.text("region", ""),
        path_style=fields.boolean("path_style") if fields.has("path_style") else None,
        ca_file=fields.text("ca_file", ""),
    )


def _uri(fields: Fields, name: str, schemes: Tuple[str, ...] = S3_SCHEMES) -> str:
    value = fields.text(name)
    scheme, separator, rest = value.partition("://")
    if scheme not in schemes or not separator or not rest.strip("/"):
        allowed = " or ".join(f"{known}://" for known in schemes if known not in S3_SCHEMES[1:])
        raise SpecError(f"{fields.path(name)} must be a URI with {allowed}, got {value!r}")
    return value


def _some(fields: Fields, name: str, default: float) -> float:
    value = fields.number(name, default)
    if value <= 0:
        raise SpecError(f"{fields.path(name)} must be above 0, got {value:g}")
    return value


def _at_least_one(fields: Fields, name: str, default: int) -> int:
    value = fields.integer(name, default)
    if value < 1:
        raise SpecError(f"{fields.path(name)} must be at least 1, got {value}")
    return value
