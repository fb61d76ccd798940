"""The ZooKeeper store while servers and sessions come and go: real servers, really killed."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from dcos_tensorflow.core.kept.restore import is_uninstalling
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import ServiceState, Uninstall
from dcos_tensorflow.state.errors import (
    FencedOut,
    LeadershipTaken,
    StateAccessDenied,
    StateCorrupt,
    StateError,
    StateUnavailable,
)
from dcos_tensorflow.state.layout import current_schema
from dcos_tensorflow.state.store import StateStore
from dcos_tensorflow.state.transactions import split
from dcos_tensorflow.state.zookeeper import ZooKeeperStore
from samples.states import running
from servers.tcp_proxy import TcpProxy
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

if TYPE_CHECKING:
    from conftest import Backend

pytestmark = pytest.mark.zookeeper


@contextlib.contextmanager
def client_of(server: ZooKeeperServer, **options: Any) -> Iterator[KazooClient]:
    client = KazooClient(hosts=server.address, **options)
    client.start(20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def end_session_of(store: ZooKeeperStore, server: ZooKeeperServer) -> None:
    """What a server does to a client that it has not heard of for too long."""
    kazoo = store._session._client
    with client_of(server, client_id=kazoo.client_id):
        pass


def let_calls_wait(store: StateStore, seconds: float) -> None:
    """From now on; to open the store and to lead may take longer than a test wants to wait."""
    assert isinstance(store, ZooKeeperStore)
    store._session.timeout_seconds = seconds


def answers(store: ZooKeeperStore) -> bool:
    try:
        store.load()
    except StateUnavailable:
        return False
    return True


# Servers


def test_connections_that_are_never_answered_do_not_cost_the_session(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    with TcpProxy(zookeeper_server.address) as proxy:
        url = session_backend.url.replace(zookeeper_server.address, proxy.address)
        store = session_backend.store(url=url, zookeeper_session_seconds=12.0, timeout_seconds=30.0)
        leadership = store.lead("leader", 5, lambda why: None)
        proxy.swallow(2)
        eventually(lambda: answers(store), seconds=30)
        assert leadership.held
        store.close()


def test_a_server_that_was_set_up_anew_ends_the_leadership(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    losses: list[str] = []
    store = own_backend.store(zookeeper_session_seconds=3.0, timeout_seconds=5.0)
    leadership = store.lead("leader", 5, losses.append)
    store.commit([Write("Epoch", b"1")])
    own_zookeeper.restart_empty()
    eventually(lambda: losses, seconds=30)
    assert not leadership.held
    assert len(losses) == 1
    assert store.load() == {}


def test_calls_fail_within_the_time_limit_while_no_server_runs(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    store = own_backend.store()
    store.lead("leader", 5, lambda why: None)
    let_calls_wait(store, 0.5)
    own_zookeeper.kill()
    for call in (store.load, store.erase, lambda: store.commit([Write("Epoch", b"1")])):
        began = time.monotonic()
        with pytest.raises(StateUnavailable, match=own_zookeeper.address):
            call()
        assert time.monotonic() - began < 3.0


def test_calls_fail_within_the_time_limit_while_the_server_does_not_answer(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    store = own_backend.store()
    store.lead("leader", 5, lambda why: None)
    let_calls_wait(store, 0.5)
    with own_zookeeper.frozen():
        for call in (store.load, lambda: store.commit([Write("Epoch", b"1")])):
            began = time.monotonic()
            with pytest.raises(StateUnavailable):
                call()
            assert time.monotonic() - began < 3.0


def test_a_commit_left_in_doubt_is_settled_by_the_next_one(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    store = own_backend.store()
    leadership = store.lead("leader", 5, lambda why: None)
    store.commit([Write("Epoch", b"0")])
    let_calls_wait(store, 0.5)
    with own_zookeeper.frozen(), pytest.raises(StateUnavailable):
        store.commit([Write("Tasks/ps-0/TaskInfo", b"in doubt"), Write("Epoch", b"1")])
    let_calls_wait(store, 5.0)
    eventually(lambda: commits(store, Write("Epoch", b"2")))
    assert store.load() == {"Tasks/ps-0/TaskInfo": b"in doubt", "Epoch": b"2"}
    assert leadership.held


def commits(store: Any, *writes: Write) -> bool:
    try:
        store.commit(writes)
    except StateUnavailable:
        return False
    return True


def test_waiting_to_lead_goes_on_through_an_outage(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    leader = own_backend.process(session_seconds=30.0)
    waiting = own_backend.process(session_seconds=30.0)
    assert leader.ask("lead", 5) == "leads"
    waiting.send("lead", 60)
    own_zookeeper.kill()
    leader.kill()
    own_zookeeper.start()
    assert waiting.read() == "leads"


def test_a_wait_to_lead_that_ends_in_an_outage_says_unavailable(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    store = own_backend.store()
    let_calls_wait(store, 0.3)
    own_zookeeper.kill()
    with pytest.raises(StateUnavailable):
        store.lead("waits", 0.5, lambda why: None)


# Sessions


def test_a_leader_whose_session_ends_is_told_once_and_cannot_write(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    losses: list[str] = []
    store = session_backend.store()
    assert isinstance(store, ZooKeeperStore)
    leadership = store.lead("leader", 5, losses.append)
    store.commit([Write("Epoch", b"1")])
    end_session_of(store, zookeeper_server)
    eventually(lambda: losses)
    with pytest.raises(FencedOut):
        store.commit([Write("Epoch", b"2")])
    assert not leadership.held
    assert len(losses) == 1
    assert store.load() == {"Epoch": b"1"}


def test_a_store_that_lost_its_session_can_lead_again(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    losses: list[str] = []
    store = session_backend.store()
    assert isinstance(store, ZooKeeperStore)
    store.lead("leader", 5, losses.append)
    end_session_of(store, zookeeper_server)
    eventually(lambda: losses)
    store.lead("leader", 5, losses.append)
    store.commit([Write("Epoch", b"2")])
    assert store.load() == {"Epoch": b"2"}
    assert len(losses) == 1


def test_the_session_of_a_leader_killed_on_this_machine_is_not_waited_for(
    session_backend: Backend,
) -> None:
    killed = session_backend.process(session_seconds=60.0)
    assert killed.ask("lead", 5) == "leads"
    killed.kill()
    session_backend.store().lead("successor", 10, lambda why: None)


def test_a_leader_that_is_only_frozen_is_waited_for(session_backend: Backend) -> None:
    frozen = session_backend.process(session_seconds=60.0)
    assert frozen.ask("lead", 5) == "leads"
    frozen.freeze()
    with pytest.raises(LeadershipTaken):
        session_backend.store().lead("successor", 1.5, lambda why: None)


def test_the_fence_holds_even_before_the_leader_knows_of_its_loss(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    losses: list[str] = []
    store = session_backend.store()
    assert isinstance(store, ZooKeeperStore)
    leadership = store.lead("leader", 5, losses.append)
    with client_of(zookeeper_server) as client:
        client.delete(store._fence)
    assert leadership.held
    with pytest.raises(FencedOut, match="nothing was written"):
        store.commit([Write("Epoch", b"stale")])
    assert store.load() == {}
    assert len(losses) == 1


def test_a_killed_server_and_a_leader_asleep_meanwhile_lose_the_leadership_exactly_once(
    own_zookeeper: ZooKeeperServer, own_backend: Backend
) -> None:
    stale = own_backend.process(session_seconds=5.0)
    assert stale.ask("lead", 5) == "leads"
    assert stale.ask("commit", {"Epoch": "1"}) == "committed"
    stale.freeze()
    own_zookeeper.restart()
    successor = own_backend.store()
    successor.lead("successor", 30, lambda why: None)
    assert successor.load() == {"Epoch": b"1"}
    stale.thaw()
    eventually(lambda: stale.ask("losses"))
    assert stale.ask("commit", {"Epoch": "stale"})[0] == "FencedOut"
    assert len(stale.ask("losses")) == 1
    assert successor.load() == {"Epoch": b"1"}


# Commits whose answer got lost


class LosesAnswers:
    """Stands for kazoo's result of a transaction that was sent, and whose answer never came."""

    def __init__(self, result: Any, *, arrives: bool) -> None:
        self._result = result
        self._arrives = arrives

    def get(self, timeout: float) -> Any:
        if self._arrives:
            self._result.get(timeout)
        raise KazooTimeoutError if self._arrives else ConnectionLoss


