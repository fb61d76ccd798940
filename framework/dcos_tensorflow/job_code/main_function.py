"""Reads how the ``main`` of a module can be called: with a server, or with a shard.

The names of its parameters tell: ``main(shard, context)`` takes a shard, any other ``main`` that
three positional arguments can call is given a server. Called by ``task.python.contracts``. A
``main`` that another module of the job brings is looked up there.
"""

from __future__ import annotations

import ast
import os
from enum import Enum
from typing import List, Optional, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable, Module, module_in


class Takes(Enum):
    """What a ``main`` is to be called with."""

    #: ``main(server, log_dir, context)``, by any names.
    SERVER = "server"
    #: ``main(shard, context)``, by these names.
    SHARD = "shard"
    #: There is none, or none that is called.
    NOTHING = "nothing"
    #: Its signature cannot be read without running it.
    UNKNOWN = "unknown"


def main_takes(module: Module, roots: Tuple[str, ...], depth: int = 3) -> Takes:
    """Return what the module's ``main`` takes. Raises JobUnusable when the file is not Python."""
    definition = _last_main(_parse(module).body)
    if definition is None:
        return Takes.NOTHING
    if isinstance(definition, ast.FunctionDef):
        return _takes(definition.args)
    if isinstance(definition, ast.Assign):
        value = definition.value
        return _takes(value.args) if isinstance(value, ast.Lambda) else Takes.UNKNOWN
    if isinstance(definition, ast.ImportFrom):
        return _imported_takes(definition, module, roots, depth)
    return Takes.UNKNOWN


def _imported_takes(
    statement: ast.ImportFrom, module: Module, roots: Tuple[str, ...], depth: int
) -> Takes:
    original = next(a.name for a in statement.names if (a.asname or a.name) == "main")
    package = module.name.split(".")
    if statement.level:
        keep = len(package) - statement.level + (1 if module.is_package else 0)
        name = ".".join(package[: max(keep, 0)] + (statement.module or "").split("."))
    else:
        name = statement.module or ""
    if original != "main" or depth == 0:
        return Takes.UNKNOWN
    for root in roots:
        source = module_in(root, name.strip("."))
        if source:
            return main_takes(source, roots, depth - 1)
    return Takes.UNKNOWN


def _takes(arguments: ast.arguments) -> Takes:
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = len(names) - len(arguments.defaults)
    if any(default is None for default in arguments.kw_defaults):
        return Takes.NOTHING
    if names[:2] == ["shard", "context"]:
        return Takes.SHARD if required <= 2 else Takes.NOTHING
    enough = len(names) >= 3 or arguments.vararg is not None
    return Takes.SERVER if enough and required <= 3 else Takes.NOTHING


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
