"""Reads a command line for the Python files that it runs. Pure but for looking whether files exist.

Called by ``facts``. It does not work out a shell's expansions: where the line may run more than
the files found here, it says so.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Iterator, List, Tuple

from dcos_tensorflow.job_code.sources import files_below
from dcos_tensorflow.records import dataclass

#: Commands that train nothing.
_PLAIN = frozenset({"cd", "echo", "export", "mkdir", "pip", "pip3", "set", "sleep", "tee", "true"})
_BEFORE = frozenset({"exec", "nohup", "time"})
_PYTHON = re.compile(r"(.*/)?python[\d.]*")
#: What stands behind it is a file.
_REDIRECTION = re.compile(r"&?[<>]+[|&]?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class CommandLine:
    """The Python files that a command names, and what else it may run; empty where that is all."""

    files: Tuple[str, ...]
    runs: str


def read_command(command: str, roots: Tuple[str, ...]) -> CommandLine:
    """Return what ``command`` runs, its files below ``roots``: ``dir/x.py``, ``-m package.x``."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    try:
        words, runs = list(lexer), ""
    except ValueError:
        words, runs = command.split(), "a command that cannot be read"
    if "`" in command or "$(" in command:
        runs = "a command within the command"
    files = list(dict.fromkeys(_files(words, roots)))
    for simple in _simple_commands(words):
        runs = runs or _more_than_files(simple, files)
    return CommandLine(tuple(files), runs)


def _files(words: List[str], roots: Tuple[str, ...]) -> Iterator[str]:
    places = list(roots)
    for before, word in zip(["", *words], words):
        if before == "cd":
            places += [os.path.join(root, word) for root in roots]
        for root in places:
            if word.endswith(".py") and os.path.isfile(os.path.join(root, word)):
                yield os.path.join(root, word)
                break
            if before == "-m":
                yield from files_below(root, word.split("."))
                yield from files_below(root, [*word.split("."), "__main__"])


def _simple_commands(words: List[str]) -> Iterator[List[str]]:
    """Yield the words of each simple command, without what stands before its name."""
    simple: List[str] = []
    before = ""
    for word in [*words, ";"]:
        operator = not set(word) - set("();<>|&")
        if operator and not _REDIRECTION.fullmatch(word):
            if simple:
                yield simple
            simple = []
        elif not (operator or _REDIRECTION.fullmatch(before)) and (
            simple or not (_ASSIGNMENT.match(word) or word in _BEFORE)
        ):
            simple.append(word)
        before = word


def _more_than_files(simple: List[str], files: List[str]) -> str:
    """Return what a simple command runs besides ``files``; empty where nothing."""
    name = simple[0]
    if name in _PLAIN:
        return ""
    if not _PYTHON.fullmatch(name):
        return name
    arguments = [word for word in simple[1:] if word not in ("-u", "-B", "-O")]
    if not arguments:
        return name
    if arguments[0] == "-m" and len(arguments) > 1:
        module = arguments[1]
        if module == "pip":
            return ""
        here = any(
            file.endswith((f"/{module.replace('.', '/')}.py", "/__main__.py")) for file in files
        )
        return "" if here else f"python -m {module}"
    is_here = any(file.endswith(f"/{os.path.normpath(arguments[0])}") for file in files)
    return "" if is_here else " ".join(simple[:2])
