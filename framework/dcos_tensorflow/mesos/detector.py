"""The leading master, as ZooKeeper tells it.

Used by the driver when masters are given as ``zk://...``. Mesos masters announce themselves as
ephemeral nodes ``json.info_<sequence>`` holding a MasterInfo; the lowest sequence leads
(src/master/contender). Other nodes, such as ``log_replicas``, are not masters.

It waits for the path to appear, survives ZooKeeper being down at the start and dying later, and
never reports "no master" because ZooKeeper cannot be asked: a working subscription is worth more
than ZooKeeper's silence.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress
from untrusted_input.json_text import read_json

logger = logging.getLogger(__name__)

_MASTER_NODE = re.compile(r"json\.info_(\d+)")
#: Seconds until a failed question is asked again; watches make waiting unnecessary otherwise.
_RETRY_SECONDS = 1.0


class ZooKeeperDetector:
    """Reports every change of the leading master to ``on_change``, None when there is none.

    ``on_trouble`` is told, once each, why no master can be found at the moment.
    """

    def __init__(
        self,
        uri: ZooKeeperAddress,
        on_change: Callable[[Address | None], None],
        https: bool = False,
        session_seconds: float = 10.0,
        on_trouble: Callable[[str], None] | None = None,
    ) -> None:
        self._uri = uri
        self._on_change = on_change
        self._https = https
        self._session_seconds = session_seconds
        self._on_trouble = on_trouble
        self._stopping = threading.Event()
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None
        self._reported: tuple[Address | None] | None = None
        self._complaint = ""

    def start(self) -> None:
        """Begin to watch, in a thread of its own; returns at once."""
        self._thread = threading.Thread(target=self._run, name="mesos-detector", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching and close the ZooKeeper session. Not for use inside ``on_change``."""
        self._stopping.set()
        self._changed.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        client = self._client()
        client.add_listener(self._on_state)
        client.start_async()
        try:
            while not self._stopping.is_set():
                self._changed.clear()
                settled = client.connected and self._look(client)
                woken = self._changed.wait(None if settled else _RETRY_SECONDS)
                if not woken and not client.connected:
                    # kazoo tells of a connection that broke, never of one that was not made.
                    self._complain(f"ZooKeeper at {self._uri} does not answer")
        finally:
            client.remove_listener(self._on_state)
            client.stop()
            client.close()

    def _client(self) -> KazooClient:
        forever = KazooRetry(max_tries=-1, delay=0.2, backoff=2, max_delay=5.0, max_jitter=0.4)
        return KazooClient(
            hosts=self._uri.host_list,
            timeout=self._session_seconds,
            connection_retry=forever,
            auth_data=self._uri.digest,
            **self._uri.tls_arguments,
            read_only=False,
        )

    def _on_state(self, state: KazooState) -> None:
        if state != KazooState.SUSPENDED:
            # A new session has none of our watches; after a mere reconnect looking again is cheap.
            self._changed.set()
        else:
            self._complain(f"ZooKeeper at {self._uri} does not answer; the master is kept")

    def _look(self, client: KazooClient) -> bool:
        """Ask once, leaving watches; return False when the question has to be repeated."""
        try:
            leader = self._ask(client)
        except NoAuthError:
            self._complain(f"ZooKeeper refuses {self._uri} to these credentials")
            return False
        except (KazooException, KazooTimeoutError) as error:
            self._complain(f"ZooKeeper at {self._uri}: {type(error).__name__} {error}".rstrip())
            return False
        self._complaint = ""
        self._report(leader)
        return True

    def _ask(self, client: KazooClient) -> Address | None:
        path = self._uri.path
        while True:
            try:
                children = client.get_children(path, watch=self._wake)
            except NoNodeError:
                if client.exists(path, watch=self._wake) is None:
                    self._complain(f"no master has announced itself at {self._uri} yet")
                    return None
                continue
            announced = [(int(m[1]), c) for c in children if (m := _MASTER_NODE.fullmatch(c))]
            if not announced:
                return None
            try:
                data, _ = client.get(f"{path}/{min(announced)[1]}", watch=self._wake)
            except NoNodeError:
                continue
            return master_address(data, self._https)

    def _wake(self, _event: object) -> None:
        self._changed.set()

    def _report(self, leader: Address | None) -> None:
        if self._reported == (leader,):
            return
        self._reported = (leader,)
        logger.info("leading master: %s", leader or "none")
        self._on_change(leader)

    def _complain(self, message: str) -> None:
        if message != self._complaint:
            self._complaint = message
            logger.warning("%s", message)
            if self._on_trouble is not None:
                self._on_trouble(message)


def master_address(master_info: bytes, https: bool = False) -> Address | None:
    """Return the address in a MasterInfo as JSON; None, with a warning, when there is none.

    The IP is dialled, or with https the host name: certificates are issued to names.
    """
    try:
        address = read_json(master_info)["address"]
        host = (address.get("hostname") if https else None) or address["ip"]
        return Address(str(host), int(address["port"]), https)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("the leading master's announcement cannot be read: %r", error)
        return None
