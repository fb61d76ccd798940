"""An API that a router asks, as the package's: a client that comes another way is refused.

The router has an address of its own, as Admin Router has those of the masters; tasks and others on
the network have theirs.
"""

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses
from dcos_tensorflow.api.operations import OPERATIONS
from dcos_tensorflow.api.server import ApiServer
from samples.state_source import Source
from samples.states import running

ROUTER, OTHER = "127.0.0.2", "127.0.0.3"
#: What an attacker says to be taken for the router, or for a user that it has let in.
CLAIMS = [
    {},
    {"X-Forwarded-For": ROUTER, "X-Real-IP": ROUTER, "Forwarded": f"for={ROUTER}"},
    {"Host": "master.mesos"},
    {"Authorization": "token=a.forged.one"},
    {"Authorization": "Bearer "},
]
#: Who asks these has no token, and they tell nothing of the service.
OPEN = {"health", "artifact"}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path, running())


@pytest.fixture
def port(source: Source) -> Iterator[int]:
    access = Access(trusted=TrustedAddresses([ROUTER, "nobody.knows.invalid"]))
    server = ApiServer(create_app(source, access=access))
    yield int(server.start().rpartition(":")[2])
    server.stop()


def ask(port: int, of: str, method: str, path: str, headers: dict[str, str]) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, 30, source_address=(of, 0))
    try:
        client.request(method, path, headers=headers)
        return client.getresponse().status
    finally:
        client.close()


@pytest.mark.parametrize("claims", CLAIMS, ids=lambda one: "+".join(one) or "nothing")
def test_no_other_client_reads_or_orders_anything(
    source: Source, port: int, claims: dict[str, str]
) -> None:
    asked = {
        operation.id: (operation.method, operation.path.replace("{plan}", "deploy"))
        for operation in OPERATIONS
        if operation.id not in OPEN
    }
    answers = {id: ask(port, OTHER, *what, claims) for id, what in asked.items()}
    # Of a client that guesses, some are not listened to any more.
    assert set(answers.values()) <= {401, 429}, answers
    assert source.events == []


def test_what_comes_by_the_router_is_answered_whatever_login_it_carries(
    source: Source, port: int
) -> None:
    login = {"Authorization": "token=a.login.of-the-cluster"}
    assert ask(port, ROUTER, "GET", "/v1/plans", login) == 200
    assert ask(port, ROUTER, "POST", "/v1/job/stop", login) == 200
    assert len(source.events) == 1


def test_a_page_of_another_site_orders_nothing_by_the_router_either(
    source: Source, port: int
) -> None:
    page = {"Origin": "http://evil.example", "Host": "cluster.example"}
    assert ask(port, ROUTER, "POST", "/v1/job/stop", page) == 403
    assert source.events == []


def test_a_health_check_needs_no_router(port: int) -> None:
    assert ask(port, OTHER, "GET", "/v1/health", {}) == 200