@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_without_an_answer_is_applied_exactly_once(
    session_backend: Backend, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    store = session_backend.leader()
    sent: list[bytes] = []

    def lose_the_first(self: Any) -> Any:
        from kazoo.protocol.serialization import Transaction

        result = self.client.handler.async_result()
        sent.append(self.operations[1].data)
        if len(sent) == 1 and not arrives:
            return LosesAnswers(result, arrives=False)
        self.client._call(Transaction(self.operations), result)
        return LosesAnswers(result, arrives=True) if len(sent) == 1 else result

    monkeypatch.setattr("kazoo.client.TransactionRequest.commit_async", lose_the_first)
    store.commit([Write("Epoch", b"1"), Write("Tasks/a/TaskInfo", b"x")])
    assert store.load() == {"Epoch": b"1", "Tasks/a/TaskInfo": b"x"}
    assert len(sent) == (1 if arrives else 2)
    assert len(set(sent)) == 1


def test_a_lost_commit_that_arrives_late_is_not_applied_after_its_repetition(
    session_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = session_backend.leader()
    late: list[Any] = []

    def send_the_first_twice(self: Any) -> Any:
        from kazoo.protocol.serialization import Transaction

        result = self.client.handler.async_result()
        if not late:
            late.append((self.client, Transaction(self.operations)))
            return LosesAnswers(result, arrives=False)
        self.client._call(Transaction(self.operations), result)
        return result

    monkeypatch.setattr("kazoo.client.TransactionRequest.commit_async", send_the_first_twice)
    store.commit([Write("Epoch", b"1")])
    store.commit([Write("Epoch", b"2")])
    client, transaction = late[0]
    result = client.handler.async_result()
    client._call(transaction, result)
    result.get(timeout=10)
    assert store.load() == {"Epoch": b"2"}
    store.commit([Write("Epoch", b"3")])
    assert store.load() == {"Epoch": b"3"}


# Nodes and access


def test_the_layout_is_that_of_the_sdk(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    store = session_backend.leader("/team/tf")
    store.commit([Write("FrameworkID", b"id")])
    chroot = session_backend.url.rpartition("/")[2]
    with client_of(zookeeper_server) as client:
        root = f"/{chroot}/dcos-service-team__tf"
        assert sorted(client.get_children(root)) == ["FrameworkID", "SchemaVersion", "lock"]
        assert client.get(f"{root}/SchemaVersion")[0] == current_schema()


def test_an_erase_cut_short_anywhere_leaves_what_says_that_the_service_is_uninstalled(
    session_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = session_backend.leader()
    state = replace(running(), uninstall=Uninstall(asked=True))
    new = ServiceState.of_one_gang(state.spec, state.instance, state.settings)
    store.commit([*first_writes(new), *writes_between(new, state)])
    kept = len(store.load())
    monkeypatch.setattr("dcos_tensorflow.state.zookeeper.split", partial(split, max_operations=1))
    transact = ZooKeeperStore._transact
    cuts = 0
    while True:
        left = iter([True])

        def one_more(self: ZooKeeperStore, *arguments: Any, left: Any = left) -> None:
            if next(left, None) is None:
                raise InterruptedError
            transact(self, *arguments)

        monkeypatch.setattr(ZooKeeperStore, "_transact", one_more)
        try:
            store.erase()
        except InterruptedError:
            cuts += 1
        else:
            break
        assert not (values := store.load()) or is_uninstalling(values)
    assert cuts == kept
    assert store.load() == {}


def test_nodes_made_with_credentials_are_closed_to_everyone_else(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    with_credentials = session_backend.url.replace("zk://", "zk://me:s%2Fecret@")
    store = session_backend.store(url=with_credentials)
    store.lead("leader", 5, lambda why: None)
    store.commit([Write("Tasks/ps-0/TaskInfo", b"x")])
    chroot = f"/{session_backend.url.rpartition('/')[2]}"
    root = f"{chroot}/dcos-service-tf"
    with client_of(zookeeper_server) as client:
        assert client.get_children(chroot) == ["dcos-service-tf"]
        for node in ("", "/lock", "/SchemaVersion", "/Tasks", "/Tasks/ps-0/TaskInfo"):
            with pytest.raises(NoAuthError):
                client.get(root + node)
    same = session_backend.store(url=with_credentials)
    assert same.load() == {"Tasks/ps-0/TaskInfo": b"x"}


@pytest.mark.parametrize("credentials", ["", "me:wr0ng-passw0rd@"])
def test_wrong_credentials_are_refused_and_never_shown(
    session_backend: Backend, credentials: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = session_backend.store(url=session_backend.url.replace("zk://", "zk://me:r1ght@"))
    store.lead("leader", 5, lambda why: None)
    store.commit([Write("Epoch", b"a-stored-value")])
    with pytest.raises(StateAccessDenied) as refused:
        session_backend.store(url=session_backend.url.replace("zk://", f"zk://{credentials}"))
    seen = str(refused.value) + repr(store) + caplog.text
    for secret in ("wr0ng-passw0rd", "r1ght", "a-stored-value"):
        assert secret not in seen


def test_a_leader_recovers_when_someone_else_changed_its_nodes(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    store = session_backend.leader()
    store.commit([Write("Tasks/ps-0/TaskInfo", b"1")])
    with client_of(zookeeper_server) as client:
        chroot = session_backend.url.rpartition("/")[2]
        client.delete(f"/{chroot}/dcos-service-tf/Tasks", recursive=True)
    store.commit([Write("Tasks/ps-0/TaskInfo", b"2")])
    assert store.load() == {"Tasks/ps-0/TaskInfo": b"2"}


def test_a_schema_version_that_is_no_number_is_called_damage(
    zookeeper_server: ZooKeeperServer, session_backend: Backend
) -> None:
    chroot = session_backend.url.rpartition("/")[2]
    with client_of(zookeeper_server) as client:
        client.create(f"/{chroot}/dcos-service-tf/SchemaVersion", b"?", makepath=True)
    with pytest.raises(StateCorrupt, match="not a number"):
        session_backend.store()


def test_a_closed_store_says_so(session_backend: Backend) -> None:
    store = session_backend.leader()
    store.close()
    store.close()
    with pytest.raises(StateError, match="closed"):
        store.load()
    with pytest.raises(FencedOut):
        store.commit([Write("Epoch", b"1")])
