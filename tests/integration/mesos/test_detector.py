"""Finding the leading master in a real ZooKeeper."""

import json
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.detector import ZooKeeperDetector

pytestmark = [
    pytest.mark.zookeeper,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def master_info(port, hostname="localhost"):
    address = {"hostname": hostname, "ip": "127.0.0.1", "port": port}
    return json.dumps({"id": "m", "port": port, "hostname": hostname, "address": address}).encode()


class Masters:
    """Announces masters as they do it themselves."""

    def __init__(self, server, path):
        self.path = path
        self.client = KazooClient(server.address)
        self.client.start()

    def announce(self, port, name="json.info_", **options):
        return self.client.create(
            f"{self.path}/{name}", master_info(port), sequence=True, makepath=True, **options
        )

    def close(self):
        self.client.stop()
        self.client.close()


@pytest.fixture
def path(request):
    """A path of the test's own."""
    return f"/detector-{abs(hash(request.node.nodeid))}/mesos"


@pytest.fixture
def announced(zookeeper_server, path):
    made = Masters(zookeeper_server, path)
    yield made
    made.close()


def test_13_a_start_before_the_path_exists_waits_for_it(
    *, master, stage, announced, zookeeper_server, path, eventually, stays
):
    driver = stage.hardened(zookeeper_server.url(path))
    assert stays(lambda: not master.subscribes, 0.3)
    announced.announce(master.port)
    eventually(lambda: driver.sched.of("registered"))
    assert driver.master == master.address


def test_the_lowest_announcement_leads_and_its_end_makes_the_next_lead(
    masters, *, stage, announced, zookeeper_server, path, eventually
):
    first, second = masters(), masters()
    announced.announce(1, name="log_replicas/")
    leading = announced.announce(first.port)
    announced.announce(second.port)
    driver = stage.hardened(zookeeper_server.url(path))
    eventually(lambda: driver.sched.of("registered"))
    assert driver.master == first.address
    announced.client.delete(leading)
    eventually(lambda: driver.sched.of("reregistered"))
    assert driver.master == second.address
    assert len(driver.sched.of("disconnected")) == 1


def test_without_a_leader_the_driver_waits(
    master, *, stage, announced, zookeeper_server, path, eventually
):
    leading = announced.announce(master.port)
    driver = stage.hardened(zookeeper_server.url(path))
    eventually(lambda: driver.sched.of("registered"))
    announced.client.delete(leading)
    eventually(lambda: driver.sched.of("disconnected"))
    assert not driver.connected
    announced.announce(master.port)
    eventually(lambda: driver.sched.of("reregistered"))


def test_14_a_start_while_zookeeper_is_down_succeeds_when_it_comes(
    own_zookeeper, master, *, stage, path, eventually, stays
):
    announced = Masters(own_zookeeper, path)
    announced.announce(master.port)
    announced.close()
    own_zookeeper.kill()
    driver = stage.hardened(own_zookeeper.url(path), start=False)
    driver.start()
    assert stays(lambda: not driver.aborted and not driver.connected, 0.3)
    own_zookeeper.restart()
    eventually(lambda: driver.sched.of("registered"), seconds=20)


def test_zookeepers_death_leaves_the_subscription_alone_and_its_return_is_noticed(
    own_zookeeper, masters, *, stage, path, eventually, stays
):
    first, second = masters(), masters()
    announced = Masters(own_zookeeper, path)
    leading = announced.announce(first.port)
    announced.announce(second.port)
    driver = stage.hardened(own_zookeeper.url(path))
    eventually(lambda: driver.sched.of("registered"))
    own_zookeeper.kill()
    assert stays(lambda: driver.connected, 0.5)
    own_zookeeper.restart()
    announced.client.retry(announced.client.delete, leading)
    eventually(lambda: driver.master == second.address and driver.connected, seconds=20)
    announced.close()


def test_an_expired_session_is_replaced_by_a_new_one(own_zookeeper, path, eventually):
    found = []
    announced = Masters(own_zookeeper, path)
    leading = announced.announce(1001)
    announced.announce(1002)
    uri = parse_masters(own_zookeeper.url(path))
    detector = ZooKeeperDetector(uri, found.append, session_seconds=1.0)
    detector.start()
    eventually(lambda: found == [Address("127.0.0.1", 1001)])
    with own_zookeeper.frozen():
        threading.Event().wait(2.0)
    announced.client.retry(announced.client.delete, leading)
    eventually(lambda: found[-1] == Address("127.0.0.1", 1002), seconds=20)
    assert None not in found
    detector.stop()
    announced.close()


@pytest.mark.parametrize(
    ("credentials", "allowed"), [("mesos:right", True), ("mesos:wrong", False)]
)
def test_14_a_protected_path_needs_the_right_credentials(
    credentials, allowed, *, announced, zookeeper_server, path, eventually, stays
):
    acl = [make_digest_acl("mesos", "right", all=True)]
    announced.client.add_auth("digest", "mesos:right")
    announced.announce(1001, acl=acl)
    announced.client.set_acls(path, acl)
    found = []
    detector = ZooKeeperDetector(
        parse_masters(zookeeper_server.url(path, credentials)), found.append
    )
    detector.start()
    if allowed:
        eventually(lambda: found == [Address("127.0.0.1", 1001)])
    else:
        eventually(lambda: "refuses" in detector._complaint)
        assert not found
    detector.stop()


def test_a_wait_for_a_master_hears_of_a_zookeeper_that_does_not_answer(eventually):
    told = []
    uri = parse_masters("zk://127.0.0.1:1/mesos")
    detector = ZooKeeperDetector(uri, print, on_trouble=told.append)
    detector.start()
    eventually(lambda: told == ["ZooKeeper at zk://127.0.0.1:1/mesos does not answer"])
    detector.stop()
