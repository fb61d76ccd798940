"""The options of storage that outlives machines: checkpoints, data, logs, and the access to S3.

Fields and their types, the rules that span several of them, and the StorageSpec that they become.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.core.spec.service_spec import LinkedData
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    DataCacheSpec,
    DataSpec,
    LogShippingSpec,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.options.document import shown
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.sections.containers import SourceIfAny
from dcos_tensorflow.options.sections.section import Section, group
from dcos_tensorflow.options.sections.values import (
    Allowed,
    Line,
    LogBytes,
    LogKeep,
    SomeSeconds,
    problem,
    shaped,
    single_line,
    whole,
)

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

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
            "is neither in S3 nor a path; service.job_uris brings files from elsewhere",
            BUCKET_PLACE,
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
AbsolutePath = Annotated[str, AfterValidator(_absolute), Allowed("an absolute path, or empty text")]
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


class Checkpoints(Section):
    """Where checkpoints are kept."""

    uri: CheckpointUri = Field(
        "",
        title="Checkpoint directory",
        description="Place of the checkpoints: s3://bucket/prefix, or a directory that all "
        "machines share, as an absolute path or a file:// URL. The service copies complete "
        "checkpoints from the chief's CHECKPOINT_DIR to S3. A shared directory must exist; "
        "containers see it at the same path. Empty: each task's own sandbox.",
    )
    interval_seconds: SomeSeconds = Field(
        60.0,
        title="Interval (seconds)",
        description="Time between two checks for new checkpoints to copy to S3.",
    )
    keep: KeepCheckpoints = Field(
        5, title="Checkpoints kept", description="Number of newest checkpoints that stay in S3."
    )
    initial_uri: InitialUri = Field(
        "",
        title="Weights to begin with",
        description="Checkpoint from which the training begins while checkpoints.uri has none: "
        "the checkpoints.uri of another service, or a directory, prefix or file, as s3://, "
        "file:// or an absolute path (in the image, for tasks with one). Needs checkpoints in "
        "S3.",
    )


class DataSource(Section):
    """Input data, and where it is put."""

    uri: DataUri = Field(
        title="URI",
        description="An object in S3, or a prefix for all objects below it; or a file or "
        "folder, by a path relative to the options file, or by an absolute path on the tasks' "
        "machines.",
    )
    path: DataPath = Field(
        title="Path", description="Path below the sandbox: a directory, or a file."
    )


class DataCache(Section):
    """Fetched data that the tasks of an agent share."""

    directory: AbsolutePath = Field(
        "",
        title="Directory",
        description="Directory on every agent in which tasks share fetched data and installed "
        "packages. It must exist and be writable for the tasks; it has the same path in their "
        "containers. Empty: each task has its own.",
    )
    max_bytes: CacheBytes = Field(
        0,
        title="Largest size (bytes)",
        description="Size above which the least recently used data is removed. 0: no limit.",
    )


class Logs(Section):
    """How much of a task's output is kept, and where else it goes."""

    max_bytes: LogBytes = Field(
        20_000_000,
        title="Largest log (bytes)",
        description="Size at which stdout, stderr and the log of both are rotated.",
    )
    keep: LogKeep = Field(2, title="Logs kept", description="Number of rotated files to keep.")
    uri: LogUri = Field(
        "",
        title="Destination",
        description="Target to which the output of every attempt of every task is copied from "
        "its sandbox: s3://bucket/prefix for compressed parts, cloudwatch://group for a log "
        "group of CloudWatch Logs with a stream for each attempt. Empty: none.",
    )
    interval_seconds: SomeSeconds = Field(
        30.0, title="Interval (seconds)", description="Longest time before output is copied."
    )
    roll_bytes: RollBytes = Field(
        4_194_304,
        title="Part (bytes)",
        description="Size of output, before compression, at which a part is copied before the "
        "interval ends.",
    )
    region: Line = Field(
        "", title="Region", description="Region of CloudWatch Logs. Empty: s3.region."
    )
    endpoint_url: EndpointUrl = Field(
        "",
        title="Endpoint",
        description="Endpoint of CloudWatch Logs in place of that of AWS. s3.endpoint_url is "
        "for S3 only.",
    )


