"""What messages tell people to type exists, and applies where it is told."""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

import dcos_tensorflow
from dcos_tensorflow.cli.main import cli
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.kept.stored import check_same
from dcos_tensorflow.core.model.job import JobPhase
from samples.states import a_spec, a_state

#: Rooms whose flags are those of other programs: TensorBoard, Mesos, the dcos command.
_OTHERS = ("task/", "plugin/", "package/")
_COMMAND = re.compile(r"dcos-tensorflow ((?:[a-z][a-z-]* ?){1,3})")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
#: Flags that messages name and that are not ours.
_FOREIGN = {"--help", "--credential", "--root", "--to", "--epochs", "--ip"}


@functools.cache
def texts() -> tuple[tuple[str, str], ...]:
    """Return file and text of every string that may be shown."""
    return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    """Yield file and text of every string that is no docstring, with X for each value in it."""
    root = Path(dcos_tensorflow.__file__).parent
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = {
            id(part) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in n.values
        }
        told = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            file = path.relative_to(root).as_posix()
            if isinstance(node, ast.JoinedStr):
                yield (
                    file,
                    "".join(
                        str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values
                    ),
                )
            elif id(node) not in parts | told and isinstance(getattr(node, "value", None), str):
                yield file, node.value


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that words name, and the words that it does not take."""
    command: click.Command = cli
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            break
        command, words = found, words[1:]
    return command, words


def flags_of(command: click.Command) -> set[str]:
    found = {each for p in command.params for each in (*p.opts, *p.secondary_opts)}
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found |= flags_of(command.get_command(click.Context(command), name))
    return found


def test_each_command_that_is_named_exists() -> None:
    wrong = []
    for file, text in texts():
        for found in _COMMAND.finditer(text):
            words = found.group(1).split()
            command, _ = resolved(words)
            named = words[0] in cli.commands or text[found.end() :].startswith(("'", ":"))
            # In prose the name of the program stands before other words.
            is_prose = words[0] in ("scheduler", "has", "and", "itself", "release", "service")
            if not (named or is_prose) or (isinstance(command, click.Group) and words[1:]):
                wrong.append((file, found.group()))
    assert wrong == []


def test_each_flag_that_is_named_is_one_of_a_command() -> None:
    known = {flag for command in cli.commands.values() for flag in flags_of(command)}
    wrong = [
        (file, flag)
        for file, text in texts()
        if not file.startswith(_OTHERS) and " " in text
        for flag in _FLAG.findall(text)
        if flag not in known | _FOREIGN
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("served", "way"),
    [(True, "(dcos-tensorflow update start --options=o.json)"), (False, "with --update")],
)
def test_who_is_to_take_a_job_over_to_other_options_depends_on_who_serves_it(
    served: bool, way: str
) -> None:
    state = a_state(JobPhase.RUNNING)
    command = "dcos-tensorflow update start --options=o.json"
    with pytest.raises(UsageError, match=re.escape(f"Take it over to these {way}, end it first")):
        check_same(state, replace(a_spec(), user="else"), served=served, update=command)
    check_same(state, state.spec, served=served, update=command)
