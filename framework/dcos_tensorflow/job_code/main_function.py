"""Reads how the ``main`` of a module is to be called: with a server, with a shard, or by itself.

The names of its parameters tell: ``main(shard, context)`` takes a shard, and
``main(server, log_dir, context)`` a server. Any other ``main`` that needs some of three positional
arguments is given a server, too, unless the file is seen to call it or a decorator changes it.
Called by ``task.python.contracts``. A ``main`` that another module of the job brings is looked up
there.
"""

from __future__ import annotations

import ast
import os
import re
from enum import Enum
from typing import Dict, Iterator, List, Optional, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable, Module, module_in
from dcos_tensorflow.records import dataclass

_SERVER_NAMES = ["server", "log_dir", "context"]
_SHARD_NAMES = ["shard", "context"]
#: Called without an argument, these find the ``main`` of the program themselves.
_FINDS_MAIN = re.compile(r"(.*\.)?app\.run|(fire\.)?Fire")


class Takes(Enum):
    """What a ``main`` is to be called with."""

    #: ``main(server, log_dir, context)``: by these names, or by any that three arguments can fill.
    SERVER = "server"
    #: ``main(shard, context)``, by these names.
    SHARD = "shard"
    #: There is none, or none that is called.
    NOTHING = "nothing"
    #: It can be called with a server, and the file shows another use of it.
    OWN = "own"
    #: Its signature cannot be read without running it.
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Main:
    """How a ``main`` is to be called; ``why`` says what a guess was made of, empty for no guess."""

    takes: Takes
    why: str = ""


def read_main(module: Module, roots: Tuple[str, ...]) -> Main:
    """Return how the module's ``main`` is called. Raises JobUnusable if the file is not Python."""
    tree = _parse(module)
    found = _read(tree, module, roots)
    caller = _caller(tree, module) if found.why else ""
    return Main(Takes.OWN, caller) if caller else found


def _read(tree: ast.Module, module: Module, roots: Tuple[str, ...], depth: int = 3) -> Main:
    definition = _last_main(tree.body)
    if definition is None:
        return Main(Takes.NOTHING)
    if isinstance(definition, ast.FunctionDef):
        return _called(definition.args, definition.decorator_list)
    if isinstance(definition, ast.Assign) and isinstance(definition.value, ast.Lambda):
        return _called(definition.value.args, [])
    if isinstance(definition, ast.ImportFrom):
        return _imported(definition, module, roots, depth)
    return Main(Takes.UNKNOWN)


def _imported(
    statement: ast.ImportFrom, module: Module, roots: Tuple[str, ...], depth: int
) -> Main:
    original = next(a.name for a in statement.names if (a.asname or a.name) == "main")
    package = module.name.split(".")
    if statement.level:
        keep = len(package) - statement.level + (1 if module.is_package else 0)
        name = ".".join(package[: max(keep, 0)] + (statement.module or "").split("."))
    else:
        name = statement.module or ""
    if original != "main" or depth == 0:
        return Main(Takes.UNKNOWN)
    for root in roots:
        source = module_in(root, name.strip("."))
        if source:
            return _read(_parse(source), source, roots, depth - 1)
    return Main(Takes.UNKNOWN)


def _called(arguments: ast.arguments, decorators: List[ast.expr]) -> Main:
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = len(names) - len(arguments.defaults)
    if any(default is None for default in arguments.kw_defaults):
        return Main(Takes.NOTHING)
    if names[:2] == _SHARD_NAMES:
        return Main(Takes.SHARD if required <= 2 else Takes.NOTHING)
    if required > 3 or (len(names) < 3 and arguments.vararg is None):
        return Main(Takes.NOTHING)
    if names[:3] == _SERVER_NAMES:
        return Main(Takes.SERVER)
    if decorators:
        return Main(Takes.OWN, "a decorator changes how its main is called")
    if names and not required:
        return Main(Takes.OWN, "its main needs no argument")
    return Main(Takes.SERVER, "its main takes three arguments")


def _caller(tree: ast.Module, module: Module) -> str:
    """Return by what the program calls its own ``main``; empty where it is not seen to."""
    for call in _calls_at_start(tree):
        function = ".".join(_dotted(call.func))
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if "main" in (function, *(getattr(value, "id", "") for value in given)) or (
            not given and _FINDS_MAIN.fullmatch(function)
        ):
            return f"it calls its own main (line {call.lineno})"
    beside = os.path.join(os.path.dirname(module.file), "__main__.py")
    if module.is_package and os.path.isfile(beside):
        return "it is a package with a __main__.py"
    return ""


def _calls_at_start(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of a file that is run: at module level, and in what is called from there."""
    functions: Dict[str, List[ast.stmt]] = {}
    waiting: List[ast.AST] = [tree]
    called: List[str] = []
    while waiting or called:
        if not waiting:
            # A function's body is followed once, when all that is defined beside it is known.
            waiting += functions.pop(called.pop(), [])
            continue
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[node.name] = node.body
            continue
        if isinstance(node, ast.Call):
            yield node
            called.append(getattr(node.func, "id", ""))
        if not isinstance(node, (ast.ClassDef, ast.Lambda)):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _dotted(node: ast.expr) -> List[str]:
    """Return the parts of ``a.b.c``; what it begins at is left out where that is no name."""
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def _last_main(body: List[ast.stmt]) -> Optional[ast.stmt]:
    """Return the statement that binds ``main`` last at module level, branches included."""
    found: Optional[ast.stmt] = None
    for statement in body:
        if _binds_main(statement):
            found = statement
        for branch in ("body", "orelse", "finalbody"):
            if isinstance(statement, (ast.If, ast.Try, ast.With)):
                found = _last_main(getattr(statement, branch, [])) or found
    return found


def _binds_main(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name == "main"
    if isinstance(statement, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == "main" for t in statement.targets)
    if isinstance(statement, ast.ImportFrom):
        return any((alias.asname or alias.name) == "main" for alias in statement.names)
    return False


def _parse(module: Module) -> ast.Module:
    try:
        with open(module.file, "rb") as file:
            return ast.parse(file.read(), module.file)
    except (RecursionError, MemoryError):
        raise JobUnusable(
            f"{os.path.basename(module.file)} is nested too deep to be read"
        ) from None
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise JobUnusable(
            f"{os.path.basename(module.file)}{line} is not Python: {message}"
        ) from None
    except OSError as error:
        raise JobUnusable(f"{module.file} cannot be read: {error.strerror}") from None
