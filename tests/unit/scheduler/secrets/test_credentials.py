"""Where tasks' S3 credentials come from, and where they never get to."""

import json
import logging
from pathlib import Path

import pytest

from dcos_tensorflow.core.spec.storage_spec import CredentialsReference
from dcos_tensorflow.scheduler.gate import Allowed, Gate, GateError
from dcos_tensorflow.scheduler.secrets.s3_credentials import CredentialsReader

KEY_ID, KEY, TOKEN = "the-id", "the-secret-key", "the-session-token"
VARIABLES = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY}
INI = f"[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {KEY}\n"


ANYTHING = Allowed(everything=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "credentials"
    path.write_text(INI)
    return path


def test_variables_are_found_by_their_prefix() -> None:
    keys = {
        "TRAINING_ACCESS_KEY_ID": KEY_ID,
        "TRAINING_SECRET_ACCESS_KEY": KEY,
        "TRAINING_SESSION_TOKEN": TOKEN,
    }
    reader = CredentialsReader(Gate(ANYTHING, {**keys, "AWS_ACCESS_KEY_ID": "other"}))
    found = reader.variables(CredentialsReference(env="TRAINING_"))
    assert found == {**VARIABLES, "AWS_SESSION_TOKEN": TOKEN}


def test_a_credentials_file_has_profiles(file: Path) -> None:
    file.write_text(INI.replace("default", "training") + "[default]\naws_access_key_id = x\n")
    reference = CredentialsReference(file=str(file), profile="training")
    assert CredentialsReader(Gate(ANYTHING, {})).variables(reference) == VARIABLES


@pytest.mark.parametrize(
    "document",
    [
        {"AccessKeyId": KEY_ID, "SecretAccessKey": KEY, "SessionToken": TOKEN, "Version": 1},
        {"Credentials": {"AccessKeyId": KEY_ID, "SecretAccessKey": KEY, "SessionToken": TOKEN}},
        {"AccessKeyId": KEY_ID, "SecretAccessKey": KEY, "Token": TOKEN, "Code": "Success"},
        {
            "aws_access_key_id": KEY_ID,
            "aws_secret_access_key": KEY,
            "aws_session_token": TOKEN,
        },
    ],
)
def test_json_is_read_in_every_spelling_of_aws(file: Path, document: dict[str, object]) -> None:
    file.write_text(json.dumps(document))
    found = CredentialsReader(Gate(ANYTHING, {})).variables(CredentialsReference(file=str(file)))
    assert found == {**VARIABLES, "AWS_SESSION_TOKEN": TOKEN}


def test_a_rotated_key_reaches_the_next_launch(file: Path) -> None:
    reader, reference = (
        CredentialsReader(Gate(ANYTHING, {})),
        CredentialsReference(file=str(file)),
    )
    reader.variables(reference)
    file.write_text(INI.replace(KEY, "rotated"))
    assert reader.variables(reference)["AWS_SECRET_ACCESS_KEY"] == "rotated"


def test_while_a_file_is_replaced_the_keys_of_before_are_used(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader, reference = (
        CredentialsReader(Gate(ANYTHING, {})),
        CredentialsReference(file=str(file)),
    )
    reader.variables(reference)
    file.write_text("[defau")
    assert reader.variables(reference) == VARIABLES
    assert "of the launch before" in caplog.text


def test_without_any_the_tasks_are_launched_and_it_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reference = CredentialsReference(file=str(tmp_path / "missing"))
    assert CredentialsReader(Gate(ANYTHING, {})).variables(reference) == {}
    assert f"{tmp_path}/missing cannot be read: No such file" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[default]\naws_access_key_id = the-id\n", "have no SECRET_ACCESS_KEY"),
        (b"[other]\n", "has no profile default"),
        (b'{"AccessKeyId": "the-id", ', "is not JSON"),
        (b'{"Credentials": "the-secret-key"}', "Credentials is not an object"),
        (b"the-id the-secret-key\n", "is no credentials file of AWS, and no JSON"),
        (b'{"AccessKeyId": ["the-id"], "SecretAccessKey": "the-secret-key"}', "is no text"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"#" * 200_000, "is too large"),
    ],
)
def test_a_file_that_is_none_is_refused_and_nothing_of_it_is_told(
    file: Path, content: bytes, message: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(GateError) as refused:
        CredentialsReader(Gate(ANYTHING, {})).read(CredentialsReference(file=str(file)))
    assert message in str(refused.value)
    assert not any(secret in repr(refused.value) for secret in (KEY_ID, KEY, TOKEN))
    assert refused.value.__cause__ is None


def test_credentials_are_never_printed(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reader = CredentialsReader(Gate(ANYTHING, {}))
    found = reader.read(CredentialsReference(file=str(file)))
    reader.variables(CredentialsReference(file=str(file)))
    assert KEY not in repr(found) + caplog.text


class TestTheSchedulersOwnKeys:
    """What boto3 reads in the scheduler's environment is lent by its operator alone."""

    OWN = {**VARIABLES, "AWS_SESSION_TOKEN": TOKEN}

    def test_reach_no_task_by_their_prefix(self) -> None:
        reader = CredentialsReader(Gate(environ=self.OWN))
        with pytest.raises(GateError, match="--task-secret-env AWS_ACCESS_KEY_ID") as refused:
            reader.read(CredentialsReference(env="AWS_"))
        assert reader.variables(CredentialsReference(env="AWS_")) == {}
        assert not any(secret in str(refused.value) for secret in (KEY_ID, KEY, TOKEN))

    def test_a_session_token_is_named_as_its_key_is(self) -> None:
        allowed = Allowed(variables=frozenset(VARIABLES))
        with pytest.raises(GateError, match="--task-secret-env AWS_SESSION_TOKEN"):
            CredentialsReader(Gate(allowed, self.OWN)).read(CredentialsReference(env="AWS_"))
        found = CredentialsReader(Gate(allowed, VARIABLES))
        assert found.variables(CredentialsReference(env="AWS_")) == VARIABLES
