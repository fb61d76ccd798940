"""The product names who acts: a task, an operator, the scheduler, the author of a job."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What people read: the code with its messages and comments, the pages, what is made of both.
PLACES = (
    *("framework", "universe", "config-schemas", "docs", "benchmarks", "examples"),
    *("monitoring", "packaging", ".ci", "Makefile"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md"),
)
#: Words that hide the role which acts.
NAMELESS = re.compile(r"\b(?:nobody|somebody|whoever)\b", re.IGNORECASE)
#: The user of that name, which tasks run as by default.
UNIX_USER = re.compile(r"""(["`])nobody\1""")


def nameless_words(text: str) -> list[str]:
    """Return the words of a text that name no role."""
    return NAMELESS.findall(UNIX_USER.sub("", text))


def files(place: Path) -> Iterator[Path]:
    """Yield the files of a place that are text."""
    found = place.rglob("*") if place.is_dir() else (place,)
    for path in found:
        ours = not {"__pycache__", "node_modules"} & {*path.parts}
        if path.is_file() and ours and b"\0" not in path.read_bytes():
            yield path


@pytest.mark.parametrize("place", PLACES)
def test_a_sentence_names_who_acts(place: str) -> None:
    found = {
        str(path.relative_to(ROOT)): words
        for path in files(ROOT / place)
        if (words := nameless_words(path.read_text(errors="replace")))
    }
    assert found == {}


def test_a_word_without_a_role_is_found() -> None:
    assert nameless_words("Nobody waits for whoever asked; `nobody` is a user.") == [
        "Nobody",
        "whoever",
    ]
