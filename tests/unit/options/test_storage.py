"""Checkpoints, data, logs and S3 in the options: what they become, and what is refused."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    DataCacheSpec,
    DataSpec,
    LogShippingSpec,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.options import load, notes, service_spec

Build = Callable[[Mapping[str, Any]], ServiceSpec]

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
KEY = "wJalrXUtnFEMIzK7MDENGzbPxRfiCYEXAMPLEKEY"
REFUSED = (
    "looks like a key, which would be stored and shown to everyone; s3.credentials names where "
    "keys are, and holds none (given: (hidden))"
)
PLACE = (
    "s3://bucket/prefix, or an absolute path or a file:// URL of a directory that all machines "
    "share"
)


@pytest.fixture
def build(runnable: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Build:
    return lambda options: service_spec(load(runnable(options)))


def test_without_a_word_nothing_is_kept_in_s3(build: Build) -> None:
    assert build({}).storage == StorageSpec()


def test_all_of_it_reaches_the_core(build: Build) -> None:
    options = {
        "checkpoints": {
            "uri": "s3://bucket/run/",
            "interval_seconds": 30.0,
            "keep": 2,
            "initial_uri": "s3://bucket/first/model.ckpt-7",
        },
        "data": [{"uri": "s3://bucket/mnist", "path": "data/mnist/"}],
        "data_cache": {"directory": "/var/cache/data", "max_bytes": 1000},
        "logs": {
            "uri": "cloudwatch://training",
            "interval_seconds": 5.0,
            "roll_bytes": 2048,
            "region": "eu-west-1",
            "endpoint_url": "http://127.0.0.1:1",
        },
        "s3": {
            "endpoint_url": "https://storage.example.org:9000/",
            "region": "us-east-1",
            "addressing_style": "virtual",
            "ca_file": "ca.pem",
            "credentials": {"file": "/etc/aws/credentials", "profile": "training"},
        },
    }
    assert build(options).storage == StorageSpec(
        checkpoints=CheckpointSpec("s3://bucket/run", "s3://bucket/first/model.ckpt-7", 30.0, 2),
        summaries_uri="s3://bucket/run/logs",
        data=(DataSpec("s3://bucket/mnist", "data/mnist"),),
        data_cache=DataCacheSpec("/var/cache/data", 1000),
        logs=LogShippingSpec("cloudwatch://training", 5.0, 2048, "eu-west-1", "http://127.0.0.1:1"),
        s3=S3Spec(
            "https://storage.example.org:9000",
            "us-east-1",
            False,
            "ca.pem",
            CredentialsReference(file="/etc/aws/credentials", profile="training"),
        ),
    )


def test_checkpoints_in_s3_leave_no_shared_directory(build: Build) -> None:
    assert build({"checkpoints": {"uri": "s3://bucket/run"}}).job.checkpoint_dir == ""


def test_a_shared_directory_is_not_in_s3(build: Build) -> None:
    spec = build({"checkpoints": {"uri": "file:///mnt/run%201"}})
    assert spec.job.checkpoint_dir == "/mnt/run 1"
    assert not spec.storage.is_used


def test_a_shared_filesystem_in_s3_keeps_checkpoints_and_summaries(build: Build) -> None:
    spec = build({"service": {"shared_filesystem": "s3://bucket/run/"}})
    assert spec.job.shared_filesystem == "s3://bucket/run/"
    assert spec.storage.checkpoints.uri == "s3://bucket/run/checkpoints"
    assert spec.storage.summaries_uri == "s3://bucket/run"


def test_checkpoints_may_be_elsewhere_than_the_shared_filesystem(build: Build) -> None:
    shared = {"shared_filesystem": "s3://bucket/logs"}
    spec = build({"service": shared, "checkpoints": {"uri": "s3://other/run"}})
    assert spec.storage.checkpoints.uri == "s3://other/run"
    assert spec.storage.summaries_uri == "s3://bucket/logs"


def test_another_shared_filesystem_keeps_the_summaries(build: Build) -> None:
    shared = {"shared_filesystem": "hdfs://default/run"}
    spec = build({"service": shared, "checkpoints": {"uri": "s3://bucket/run"}})
    assert spec.storage.summaries_uri == ""


def test_containers_of_tasks_that_read_data_see_the_agents_cache(build: Build) -> None:
    spec = build(
        {
            "service": {"tf_image": "tf:1"},
            "parameter_server": {},
            "data": [{"uri": "s3://bucket/a", "path": "a"}],
            "data_cache": {"directory": "/var/cache/data"},
        }
    )
    seen = {role.role: role.container.host_directories for role in spec.roles if role.container}
    assert seen == {TaskRole.PS: (), TaskRole.WORKER: ("/var/cache/data",)}


@pytest.mark.parametrize(
    "options",
    [
        {"checkpoints": {"uri": "/mnt/run 1/"}},
        {"checkpoints": {"uri": "file:///mnt/run%201"}},
        {"service": {"shared_filesystem": "/mnt/run 1"}},
        {"service": {"shared_filesystem": "/mnt/run 1/"}, "checkpoints": {"uri": "/mnt/run 1"}},
    ],
)
def test_containers_of_all_tasks_see_the_directory_that_all_machines_share(
    build: Build, options: dict[str, Any]
) -> None:
    service = {"use_tensorboard": True, "tf_image": "tf:1", **options.get("service", {})}
    servers = {"parameter_server": {"count": 1}, "evaluator": {"count": 1}}
    spec = build({**options, "service": service, **servers})
    seen = {role.role: role.container.host_directories for role in spec.roles if role.container}
    roles = (TaskRole.PS, TaskRole.WORKER, TaskRole.EVALUATOR, TaskRole.TENSORBOARD)
    assert seen == dict.fromkeys(roles, ("/mnt/run 1",))


@pytest.mark.parametrize("place", ["s3://bucket/run", "hdfs://default/run", "gs://bucket/run"])
def test_containers_see_nothing_of_their_machine_for_what_is_reached_over_the_network(
    build: Build, place: str
) -> None:
    spec = build({"service": {"shared_filesystem": place, "tf_image": "tf:1"}})
    assert {role.container.host_directories for role in spec.roles if role.container} == {()}


@pytest.mark.parametrize(
    ("style", "path_style"), [("auto", None), ("path", True), ("virtual", False)]
)
def test_the_addressing_style_is_one_of_three(
    build: Build, style: str, path_style: bool | None
) -> None:
    assert build({"s3": {"addressing_style": style}}).storage.s3.path_style is path_style


def test_credentials_are_those_of_the_machine_unless_something_else_is_said(build: Build) -> None:
    assert build({"s3": {"credentials": {}}}).storage.s3.credentials is None


def test_data_may_be_written_as_json_text(build: Build) -> None:
    data = [{"uri": "s3://bucket/a", "path": "a"}]
    assert build({"data": json.dumps(data)}).storage.data == (DataSpec("s3://bucket/a", "a"),)
    assert build({"data": ""}).storage.data == ()


def test_data_can_be_overridden(runnable: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    options = load(runnable({}), overrides=['data=[{"uri": "s3://bucket/a", "path": "a"}]'])
    assert service_spec(options).storage.data == (DataSpec("s3://bucket/a", "a"),)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a key as the variables' prefix": (
        {"s3": {"credentials": {"env": KEY_ID}}},
        f"s3.credentials.env: {REFUSED}",
    ),
    "a key as a file": ({"s3": {"credentials": {"file": KEY}}}, f"s3.credentials.file: {REFUSED}"),
    "a key under a name of its own": (
        {"s3": {"secret_access_key": KEY}},
        f"s3.secret_access_key: {REFUSED}",
    ),
    "a key for all of it": ({"s3": {"credentials": KEY}}, f"s3.credentials: {REFUSED}"),
    "a key in a URI": (
        {"checkpoints": {"uri": f"s3://{KEY_ID}:{KEY}@bucket/run"}},
        f"checkpoints.uri: {REFUSED}",
    ),
    "a key within data": (
        {"data": [{"uri": f"s3://bucket/{KEY_ID}", "path": "a"}]},
        f"data.0.uri: {REFUSED}",
    ),
    "a key in the tasks' environment": (
        {"worker": {"env": {"AWS_SECRET_ACCESS_KEY": KEY}}},
        "worker.env.AWS_SECRET_ACCESS_KEY: a key here would be stored and shown to everyone; "
        "s3.credentials names where keys are",
    ),
    "a secret beside a file": (
        {"s3": {"credentials": {"secret": "tensorflow/s3", "file": "/etc/aws"}}},
        "s3.credentials.secret: both s3.credentials.file and s3.credentials.secret are set, and "
        "the credentials are in one of them (given: (hidden); allowed: either s3.credentials.file "
        "or s3.credentials.secret)",
    ),
    "two places for credentials": (
        {"s3": {"credentials": {"env": "AWS_", "file": "/etc/aws"}}},
        's3.credentials.file: both s3.credentials.env ("AWS_") and s3.credentials.file are '
        "set, and the credentials are in one of them",
    ),
    "a prefix that no variable has": (
        {"s3": {"credentials": {"env": "1-"}}},
        "s3.credentials.env: is not the beginning of a variable's name; did you mean AWS_?",
    ),
    "a relative credentials file": (
        {"s3": {"credentials": {"file": "credentials"}}},
        "s3.credentials.file: must be an absolute path",
    ),
    "a bucket that cannot be": (
        {"checkpoints": {"uri": "s3:///run"}},
        "checkpoints.uri: names no bucket that can exist",
    ),
    "a user in a bucket's place": (
        {"checkpoints": {"uri": "s3://me:hush@bucket/run"}},
        "checkpoints.uri: names more than a bucket before the first slash; credentials and "
        "endpoints have options of their own, in s3 "
        f'(given: "s3://********@bucket/run"; allowed: {PLACE})',
    ),
    "another store for checkpoints": (
        {"checkpoints": {"uri": "gs://bucket/run"}},
        "checkpoints.uri: gs:// is not supported",
    ),
    "dots in a prefix": (
        {"data": [{"uri": "s3://bucket/../a", "path": "a"}]},
        "data.0.uri: has . or .. in its path",
    ),
    "a shared filesystem without a bucket": (
        {"service": {"shared_filesystem": "s3://"}},
        "service.shared_filesystem: names no bucket that can exist",
    ),
    "weights to begin with, and no checkpoints in S3": (
        {"checkpoints": {"initial_uri": "s3://bucket/first"}},
        "checkpoints.initial_uri: needs checkpoints in S3: those published there tell "
        "whether training has begun",
    ),
    "no checkpoint kept": ({"checkpoints": {"keep": 0}}, "checkpoints.keep: is too small"),
    "data from elsewhere": (
        {"data": [{"uri": "http://host/a", "path": "a"}]},
        "data.0.uri: is neither in S3 nor a path; service.job_uris brings files from elsewhere; "
        "did you mean s3://bucket/prefix?",
    ),
    "data above the sandbox": (
        {"data": [{"uri": "s3://bucket/a", "path": "../a"}]},
        "data.0.path: must be a path below the sandbox; did you mean a?",
    ),
    "data in the sandbox itself": (
        {"data": [{"uri": "s3://bucket/a", "path": "./"}]},
        "data.0.path: must name a place below the sandbox, not the sandbox itself; did you "
        "mean data?",
    ),
    "data without a path": ({"data": [{"uri": "s3://bucket/a"}]}, "data.0.path: is missing"),
    "data with an unknown name": (
        {"data": [{"uri": "s3://bucket/a", "path": "a", "paht": "b"}]},
        "data.0.paht: unknown option; did you mean path?",
    ),
    "data that is no object": ({"data": ["s3://bucket/a"]}, "data.0: must be an object"),
    "data that is no list": (
        {"data": {"uri": "s3://bucket/a", "path": "a"}},
        "data: must be a list of objects with uri and path, or JSON text of one, not an object",
    ),
    "a number for a path": (
        {"data": [{"uri": "s3://bucket/a", "path": 1}]},
        "data.0.path: must be text, not a number",
    ),
    "two sources at one place": (
        {
            "data": [
                {"uri": "s3://bucket/a", "path": "data"},
                {"uri": "s3://bucket/b", "path": "data/./b"},
            ]
        },
        "data.1.path: is where data.0 is put, or within, or around it",
    ),
    "logs to nowhere known": (
        {"logs": {"uri": "syslog://host"}},
        "logs.uri: syslog:// is no place for logs; did you mean s3://bucket/prefix?",
    ),
    "a log group that cannot be": (
        {"logs": {"uri": "cloudwatch://a b"}},
        "logs.uri: is not the name of a log group; did you mean cloudwatch://group?",
    ),
    "an endpoint without a scheme": (
        {"s3": {"endpoint_url": "host:9000"}},
        "s3.endpoint_url: is not the URL of an endpoint; did you mean https://host:9000?",
    ),
    "an endpoint with a password": (
        {"s3": {"endpoint_url": "https://me:hush@host"}},
        "s3.endpoint_url: holds a user name, which would be stored and shown to everyone "
        '(given: "https://********@host"; allowed: a URL such as https://host:port, or empty '
        "text)",
    ),
    "a relative cache": (
        {"data_cache": {"directory": "cache"}},
        "data_cache.directory: must be an absolute path",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_refused_with_one_line_that_says_it_all(
    kind: str, problems: Callable[..., list[str]]
) -> None:
    options, told = MISTAKES[kind]
    (line,) = problems(options)
    assert line == told or line.startswith((f"{told} (", f"{told} with "))


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"s3": {"region": "eu-west-1"}}, "s3: has no effect: nothing of the job is in S3."),
        ({"checkpoints": {"keep": 3}}, "checkpoints.keep: has no effect"),
        (
            {
                "service": {"strategy": "independent"},
                "worker": {"count": 2},
                "checkpoints": {"uri": "s3://bucket"},
            },
            "checkpoints.uri: with service.strategy independent only the checkpoints of the first "
            "task that trains are kept there.",
        ),
        ({"data_cache": {"max_bytes": 7}}, "data_cache.max_bytes: has no effect without"),
        ({"logs": {"roll_bytes": 2048}}, "logs.roll_bytes: has no effect without logs.uri."),
        (
            {"logs": {"uri": "s3://bucket/logs", "region": "eu-west-1"}},
            "logs.region: has no effect unless logs.uri is in CloudWatch Logs.",
        ),
        (
            {"s3": {"credentials": {"env": "AWS_", "profile": "training"}}},
            "s3.credentials.profile: has no effect without s3.credentials.file or "
            "s3.credentials.secret.",
        ),
        ({"data_cache": {"directory": "/cache"}}, "data_cache.directory: has no effect without"),
        ({"checkpoints": {"uri": "s3://bucket"}}, "s3.credentials: none are given"),
        (
            {
                "service": {"containerizer": "docker"},
                "checkpoints": {"uri": "s3://bucket"},
                "s3": {"credentials": {"env": "AWS_"}},
            },
            "s3.credentials: the docker containerizer has no secrets: every user of Mesos that may "
            "see the tasks can read these credentials.",
        ),
    ],
)
def test_what_may_not_be_meant_is_told(
    options: dict[str, Any],
    note: str,
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    assert any(told.startswith(note) for told in notes(load(runnable(options))))
