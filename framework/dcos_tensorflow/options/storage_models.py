"""The options of what outlives the machines: checkpoints, data, logs, and how S3 is reached."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dcos_tensorflow.options.container_values import SourceIfAny
from dcos_tensorflow.options.section import Section, group
from dcos_tensorflow.options.storage_values import (
    CacheBytes,
    CheckpointUri,
    CredentialsFile,
    DataPath,
    DataUri,
    EndpointUrl,
    HostDirectory,
    InitialUri,
    KeepCheckpoints,
    LogUri,
    RollBytes,
    VariablePrefix,
)
from dcos_tensorflow.options.values import Line, LogBytes, LogKeep, SomeSeconds


class Checkpoints(Section):
    """Where checkpoints are kept."""

    uri: CheckpointUri = Field(
        "",
        title="Checkpoint directory",
        description="Where checkpoints are kept: s3://bucket/prefix, or a directory that all "
        "machines share, as an absolute path or a file:// URL. In S3 they are there from the "
        "last complete one on; what the chief writes into CHECKPOINT_DIR is copied. Containers "
        "see such a directory at the same path; it must be there. Empty: each task's own sandbox.",
    )
    interval_seconds: SomeSeconds = Field(
        60.0,
        title="Interval (seconds)",
        description="How often the checkpoint directory is looked at for something new to copy "
        "to S3.",
    )
    keep: KeepCheckpoints = Field(
        5, title="Checkpoints kept", description="How many of the newest checkpoints stay in S3."
    )
    initial_uri: InitialUri = Field(
        "",
        title="Weights to begin with",
        description="Checkpoint that training begins from while nothing is published at "
        "checkpoints.uri: such a place of another service, a directory, a prefix or a file, as "
        "s3://, file:// or an absolute path, which is one of the image for tasks that run in one. "
        "Needs checkpoints in S3.",
    )


class DataSource(Section):
    """Input data, and where it is put."""

    uri: DataUri = Field(
        title="URI",
        description="An object in S3, or a prefix that stands for all below it; or a file or "
        "folder, by a path beside the options file, or by an absolute one of the tasks' machines.",
    )
    path: DataPath = Field(
        title="Path", description="Where it is put, below the sandbox: a directory, or a file."
    )


class DataCache(Section):
    """Fetched data that the tasks of an agent share."""

    directory: HostDirectory = Field(
        "",
        title="Directory",
        description="Directory on every agent in which tasks share fetched data, and what was "
        "installed for them. It must be there and tasks must be able to write to it; in their "
        "containers it has the same path. Empty: each task has its own.",
    )
    max_bytes: CacheBytes = Field(
        0,
        title="Largest size (bytes)",
        description="Above this size the data that was not used for longest is removed. 0 is no "
        "limit.",
    )


class Logs(Section):
    """How much of a task's output is kept, and where else it goes."""

    max_bytes: LogBytes = Field(
        20_000_000,
        title="Largest log (bytes)",
        description="Size at which a task's stdout or stderr is rotated.",
    )
    keep: LogKeep = Field(2, title="Logs kept", description="How many rotated files are kept.")
    uri: LogUri = Field(
        "",
        title="Destination",
        description="Where the output of every attempt of every task is copied to, beside its "
        "sandbox: s3://bucket/prefix for compressed parts, cloudwatch://group for a log group of "
        "CloudWatch Logs with a stream for each attempt. Empty: nowhere.",
    )
    interval_seconds: SomeSeconds = Field(
        30.0,
        title="Interval (seconds)",
        description="How long output may wait before it is copied.",
    )
    roll_bytes: RollBytes = Field(
        4_194_304,
        title="Part (bytes)",
        description="Size of output, before compression, at which a part is copied without "
        "waiting for the interval.",
    )
    region: Line = Field(
        "", title="Region", description="Region of CloudWatch Logs. Empty: s3.region."
    )
    endpoint_url: EndpointUrl = Field(
        "",
        title="Endpoint",
        description="Another endpoint of CloudWatch Logs than that of AWS. s3.endpoint_url is "
        "that of S3 alone.",
    )


class Credentials(Section):
    """Where the credentials of the tasks are; never the credentials themselves."""

    env: VariablePrefix = Field(
        "",
        title="Variables",
        description="Prefix of variables in the scheduler's environment: TRAINING_ stands for "
        "TRAINING_ACCESS_KEY_ID, TRAINING_SECRET_ACCESS_KEY and, where there is one, "
        "TRAINING_SESSION_TOKEN. Its operator allows each by --task-secret-env.",
    )
    file: CredentialsFile = Field(
        "",
        title="File",
        description="Absolute path of a file on the scheduler's machine, read again at each "
        "launch: a credentials file of AWS, or the JSON that AWS' commands give.",
    )
    profile: Line = Field(
        "default", title="Profile", description="Profile of such a credentials file."
    )
    secret: SourceIfAny = Field(
        "",
        title="Secret",
        description="A secret that is a credentials file of AWS: a path of the cluster's secret "
        "store, file:/path on the scheduler's machine, or env:NAME of its environment. Tasks get "
        "it as a file, and boto3 reads the profile in it.",
    )


class S3(Section):
    """How S3 is reached, for checkpoints, data and logs alike."""

    endpoint_url: EndpointUrl = Field(
        "",
        title="Endpoint",
        description="Another endpoint than AWS, as https://host:port. Empty: that of AWS.",
    )
    region: Line = Field(
        "", title="Region", description="Region of the buckets. Empty: as the agent knows it."
    )
    addressing_style: Literal["auto", "path", "virtual"] = Field(
        "auto",
        title="Addressing style",
        description="Where the bucket's name is put: path into the path, virtual into the host "
        "name, auto into the path where there is an endpoint_url and else as AWS wants it.",
    )
    ca_file: Line = Field(
        "",
        title="CA file",
        description="File with the authority that signed the endpoint's certificate, in PEM: in "
        "the sandbox (service.job_uris can bring it), or an absolute path on the agents, or in the "
        "image for tasks that run in one. Empty: the usual authorities.",
    )
    credentials: Credentials = group(
        Credentials,
        "Where the scheduler finds the tasks' credentials. Nothing set: tasks use what their "
        "machine gives, such as the role of its instance.",
    )
