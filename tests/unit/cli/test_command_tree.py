"""``dcos-tensorflow`` has every command of ``dcos tensorflow``, under the same names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import click
import pytest

from dcos_tensorflow.cli.main import cli
from dcos_tensorflow.plugin.main import parser

#: Versions of a package are known to a cluster's package manager only.
OF_PACKAGES = {"update package-versions"}


def leaves(above: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    trees = [a for a in above._actions if isinstance(a, argparse._SubParsersAction)]
    for tree in trees:
        for name, below in tree.choices.items():
            yield from leaves(below, (*path, name))
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
