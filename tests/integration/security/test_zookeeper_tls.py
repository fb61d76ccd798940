"""ZooKeeper by TLS: the state lies there as otherwise, and no other server is taken for it."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.detector import ZooKeeperDetector
from dcos_tensorflow.state.errors import StateUnavailable
from dcos_tensorflow.state.store import open_store
from dcos_tensorflow.zookeeper_address import Tls, ZooKeeperAddress, with_tls
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

pytestmark = [
    pytest.mark.zookeeper,
    pytest.mark.soak,
    # kazoo leaves it to the garbage collector to close a socket whose handshake has failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("collected"),
]
#: The first handshake takes a JVM a while on a busy machine.
SECONDS = 60.0


class Files:
    """An authority, and what it has certified, as PEM files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._authority = trustme.CA()
        self.ca = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca)
        self._folder = folder

    def certified(self, name: str) -> tuple[Path, Path]:
        """Return the files of a certificate for a name and of its key, which both hold both."""
        found = self._authority.issue_cert(name)
        key = load_pem_private_key(found.private_key_pem.bytes(), None)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file = self._folder / f"{name}.pem"
        file.write_bytes(text + b"".join(each.bytes() for each in found.cert_chain_pems))
        return file, file

    def tls(self) -> Tls:
        """Return how a client speaks that this authority has certified."""
        return Tls(str(self.ca), *map(str, self.certified("client")))


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect what kazoo has left before another test is blamed for it."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls") / "files")


@pytest.fixture(scope="module")
def secure(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    own, _ = files.certified("localhost")
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tls=(own, files.ca))
    try:
        yield server.start()
    finally:
        server.close()


def test_the_state_is_kept_by_tls(secure: ZooKeeperServer, files: Files) -> None:
    url = with_tls(f"zk://me:r1ght@localhost:{secure.secure_port}/kept", files.tls())
    store = open_store(url, "tf", timeout_seconds=SECONDS)
    store.lead("leader", SECONDS, lambda why: None)
    # More than one record of TLS and one read of kazoo.
    store.commit([Write(f"Tasks/worker-{n}/TaskInfo", b"x" * 50_000) for n in range(40)])
    assert sorted(map(len, store.load().values())) == [50_000] * 40
    store.close()


@pytest.mark.parametrize("wrong", ["another authority", "another name", "no certificate", "no TLS"])
def test_a_server_without_the_certificate_is_told_nothing(
    secure: ZooKeeperServer, files: Files, tmp_path: Path, wrong: str
) -> None:
    place, tls = f"localhost:{secure.secure_port}", files.tls()
    if wrong == "another authority":
        tls = Tls(str(Files(tmp_path / "other").ca), tls.cert, tls.key)
    elif wrong == "no certificate":
        tls = Tls(tls.ca)
    elif wrong == "another name":
        place = place.replace("localhost", "127.0.0.1")
    plain = f"zk://me:r1ght@{place}/{wrong[:2]}"
    with pytest.raises(StateUnavailable) as refused:
        open_store(plain if wrong == "no TLS" else with_tls(plain, tls), "tf", timeout_seconds=2)
    assert "r1ght" not in str(refused.value)


def test_masters_are_found_by_tls(secure: ZooKeeperServer, files: Files) -> None:
    url = with_tls(f"zk://localhost:{secure.secure_port}/mesos", files.tls())
    place = parse_masters(url)
    assert isinstance(place, ZooKeeperAddress)
    store = open_store(url, "anything", timeout_seconds=SECONDS)
    store.lead("makes the path", SECONDS, lambda why: None)
    found: list[Address | None] = []
    detector = ZooKeeperDetector(place, found.append)
    detector.start()
    try:
        eventually(
            lambda: found == [None], seconds=SECONDS, what="that no master has announced itself"
        )
    finally:
        detector.stop()
        store.close()
