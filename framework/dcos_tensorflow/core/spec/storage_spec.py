"""The data of a service in S3: checkpoints, summaries, input data and the tasks' output.

Part of ``core.spec.service_spec.ServiceSpec`` and stored with it, so there is never a secret in
here: where the credentials are is a reference that the scheduler follows at each launch
(``scheduler.secrets.s3_credentials``). ``options.sections.storage`` makes these;
``core.cluster.storage_sections`` gives each task its part.
"""

from __future__ import annotations

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class CredentialsReference:
    """Where the tasks' S3 credentials are: one of the three.

    ``env`` is the prefix of variables in the scheduler's own environment: ``TRAINING_`` stands for
    ``TRAINING_ACCESS_KEY_ID`` and its like. ``file`` is a file on the scheduler's machine, of which
    ``profile`` is read where it has profiles. ``secret`` is the source of such a file as
    ``container_spec.TaskSecret`` has it: tasks get the file itself, and read the profile.
    """

    env: str = ""
    file: str = ""
    profile: str = "default"
    secret: str = ""

    def __str__(self) -> str:
        """Return where they are looked for, for messages."""
        if self.file:
            return f"profile {self.profile} of {self.file}"
        return f"the variables {self.env}*"


@dataclass(frozen=True)
class S3Spec:
    """How tasks reach S3. Empty texts and None leave it to boto3, which asks the machine.

    ``endpoint_url`` is another endpoint than AWS. ``path_style`` None is path style where there is
    an ``endpoint_url``. ``ca_file`` is a path in the task's sandbox or on its machine.
    ``credentials`` None: the agent's environment or its instance's role.
    """

    endpoint_url: str = ""
    region: str = ""
    path_style: bool | None = None
    ca_file: str = ""
    credentials: CredentialsReference | None = None


@dataclass(frozen=True)
class CheckpointSpec:
    """Checkpoints in S3. Seconds; an empty ``uri`` means that none are kept there.

    ``initial_uri`` is what training begins from where nothing is published yet.
    """

    uri: str = ""
    initial_uri: str = ""
    interval_seconds: float = 60.0
    keep: int = 5


@dataclass(frozen=True)
class DataSpec:
    """Input data: an object or a prefix, and where it is put below the sandbox."""

    uri: str
    path: str


@dataclass(frozen=True)
class DataCacheSpec:
    """A folder of each agent in which its tasks share fetched data; empty: there is none.

    Above ``max_bytes`` what was not used for longest goes; 0 is no bound.
    """

    directory: str = ""
    max_bytes: int = 0


@dataclass(frozen=True)
class LogShippingSpec:
    """Where the output of tasks goes beside their sandboxes: ``s3://`` or ``cloudwatch://group``.

    A part is shipped when it has ``roll_bytes``, and after ``interval_seconds`` at the latest.
    ``region`` and ``endpoint_url`` are those of CloudWatch Logs; an empty region is that of S3.
    """

    uri: str = ""
    interval_seconds: float = 30.0
    roll_bytes: int = 4_194_304
    region: str = ""
    endpoint_url: str = ""


@dataclass(frozen=True)
class StorageSpec:
    """Everything that is kept outside of the cluster's machines.

    ``summaries_uri`` is where the log directory of the chief and of the evaluator is copied,
    ``shards_uri`` where a batch's shards are written; each is empty where that is not in S3.
    """

    checkpoints: CheckpointSpec = CheckpointSpec()
    summaries_uri: str = ""
    data: tuple[DataSpec, ...] = ()
    data_cache: DataCacheSpec = DataCacheSpec()
    logs: LogShippingSpec = LogShippingSpec()
    s3: S3Spec = S3Spec()
    shards_uri: str = ""

    @property
    def is_used(self) -> bool:
        """Say whether any task needs boto3: then it gets the runner that brings it along."""
        places = (self.checkpoints.uri, self.summaries_uri, self.logs.uri, self.shards_uri)
        return bool(self.data or any(places))
