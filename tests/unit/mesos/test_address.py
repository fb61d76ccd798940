"""Masters' addresses: what operators write and what masters answer."""

import json

import pytest

from dcos_tensorflow.mesos.address import (
    Address,
    AddressError,
    parse_address,
    parse_location,
    parse_masters,
)
from dcos_tensorflow.mesos.detector import master_address
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("leader.mesos", (Address("leader.mesos", 5050),)),
        ("10.0.0.1:6050", (Address("10.0.0.1", 6050),)),
        ("a:1, b:2", (Address("a", 1), Address("b", 2))),
        ("https://a,b:2", (Address("a", 5050, True), Address("b", 2))),
        ("[::1]:6050", (Address("::1", 6050),)),
        ("::1", (Address("::1", 5050),)),
        ("http://a:1/", (Address("a", 1),)),
        ("zk://h1:2181,h2/mesos", ZooKeeperAddress((("h1", 2181), ("h2", 2181)), "/mesos")),
        ("zk://u:p%40@h1/dcos/mesos", ZooKeeperAddress((("h1", 2181),), "/dcos/mesos", "u", "p@")),
    ],
)
def test_masters_are_a_list_or_a_place_in_zookeeper(text, expected):
    assert parse_masters(text) == expected


def test_the_given_scheme_is_for_masters_without_one():
    assert parse_masters("a:1,http://b:2", https=True) == (Address("a", 1, True), Address("b", 2))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,,b",
        "a:port",
        "a:99999",
        "ftp://a",
        "u:p@a:1",
        "zk://h",
        "zk://h/",
        "zk://u@h/m",
        "a b",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(AddressError):
        parse_masters(text)


@pytest.mark.parametrize(
    "location",
    [
        "//10.0.0.2:6050/master/api/v1/scheduler",
        "//10.0.0.2:6050",
        "10.0.0.2:6050",
        "http://10.0.0.2:6050/api/v1/scheduler",
    ],
)
def test_every_form_of_location_is_understood(location):
    assert parse_location(location, Address("a", 1)) == Address("10.0.0.2", 6050)


def test_a_redirect_keeps_https_and_never_leaves_it():
    sender = Address("a", 1, https=True)
    assert parse_location("//b:2/x", sender).https
    with pytest.raises(AddressError, match="leave https"):
        parse_location("http://b:2/x", sender)


@pytest.mark.parametrize("text", ["1.2.3.4:5", "[fe80::1]:5"])
def test_an_address_reads_as_it_was_written(text):
    assert str(parse_address(text)) == text
    assert parse_address(text).url == f"http://{text}"


def test_with_https_masters_are_dialled_by_name():
    address = {"hostname": "m.example", "ip": "127.0.0.1", "port": 5050}
    assert master_address(json.dumps({"address": address}).encode(), https=True) == Address(
        "m.example", 5050, True
    )


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"address": {"ip": "1.2.3.4"}}'])
def test_an_unreadable_announcement_names_no_master(data):
    assert master_address(data) is None
