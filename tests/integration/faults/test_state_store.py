"""ZooKeeper dies, comes back, or has lost everything."""

import signal
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from dcos_tensorflow.scheduler.scheduler import EXIT_LOCKED
from scheduler_process import SHORT_SESSION
from servers.tcp_proxy import TcpProxy
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

from .conftest import MakeServed, MakeTraining

pytestmark = [pytest.mark.timeout(240), pytest.mark.zookeeper]


def test_what_dies_while_zookeeper_is_away_is_healed_when_it_is_back(
    make_served: MakeServed, own_zookeeper: ZooKeeperServer
) -> None:
    training = make_served(state=own_zookeeper.url())
    leader = training.start()
    training.look()
    own_zookeeper.kill()
    training.signal("worker-1", signal.SIGKILL)
    leader.says("the state store is unavailable")
    training.trains()
    assert "worker-1" not in training.running_pids(), "nothing is done before it is written"
    own_zookeeper.restart()
    training.recovers("worker-1")
    assert leader.process.poll() is None
    training.ends_right()


def test_the_session_is_over_when_zookeeper_is_back_and_the_next_scheduler_goes_on(
    make_served: MakeServed, own_zookeeper: ZooKeeperServer
) -> None:
    training = make_served(state=own_zookeeper.url())
    leader = training.start(*SHORT_SESSION)
    training.look()
    leader.freeze()
    own_zookeeper.restart()
    standby = training.start("--standby")
    eventually(training.job, seconds=60, what="that the standby leads")
    leader.thaw()
    leader.exit_code()
    assert standby.process.poll() is None
    training.is_untouched()
    training.ends_right()


@pytest.mark.parametrize(
    "how",
    [
        "a node is removed by hand",
        pytest.param("the servers are set up anew", marks=pytest.mark.soak),
    ],
)
def test_a_state_that_was_lost_is_explained_and_its_tasks_are_not_fought(
    make_served: MakeServed, own_zookeeper: ZooKeeperServer, how: str
) -> None:
    training = make_served(state=own_zookeeper.url("/lost"))
    leader = training.start()
    training.look()
    known = training.framework_id()
    if how == "a node is removed by hand":
        erase(own_zookeeper, "/lost")
        assert leader.exit_code() == EXIT_LOCKED
    else:
        leader.kill()
        own_zookeeper.close()
        own_zookeeper.start()
    training.trains()
    training.start()
    training.recovers(*training.gang, moved=training.gang)
    assert training.framework_id() == known
    assert [incident["kind"] for incident in training.incidents()] == ["state lost"]
    assert "the state of this service was lost" in training.told()
    training.ends_right()


def test_after_a_lost_state_nothing_is_placed_before_the_master_has_said_what_it_knows(
    make_served: MakeServed, zookeeper_server: ZooKeeperServer
) -> None:
    training = make_served(state=zookeeper_server.url("/lost"))
    leader = training.start()
    training.look()
    known = training.framework_id()
    leader.kill()
    erase(zookeeper_server, "/lost")
    with TcpProxy(training.cluster.master) as proxy:
        proxy.cut()
        training.start("--master", proxy.address)
        unknown = "not registered with a Mesos master"
        eventually(
            lambda: unknown in str(training.ask("/v1/why")),
            seconds=30,
            what="why nothing is placed",
        )
        proxy.heal()
        training.recovers(*training.gang, moved=training.gang)
        assert training.framework_id() == known
        training.ends_right()


def test_an_uninstall_after_the_state_was_lost_ends_the_tasks_of_before(
    make_served: MakeServed, zookeeper_server: ZooKeeperServer
) -> None:
    training = make_served(state=zookeeper_server.url("/lost"))
    training.start()
    training.look()
    training.leader.kill()
    erase(zookeeper_server, "/lost")
    training.start("--uninstall")
    eventually(lambda: not training.running_pids(), seconds=60, what="the end of every task")


def erase(zookeeper: ZooKeeperServer, path: str) -> None:
    """Remove everything of a service, as an operator's slip of the hand does."""
    client = KazooClient(zookeeper.address)
    client.start()
    client.delete(path, recursive=True)
    client.stop()
    client.close()


def test_a_framework_of_the_same_name_and_another_store_is_let_alone(
    make_served: MakeServed, make_training: MakeTraining, tmp_path: Path
) -> None:
    first = make_served()
    first.start()
    first.look()
    known = first.framework_id()
    first.leader.kill()
    # There is room for no second gang: what counts is that the first one is not harmed.
    other = make_training(state=f"sqlite:///{tmp_path}/another.db")
    eventually(lambda: other.ask("/v1/why")[1].get("registered"), seconds=60, what="a framework")
    assert other.framework_id() != known
    first.trains()
    assert first.running_pids() == first.pids
