"""S3 URIs and settings."""

import pytest

from dcos_tensorflow.task.storage.s3.location import Location, LocationError, S3Settings, parse_uri


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("s3://bucket", Location("bucket")),
        ("s3://bucket/", Location("bucket")),
        ("s3://bucket/a/b/", Location("bucket", "a/b")),
        ("s3a://my.bucket/a//b", Location("my.bucket", "a/b")),
    ],
)
def test_a_uri_names_bucket_and_prefix(uri, place):
    assert parse_uri(uri) == place


@pytest.mark.parametrize("uri", ["", "bucket/x", "http://b/x", "s3://", "s3:///x", "s3://b/../x"])
def test_what_is_no_uri_is_refused(uri):
    with pytest.raises(LocationError):
        parse_uri(uri)


def test_keys_begin_without_a_slash_in_a_bare_bucket():
    assert Location("b").key("data", "x") == "data/x"


@pytest.mark.parametrize("url", ["host:9000", "ftp://host", "http://user:word@host"])
def test_an_endpoint_that_cannot_work_is_refused_without_showing_a_password(url):
    with pytest.raises(LocationError) as refused:
        S3Settings(endpoint_url=url)
    assert "word@" not in str(refused.value)


def test_an_own_endpoint_is_asked_in_path_style_unless_told_otherwise():
    assert S3Settings(endpoint_url="http://h").uses_path_style is True
    assert S3Settings(endpoint_url="http://h", path_style=False).uses_path_style is False
    assert S3Settings().uses_path_style is None
