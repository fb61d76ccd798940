"""The commands as a whole: what is listed, what the plugin has too, what each waits for."""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from dcos_tensorflow.cli.main import SECTIONS, cli, run_command_line
from dcos_tensorflow.plugin.main import parser

#: Versions of a package are known to a cluster's package manager only.
#: Commands of the SDK's client, or words that mean a flag here.
OF_PACKAGES = {"update package-versions", "help"}

HEAVY = ("numpy", "pydantic", "rich", "starlette", "uvicorn", "kazoo", "pymesos", "boto3", "ssl")


def below(group: click.Group) -> Iterator[click.Command]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden or command.name != name:  # A word of the SDK's, or another name.
            continue
        yield command
        if isinstance(command, click.Group):
            yield from below(command)


def leaves(above: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    trees = [a for a in above._actions if isinstance(a, argparse._SubParsersAction)]
    for tree in trees:
        for name, parser_below in tree.choices.items():
            yield from leaves(parser_below, (*path, name))
    if not trees:
        yield path


PLUGIN = sorted(set(map(" ".join, leaves(parser("dcos tensorflow")))) - OF_PACKAGES)


@pytest.mark.parametrize("command", PLUGIN)
def test_a_command_of_the_plugin_is_here_too(command: str) -> None:
    found: click.Command | None = cli
    for word in command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None


def test_the_command_line_fits_in_a_head() -> None:
    def shown(names: Iterable[str]) -> int:
        commands = [cli.commands[name] for name in names]
        leaves = [c for c in commands if not isinstance(c, click.Group)]
        leaves += [c for g in commands if isinstance(g, click.Group) for c in below(g)]
        return len(leaves)

    others = [name for title, names in SECTIONS.items() if title != "Operators" for name in names]
    assert shown(others) <= 40
    assert shown(SECTIONS["Operators"]) <= 15
    run = cli.get_command(click.Context(cli), "run")
    assert run is not None
    assert len([p for p in run.params if isinstance(p, click.Option) and not p.hidden]) <= 20


def test_each_command_that_is_shown_is_in_one_section_of_the_help() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(name for name, c in cli.commands.items() if not c.hidden)


@pytest.mark.parametrize(("alias", "name"), [("ps", "list"), ("delete", "uninstall")])
def test_a_command_answers_to_the_name_that_other_tools_give_it(alias: str, name: str) -> None:
    context = click.Context(cli)
    assert cli.get_command(context, alias) is cli.get_command(context, name)


def test_no_command_is_without_help() -> None:
    assert [command.name for command in below(cli) if not command.help] == []


def imported_by(*lines: tuple[str, ...]) -> list[str]:
    """Return what a process has imported that has run these command lines."""
    program = (
        "import os, sys; from dcos_tensorflow.cli.main import run_command_line\n"
        f"for line in {lines}:\n    assert run_command_line(list(line)) == 0, line\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.splitlines()[-1].split()


def test_options_are_validated_without_what_a_scheduler_needs() -> None:
    digits = Path(__file__).resolve().parents[3] / "examples" / "digits" / "options.json"
    line = ("validate", str(digits), "--set", f"service.python={sys.executable}")
    assert set(imported_by(line)) & set(HEAVY) == {"pydantic"}


def test_what_a_command_is_understood_by_waits_for_no_heavy_library() -> None:
    found = imported_by(*((name, "--help") for name in cli.commands))
    assert set(found) & set(HEAVY) == set()


def test_a_command_that_is_mistyped_is_answered_with_the_one_that_is_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["rnu"]) == 2
    assert "Did you mean 'run'?" in capsys.readouterr().err


def help_of(*words: str) -> list[str]:
    found = subprocess.run(
        [sys.executable, "-m", "dcos_tensorflow", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.splitlines()


def test_the_help_of_run_has_groups_each_option_once_and_examples() -> None:
    told = help_of("run")
    titles = [line for line in told if line.endswith(":") and not line.startswith("Usage")]
    of_script = ["A script:", "A search for its parameters:"]
    groups = [*of_script, "The job:", "Where it runs:", "While it runs:", "Others:"]
    assert titles == [*groups, "  Examples:"]
    options = [line.split()[0] for line in told if line.startswith(("  -", "  --"))]
    assert len(options) == len(set(options))
    assert all(len(line) <= 80 for line in told)


def test_the_examples_in_the_help_of_run_are_command_lines() -> None:
    told = help_of("run")
    run = cli.get_command(click.Context(cli), "run")
    assert run is not None
    for line in told[told.index("  Examples:") + 1 :]:
        words = shlex.split(line)[2:]
        assert run.make_context("run", words).params["job"]
