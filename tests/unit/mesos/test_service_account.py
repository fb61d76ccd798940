"""Logging in to DC/OS as a service account: a scripted identity service and a scripted master."""

import base64
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dcos_tensorflow.core.model.events import Registered
from dcos_tensorflow.mesos import service_account
from dcos_tensorflow.mesos.address import parse_address
from dcos_tensorflow.mesos.agent_files import AgentRefused, HttpAccess
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.mesos.service_account import (
    LoginFailed,
    ServiceAccount,
    ServiceAccountError,
    TokenLogin,
    login_token,
    parse,
)
from masters.scripted_master import Exchange, FakeMaster

LOGIN_PATH = "/acs/api/v1/auth/login"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: Any) -> str:
    written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return written.decode()


def account(master: FakeMaster | None = None, **fields: str) -> ServiceAccount:
    endpoint = f"http://{master.address}{LOGIN_PATH}" if master else "http://iam/login"
    return ServiceAccount(
        **{"uid": "tf", "login_endpoint": endpoint, "private_key": pem(KEY), **fields}
    )


def secret(**changes: Any) -> str:
    fields = {
        "uid": "tf",
        "private_key": pem(KEY),
        "login_endpoint": "https://master.mesos/acs/api/v1/auth/login",
        "scheme": "RS256",
        **changes,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def decoded(part: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def token(number: int, expires: float | None = None) -> str:
    claims = json.dumps({} if expires is None else {"uid": "tf", "exp": expires}).encode()
    return f"head{number}.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.sign"


class Clock:
    """Unix seconds that go on when told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Iam:
    """An identity service, played by a scripted master: gives token after token."""

    def __init__(self, server: FakeMaster, life_seconds: float | None = 3600.0) -> None:
        self.server = server
        self.clock = Clock()
        self.life_seconds = life_seconds
        self.given: list[str] = []
        self.status = 200
        server.on_call = self.answer

    def answer(self, exchange: Exchange) -> None:
        if self.status != 200:
            exchange.respond(self.status, b"no")
            return
        life = self.life_seconds
        expires = None if life is None else self.clock.now + life
        self.given.append(token(len(self.given), expires))
        exchange.respond(200, json.dumps({"token": self.given[-1]}).encode())

    def login(self) -> TokenLogin:
        return TokenLogin(account(self.server), timeout_seconds=5.0, clock=self.clock)


@pytest.fixture
def iam(masters: Callable[..., FakeMaster]) -> Iam:
    return Iam(masters())


def header(number: int, iam: Iam) -> dict[str, str]:
    return {"Authorization": f"token={iam.given[number]}"}


class TestTheLogin:
    def test_it_is_signed_with_the_accounts_key_and_holds_five_minutes(self) -> None:
        head, claims, signature = login_token(account(), 1000.0).split(".")
        assert decoded(head) == {"alg": "RS256", "typ": "JWT"}
        assert decoded(claims) == {"uid": "tf", "exp": 1300}
        raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
        signed = f"{head}.{claims}".encode()
        KEY.public_key().verify(raw, signed, padding.PKCS1v15(), SHA256())

    def test_it_is_posted_with_the_accounts_name(self, iam: Iam) -> None:
        iam.login().header()
        (request,) = iam.server.requests
        assert (request.method, request.path) == ("POST", LOGIN_PATH)
        assert request.body["uid"] == "tf"
        assert decoded(request.body["token"].split(".")[1])["exp"] == 1_000_300

    def test_one_login_serves_until_shortly_before_its_end(self, iam: Iam) -> None:
        login = iam.login()
        login.header()
        iam.clock.now += 3200
        assert (login.header(), len(iam.given)) == (header(0, iam), 1)

    def test_it_is_renewed_before_its_end(self, iam: Iam) -> None:
        login = iam.login()
        login.header()
        iam.clock.now += 3300
        assert login.header() == header(1, iam)

    def test_a_token_that_does_not_say_its_end_is_renewed_within_a_day(self, iam: Iam) -> None:
        iam.life_seconds = None
        login = iam.login()
        login.header()
        iam.clock.now += 86_400
        assert login.header() == header(1, iam)

    def test_a_renewal_that_fails_leaves_what_still_holds(self, iam: Iam) -> None:
        login = iam.login()
        login.header()
        iam.status = 503
        iam.clock.now += 3300
        assert login.header() == header(0, iam)

    def test_what_has_expired_is_not_used(self, iam: Iam) -> None:
        login = iam.login()
        login.header()
        iam.status = 503
        iam.clock.now += 3601
        with pytest.raises(LoginFailed, match="HTTP 503"):
            login.header()

    def test_what_is_refused_is_given_up_for_another(self, iam: Iam) -> None:
        login = iam.login()
        refused = login.header()
        iam.clock.now += 100
        assert login.refused(refused)
        assert login.header() == header(1, iam)

    def test_a_fresh_token_that_is_refused_is_no_matter_of_the_login(self, iam: Iam) -> None:
        login = iam.login()
        assert not login.refused(login.header())

    @pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"token": 7}', b'{"token": "a b\\n"}'])
    def test_an_answer_without_a_token_is_a_failure(self, answer: bytes, iam: Iam) -> None:
        iam.server.on_call = lambda exchange: exchange.respond(200, answer)
        with pytest.raises(LoginFailed, match="the answer holds no token"):
            iam.login().header()

    def test_nothing_of_key_or_token_is_logged_or_shown(
        self, iam: Iam, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        login = iam.login()
        login.header()
        shown = caplog.text + repr(login.__dict__["_account"]) + repr(login)
        assert iam.given[0] not in shown
        assert "PRIVATE KEY" not in shown


class TestTheSecret:
    def test_it_names_the_account_its_key_and_where_to_log_in(self) -> None:
        found = parse(secret())
        assert (found.uid, found.https) == ("tf", True)

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("hush", "is not JSON"),
            ("[]", "is not a JSON object"),
            (secret(uid=None, private_key=7), "has no uid, no private_key"),
            (secret(scheme="HS256"), "asks for another signature than RS256"),
            (secret(login_endpoint="master.mesos"), "has a login_endpoint that is no URL"),
            (secret(private_key="hush"), "has a private_key that is no key in PEM"),
            (
                secret(private_key=pem(ec.generate_private_key(ec.SECP256R1()))),
                "has a private_key that is not of RSA",
            ),
        ],
    )
    def test_what_is_none_is_refused_without_showing_it(self, text: str, why: str) -> None:
        with pytest.raises(ServiceAccountError) as refused:
            parse(text)
        assert str(refused.value) == why
        assert refused.value.__cause__ is None


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def gateway(master: FakeMaster, iam: Iam, events: list[Any], eventually: Any) -> Any:
    """A subscribed gateway that logs in. Its clock is the machine's, so tokens last by that."""
    iam.clock.now = time.time()
    config = MesosConfig(master.address, service_account=account(iam.server), timeout_seconds=5.0)
    made = MesosGateway(config, events.append)
    made.start({"user": "nobody", "name": "t", "roles": ["tensorflow"], "principal": "tf"})
    eventually(lambda: any(isinstance(event, Registered) for event in events))
    yield made
    made.stop()


@pytest.fixture
def nothing_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a token be old as soon as it is given."""
    monkeypatch.setattr(service_account, "_FRESH_SECONDS", 0.0)


def authorization(master: FakeMaster, kind: str) -> list[str]:
    return [request.headers["authorization"] for request in master.requests_of(kind)]


def test_the_subscription_carries_the_token(gateway: Any, master: FakeMaster, iam: Iam) -> None:
    assert authorization(master, "SUBSCRIBE") == [f"token={iam.given[0]}"]


@pytest.mark.usefixtures("nothing_is_fresh")
def test_a_call_that_is_refused_goes_again_with_a_new_token(
    gateway: Any, master: FakeMaster, iam: Iam
) -> None:
    def only_the_newest(exchange: Exchange) -> None:
        newest = exchange.request.headers["authorization"] == f"token={iam.given[-1]}"
        exchange.respond(202 if newest and len(iam.given) > 1 else 401)

    master.on_call = only_the_newest
    gateway._driver.reviveOffers()
    assert authorization(master, "REVIVE") == [f"token={each}" for each in iam.given]


@pytest.mark.usefixtures("nothing_is_fresh")
def test_a_subscription_that_is_refused_is_tried_again_with_a_new_token(
    gateway: Any,
    master: FakeMaster,
    iam: Iam,
    events: list[Any],
    eventually: Any,
) -> None:
    old = iam.given[0]

    def refuse_the_old(exchange: Exchange) -> None:
        if exchange.request.headers["authorization"] == f"token={old}":
            exchange.respond(401)
        else:
            master.healthy(exchange)

    master.on_subscribe = refuse_the_old
    master.streams[-1].close()
    eventually(lambda: sum(isinstance(event, Registered) for event in events) == 2, seconds=15.0)
    assert authorization(master, "SUBSCRIBE")[-1] == f"token={iam.given[1]}"


def test_an_identity_service_that_is_away_is_waited_for(
    master: FakeMaster, iam: Iam, events: list[Any], eventually: Any
) -> None:
    iam.status = 503
    config = MesosConfig(master.address, service_account=account(iam.server), timeout_seconds=5.0)
    gateway = MesosGateway(config, events.append)
    gateway.start({"user": "nobody", "name": "t", "roles": ["tensorflow"]})
    try:
        eventually(lambda: iam.server.requests, what="a login")
        iam.status = 200
        eventually(lambda: any(isinstance(event, Registered) for event in events), seconds=15.0)
    finally:
        gateway.stop()
    assert all("authorization" in r.headers for r in master.requests_of("SUBSCRIBE"))


def test_the_files_of_agents_are_read_with_the_token(master: FakeMaster, iam: Iam) -> None:
    def refuse_the_first(exchange: Exchange) -> None:
        if exchange.request.headers["authorization"] == f"token={iam.given[0]}":
            exchange.respond(401)
        else:
            exchange.respond(200, b"[]")

    master.on_call = refuse_the_first
    login = iam.login()
    login.header()
    iam.clock.now += 100
    access = HttpAccess(login, timeout_seconds=5.0)
    assert access.get(parse_address(master.address), "/files/browse") == []


def test_an_agent_that_refuses_a_fresh_token_is_told_as_such(master: FakeMaster, iam: Iam) -> None:
    master.on_call = lambda exchange: exchange.respond(401)
    with pytest.raises(AgentRefused):
        HttpAccess(iam.login(), timeout_seconds=5.0).get(parse_address(master.address), "/state")
