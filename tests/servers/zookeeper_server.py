"""A real ZooKeeper server for tests: one JVM on a free port of the loopback interface.

Any test folder may use it: ``from zookeeper_server import ZooKeeperServer``, or the fixtures
``zookeeper_server`` and ``own_zookeeper`` of ``tests/conftest.py``. It starts Debian's
``zookeeper`` package without its scripts, because those insist on ``/etc`` and ``/var/log``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from free_ports import free_port
from waiting import eventually

JAR = Path("/usr/share/java/zookeeper.jar")
#: What a server that speaks TLS needs, and Debian's package does not name.
NETTY = [Path(f"/usr/share/java/netty-{part}.jar") for part in ("codec", "resolver")]
START_SECONDS = 60.0


def available() -> str | None:
    """The reason why no ZooKeeper server can be started here, or None when one can."""
    if shutil.which("java") is None:
        return "no java on the PATH (Debian: apt-get install zookeeper)"
    if not JAR.is_file():
        return f"{JAR} is missing (Debian: apt-get install zookeeper)"
    return None


class ZooKeeperServer:
    """One server with its data in ``folder``, which is removed by :meth:`close`.

    The port stays the same over kill and restart, and so does the data: that is what a session
    that outlives its server needs. ``tickTime`` is short so that a session may last one second.
    The server ends with the thread that started it: start it from one that outlives the test.

    With ``tls``, a PEM file of its key (PKCS 8) and certificate and one of whom it trusts, it
    speaks TLS at ``secure_port`` too, with clients that show a certificate.
    """

    def __init__(
        self,
        folder: Path,
        *,
        fsync: bool = False,
        heap_mb: int = 128,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        self.folder = folder / "zookeeper"
        self.port = free_port()
        self.secure_port = free_port() if tls else 0
        self._tls = tls
        self._fsync = fsync
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def url(self, chroot: str = "", credentials: str = "") -> str:
        """A ``zk://`` URL; ``credentials`` is ``user:password``, ``chroot`` begins with ``/``."""
        return f"zk://{credentials + '@' if credentials else ''}{self.address}{chroot}"

    def start(self) -> ZooKeeperServer:
        """Start and wait until the server answers; raises RuntimeError with its log if not."""
        reason = available()
        if reason:
            raise RuntimeError(reason)
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "zoo.cfg"
        configuration.write_text(self._configuration(), encoding="utf-8")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *("java", f"-Xmx{self._heap_mb}m", "-XX:+UseSerialGC"),
                    "-XX:TieredStopAtLevel=1",
                    f"-Dzookeeper.forceSync={'yes' if self._fsync else 'no'}",
                    "-Dzookeeper.preAllocSize=1024",
                    *(
                        "-cp",
                        os.pathsep.join(map(str, (JAR, *NETTY))),
                        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    ),
                    str(configuration),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it only makes one system call
            )
        self._wait_until_ready()
        return self

    def kill(self) -> None:
        """SIGKILL, as the kernel does it to a process that ate the memory."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the server in an orderly way; its data stays."""
        self._end(signal.SIGTERM)

    def restart(self) -> ZooKeeperServer:
        """Start again on the same port with the same data; kills it first if it still runs."""
        if self.running:
            self.kill()
        return self.start()

    def restart_empty(self) -> ZooKeeperServer:
        """Kill it and start one that knows nothing on the same port."""
        self.kill()
        shutil.rmtree(self.folder / "data")
        return self.start()

    def close(self) -> None:
        """End the server and remove its whole folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the JVM in its tracks for a while: connections stay, answers do not come."""
        process = self._process
        assert process is not None, "not started"
        process.send_signal(signal.SIGSTOP)
        # The signal reaches one thread after the other: some may answer a little longer.
        eventually(lambda: _stopped(Path(f"/proc/{process.pid}/task")))
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _configuration(self) -> str:
        lines: tuple[str, ...] = (
            "tickTime=500",
            f"dataDir={self.folder / 'data'}",
            f"clientPort={self.port}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=ruok,srvr,mntr",
            "maxClientCnxns=0",
            "minSessionTimeout=1000",
            "maxSessionTimeout=60000",
        )
        if self._tls is not None:
            own, trusted = self._tls
            lines += (
                f"secureClientPort={self.secure_port}",
                "secureClientPortAddress=127.0.0.1",
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
                f"ssl.keyStore.location={own}",
                f"ssl.trustStore.location={trusted}",
                "ssl.keyStore.type=PEM",
                "ssl.trustStore.type=PEM",
                "ssl.clientAuth=need",
            )
        return "\n".join(lines) + "\n"

    def _wait_until_ready(self) -> None:
        process = self._process
        assert process is not None
        # Its log tells more than a wait that was in vain.
        with contextlib.suppress(AssertionError):
            eventually(lambda: process.poll() is not None or self._serves(), seconds=START_SECONDS)
        if process.poll() is None and self._serves():
            return
        tail = self._log.read_text(encoding="utf-8", errors="replace")[-4000:]
        self.kill()
        raise RuntimeError(f"ZooKeeper did not start on {self.address}:\n{tail}")

    def _serves(self) -> bool:
        """Whether clients are served; ``ruok`` says yes too early, when they are still dropped."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                connection.sendall(b"srvr")
                return b"Mode:" in connection.makefile("rb").read()
        except OSError:
            return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _stopped(threads: Path) -> bool:
    try:
        stats = [(thread / "stat").read_text() for thread in threads.iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return False  # A thread that has ended meanwhile was not stopped.
    return {stat.rpartition(")")[2].split()[0] for stat in stats} == {"T"}


def _die_with_parent() -> None:
    """Have the kernel end the JVM when the test process is killed without a goodbye."""
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
