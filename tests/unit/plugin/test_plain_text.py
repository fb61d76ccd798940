"""What others say is shown with its controls written out."""

import json

import pytest

from dcos_tensorflow.plugin.log_lines import LineFormat
from dcos_tensorflow.plugin.plain_text import escaped, json_text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("step 1\tloss 0.5", "step 1\tloss 0.5"),
        ("\u00e4\u2501\u65e5 \U0001f600", "\u00e4\u2501\u65e5 \U0001f600"),
        ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("one\rtwo", r"one\rtwo"),
        ("one\ntwo", r"one\ntwo"),
        ("\x7f\x00", r"\x7f\x00"),
        ("abc\u202etxt", r"abc\u202etxt"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_controls_are_written_out(said: str, shown: str) -> None:
    assert escaped(said) == shown


def test_colours_are_left_out() -> None:
    assert escaped("\x1b[1m 7/10\x1b[0m \x1b[32m\u2501\u2501\x1b[0m") == " 7/10 \u2501\u2501"


def test_a_text_may_have_lines() -> None:
    assert escaped("one\r\n\x1b[2Jtwo\n", lines=True) == "one\\r\n\\x1b[2Jtwo\n"


def test_json_reads_back_as_it_was() -> None:
    document = {"a": ["\x9b2J\u202e", "\u00e4\x1b[0m", "\ud800"]}
    text = json_text(document)
    assert not set(text) & {"\x9b", "\x1b", "\u202e", "\ud800"}
    assert "\u00e4" in text
    assert json.loads(text) == document


def test_a_tasks_line_is_written_out_and_its_name_is_coloured() -> None:
    shown = LineFormat(["a", "b"], coloured=True).line("a", "\x1b[2J")
    assert shown.endswith("\x1b[0m\\x1b[2J")
