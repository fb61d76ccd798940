"""A state URL is understood or refused with what is allowed, and never repeats a password."""

from pathlib import Path

import pytest

from dcos_tensorflow.state.errors import BadStateUrl
from dcos_tensorflow.state.urls import SqliteUrl, from_anywhere, parse_state_url
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///state.db", "state.db"),
        ("sqlite:///some/dir/state.db", "some/dir/state.db"),
        ("sqlite:////var/lib/state.db", "/var/lib/state.db"),
        ("sqlite:////var/my%20jobs/state.db", "/var/my jobs/state.db"),
    ],
)
def test_sqlite_paths(url: str, path: str) -> None:
    assert parse_state_url(url) == SqliteUrl(Path(path))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("zk://h", ZooKeeperAddress((("h", 2181),))),
        ("zk://h1:2181,h2:2182", ZooKeeperAddress((("h1", 2181), ("h2", 2182)))),
        ("zk://h:1/a/b/", ZooKeeperAddress((("h", 1),), "/a/b")),
        ("zk://h:1/", ZooKeeperAddress((("h", 1),))),
        ("zk://[::1]:2181", ZooKeeperAddress((("[::1]", 2181),))),
        ("zk://me:p%40ss:w@h:1/a", ZooKeeperAddress((("h", 1),), "/a", "me", "p@ss:w")),
    ],
)
def test_zookeeper_urls(url: str, expected: ZooKeeperAddress) -> None:
    assert parse_state_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "state.db",
        "file:///state.db",
        "sqlite://state.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///dir/",
        "sqlite:///state.db?mode=ro",
        "zk://",
        "zk://h:0",
        "zk://h:99999",
        "zk://h:port",
        "zk://h1,,h2",
        "zk://me@h:1",
        "zk://me:@h:1",
        "zk://h:1/a//b",
        "zk://h:1/../b",
    ],
)
def test_anything_else_is_refused_and_told_what_is_allowed(url: str) -> None:
    with pytest.raises(BadStateUrl, match=r"allowed are sqlite:///|ports are 1 to 65535"):
        parse_state_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "zk://me:s3cret@h:port",
        "zk://me:s3cret@h:99999",
        "zk://me:s3cret@h:1/a//b",
        "zk://:s3cret@h",
        "http://me:s3cret@h",
        "me:s3cret@h",
    ],
)
def test_errors_show_no_password(url: str) -> None:
    with pytest.raises(BadStateUrl) as refused:
        parse_state_url(url)
    assert "s3cret" not in str(refused.value)


def test_neither_text_nor_repr_of_an_address_shows_its_password() -> None:
    place = parse_state_url("zk://me:s3cret@h:1/a")
    assert str(place) == "zk://h:1/a"
    assert "s3cret" not in repr(place)


@pytest.mark.parametrize(
    ("url", "anywhere"),
    [
        ("sqlite:///my jobs/state.db", "sqlite:////home/me/my%20jobs/state.db"),
        ("sqlite:////var/lib/state.db", "sqlite:////var/lib/state.db"),
        ("zk://h1:2181/jobs", "zk://h1:2181/jobs"),
    ],
)
def test_a_url_for_other_folders_has_no_relative_path(url: str, anywhere: str) -> None:
    assert from_anywhere(url, Path("/home/me")) == anywhere
