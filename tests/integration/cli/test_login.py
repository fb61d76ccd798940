"""A scheduler that logs in to DC/OS as a service account, against a scripted IAM and master."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from command_line import CommandLine, write_options
from masters.scripted_master import FakeMaster
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

TOKEN = "hush-token-4711"
LOGIN = "/acs/api/v1/auth/login"


class Cluster(NamedTuple):
    """A master that wants a login, the service that gives it, and the account's secret."""

    master: FakeMaster
    iam: FakeMaster
    secret: str


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    master, iam = FakeMaster(), FakeMaster()
    master.on_call = lambda exchange: exchange.respond(200, b'{"frameworks": []}')
    iam.on_call = lambda exchange: exchange.respond(200, json.dumps({"token": TOKEN}).encode())
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    endpoint = f"http://{iam.address}{LOGIN}"
    secret = json.dumps({"uid": "tf", "private_key": pem, "login_endpoint": endpoint})
    yield Cluster(master, iam, secret)
    master.close()
    iam.close()


def test_the_scheduler_registers_as_its_service_account(
    cluster: Cluster, command_line: CommandLine, tmp_path: Path
) -> None:
    service = {"name": "job", "job_cmd": "true", "service_account_secret": "team/tf"}
    options = write_options(tmp_path, service=service)
    command_line.environment["DCOS_SERVICE_ACCOUNT_CREDENTIAL"] = cluster.secret
    master = f"--master={cluster.master.address}"
    process = command_line.start("scheduler", options, master, "--artifacts=file")
    try:
        eventually(lambda: cluster.master.subscribes, seconds=60, what="a subscription")
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=60)
    (login, *_) = cluster.iam.requests
    assert (login.path, login.body["uid"]) == (LOGIN, "tf")
    (subscribe, *_) = cluster.master.requests_of("SUBSCRIBE")
    assert subscribe.headers["authorization"] == f"token={TOKEN}"
    assert subscribe.body["subscribe"]["framework_info"]["principal"] == "tf"
    assert TOKEN not in out
    assert "PRIVATE KEY" not in out
    kept = b"".join(p.read_bytes() for p in command_line.home.rglob("*") if p.is_file())
    assert TOKEN.encode() not in kept
    assert b"PRIVATE KEY" not in kept
