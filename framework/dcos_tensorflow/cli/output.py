"""Printing: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO


def say(text: str, stream: TextIO | None = None) -> None:
    """Print a line at once."""
    print(text, file=stream or sys.stdout, flush=True)


def say_lines(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines."""
    for line in lines:
        say(line, stream)


def complain(text: str) -> None:
    """Print an error."""
    print(text, file=sys.stderr, flush=True)


def show_json(document: Any) -> None:
    """Print a document for programs."""
    print(json.dumps(document, indent=2), flush=True)
