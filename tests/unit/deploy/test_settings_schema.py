"""The schema of the scheduler's settings file says what the settings themselves say."""

import json

import jsonschema
import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy import settings_schema
from dcos_tensorflow.deploy.settings import SETTINGS, collect


def valid(document):
    return jsonschema.Draft202012Validator(settings_schema.json_schema()).is_valid(document)


def test_the_checked_in_schema_is_up_to_date():
    assert settings_schema.main(["--check"]) == 0


def test_every_setting_has_its_property():
    assert set(settings_schema.json_schema()["properties"]) == {s.name for s in SETTINGS}


@pytest.mark.parametrize(
    "document",
    [
        {"master": "127.0.0.1:5050", "api_port": 8080, "wait_for_leadership": False},
        {"state": "zk://h1:2181,h2:2181/x", "artifacts": "http"},
    ],
)
def test_what_the_scheduler_takes_is_valid(document, tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps(document))
    collect(file, {}, {})
    assert valid(document)


@pytest.mark.parametrize(
    "document", [{"api_port": 70000}, {"artifacts": "pigeon"}, {"mastr": "x"}, {"verify": "maybe"}]
)
def test_what_is_invalid_the_scheduler_refuses_too(document, tmp_path):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps(document))
    assert not valid(document)
    with pytest.raises(UsageError):
        collect(file, {}, {})


def test_a_wrong_url_is_shown_without_its_password():
    with pytest.raises(UsageError) as raised:
        collect(None, {}, {"state": "zk:/user:hidden@h1:2181/x"})
    assert "hidden" not in str(raised.value)
