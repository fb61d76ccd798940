"""The addresses of a router are looked up by its names, and anew now and then."""

import threading

import pytest

from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses


class Names:
    """What names stand for, as a test says; and a clock."""

    def __init__(self) -> None:
        self.known: dict[str, set[str]] = {}
        self.asked = 0
        self.now = 1000.0

    def look_up(self, name: str) -> frozenset[str]:
        self.asked += 1
        if name not in self.known:
            raise OSError(f"{name} is not known")
        return frozenset(self.known[name])

    def clock(self) -> float:
        return self.now


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def trusted(names: Names) -> TrustedAddresses:
    return TrustedAddresses(["master.mesos", "leader.mesos"], names.look_up, names.clock)


def test_each_address_of_each_name_counts_and_no_other(
    names: Names, trusted: TrustedAddresses
) -> None:
    names.known = {"master.mesos": {"10.0.0.1", "10.0.0.2"}, "leader.mesos": {"10.0.0.9"}}
    hosts = ("10.0.0.1", "10.0.0.2", "10.0.0.9", "10.0.0.3", "")
    assert [trusted.has(host) for host in hosts] == [True, True, True, False, False]


def test_an_address_of_ipv4_is_the_same_on_a_socket_of_ipv6(
    names: Names, trusted: TrustedAddresses
) -> None:
    names.known = {"master.mesos": {"10.0.0.1"}}
    assert trusted.has("::ffff:10.0.0.1")


def test_an_unknown_name_lets_no_client_in(trusted: TrustedAddresses) -> None:
    assert not trusted.has("10.0.0.1")


def test_a_master_that_has_gone_counts_no_more_and_a_new_one_does(
    names: Names, trusted: TrustedAddresses
) -> None:
    names.known = {"master.mesos": {"10.0.0.1"}}
    trusted.has("10.0.0.1")
    names.known = {"master.mesos": {"10.0.0.4"}}
    names.now += 60
    assert [trusted.has(host) for host in ("10.0.0.1", "10.0.0.4")] == [False, True]


def test_those_that_were_known_count_while_names_cannot_be_looked_up(
    names: Names, trusted: TrustedAddresses
) -> None:
    names.known = {"master.mesos": {"10.0.0.1"}}
    trusted.has("10.0.0.1")
    names.known = {}
    names.now += 60
    assert trusted.has("10.0.0.1")


def test_who_comes_while_a_name_is_looked_up_again_does_not_wait(
    names: Names, trusted: TrustedAddresses
) -> None:
    # The names are not known, as without DC/OS: a client with a token is not to wait for that.
    trusted.has("10.0.0.1")
    meanwhile: list[bool] = []

    def slow(name: str) -> frozenset[str]:
        other = threading.Thread(target=lambda: meanwhile.append(trusted.has("10.0.0.2")))
        other.start()
        other.join(30)
        raise OSError(f"{name} is not known")

    trusted._look_up = slow
    names.now += 60
    trusted.has("10.0.0.1")
    assert meanwhile == [False, False]


def test_strangers_cause_no_look_up_each(names: Names, trusted: TrustedAddresses) -> None:
    for number in range(50):
        trusted.has(f"192.0.2.{number}")
    assert names.asked == 2
