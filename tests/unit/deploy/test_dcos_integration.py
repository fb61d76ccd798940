"""What an app is told of the machine that it runs on."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from local_dcos import Place
from local_dcos.marathon.app_definition import app_of, normalised

PLACE = Place(
    master="127.0.0.1:5050",
    folder=Path("/state/tf"),
    secrets=Path("/state/secrets"),
    pythons={"": "/any/python", "2.15.1": "/old/python"},
    principal="tf",
    credential=Path("/state/credential.json"),
    api_token=Path("/state/api-token.json"),
)


def told(secrets: Mapping[str, object] | None = None, **env: object) -> dict[str, str]:
    given = {"id": "tf", "cmd": "x", "env": env, "secrets": secrets or {}}
    app = app_of(normalised(given))
    return dict(DcosIntegration().variables(app, PLACE))


def test_the_master_and_the_state_are_those_of_this_machine() -> None:
    found = told(DCOS_TENSORFLOW_MASTER="zk://master.mesos:2181/mesos")
    assert found["DCOS_TENSORFLOW_MASTER"] == "127.0.0.1:5050"
    assert found["DCOS_TENSORFLOW_STATE"] == "sqlite:////state/tf/state.db"


def test_what_lets_a_service_in_is_in_files_for_mesos_shows_environments() -> None:
    found = told()
    assert found["DCOS_TENSORFLOW_PRINCIPAL"] == "tf"
    assert found["DCOS_TENSORFLOW_SECRET_FILE"] == "/state/credential.json"
    assert found["DCOS_TENSORFLOW_API_TOKEN_FILE"] == "/state/api-token.json"


@pytest.mark.parametrize(
    ("version", "python"), [("", "/any/python"), ("2.15.1", "/old/python"), ("1.5.0", None)]
)
def test_without_images_the_version_chooses_a_python(version: str, python: str | None) -> None:
    found = told(OPTION__SERVICE__PYTHON="", OPTION__SERVICE__TENSORFLOW_VERSION=version)
    assert found.get("OPTION__SERVICE__PYTHON") == python


@pytest.mark.parametrize(("version", "python"), [("2.15.1", "/old/python"), ("9", sys.executable)])
def test_a_command_needs_no_tensorflow(version: str, python: str) -> None:
    found = told(
        OPTION__SERVICE__PYTHON="",
        OPTION__SERVICE__TENSORFLOW_VERSION=version,
        OPTION__SERVICE__JOB_CMD="make all",
    )
    assert found["OPTION__SERVICE__PYTHON"] == python


def test_a_python_of_the_users_own_stays() -> None:
    assert "OPTION__SERVICE__PYTHON" not in told(OPTION__SERVICE__PYTHON="/mine")


def test_the_tasks_secrets_are_where_the_apps_are() -> None:
    assert told()["DCOS_TENSORFLOW_SECRETS_DIR"] == "/state/secrets"


def test_there_is_no_login_as_a_service_account_here() -> None:
    found = told(
        {"serviceCredential": {"source": "team/tf"}},
        DCOS_SERVICE_ACCOUNT_CREDENTIAL={"secret": "serviceCredential"},
        OPTION__SERVICE__SERVICE_ACCOUNT_SECRET="team/tf",
    )
    assert found["DCOS_SERVICE_ACCOUNT_CREDENTIAL"] == ""
    assert found["OPTION__SERVICE__SERVICE_ACCOUNT_SECRET"] == ""


def test_an_app_of_another_package_is_given_no_python() -> None:
    assert "OPTION__SERVICE__PYTHON" not in told(OTHER="x")
