"""A scripted Mesos master with faults down to the byte, and drivers ready to meet it.

For tests of the Mesos room; their ``conftest.py`` imports the fixtures.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import responses
from typing import Any

import pytest

from dcos_tensorflow.mesos.hardened import HardenedSchedulerDriver
from dcos_tensorflow.mesos.pymesos_import import import_pymesos
from dcos_tensorflow.mesos.stream import ReconnectBackoff
from waiting import eventually, stays

pymesos = import_pymesos()

FRAMEWORK_ID = "20261121-framework-0000"
FRAMEWORK = {"user": "nobody", "name": "test", "roles": ["tensorflow"], "failover_timeout": 60.0}


@dataclass
class Request:
    """One request as it was received."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    body: Any = None

    @property
    def call(self) -> str:
        """The type of the call, or the path of what is none."""
        return self.body.get("type", self.path) if isinstance(self.body, dict) else self.path


class Exchange:
    """One request and the way to answer it, byte by byte if need be."""

    def __init__(self, master: FakeMaster, sock: socket.socket, request: Request) -> None:
        self.master = master
        self.request = request
        self.sock = sock
        self.closed = False
        self.is_subscribed = False

    def raw(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError:
            self.closed = True

    def respond(self, status: int = 202, body: bytes = b"", **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} {responses.get(status, '')}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def begin_stream(self, stream_id: str = "stream-1") -> None:
        self.raw(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
            b"Mesos-Stream-Id: " + stream_id.encode() + b"\r\n\r\n"
        )

    def chunk(self, data: bytes) -> None:
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, event: dict[str, Any]) -> None:
        self.chunk(record(event))

    def subscribed(self, heartbeat: float = 15.0, **fields: Any) -> None:
        info = {
            "framework_id": {"value": FRAMEWORK_ID},
            "heartbeat_interval_seconds": heartbeat,
            "master_info": {"id": "m", "ip": 1, "port": 5050, "version": "1.12.0"},
        }
        self.event({"type": "SUBSCRIBED", "subscribed": {**info, **fields}})
        self.event({"type": "HEARTBEAT"})

    def subscribe(self, **fields: Any) -> None:
        self.begin_stream(f"stream-{len(self.master.subscribes)}")
        # A client that has heard of the subscription finds its stream.
        self.master.streams.append(self)
        self.subscribed(**fields)
        self.is_subscribed = True

    def hold(self, seconds: float = 60.0) -> None:
        """Keep the connection open until the peer or the master closes it."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN | select.POLLHUP)
        deadline = time.monotonic() + seconds
        while not self.closed and not self.master.closing and time.monotonic() < deadline:
            if poll.poll(20):
                self.closed = True

    def close(self) -> None:
        self.closed = True


def record(event: dict[str, Any]) -> bytes:
    data = json.dumps(event).encode()
    return b"%d\n%s" % (len(data), data)


@dataclass
class FakeMaster:
    """Answers as its hooks say; by default like a healthy master that sends no offers."""

    host: str = "127.0.0.1"
    tls: Any = None
    closing: bool = False
    requests: list[Request] = field(default_factory=list)
    streams: list[Exchange] = field(default_factory=list)
    connections: int = 0
    closed_connections: int = 0

    def __post_init__(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self.on_subscribe: Callable[[Exchange], None] = self.healthy
        self.on_call: Callable[[Exchange], None] = lambda exchange: exchange.respond()
        self.on_version: Callable[[Exchange], None] = lambda exchange: exchange.respond(
            200, b'{"version": "1.12.0"}'
        )
        self._listener = socket.create_server((self.host, 0), family=family)
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._spawn(self._accept)

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def healthy(self, exchange: Exchange) -> None:
        exchange.subscribe()
        exchange.hold()

    def calls(self, *kinds: str) -> list[Any]:
        return [r.body for r in list(self.requests) if r.call in kinds]

    def requests_of(self, kind: str) -> list[Request]:
        return [r for r in list(self.requests) if r.call == kind]

    @property
    def subscribes(self) -> list[Any]:
        return self.calls("SUBSCRIBE")

    def event(self, event: dict[str, Any]) -> None:
        eventually(lambda: self.streams and self.streams[-1].is_subscribed, what="a subscription")
        self.streams[-1].event(event)

    def close(self) -> None:
        self.closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._sockets):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(5)

    def _spawn(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.closing:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(sock)
            self._spawn(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(30)
        try:
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            with sock, sock.makefile("rb") as reader:
                while (request := self._read(reader)) is not None:
                    exchange = Exchange(self, sock, request)
                    self._hook(request)(exchange)
                    if exchange.closed or self.closing:
                        return
        except OSError:
            pass
        finally:
            sock.close()
            self.closed_connections += 1

    def _hook(self, request: Request) -> Callable[[Exchange], None]:
        if request.path == "/version":
            return self.on_version
        return self.on_subscribe if request.call == "SUBSCRIBE" else self.on_call

    def _read(self, reader: Any) -> Request | None:
        first = reader.readline()
        if not first:
            return None
        method, path, _ = first.decode().split(" ", 2)
        headers = {}
        while (line := reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            headers[name.strip().lower()] = value.strip()
        raw = reader.read(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, raw, time.monotonic())
        if raw:
            request.body = json.loads(raw)
        self.requests.append(request)
        return request


class Recorder(pymesos.Scheduler):
    """A scheduler that remembers its callbacks; ``on`` maps a name to what to do besides."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        self.on: dict[str, Callable[..., None]] = {}

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [args for heard, args in list(self.heard) if heard == name]


