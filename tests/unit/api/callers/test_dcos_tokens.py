"""Tokens of DC/OS: which are let in, and what forgers try."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dcos_tensorflow.api.callers.access import Access, Caller, Right
from dcos_tensorflow.api.callers.dcos_tokens import (
    DcosTokens,
    KeyFile,
    KeyService,
    KeysUnreadable,
    parse_keys,
)
from samples.states import running

LATER = int(time.time()) + 3600


def a_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


KEY, OTHER_KEY = a_key(), a_key()


def key_set(*keys: rsa.RSAPrivateKey) -> str:
    shown = [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) for key in keys]
    return json.dumps({"keys": shown})


def signed(key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
    return jwt.encode({"uid": "alice", "exp": LATER, **claims}, key, algorithm)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.json"
    path.write_text(key_set(KEY))
    return path


@pytest.fixture
def logins(file: Path) -> DcosTokens:
    return DcosTokens(KeyFile(file), operators=["alice"], readers=["bob"])


def test_users_have_the_right_that_the_operator_gives_them(logins: DcosTokens) -> None:
    assert logins.caller(signed()) == Caller("dcos:alice", Right.OPERATE)
    assert logins.caller(signed(uid="bob")) == Caller("dcos:bob", Right.READ)


def test_a_user_of_the_cluster_who_is_not_named_may_do_nothing(logins: DcosTokens) -> None:
    assert logins.caller(signed(uid="carol")) is None


PUBLIC = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
CLAIMS = {"uid": "alice", "exp": LATER}
FORGED = {
    "another key": signed(OTHER_KEY),
    "a past end": signed(exp=int(time.time()) - 1),
    "no end": jwt.encode({"uid": "alice"}, KEY, "RS256"),
    "an end that is no number": f"{part({'alg': 'RS256'})}.{part({'uid': 'alice', 'exp': 'x'})}.AA",
    "no user": jwt.encode({"exp": LATER}, KEY, "RS256"),
    "a list of users": signed(uid=["alice"]),
    "no signature": jwt.encode(CLAIMS, None, "none"),
    "an empty signature": ".".join([*signed().split(".")[:2], ""]),
    "the public key as a secret": ".".join(
        [
            f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(CLAIMS)}",
            base64.urlsafe_b64encode(PUBLIC[:32]).rstrip(b"=").decode(),
        ]
    ),
    "another signature of the same key": signed(algorithm="RS512"),
    "other claims": ".".join(
        [signed().split(".")[0], part(CLAIMS), signed(uid="bob").split(".")[2]]
    ),
    "a key of its own": jwt.encode(
        CLAIMS, OTHER_KEY, "RS256", headers={"jwk": json.loads(key_set(OTHER_KEY))["keys"][0]}
    ),
    "an address of keys of its own": jwt.encode(
        CLAIMS, OTHER_KEY, "RS256", headers={"jku": "https://evil.example/keys"}
    ),
    "not yet": signed(nbf=LATER - 10),
    "words": "a.b.c",
    "nothing": "",
    "dots": "..",
    "much": "a" * 100_000 + ".b.c",
    "no ASCII": "ä.ö.ü",
}


@pytest.mark.parametrize("token", FORGED.values(), ids=FORGED)
def test_a_forged_token_does_not_count(logins: DcosTokens, token: str) -> None:
    assert logins.caller(token) is None


def test_the_form_of_dcos_is_read_from_the_header(
    source: Any, client_of: Any, logins: DcosTokens
) -> None:
    source.current = running()
    client = client_of(access=Access(logins=logins))
    answers = [
        client.request(method, path, headers={"authorization": f"token={signed(uid=uid)}"})
        for method, path, uid in (
            ("GET", "/v1/plans", "bob"),
            ("POST", "/v1/job/stop", "bob"),
            ("POST", "/v1/job/stop", "alice"),
            ("GET", "/v1/plans", "carol"),
        )
    ]
    assert [answer.status_code for answer in answers] == [200, 403, 200, 401]


class TestKeys:
    def test_a_file_that_changed_is_read_again(self, file: Path, logins: DcosTokens) -> None:
        assert logins.caller(signed(OTHER_KEY)) is None
        file.write_text(key_set(KEY, OTHER_KEY))
        assert logins.caller(signed(OTHER_KEY)) is not None

    def test_a_file_that_is_spoiled_leaves_the_keys_of_before(
        self, file: Path, logins: DcosTokens
    ) -> None:
        assert logins.caller(signed()) is not None
        file.write_text("{}")
        assert logins.caller(signed()) is not None

    def test_a_service_is_not_asked_for_each_forged_token(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now, asked = 0.0, []
        service = KeyService("https://cluster.example/keys", clock=lambda: now)

        def fetched() -> Any:
            asked.append(now)
            return parse_keys(key_set(KEY))

        monkeypatch.setattr(service, "_fetched", fetched)
        logins = DcosTokens(service, ["alice"])
        for _ in range(100):
            assert logins.caller(signed(OTHER_KEY)) is None
        assert asked == [0.0]
        now = 31.0
        logins.caller(signed(OTHER_KEY))
        assert asked == [0.0, 31.0]

    def test_a_service_that_does_not_answer_leaves_the_keys_of_before(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = 0.0
        service = KeyService("https://cluster.example/keys", clock=lambda: now)
        answers = iter([parse_keys(key_set(KEY))])

        def fetched() -> Any:
            try:
                return next(answers)
            except StopIteration:
                raise OSError("no server answers") from None

        monkeypatch.setattr(service, "_fetched", fetched)
        logins = DcosTokens(service, ["alice"])
        assert logins.caller(signed()) is not None
        now = 4000.0
        assert logins.caller(signed()) is not None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "[]",
            "{}",
            '{"keys": []}',
            '{"keys": [{"kty": "oct", "k": "AAAA"}]}',
            '{"keys": [{"kty": "RSA"}]}',
            '{"keys": [{"kty": "RSA", "n": 1, "e": []}]}',
            '{"keys": 7}',
        ],
    )
    def test_what_are_no_keys_is_refused(self, text: str) -> None:
        with pytest.raises(KeysUnreadable):
            parse_keys(text)
