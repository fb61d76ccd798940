"""Options are merged and judged by Cosmos' rules, and errors name what is wrong."""

from typing import Any

import pytest

from local_dcos.cosmos.package_options import resolved
from local_dcos.errors import CosmosError
from untrusted_input.package_options import defaults, merge

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "service": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "tf"},
                "share": {"type": "string", "enum": ["50%", "100%"]},
                "region": {"type": "string"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
        "worker": {
            "type": "object",
            "default": {"count": 7},
            "properties": {"count": {"type": "integer", "default": 1, "minimum": 0}},
        },
    },
}


def test_defaults_come_from_the_properties() -> None:
    assert defaults(SCHEMA)["service"] == {"name": "tf"}


def test_the_default_of_an_object_wins_over_those_within_it() -> None:
    assert defaults(SCHEMA)["worker"] == {"count": 7}


def test_arrays_are_replaced_as_a_whole() -> None:
    assert merge({"a": [1, 2], "b": {"c": 1}}, {"a": [3], "b": {"d": 2}}) == {
        "a": [3],
        "b": {"c": 1, "d": 2},
    }


def error_of(options: dict[str, Any] | None, schema: dict[str, Any] | None = SCHEMA) -> CosmosError:
    with pytest.raises(CosmosError) as caught:
        resolved(schema, options)
    return caught.value


@pytest.mark.parametrize(
    ("options", "pointer", "words"),
    [
        ({"worker": {"count": "x"}}, "/worker/count", 'must be of type integer (given: "x")'),
        ({"worker": {"count": -1}}, "/worker/count", "must be at least 0"),
        ({"service": {"nme": "x"}}, "/service/nme", "did you mean service.name?"),
        ({"service": {"name": 1}}, "/service/name", "must be of type string (given: 1)"),
        ({"service": 1}, "/service", "must be of type object (given: 1)"),
    ],
)
def test_an_error_names_the_option(options: dict[str, Any], pointer: str, words: str) -> None:
    error = error_of(options)
    assert error.body()["data"]["errors"][0]["instance"]["pointer"] == pointer
    assert f"{pointer}: " in error.message
    assert words in error.message


def test_the_message_begins_with_cosmos_words() -> None:
    assert error_of({"service": 1}).message.startswith("Options JSON failed validation")


def test_a_per_cent_sign_is_one_in_what_each_client_prints() -> None:
    error = error_of({"service": {"share": "7%"}})
    assert "7%" in error.body()["message"]
    # This one gives the message to Go's Errorf.
    assert "7%%" in error.body("dcos-client-go(0.0.1)")["message"]


def test_a_missing_option_is_named() -> None:
    schema = {"type": "object", "required": ["a", "b"], "properties": {"a": {"default": 1}}}
    assert "/b: is missing" in error_of({}, schema).message


def test_a_package_without_a_schema_takes_no_options() -> None:
    assert "takes no options" in error_of({"a": 1}, None).message


def test_a_package_without_a_schema_needs_no_options() -> None:
    assert resolved(None, None) == {}
