"""A pattern is what re.compile returns, to whoever uses one, and is compiled when that is."""

from __future__ import annotations

import re

import pytest

from dcos_tensorflow.patterns import pattern


def test_it_finds_what_a_compiled_one_finds() -> None:
    words = pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    found = words.fullmatch("Word")
    assert found is not None
    assert found["word"] == "Word"
    assert words.sub("-", "a 1 b") == "- 1 -"
    assert words.pattern == r"(?P<word>[a-z]+)"


def test_a_wrong_one_is_told_when_it_is_used() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("a")


def test_it_has_nothing_else() -> None:
    with pytest.raises(AttributeError):
        _ = pattern("a").nothing  # type: ignore[attr-defined]
