"""Masters and agents behind TLS."""

import ssl

import pytest
import trustme

from dcos_tensorflow.core.model.events import Registered
from dcos_tensorflow.mesos.agent_files import AgentUnreachable, HttpAccess
from dcos_tensorflow.mesos.connection import tls_context
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from masters.mesos_at import files_at

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


@pytest.fixture
def secured(authority, masters):
    """A master with a certificate for 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return masters(tls=context)


def test_32_a_master_is_verified_and_spoken_to(secured, ca_file, stage, eventually):
    driver = stage.hardened(f"https://{secured.address}", tls=tls_context(ca_file))
    eventually(lambda: driver.sched.of("registered"))
    driver.reviveOffers()
    driver.reviveOffers()
    assert len(secured.calls("REVIVE")) == 2
    assert secured.connections == 2, "one for the stream, one for the calls"
    driver.stop()
    driver.join(5)
    assert not driver._subscriber.thread.is_alive()


def test_a_master_of_an_unknown_authority_gets_nothing(secured, stage, stays):
    driver = stage.hardened(secured.address, https=True)
    assert stays(lambda: not secured.requests, 0.5)
    assert not driver.connected


def test_without_verification_any_certificate_is_taken(secured, stage, eventually):
    driver = stage.hardened(secured.address, https=True, tls=tls_context(verify=False))
    eventually(lambda: driver.sched.of("registered"))


def test_a_client_certificate_is_shown_where_one_is_wanted(
    authority, *, masters, ca_file, stage, eventually, stays, tmp_path
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    master = masters(tls=context)
    client = authority.issue_cert("scheduler.example")
    pair = tmp_path / "client.pem"
    client.private_key_and_cert_chain_pem.write_to_path(pair)
    stranger = stage.hardened(master.address, https=True, tls=tls_context(ca_file))
    assert stays(lambda: not stranger.connected, 0.3)
    tls = tls_context(ca_file, client_cert=str(pair))
    driver = stage.hardened(master.address, https=True, tls=tls)
    eventually(lambda: driver.sched.of("registered"))


def test_the_gateway_takes_tls_from_its_configuration(secured, ca_file, eventually):
    events = []
    config = MesosConfig(secured.address, ca_file=ca_file, scheme="https")
    gateway = MesosGateway(config, events.append)
    gateway.start({"user": "nobody", "name": "t"})
    eventually(lambda: events)
    assert isinstance(events[0], Registered)
    assert gateway.master.url == f"https://{secured.address}"
    gateway.stop()


def test_sandboxes_are_read_over_tls(secured, ca_file):
    secured.on_call = lambda exchange: exchange.respond(404)
    files = files_at(f"https://{secured.address}", HttpAccess(tls=tls_context(ca_file)))
    with pytest.raises(Exception, match="not found"):
        files.tail("S1", "F1", "t", "stderr")
    with pytest.raises(AgentUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
        files_at(f"https://{secured.address}").tail("S1", "F1", "t", "stderr")


def test_a_certificate_file_that_is_missing_is_told_at_once(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        MesosGateway(MesosConfig("m:1", ca_file=str(tmp_path / "none")), print)