class Credentials(Section):
    """Where the credentials of the tasks are; never the credentials themselves."""

    env: VariablePrefix = Field(
        "",
        title="Variables",
        description="Prefix of variables in the scheduler's environment: TRAINING_ means "
        "TRAINING_ACCESS_KEY_ID, TRAINING_SECRET_ACCESS_KEY and, if it exists, "
        "TRAINING_SESSION_TOKEN. The operator must allow each with --task-secret-env.",
    )
    file: AbsolutePath = Field(
        "",
        title="File",
        description="Absolute path of a file on the scheduler's machine, read again at each "
        "launch: a credentials file of AWS, or the JSON output of AWS' commands.",
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
        description="Endpoint in place of that of AWS, as https://host:port. Empty: that of AWS.",
    )
    region: Line = Field(
        "", title="Region", description="Region of the buckets. Empty: the agent's setting."
    )
    addressing_style: Literal["auto", "path", "virtual"] = Field(
        "auto",
        title="Addressing style",
        description="Place of the bucket's name: path in the path, virtual in the host name, "
        "auto in the path with an endpoint_url and else as AWS recommends.",
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
        "Where the scheduler finds the tasks' credentials. Nothing set: tasks use the "
        "credentials of their machine, such as the role of its instance.",
    )


#: The groups of options in which nothing may stand that looks like a key.
STORAGE_GROUPS = ("checkpoints", "data", "data_cache", "logs", "s3")
KEY_REFUSED = (
    "looks like a key, which would be stored and shown to everyone; s3.credentials names where "
    "keys are, and holds none"
)


def checkpoints_uri(options: Options) -> str:
    """Return where checkpoints are kept in S3: where it is said, else below the shared place."""
    given, shared = options.checkpoints.uri, options.service.shared_filesystem
    if given:
        return given if is_s3(given) else ""
    return f"{shared.rstrip('/')}/checkpoints" if is_s3(shared) else ""


