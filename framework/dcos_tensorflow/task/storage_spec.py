"""The storage sections of ``TASK_RUNNER_SPEC``, as frozen values.

Read by ``spec.parse_spec``; the engines (``task.storage``) work by it. Needs no boto3: a task that
keeps nothing in S3 has none. Credentials are in the environment, never here.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.spec_fields import checked

S3_SCHEMES = ("s3", "s3a", "s3n")
CLOUDWATCH = "cloudwatch"


def _uri(*schemes: str) -> Any:
    def names_something(value: str) -> bool:
        scheme, separator, rest = value.partition("://")
        return scheme in schemes and bool(separator and rest.strip("/"))

    allowed = " or ".join(f"{known}://" for known in schemes if known not in S3_SCHEMES[1:])
    return checked(f"a URI with {allowed}", names_something)


def _above_zero(default: float) -> Any:
    return checked("above 0", lambda value: value > 0, default)


def _at_least_one(default: int) -> Any:
    return checked("at least 1", lambda value: value >= 1, default)


def is_below_the_sandbox(path: str) -> bool:
    """Say whether ``path`` names a place in a sandbox, and not the sandbox itself."""
    return bool(path.strip("/.")) and not path.startswith("/") and ".." not in path.split("/")


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
class Writer:
    """The publishing task. ``lineage`` is the service (its framework id), ``generation`` the
    attempt of its chief, ``owner`` that attempt's own name (its task id). A higher generation of
    the same lineage wins.
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

    uri: str = _uri(*S3_SCHEMES)
    initial_uri: str = ""
    interval_seconds: float = _above_zero(60.0)
    keep: int = _at_least_one(5)
    writer: Optional[Writer] = None
    follow: bool = False


@dataclass(frozen=True)
class DirectoryPlace:
    """Where one of the task's directories is copied to or from."""

    uri: str = _uri(*S3_SCHEMES)


@dataclass(frozen=True)
class DataItem:
    """Input data: ``uri`` is an object or a prefix, and ``path`` where it is in the sandbox."""

    uri: str = _uri(*S3_SCHEMES)
    path: str = checked("a path below the sandbox", is_below_the_sandbox)


@dataclass(frozen=True)
class DataCachePlace:
    """A folder that the tasks of an agent share; above ``max_bytes`` old data goes, 0 never."""

    directory: str = checked("an absolute path", lambda value: value.startswith("/"))
    max_bytes: int = 0


@dataclass(frozen=True)
class LogPlace:
    """Where the task's output is copied: ``s3://bucket/prefix`` or ``cloudwatch://group``.

    ``region`` and ``endpoint_url`` are those of CloudWatch Logs. Seconds, bytes.
    """

    uri: str = _uri(*S3_SCHEMES, CLOUDWATCH)
    interval_seconds: float = _above_zero(30.0)
    roll_bytes: int = _at_least_one(4_194_304)
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

    ``summaries`` is where the task's log directory is copied to, ``shown`` where it is copied
    from, for TensorBoard; ``output`` is where its OUTPUT_DIR is copied to.
    """

    checkpoints: Optional[CheckpointPlace] = None
    summaries: Optional[DirectoryPlace] = None
    shown: Optional[DirectoryPlace] = None
    output: Optional[DirectoryPlace] = None
    data: Tuple[DataItem, ...] = ()
    data_cache: Optional[DataCachePlace] = None
    logs: Optional[LogPlace] = None
    s3: S3Access = S3Access()

    @property
    def keeps_state(self) -> bool:
        """Say whether anything but the task's output goes there or comes from there."""
        return any((self.checkpoints, self.summaries, self.shown, self.output, self.data))

    @property
    def is_used(self) -> bool:
        """Say whether this task needs boto3."""
        return self.keeps_state or self.logs is not None
