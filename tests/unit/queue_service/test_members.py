"""For whom a caller of a queue asks."""

import json
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dcos_tensorflow.queue_service.jobs import Asker, Refused
from dcos_tensorflow.queue_service.members import Members
from dcos_tensorflow.queue_service.teams_file import Membership

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
TOKEN = "the-token-of-red-is-long"


def signed(user: str) -> str:
    return jwt.encode({"uid": user, "exp": int(time.time()) + 3600}, KEY, "RS256")


@pytest.fixture
def membership(tmp_path: Path) -> Membership:
    keys = tmp_path / "keys.json"
    shown = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())
    keys.write_text(json.dumps({"keys": [json.loads(shown)]}))
    return Membership({"red": TOKEN}, {"alice": "red"}, frozenset({"root"}), str(keys))


def asker(members: Members, token: str) -> Asker | None:
    caller = members.caller(token)
    return members.asker(caller) if caller is not None else None


def test_a_token_and_a_user_of_a_team_ask_for_it(membership: Membership) -> None:
    members = Members(membership)
    assert asker(members, TOKEN) == Asker("team:red", "red")
    assert asker(members, signed("alice")) == Asker("dcos:alice", "red")


def test_an_operator_among_the_users_may_do_everything(membership: Membership) -> None:
    assert asker(Members(membership), signed("root")) == Asker("dcos:root")


def test_a_user_of_no_team_is_not_let_in(membership: Membership) -> None:
    assert asker(Members(membership), signed("bob")) is None


def test_users_count_for_nothing_without_the_keys_of_their_cluster() -> None:
    assert Members(Membership(users={"alice": "red"})).caller(signed("alice")) is None


def test_a_user_who_leaves_while_a_request_is_under_way_is_no_operator(
    membership: Membership,
) -> None:
    members = Members(membership)
    caller = members.caller(signed("alice"))
    assert caller is not None
    members.are(Membership())
    with pytest.raises(Refused):
        members.asker(caller)