def storage_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about S3 each of which is right in itself."""
    yield from _shared_filesystem(options)
    yield from _initial(options)
    yield from _credentials(options)
    yield from _data(options)


def _shared_filesystem(options: Options) -> Iterator[Finding]:
    path, shared = "service.shared_filesystem", options.service.shared_filesystem
    flaw = bucket_flaw(shared) if is_s3(shared) else ""
    if flaw:
        yield Finding(path, flaw, BUCKET_PLACE, (path,))


def _initial(options: Options) -> Iterator[Finding]:
    if options.checkpoints.initial_uri and not checkpoints_uri(options):
        path, uri = "checkpoints.initial_uri", "checkpoints.uri"
        yield Finding(
            path,
            "needs checkpoints in S3: those published there tell whether training has begun",
            f"empty text, or {BUCKET_PLACE} in {uri}",
            (path, uri, "service.shared_filesystem"),
        )


def _credentials(options: Options) -> Iterator[Finding]:
    given, prefix = options.s3.credentials, "s3.credentials"
    if given.env and given.file:
        yield Finding(
            f"{prefix}.file",
            f"both {prefix}.env ({shown(given.env)}) and {prefix}.file are set, and the "
            "credentials are in one of them",
            f"either {prefix}.env or {prefix}.file",
            (f"{prefix}.env", f"{prefix}.file"),
        )
    if given.secret and (given.env or given.file):
        other = f"{prefix}.env" if given.env else f"{prefix}.file"
        yield Finding(
            f"{prefix}.secret",
            f"both {other} and {prefix}.secret are set, and the credentials are in one of them",
            f"either {other} or {prefix}.secret",
            (f"{prefix}.secret", other),
        )


def _data(options: Options) -> Iterator[Finding]:
    """No two sources may be put at one place, nor one into the other."""
    places: list[tuple[str, ...]] = []
    for number, source in enumerate(options.data):
        place = tuple(normpath(source.path).split("/"))
        for other, before in enumerate(places):
            shorter = min(len(place), len(before))
            if place[:shorter] == before[:shorter]:
                yield Finding(
                    f"data.{number}.path",
                    f"is where data.{other} is put, or within, or around it",
                    "a place of its own",
                    ("data",),
                    shown(source.path),
                )
                break
        places.append(place)


_PATH_STYLE = {"auto": None, "path": True, "virtual": False}


def storage_spec(options: Options) -> StorageSpec:
    """Return what is kept in S3; all of it empty where nothing is."""
    checkpoints, logs, s3 = options.checkpoints, options.logs, options.s3
    given = s3.credentials
    return StorageSpec(
        checkpoints=CheckpointSpec(**dict(checkpoints, uri=checkpoints_uri(options))),
        summaries_uri=_summaries_uri(options),
        shards_uri=options.batch.output if is_s3(options.batch.output) else "",
        data=tuple(DataSpec(**dict(one)) for one in options.data if is_s3(one.uri)),
        data_cache=DataCacheSpec(**dict(options.data_cache)),
        logs=LogShippingSpec(
            logs.uri, logs.interval_seconds, logs.roll_bytes, logs.region, logs.endpoint_url
        ),
        s3=S3Spec(
            endpoint_url=s3.endpoint_url,
            region=s3.region,
            path_style=_PATH_STYLE[s3.addressing_style],
            ca_file=s3.ca_file,
            credentials=CredentialsReference(**dict(given))
            if given.env or given.file or given.secret
            else None,
        ),
    )


def linked_data(options: Options) -> tuple[LinkedData, ...]:
    """Return the input data that is a file or folder of a machine, by its path there."""
    return tuple(
        LinkedData(unquote(urlsplit(one.uri).path) if "://" in one.uri else one.uri, one.path)
        for one in options.data
        if not is_s3(one.uri)
    )


def shared_directory(options: Options) -> str:
    """Return the directory that all machines share for checkpoints; empty when there is none."""
    return _directory(options.checkpoints.uri)


def shared_directories(options: Options) -> tuple[str, ...]:
    """Return the directories of all machines in which tasks keep checkpoints and summaries."""
    places = (shared_directory(options), _directory(options.service.shared_filesystem))
    return tuple(dict.fromkeys(place.rstrip("/") for place in places if place.strip("/")))


def _directory(uri: str) -> str:
    """Return the absolute path that a place is; empty for one that is reached in another way."""
    if "://" in uri:
        parts = urlsplit(uri)
        return unquote(parts.path) if parts.scheme == "file" else ""
    return uri if uri.startswith("/") else ""


def storage_notes(options: Options) -> list[str]:
    """Return a sentence for each option about S3 that has an unexpected effect."""
    found = []
    spec = storage_spec(options)
    several = options.chief.count + options.worker.count + options.gpu_worker.count > 1
    if spec.checkpoints.uri and several and options.service.strategy == "independent":
        found.append(
            "checkpoints.uri: with service.strategy independent only the checkpoints of the first "
            "task that trains are kept there."
        )
    if spec.is_used and spec.s3.credentials is None:
        found.append(
            "s3.credentials: none are given: tasks use those of their machine, such as the role "
            "of its instance."
        )
    if spec.s3.credentials is not None and options.service.containerizer == "docker":
        found.append(
            "s3.credentials: the docker containerizer has no secrets: every user of Mesos that may "
            "see the tasks can read these credentials."
        )
    return found


def _summaries_uri(options: Options) -> str:
    """Return where the log directory is copied: a job's summaries must outlive its machines too."""
    shared = options.service.shared_filesystem
    if shared:
        return shared.rstrip("/") if is_s3(shared) else ""
    return f"{options.checkpoints.uri}/logs" if is_s3(options.checkpoints.uri) else ""
