"""JSON from outside ends as a value or as a ValueError, however it is nested."""

import json

import pytest

from untrusted_input.json_text import MOST_LEVELS, read_json


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


def test_what_people_write_is_read() -> None:
    assert read_json('{"a": [1, {"b": "[[["}]}') == {"a": [1, {"b": "[[["}]}
    assert read_json(b'"\xc3\xa4"') == "\u00e4"


@pytest.mark.parametrize(
    "text", [nested(MOST_LEVELS), json.dumps([[]] * 1000), json.dumps("[" * 99)]
)
def test_many_brackets_are_not_many_levels(text: str) -> None:
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 500, 100_000])
@pytest.mark.parametrize("ends", ["[]", '{"a":}'])
def test_nesting_beyond_reason_is_an_error_like_any_other(levels: int, ends: str) -> None:
    text = ends[:-1] * levels + ("1" if ends[0] == "{" else "") + ends[-1] * levels
    for given in (text, text.encode()):
        with pytest.raises(ValueError, match="nested too deeply"):
            read_json(given)


def test_levels_need_not_be_counted() -> None:
    assert read_json(nested(200), most_levels=None)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(nested(100_000), most_levels=None)
