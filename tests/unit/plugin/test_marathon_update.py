"""What an app's labels tell of the package that it came from, and options laid over others."""

import base64
import gzip
import json
from typing import Any

import pytest

from dcos_tensorflow.plugin.client import CommandError
from dcos_tensorflow.plugin.marathon_update import InstalledApp
from dcos_tensorflow.plugin.update_check import merge

CONFIG = {
    "type": "object",
    "properties": {
        "service": {
            "type": "object",
            "properties": {"name": {"type": "string", "default": "tensorflow"}, "region": {}},
        },
        "worker": {"type": "object", "default": {"count": 3}},
    },
}


def encoded(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def app(**labels: str) -> InstalledApp:
    packed = base64.b64encode(gzip.compress(json.dumps({"config": CONFIG}).encode())).decode()
    given = {
        "DCOS_PACKAGE_NAME": "tensorflow",
        "DCOS_PACKAGE_VERSION": "1.0.0",
        "DCOS_PACKAGE_OPTIONS": encoded({"worker": {"count": 4}}),
        "DCOS_PACKAGE_DEFINITION": encoded({"metadata": {}, "data": packed}),
        **labels,
    }
    return InstalledApp({"id": "/tf", "labels": given})


def test_the_options_of_the_installation_are_told_by_a_label() -> None:
    assert app().options == {"worker": {"count": 4}}


@pytest.mark.parametrize("text", ["", "!", encoded([]), encoded(None)])
def test_options_that_cannot_be_read_are_not_known(text: str) -> None:
    assert app(DCOS_PACKAGE_OPTIONS=text).options is None


def test_the_packages_defaults_are_told_by_a_label() -> None:
    assert app().defaults == {"service": {"name": "tensorflow"}, "worker": {"count": 3}}


@pytest.mark.parametrize(
    "text", ["", "!", encoded([]), encoded({"data": "!"}), encoded({"data": encoded({})})]
)
def test_a_definition_that_cannot_be_read_has_no_defaults(text: str) -> None:
    assert app(DCOS_PACKAGE_DEFINITION=text).defaults == {}


def test_an_app_of_no_package_is_refused() -> None:
    with pytest.raises(CommandError, match="/web did not come from a package"):
        InstalledApp({"id": "/web", "labels": {}})


def test_objects_are_merged_and_everything_else_is_replaced() -> None:
    under = {"worker": {"count": 1, "mem": 5}, "list": [1, 2], "text": "a"}
    over = {"worker": {"count": 2}, "list": [3], "text": {"a": 1}}
    assert merge(under, over) == {
        "worker": {"count": 2, "mem": 5},
        "list": [3],
        "text": {"a": 1},
    }
