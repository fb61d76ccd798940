"""An address of ZooKeeper is the same to every reader, and never shows its password."""

import pytest

from dcos_tensorflow.mesos.address import AddressError, parse_masters
from dcos_tensorflow.state.errors import BadStateUrl
from dcos_tensorflow.state.urls import parse_state_url
from dcos_tensorflow.zookeeper_address import (
    Tls,
    ensemble_of,
    parse_zookeeper,
    with_tls,
)


@pytest.mark.parametrize(
    ("masters", "servers"),
    [
        ("zk://h1,h2:2182/mesos", "zk://h1,h2:2182"),
        ("zk://me:p%2Fw@h/dcos/mesos", "zk://me:p%2Fw@h"),
        ("zk://me:p/w@h/mesos", "zk://me:p/w@h"),
        (" zk://h/mesos ", "zk://h"),
        ("zk://h1,h2/mesos?ca=/etc/ca.pem", "zk://h1,h2?ca=/etc/ca.pem"),
    ],
)
def test_the_state_can_lie_beside_the_masters(masters: str, servers: str) -> None:
    assert ensemble_of(masters) == servers
    of_masters, of_state = parse_masters(masters), parse_state_url(servers)
    assert of_masters.hosts == of_state.hosts
    assert of_masters.digest == of_state.digest
    assert of_masters.tls == of_state.tls


def test_servers_are_told_as_clients_take_them() -> None:
    found = parse_zookeeper("zk://h1, [::1]:2182,::1/a/")
    assert (found.host_list, found.path) == ("h1:2181,[::1]:2182,[::1]:2181", "/a")


@pytest.mark.parametrize("wrong", ["me:s3cret@h:port", "me:s3/cret@h h", ":s3cret@h", "me:s3@h:0"])
def test_no_room_shows_a_password_in_its_refusal(wrong: str) -> None:
    with pytest.raises(AddressError, match="zk://") as of_masters:
        parse_masters(f"zk://{wrong}/mesos")
    with pytest.raises(BadStateUrl, match="zk://") as of_state:
        parse_state_url(f"zk://{wrong}")
    assert "s3" not in str(of_masters.value) + str(of_state.value)


def test_files_of_tls_go_with_an_address() -> None:
    tls = Tls("/etc/our ca@home.pem", "/etc/c.pem", "/etc/k.pem")
    found = parse_zookeeper(with_tls("zk://me:p%3Fw@h/a", tls))
    assert (found.tls, found.path, found.password) == (tls, "/a", "p?w")
    assert with_tls("sqlite:///x.db", tls) == "sqlite:///x.db"


@pytest.mark.parametrize("query", ["tls=yes", "ca=a&cert=c", "cert=c&key=k"])
def test_half_of_tls_is_none(query: str) -> None:
    with pytest.raises(BadStateUrl, match="ca=FILE"):
        parse_state_url(f"zk://h/a?{query}")
