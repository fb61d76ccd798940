"""Printing: results to standard output, everything else to standard error.

What tasks, masters and agents say is in almost every line, so every line is escaped.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.plugin.plain_text import escaped


class OutputLost(CliError):
    """The output cannot be written: a full disk, a terminal that has gone."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line at once."""
    say_formatted(escaped(text), stream)


def say_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines."""
    for line in lines:
        say(line, stream)


def say_formatted(text: str, stream: TextIO | None = None) -> None:
    """Print a text at once as it is: lines, colours; what is not ours in it is escaped already."""
    try:
        print(text, file=stream or sys.stdout, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(f"The output cannot be written: {error.strerror}.") from error


def complain(text: str) -> None:
    """Print an error, in as many lines as it has; where that cannot be, there is no one to tell."""
    with contextlib.suppress(OutputLost):
        say_formatted(escaped(text, lines=True), sys.stderr)


def show_json(document: Any, *, sort_keys: bool = False) -> None:
    """Print a document for programs."""
    say_formatted(json.dumps(document, indent=2, sort_keys=sort_keys))
