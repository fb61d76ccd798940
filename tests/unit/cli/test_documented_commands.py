"""Commands that documents tell their readers to type are there, with the flags that they name."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dcos_tensorflow.cli.main import cli
from document_commands import blocks, commands

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])
PROGRAM = "dcos-tensorflow"
#: What ends a command in a line of a shell.
ENDS = {"|", "&", "&&", ";", ">", "<", "--"}


def documented(page: Path) -> Iterator[list[str]]:
    """Yield the words of each call of the program in a page's shell blocks, without its name."""
    for language in ("sh", ""):
        for block in blocks(page, language).values():
            for command in commands(block):
                if command.startswith(f"{PROGRAM} "):
                    yield shlex.split(command.replace("\\\n", " "), comments=True)[1:]


def unknown(words: list[str]) -> str:
    """Return what of a call there is not; empty where there is all of it."""
    found: click.Command = cli
    known = {option for parameter in cli.params for option in parameter.opts}
    for word in words:
        if word in ENDS:
            break
        if isinstance(found, click.Group) and not word.startswith("-"):
            below = found.get_command(click.Context(found), word)
            if below is None:
                # A group may take a service's name in place of a command, written in capitals.
                return "" if word.isupper() else word
            found = below
            pairs = (p for p in found.params if isinstance(p, click.Option))
            known |= {name for option in pairs for name in (*option.opts, *option.secondary_opts)}
        elif word.startswith("--") and word.partition("=")[0] not in known | {"--help"}:
            return word
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_tells_to_type_is_there(page: Path) -> None:
    wrong = [(" ".join(words), unknown(words)) for words in documented(page) if unknown(words)]
    assert wrong == []


def test_a_flag_that_is_not_there_is_found() -> None:
    assert unknown(["local", "up", "--agents", "3", "--nodes", "2"]) == "--nodes"
    assert unknown(["locals", "up"]) == "locals"
    assert unknown(["run", "train.py", "--workers=2", "--", "--nodes"]) == ""
