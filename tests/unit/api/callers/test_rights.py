"""Two tokens with two rights, and how often a wrong one may be said."""

from typing import Any

import pytest

from dcos_tensorflow.api.callers import access
from dcos_tensorflow.api.callers.access import MOST_PEERS, TRIES, Access, FailedLogins, network_of
from dcos_tensorflow.api.operations import OPERATIONS
from samples.states import running

OPERATOR = {"authorization": "Bearer the-operators-token"}
READER = {"authorization": "Bearer the-readers-token"}
WRONG = {"authorization": "Bearer guessed"}
ORDERS = [operation for operation in OPERATIONS if operation.is_verb]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(source: Any, client_of: Any, clock: Clock) -> Any:
    source.current = running()
    access = Access("the-operators-token", "the-readers-token", failures=FailedLogins(clock))
    return client_of(access=access)


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/why", "/v1/openapi.json"])
def test_a_reader_is_shown_what_an_operator_is(client: Any, path: str) -> None:
    shown = [client.get(path, headers=who) for who in (READER, OPERATOR)]
    assert [answer.status_code for answer in shown] == [200, 200]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.id)
def test_a_reader_orders_nothing(source: Any, client: Any, order: Any) -> None:
    path = order.path.replace("{plan}", "deploy").replace("{name}", "worker-0")
    answer = client.request(order.method, path, headers=READER)
    assert (answer.status_code, source.events) == (403, [])
    assert "may only read" in answer.json()["message"]


def test_an_operator_orders(source: Any, client: Any) -> None:
    assert client.post("/v1/job/stop", headers=OPERATOR).status_code == 200
    assert len(source.events) == 1


def test_a_health_check_with_the_readers_token_is_given_the_reasons(client: Any) -> None:
    assert "reasons" in client.get("/v1/health?verbose", headers=READER).json()


@pytest.mark.parametrize("who", [OPERATOR, READER])
def test_neither_token_is_in_what_is_shown(client: Any, who: dict[str, str]) -> None:
    why = "the tokens are operators-token and readers-token"
    client.post("/v1/job/stop", headers=OPERATOR, json={"why": why})
    shown = client.get("/v1/no/readers-token/operators-token", headers=who)
    assert shown.status_code == 404


class TestGuessing:
    def test_who_guesses_is_soon_not_listened_to(self, client: Any) -> None:
        statuses = [client.get("/v1/plans", headers=WRONG).status_code for _ in range(TRIES + 2)]
        assert statuses == [401] * TRIES + [429, 429]

    def test_a_right_token_counts_whatever_else_the_same_address_tries(self, client: Any) -> None:
        for _ in range(TRIES * 2):
            client.get("/v1/plans", headers=WRONG)
        assert client.get("/v1/plans", headers=READER).status_code == 200
        assert client.post("/v1/job/stop", headers=OPERATOR).status_code == 200
        assert client.get("/v1/plans", headers=WRONG).status_code == 429

    def test_each_further_guess_costs_a_connection(self, client: Any) -> None:
        answers = [client.get("/v1/plans", headers=WRONG) for _ in range(TRIES + 1)]
        assert ["connection" in answer.headers for answer in answers] == [False] * TRIES + [True]
        assert answers[-1].headers["connection"] == "close"
        assert answers[-1].headers["retry-after"] == "6"

    @pytest.mark.parametrize("read_token", ["", "short"])
    def test_a_token_that_trying_could_find_is_not_listened_to_meanwhile(
        self, source: Any, client_of: Any, clock: Clock, read_token: str
    ) -> None:
        source.current = running()
        token = "operators-token" if not read_token else "a token that is not found by trying"
        client = client_of(access=Access(token, read_token, failures=FailedLogins(clock)))
        right = {"authorization": f"Bearer {read_token or token}"}
        for _ in range(TRIES):
            client.get("/v1/plans", headers=WRONG)
        answer = client.get("/v1/plans", headers=right)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "6")
        clock.now += access.SECONDS_A_TRY
        assert client.get("/v1/plans", headers=right).status_code == 200

    def test_a_request_without_a_token_is_no_guess(self, client: Any) -> None:
        for _ in range(TRIES + 1):
            assert client.get("/v1/plans").status_code == 401
        assert client.get("/v1/plans", headers=OPERATOR).status_code == 200

    def test_a_right_token_takes_no_try(self, client: Any) -> None:
        for _ in range(TRIES + 1):
            assert client.get("/v1/plans", headers=OPERATOR).status_code == 200

    def test_a_peer_does_not_lock_another_out(self, clock: Clock) -> None:
        failures = FailedLogins(clock)
        for _ in range(TRIES):
            failures.note("10.0.0.1")
        assert failures.wait_seconds("10.0.0.1") == pytest.approx(access.SECONDS_A_TRY)
        assert failures.wait_seconds("10.0.0.2") == 0

    def test_many_peers_take_bounded_memory_and_the_last_are_remembered(self, clock: Clock) -> None:
        failures = FailedLogins(clock)
        for number in range(MOST_PEERS + 500):
            for _ in range(TRIES):
                failures.note(number)
        assert len(failures._buckets) == MOST_PEERS
        assert failures.wait_seconds(MOST_PEERS + 499) > 0

    def test_a_peer_that_has_waited_long_enough_is_forgotten(self, clock: Clock) -> None:
        failures = FailedLogins(clock)
        failures.note("10.0.0.1")
        clock.now += access.SECONDS_A_TRY
        assert (failures.wait_seconds("10.0.0.1"), failures._buckets) == (0, {})

    @pytest.mark.parametrize(
        ("host", "network"),
        [
            ("10.0.0.7", "10.0.0.7"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("a socket", "a socket"),
        ],
    )
    def test_a_machine_is_one_peer_whatever_addresses_it_takes(
        self, host: str, network: str
    ) -> None:
        assert network_of(host) == network
