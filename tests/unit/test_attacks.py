"""The table of attacks in docs/security.md names tests that are there, and leaves none out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "security.md"

_NAME = re.compile(r"`((?:tests/[a-z_/]*)?test_[a-z_0-9]+\.py)`")
_TEST = re.compile(r"(?m)^ *def test_")
_OF_SOAK = re.compile(r"(?m)^pytestmark = .*pytest\.mark\.soak")


def attacks() -> dict[str, list[str]]:
    """Return the names of tests of each row, by what is tried."""
    table = PAGE.read_text().partition("## Tested attacks")[2]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): _NAME.findall(cells[-1]) for cells in rows[1:]}


def files(name: str) -> list[Path]:
    """Return the files that a name in the table means."""
    return [ROOT / name] if "/" in name else sorted(TESTS.rglob(name))


@pytest.mark.parametrize(("attack", "names"), attacks().items())
def test_each_attack_is_a_test(attack: str, names: list[str]) -> None:
    assert names, attack
    for name in names:
        found = [path.read_text() for path in files(name) if path.exists()]
        assert any(_TEST.search(text) for text in found), f"{name} has no tests"


@pytest.mark.parametrize(("attack", "names"), attacks().items())
def test_what_is_not_of_the_soak_alone_is_tried_for_each_change(
    attack: str, names: list[str]
) -> None:
    of_soak = [_OF_SOAK.search(path.read_text()) for name in names for path in files(name)]
    assert attack.endswith(", S") or not all(of_soak), f"{attack}: of the soak, say so by S"


def test_every_test_of_the_room_is_in_the_table() -> None:
    named = {path for names in attacks().values() for name in names for path in files(name)}
    room = set((TESTS / "integration" / "security").glob("test_*.py"))
    assert {path.name for path in room - named} == set()
