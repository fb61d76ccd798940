"""What beta-tensorflow users have today is accepted and means what it meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from dcos_tensorflow.core.model.spec import TaskRole
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.options.schema_documents import json_schema, universe_config

ROLE = {"cpus": 1, "mem": 4096, "disk": 4096, "disk_type": "ROOT"}
PS = {**ROLE, "port": 2223}
WORKER = {**ROLE, "port": 2222}
SERVICE = {
    "job_url": "https://example.org/jobs.zip",
    "job_path": "jobs/source",
    "job_name": "demo",
    "shared_filesystem": "",
    "use_gcs_key_secret": False,
    "use_tensorboard": False,
    "user": "root",
}

#: style -> (options as the published package's users write them, the tasks they get)
STYLES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "one worker and no parameter server": (
        {
            "service": {**SERVICE, "name": "mnist", "job_context": '{"learning_rate":0.5}'},
            "gpu_worker": {**ROLE, "count": 0, "gpus": 1},
            "worker": {**WORKER, "count": 1},
            "parameter_server": {**PS, "count": 0},
            "tensorboard": {"port": 6006, "cpus": 1, "mem": 1024},
        },
        ("worker-0",),
    ),
    "one GPU worker and nothing else": (
        {
            "service": {**SERVICE, "name": "gan", "job_url": "https://example.org/gan.zip "},
            "gpu_worker": {**ROLE, "count": 1, "gpus": 1},
            "worker": {"count": 0},
            "parameter_server": {"count": 0},
        },
        ("gpu-worker-0",),
    ),
    "GPU workers with parameter servers": (
        {
            "service": {**SERVICE, "name": "slim", "shared_filesystem": "gs://bucket/slim"},
            "gpu_worker": {**ROLE, "count": 4, "gpus": 4},
            "worker": {"count": 0},
            "parameter_server": {**PS, "count": 2, "placement_constraint": "hostname:UNIQUE"},
        },
        ("ps-0", "ps-1", "gpu-worker-0", "gpu-worker-1", "gpu-worker-2", "gpu-worker-3"),
    ),
    "Kerberos, HDFS and TensorBoard": (
        {
            "service": {
                **SERVICE,
                "name": "tensorflow",
                "security": {
                    "kerberos": {
                        "enabled": True,
                        "kdc": {"hostname": "kdc.example.org", "port": 2500},
                        "primary": "tensorflow",
                        "realm": "LOCAL",
                        "keytab_secret": "__dcos_base64__tensorflow_keytab",
                    }
                },
                "hdfs": {"config_uri": "http://api.hdfs.example.org/v1/endpoints"},
                "shared_filesystem": "hdfs://default/tensorflow",
                "use_tensorboard": True,
            },
            "parameter_server": {"count": 1},
            "worker": {"count": 2},
        },
        ("ps-0", "worker-0", "worker-1", "tensorboard-0"),
    ),
    "TensorBoard on a shared filesystem": (
        {
            "service": {
                "name": "mnist-hdfs",
                "job_url": "https://example.org/jobs.zip",
                "job_name": "mnist",
                "shared_filesystem": "hdfs://name-0.example.org:9001/mnist",
                "use_tensorboard": True,
            },
            "worker": {"count": 2},
            "parameter_server": {"count": 2},
        },
        ("ps-0", "ps-1", "worker-0", "worker-1", "tensorboard-0"),
    ),
    "an empty context": (
        {
            "service": {**SERVICE, "name": "helloworld", "job_context": ""},
            "worker": {**WORKER, "count": 1},
            "parameter_server": {**PS, "count": 1},
        },
        ("ps-0", "worker-0"),
    ),
}


#: TensorFlow 1.5 in an image whose Python runs no task.
OTHER_DEFAULTS = {(f"service.{name}", "default") for name in ("tf_image", "gpu_tf_image")}


def leaves(
    schema: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, below in schema["properties"].items():
        if "properties" in below:
            yield from leaves(below, (*path, name))
        else:
            yield ".".join((*path, name)), below


def defaults(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        name: defaults(below) if "properties" in below else below["default"]
        for name, below in schema["properties"].items()
        if "properties" in below or "default" in below
    }


def written_out(options: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of options that are given by their dotted names."""
    found: dict[str, Any] = {}
    for path, facts in options.items():
        if "default" in facts:
            *groups, name = path.split(".")
            group = found
            for each in groups:
                group = group.setdefault(each, {})
            group[name] = facts["default"]
    return found


def merged(under: Any, over: Any) -> Any:
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {
        **under,
        **{name: merged(under.get(name), value) for name, value in over.items()},
    }


@pytest.mark.parametrize("style", STYLES)
def test_options_of_the_published_package_are_accepted_unchanged(style: str) -> None:
    options, tasks = STYLES[style]
    assert service_spec(load(options)).task_names() == tasks


@pytest.mark.parametrize("style", STYLES)
def test_options_of_the_published_package_fit_both_schemas(style: str) -> None:
    options, _ = STYLES[style]
    jsonschema.validate(options, json_schema())
    # Cosmos fills in the defaults before it validates.
    filled = merged(defaults(universe_config()), options)
    jsonschema.validate(filled, universe_config(), cls=jsonschema.Draft4Validator)


def test_every_published_option_keeps_its_name_type_and_default(
    published: dict[str, Any],
) -> None:
    ours = dict(leaves(universe_config()))
    for path, theirs in published.items():
        for key in ("type", "default", "enum", "title", "media"):
            if key in theirs and (path, key) not in OTHER_DEFAULTS:
                assert ours[path].get(key) == theirs[key], f"{path}: {key}"
        assert ("default" in ours[path]) == ("default" in theirs), path


def test_the_published_defaults_written_out_are_accepted(published: dict[str, Any]) -> None:
    options = written_out(published)
    options["service"]["job_name"] = "default"
    spec = service_spec(load(options))
    assert spec.role(TaskRole.PS) is not None
    images = {name: options["service"][name] for name in ("tf_image", "gpu_tf_image")}
    least = {"service": {"job_name": "default", **images}}
    assert spec == service_spec(load(least, published_defaults=True))
