"""What an app is told of the machine that it runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dcos_tensorflow.local.dcos.app_definition import app_of, normalised
from dcos_tensorflow.local.dcos.this_machine import variables

PYTHONS = {"": "/any/python", "2.15.1": "/old/python"}


def told(**env: str) -> dict[str, str]:
    app = app_of(normalised({"id": "tf", "cmd": "x", "env": env}))
    return variables(app, "127.0.0.1:5050", Path("/state/tf"), PYTHONS)


def test_the_master_and_the_state_are_those_of_this_machine() -> None:
    found = told(DCOS_TENSORFLOW_MASTER="zk://master.mesos:2181/mesos")
    assert found["DCOS_TENSORFLOW_MASTER"] == "127.0.0.1:5050"
    assert found["DCOS_TENSORFLOW_STATE"] == "sqlite:////state/tf/state.db"


@pytest.mark.parametrize(
    ("version", "python"), [("", "/any/python"), ("2.15.1", "/old/python"), ("1.5.0", None)]
)
def test_without_images_the_version_chooses_a_python(version: str, python: str | None) -> None:
    found = told(OPTION__SERVICE__PYTHON="", OPTION__SERVICE__TENSORFLOW_VERSION=version)
    assert found.get("OPTION__SERVICE__PYTHON") == python


def test_a_python_of_the_users_own_stays() -> None:
    assert "OPTION__SERVICE__PYTHON" not in told(OPTION__SERVICE__PYTHON="/mine")


def test_an_app_of_another_package_is_given_no_python() -> None:
    assert "OPTION__SERVICE__PYTHON" not in told(OTHER="x")
