"""Recognises in the job's code how its training is distributed, without running it.

``runner`` asks once, before the first start: who must restart after a failure depends on it. The
code is parsed; comments, texts and type annotations do not count. What is not sure is not said.
"""

from __future__ import annotations

import ast
import os
import shlex
import warnings
from typing import Dict, Iterator, List, Optional, Set, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.contracts import Found

#: How much code is read at most; beyond that nothing is recognised.
MAX_FILES = 200
MAX_FILE_BYTES = 1 << 20
MAX_BYTES = 8 << 20

PARAMETER_SERVER = "parameter_server"
MULTI_WORKER = "multi_worker"
BETWEEN_GRAPH = "between_graph"
INDEPENDENT = "independent"

#: Names of TensorFlow that stand for one way to distribute.
_NAMES: Dict[str, str] = {
    "ParameterServerStrategy": PARAMETER_SERVER,
    "ParameterServerStrategyV2": PARAMETER_SERVER,
    "ClusterCoordinator": PARAMETER_SERVER,
    "MultiWorkerMirroredStrategy": MULTI_WORKER,
    "CollectiveAllReduceStrategy": MULTI_WORKER,
    "MonitoredTrainingSession": BETWEEN_GRAPH,
    "replica_device_setter": BETWEEN_GRAPH,
    "SyncReplicasOptimizer": BETWEEN_GRAPH,
    "MirroredStrategy": INDEPENDENT,
    "OneDeviceStrategy": INDEPENDENT,
}
#: Means a session's server only as a part of ``train``: ``tf.distribute.Server`` is another.
_SESSION_SERVER = ("train", "Server")
#: Estimators train between graphs, with parameter servers as well.
_ESTIMATOR = frozenset({"train_and_evaluate"})


def recognise(found: Found, sandbox: str) -> str:
    """Return the strategy of the job: one of the constants here, or empty where it is not sure.

    Code that names both a parameter server's and a mirrored strategy chooses when it runs: empty.
    """
    if found.contract == contract.CONTRACT_FUNCTION:
        return BETWEEN_GRAPH
    if found.contract == contract.CONTRACT_TENSORBOARD:
        return ""
    names = _Reader(found.python_path).read(_first_files(found, sandbox))
    return "" if names is None else judge(names)


def judge(names: Set[str]) -> str:
    """Return the strategy that these names of TensorFlow mean together."""
    kinds = {_NAMES[name] for name in names if name in _NAMES}
    if "ClusterCoordinator" in names:
        kinds.discard(BETWEEN_GRAPH)
    elif names & _ESTIMATOR and MULTI_WORKER not in kinds:
        return BETWEEN_GRAPH
    if kinds - {INDEPENDENT}:
        # Beside a strategy for a cluster, one for a single machine is the fall-back.
        kinds.discard(INDEPENDENT)
    return kinds.pop() if len(kinds) == 1 else ""


def names_in(source: bytes) -> Tuple[Set[str], List[ast.stmt]]:
    """Return the names of TensorFlow's that count, and the import statements, of one file.

    Code that is no Python of this interpreter's has none.
    """
    visitor = _Names()
    try:
        with warnings.catch_warnings():
            # What Python has to say about the code, it says when it runs it.
            warnings.simplefilter("ignore")
            visitor.visit(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(), []
    return visitor.names, visitor.imports


class _Names(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names: Set[str] = set()
        self.imports: List[ast.stmt] = []

    def visit_Import(self, node: ast.Import) -> None:
        self.imports.append(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports.append(node)
        if (node.module or "").split(".")[0] == "tensorflow" and not node.level:
            for alias in node.names:
                self._count((node.module or "").rpartition(".")[2], alias.name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        before = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        self._count(before, node.attr)
        self.visit(owner)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            # Asks what a strategy is, and uses none.
            return
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """Pass over an argument: all it holds is its annotation."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (node.args, *node.decorator_list, *node.body):
            self.visit(part)

    def _count(self, before: str, name: str) -> None:
        if name in _NAMES or name in _ESTIMATOR:
            self.names.add(name)
        elif (before, name) == _SESSION_SERVER:
            self.names.add("MonitoredTrainingSession")


class _Reader:
    """Reads files and the modules of the job that they import, each once, within the bounds."""

    def __init__(self, roots: Tuple[str, ...]) -> None:
        self._roots = roots
        self._seen: Set[str] = set()
        self._bytes = 0

    def read(self, files: List[str]) -> Optional[Set[str]]:
        """Return the names in ``files`` and what they import; None when it is too much code."""
        names: Set[str] = set()
        waiting = list(files)
        while waiting:
            file = waiting.pop()
            if file in self._seen:
                continue
            self._seen.add(file)
            source = self._source(file)
            if source is None or len(self._seen) > MAX_FILES:
                return None
            more, imports = names_in(source)
            names |= more
            for statement in imports:
                waiting.extend(self._files_of(statement, file))
        return names

    def _source(self, file: str) -> Optional[bytes]:
        try:
            if os.path.getsize(file) > MAX_FILE_BYTES:
                return None
            with open(file, "rb") as reader:
                source = reader.read(MAX_FILE_BYTES)
        except OSError:
            return b""
        self._bytes += len(source)
        return source if self._bytes <= MAX_BYTES else None

    def _files_of(self, statement: ast.stmt, file: str) -> Iterator[str]:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield from self._module_files(alias.name.split("."), (*self._beside(file),))
        elif isinstance(statement, ast.ImportFrom):
            parts = statement.module.split(".") if statement.module else []
            roots = (*self._beside(file),)
            if statement.level:
                folder = os.path.dirname(file)
                for _ in range(statement.level - 1):
                    folder = os.path.dirname(folder)
                roots = (folder,)
            for alias in statement.names:
                yield from self._module_files([*parts, alias.name], roots)

    def _beside(self, file: str) -> Tuple[str, ...]:
        return tuple(dict.fromkeys((*self._roots, os.path.dirname(file))))

    def _module_files(self, parts: List[str], roots: Tuple[str, ...]) -> Iterator[str]:
        for root in roots:
            found = [file for file in _files_below(root, parts) if self._is_the_jobs(file)]
            if found:
                yield from found
                return

    def _is_the_jobs(self, file: str) -> bool:
        return any(file.startswith(os.path.join(root, "")) for root in self._roots)


def _files_below(root: str, parts: List[str]) -> Iterator[str]:
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


def _first_files(found: Found, sandbox: str) -> List[str]:
    if found.module:
        main = os.path.join(os.path.dirname(found.module.file), "__main__.py")
        return [found.module.file] + ([main] if found.module.is_package else [])
    return list(_files_of_command(found.command, (*found.python_path, sandbox)))


def _files_of_command(command: str, roots: Tuple[str, ...]) -> Iterator[str]:
    """Yield the Python files that a command line names: ``dir/x.py``, ``-m package.x``."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    places = list(roots)
    for before, word in zip(["", *words], words):
        if before == "cd":
            places += [os.path.join(root, word) for root in roots]
        for root in places:
            if word.endswith(".py") and os.path.isfile(os.path.join(root, word)):
                yield os.path.join(root, word)
                break
            if before == "-m":
                yield from _files_below(root, word.split("."))
                yield from _files_below(root, [*word.split("."), "__main__"])
