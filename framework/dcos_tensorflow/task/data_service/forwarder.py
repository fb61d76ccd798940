"""An address on this machine that leads to the dispatcher of the job's tf.data service, wherever.

``before_start`` opens one in each task that uses the service. TensorFlow takes its address
once and for all, and tries it again for as long as it must: behind an address that stays, the
dispatcher may come later than its clients, or again on another machine, and no process restarts.
Bytes are passed on as they are. Elements do not come this way: clients fetch them from data workers
themselves.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Callable, Set

#: A machine that does not answer for so long is tried again by TensorFlow.
CONNECT_SECONDS = 5.0
_CHUNK = 65_536


class Forwarder:
    """Listens on this machine alone; ``lead_to`` says where what connects is passed on to."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._listener = socket.create_server(("127.0.0.1", 0))
        #: Where the dispatcher is, as ``host:port``; empty while there is none.
        self.target = ""
        self._open: Set[socket.socket] = set()
        self._guard = threading.Lock()
        threading.Thread(target=self._accept, name="data-service", daemon=True).start()

    @property
    def address(self) -> str:
        """Return where it listens, as ``host:port``."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def lead_to(self, target: str) -> None:
        """Lead to this dispatcher from now on; what is connected to another one connects anew."""
        with self._guard:
            if target == self.target:
                return
            self.target, former = target, tuple(self._open)
        self._log(f"the dispatcher of the tf.data service is at {target}")
        for connection in former:
            _end(connection)

    def close(self) -> None:
        """Listen no more, and end what is connected."""
        self._listener.close()
        with self._guard:
            former = tuple(self._open)
        for connection in former:
            _end(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                # Closed, or no file descriptor is left: nothing of the training's own fails of it.
                if self._listener.fileno() < 0:
                    return
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Pass on what comes on one connection, both ways, until one side ends it."""
        with client:
            host, _, port = self.target.rpartition(":")
            if not host:
                return
            try:
                server = socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS)
            except OSError:
                return
            with server, self._noted(client, server):
                server.settimeout(None)
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()

    @contextlib.contextmanager
    def _noted(self, *connections: socket.socket):  # type: ignore[no-untyped-def]
        with self._guard:
            self._open.update(connections)
        try:
            yield
        finally:
            with self._guard:
                self._open.difference_update(connections)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            content = source.recv(_CHUNK)
            if not content:
                break
            target.sendall(content)
    # A half of a gRPC connection is of no use.
    _end(source)
    _end(target)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
