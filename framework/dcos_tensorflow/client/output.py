"""Printing: results to standard output, everything else to standard error.

Words of tasks, masters and agents are in almost every line, so every line is escaped. The address
of a page for a browser is printed here, too.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.plugin.plain_text import escaped
from dcos_tensorflow.records import dataclass


class OutputLost(CliError):
    """The output cannot be written: a full disk, a terminal that has gone."""


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line at once."""
    say_formatted(escaped(text), stream)


def say_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines."""
    for line in lines:
        say(line, stream)


def say_formatted(text: str, stream: TextIO | None = None, end: str = "\n") -> None:
    """Print a text at once as it is: lines, colours; what is not ours in it is escaped already."""
    try:
        print(text, file=stream or sys.stdout, end=end, flush=True)
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


@dataclass(frozen=True)
class Page:
    """A page for a browser."""

    url: str
    #: What the page asks for; empty for none.
    token: str = ""
    #: How a person calls the token.
    asks_for: str = ""


def show_page(
    page: Page, *, as_json: bool, with_token: bool = False, in_browser: bool = False
) -> int:
    """Print the page's address, or its token, and open it in a browser where that is wanted.

    Raises CliError for a token that the page does not ask for, and without a browser.
    """
    if as_json:
        show_json({"url": page.url, **({"token": page.token} if with_token else {})})
    elif with_token:
        if not page.token:
            raise CliError(f"The page at {page.url} asks for no token.")
        say(page.token)
    else:
        say(page.url)
        if page.token:
            complain(f"The page asks for {page.asks_for}; to print it, add --token.")
    if in_browser:
        import webbrowser

        if not webbrowser.open(page.url):
            raise CliError(f"No browser could be opened; the address is {page.url}.")
    return 0
