"""What the runner is told of S3: what is read, and how a wrong section is refused."""

import json

import pytest

from dcos_tensorflow.task.spec import SpecError, parse_spec
from dcos_tensorflow.task.storage_spec import (
    CheckpointPlace,
    DataCachePlace,
    DataItem,
    DirectoryPlace,
    LogPlace,
    S3Access,
    Storage,
    Writer,
)

SECTIONS = {
    "checkpoints": {
        "uri": "s3://bucket/run",
        "initial_uri": "s3://bucket/other",
        "interval_seconds": 30,
        "keep": 2,
        "writer": {"lineage": "abc", "generation": 4, "owner": "mnist__chief-0__1"},
    },
    "summaries": {"uri": "s3://bucket/logs"},
    "data": [{"uri": "s3://bucket/mnist", "path": "data/mnist"}],
    "data_cache": {"directory": "/var/cache/data", "max_bytes": 1000},
    "logs": {"uri": "cloudwatch://training", "interval_seconds": 5, "roll_bytes": 1024},
    "s3": {
        "endpoint_url": "https://127.0.0.1:9000",
        "region": "eu-west-1",
        "path_style": False,
        "ca_file": "ca.pem",
    },
}


def parsed(**sections):
    plain = {
        "version": 1,
        "service": "mnist",
        "task": "chief-0",
        "cluster": {"epoch": 1},
        "job": {"name": "train"},
    }
    return parse_spec(json.dumps({**plain, **sections})).storage


def test_every_section_is_read():
    assert parsed(**SECTIONS) == Storage(
        checkpoints=CheckpointPlace(
            "s3://bucket/run",
            "s3://bucket/other",
            30.0,
            2,
            Writer("abc", 4, "mnist__chief-0__1"),
        ),
        summaries=DirectoryPlace("s3://bucket/logs"),
        data=(DataItem("s3://bucket/mnist", "data/mnist"),),
        data_cache=DataCachePlace("/var/cache/data", 1000),
        logs=LogPlace("cloudwatch://training", 5.0, 1024),
        s3=S3Access("https://127.0.0.1:9000", "eu-west-1", False, "ca.pem"),
    )


def test_a_spec_without_a_word_of_s3_keeps_nothing_there():
    assert parsed() == Storage()
    assert not parsed().is_used


def test_null_sections_keep_nothing_in_s3():
    nothing = dict.fromkeys(("checkpoints", "summaries", "data_cache", "logs", "s3"))
    assert not parsed(**nothing, data=[]).is_used


def test_a_task_without_a_writer_only_restores():
    assert parsed(checkpoints={"uri": "s3://bucket/run", "writer": None}).checkpoints.writer is None


def test_a_log_group_is_one_of_cloudwatch_only():
    assert parsed(logs={"uri": "cloudwatch://a/b"}).logs.log_group == "a/b"
    assert parsed(logs={"uri": "s3://a/b"}).logs.log_group == ""


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"checkpoints": {"uri": "/mnt/run"}},
            "checkpoints.uri must be a URI with s3://, got '/mnt/run'",
        ),
        (
            {"checkpoints": {"uri": "s3://b", "keep": 0}},
            "checkpoints.keep must be at least 1, got 0",
        ),
        (
            {"checkpoints": {"uri": "s3://b", "interval_seconds": 0}},
            "checkpoints.interval_seconds must be above 0, got 0",
        ),
        (
            {"checkpoints": {"uri": "s3://b", "writer": {"lineage": "a", "owner": "b"}}},
            "checkpoints.writer.generation is missing",
        ),
        ({"data": {}}, "data must be a list of objects, got an object"),
        ({"data": ["s3://b"]}, "data.0 must be an object, got a text"),
        (
            {"data": [{"uri": "s3://b", "path": "../b"}]},
            "data.0.path must be a path below the sandbox, got '../b'",
        ),
        (
            {"data_cache": {"directory": "cache"}},
            "data_cache.directory must be an absolute path, got 'cache'",
        ),
        (
            {"logs": {"uri": "syslog://host"}},
            "logs.uri must be a URI with s3:// or cloudwatch://, got 'syslog://host'",
        ),
        ({"s3": {"path_style": "yes"}}, "s3.path_style must be true or false, got a text"),
    ],
)
def test_a_wrong_section_is_refused_with_its_path(sections, message):
    with pytest.raises(SpecError) as refused:
        parsed(**sections)
    assert str(refused.value) == message
