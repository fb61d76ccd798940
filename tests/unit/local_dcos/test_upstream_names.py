"""Protobuf answers, media types and who may come in."""

import os
from dataclasses import replace

import pytest

from local_dcos.cluster_calls import Guard, Login
from local_dcos.cosmos import media_types
from local_dcos.errors import CosmosError
from local_dcos.http_calls import Call
from local_dcos.mesos import mesos_protobuf


def call(path: str = "/metadata", **headers: str) -> Call:
    return Call("GET", path, path, headers, b"", user=os.getuid())


def test_the_type_of_a_protobuf_call_is_its_first_field() -> None:
    assert mesos_protobuf.call_type(b"\x08\x0a") == mesos_protobuf.GET_AGENTS


@pytest.mark.parametrize("body", [b"", b"{}", b"\x08", b"\x08\x8a\x01"])
def test_other_bytes_are_no_call(body: bytes) -> None:
    with pytest.raises(mesos_protobuf.NoSuchCall):
        mesos_protobuf.call_type(body)


def test_a_name_longer_than_127_bytes_has_a_length_of_two() -> None:
    found = {"id": "F", "name": "n" * 300, "user": "root"}
    assert b"\x12\xac\x02" + b"n" * 300 in mesos_protobuf.frameworks([found])


@pytest.mark.parametrize(
    "given",
    [
        None,
        "application/json",
        "application/vnd.dcos.package.search-request+json;charset=utf-8;version=v1",
        "Application/vnd.dcos.package.search-request+json; version=v1; charset=UTF-8",
    ],
)
def test_a_media_type_may_be_written_in_any_way(given: str | None) -> None:
    media_types.check_request("package", "search", given)


def test_the_media_type_of_another_request_is_refused() -> None:
    kind = "application/vnd.dcos.package.install-request+json;charset=utf-8;version=v1"
    with pytest.raises(CosmosError, match="Unsupported Content-Type"):
        media_types.check_request("package", "search", kind)


@pytest.mark.parametrize("given", ["", "token=", "token=anything"])
def test_without_a_login_every_authorization_is_ignored(given: str) -> None:
    assert Guard(None).refuse(call(authorization=given)) is None


@pytest.mark.parametrize("user", [os.getuid() + 1, None])
def test_without_a_login_another_user_of_the_machine_gets_nothing(user: int | None) -> None:
    refused = Guard(None).refuse(replace(call("/v2/apps"), user=user))
    assert refused is not None
    assert refused.status == 403
    assert b"--dcos-login" in refused.body  # type: ignore[operator]


def test_who_has_logged_in_may_be_another_user() -> None:
    guard = Guard(Login("admin", "secret"), token="T")
    assert guard.refuse(replace(call(authorization="token=T"), user=None)) is None


def test_with_a_login_the_token_is_asked_for() -> None:
    guard = Guard(Login("admin", "secret"), token="T")
    refused = guard.refuse(call(authorization="token="))
    assert refused is not None
    assert refused.status == 401
    assert ("WWW-Authenticate", "acsjwt") in refused.headers
    assert guard.refuse(call(authorization="token=T")) is None


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example:80"}, {"host": "127.0.0.1:80", "origin": "http://evil.example"}],
)
def test_the_page_of_another_site_gets_nothing(headers: dict[str, str]) -> None:
    refused = Guard(None).refuse(call(**headers))
    assert refused is not None
    assert refused.status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:80", "127.0.0.5", "[::1]:80"])
def test_every_loopback_name_is_this_machine(host: str) -> None:
    assert Guard(None).refuse(call(host=host)) is None
