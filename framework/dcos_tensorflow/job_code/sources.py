"""Reads files of a job and the modules of the job that they import, each once, within bounds.

``facts`` goes through them one by one: a tree takes much more memory than its text, and this runs
within the limits of a task, too.
"""

from __future__ import annotations

import ast
import os
import warnings
from typing import Iterator, List, Optional, Set, Tuple

from dcos_tensorflow.records import dataclass

#: How much code is read at most; beyond that nothing is recognised.
MAX_FILES = 200
MAX_FILE_BYTES = 1 << 20
MAX_BYTES = 8 << 20


@dataclass(frozen=True)
class CodeFile:
    """One file; ``tree`` is None where it cannot be read or is no Python of this interpreter's."""

    file: str
    tree: Optional[ast.Module]


class CodeFiles:
    """The code of one job. Go through it once; ``is_too_much`` holds from where that ended early.

    ``roots`` are the directories that the job's modules lie in; code elsewhere is not the job's.
    """

    def __init__(self, roots: Tuple[str, ...]) -> None:
        self.is_too_much = False
        self._roots = roots
        self._seen: Set[str] = set()
        self._bytes = 0
        self._waiting: List[str] = []

    def read(self, files: List[str]) -> Iterator[CodeFile]:
        """Yield ``files``, and what was asked for by ``follow`` since; stop when it is too much."""
        self._waiting = list(reversed(files))
        while self._waiting:
            file = self._waiting.pop()
            if file in self._seen:
                continue
            self._seen.add(file)
            text = self._text(file)
            if self.is_too_much or len(self._seen) > MAX_FILES:
                self.is_too_much = True
                return
            yield CodeFile(file, _tree(text))

    def follow(self, statement: ast.stmt, file: str) -> List[str]:
        """Read what an import in ``file`` runs, too; return the modules that are not the job's."""
        foreign = []
        for parts, roots in _imported(statement, file):
            beside = (*self._roots, os.path.dirname(file)) if roots is None else roots
            found = list(self._module_files(parts, beside))
            self._waiting.extend(found)
            if not found:
                foreign.append("" if roots is not None else parts[0])
        return foreign

    def _text(self, file: str) -> Optional[bytes]:
        try:
            if os.path.getsize(file) > MAX_FILE_BYTES:
                self.is_too_much = True
                return None
            with open(file, "rb") as reader:
                text = reader.read(MAX_FILE_BYTES)
        except OSError:
            return None
        self._bytes += len(text)
        self.is_too_much = self._bytes > MAX_BYTES
        return text

    def _module_files(self, parts: List[str], roots: Tuple[str, ...]) -> Iterator[str]:
        for root in dict.fromkeys(roots):
            found = [file for file in files_below(root, parts) if self._is_the_jobs(file)]
            if found:
                yield from found
                return

    def _is_the_jobs(self, file: str) -> bool:
        return any(file.startswith(os.path.join(root, "")) for root in self._roots)


def files_below(root: str, parts: List[str]) -> Iterator[str]:
    """Yield the files that an import of ``parts`` runs; the last part may be a name in a module."""
    path = root
    for part in parts:
        package = os.path.join(path, "__init__.py")
        if path != root and os.path.isfile(package):
            yield package
        path = os.path.join(path, part)
    for file in (f"{path}.py", os.path.join(path, "__init__.py"), f"{os.path.dirname(path)}.py"):
        if os.path.isfile(file):
            yield file
            return


def _imported(
    statement: ast.stmt, file: str
) -> Iterator[Tuple[List[str], Optional[Tuple[str, ...]]]]:
    """Yield what a statement imports, and where from; None for wherever modules lie."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.name.split("."), None
    elif isinstance(statement, ast.ImportFrom):
        parts = statement.module.split(".") if statement.module else []
        roots: Optional[Tuple[str, ...]] = None
        if statement.level:
            folder = os.path.dirname(file)
            for _ in range(statement.level - 1):
                folder = os.path.dirname(folder)
            roots = (folder,)
        for alias in statement.names:
            yield [*parts, alias.name], roots


def _tree(text: Optional[bytes]) -> Optional[ast.Module]:
    if text is None:
        return None
    try:
        with warnings.catch_warnings():
            # What Python has to say about the code, it says when it runs it.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