def _recording(name: str) -> Callable[..., None]:
    def method(self: Recorder, driver: Any, *args: Any) -> None:
        self.heard.append((name, args))
        if name in self.on:
            self.on[name](driver, *args)

    return method


for _name in (
    "registered",
    "reregistered",
    "disconnected",
    "processHeartBeat",
    "resourceOffers",
    "inverseOffers",
    "offerRescinded",
    "inverseOfferRescinded",
    "statusUpdate",
    "operationStatusUpdate",
    "frameworkMessage",
    "slaveLost",
    "executorLost",
    "error",
):
    setattr(Recorder, _name, _recording(_name))


@pytest.fixture
def masters() -> Iterator[Callable[..., FakeMaster]]:
    """Make fake masters; all are closed at the end."""
    made: list[FakeMaster] = []

    def make(**options: Any) -> FakeMaster:
        made.append(FakeMaster(**options))
        return made[-1]

    yield make
    for master in made:
        master.close()


@pytest.fixture
def master(masters: Callable[..., FakeMaster]) -> FakeMaster:
    """Make one fake master."""
    return masters()


@dataclass
class Stage:
    """Starts drivers, and knows them all."""

    drivers: list[Any] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def hardened(self, master: str, start: bool = True, **options: Any) -> Any:
        recorder = options.pop("sched", None) or Recorder()
        framework = options.pop("framework", dict(FRAMEWORK))
        options.setdefault("timeout", 5.0)
        driver = HardenedSchedulerDriver(recorder, framework, master, **options)
        return self._run(driver, start)

    def registered(self, master: str, **options: Any) -> Any:
        """Start a driver, and wait until it is registered."""
        driver = self.hardened(master, **options)
        eventually(lambda: driver.sched.of("registered"))
        return driver

    def _run(self, driver: Any, start: bool) -> Any:
        self.drivers.append(driver)
        if start:
            self.apart(driver.start)
        return driver

    def apart(self, function: Callable[..., Any], *args: Any) -> threading.Thread:
        """Call something in a thread that may block; what it raises goes to ``failures``."""

        def run() -> None:
            try:
                function(*args)
            except Exception as error:
                self.failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Give drivers that are stopped at the end."""
    if "real_back_off" not in request.fixturenames:
        monkeypatch.setattr(ReconnectBackoff.__init__, "__defaults__", (0.05, 0.5))
    stage = Stage()
    yield stage
    for driver in stage.drivers:
        driver.stop()
        driver.join(5)
        assert not driver._delivery or not driver._delivery.thread.is_alive()
        assert not driver._subscriber or not driver._subscriber.thread.is_alive()


@pytest.fixture
def real_back_off() -> None:
    """Ask for the real delays between subscriptions; other tests have a tenth of them."""


@pytest.fixture
def black_hole() -> Iterator[str]:
    """Give an address that answers no SYN: its accept queue is full."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[..., Any]:
    """Wait for a condition with a deadline."""
    return eventually


@pytest.fixture(name="stays")
def stays_fixture() -> Callable[..., bool]:
    """Watch a condition for a while."""
    return stays
