"""Reads whether a module has a ``main`` that the function contract can call.

Called by ``task.contracts``. A ``main`` that another module of the job brings is looked up there.
"""

from __future__ import annotations

import ast
import os
from typing import List, Optional, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable, Module, module_in


def main_takes_three(module: Module, roots: Tuple[str, ...], depth: int = 3) -> Optional[bool]:
    """Say whether the module has a ``main`` that three positional arguments can call.

    None when it has a ``main`` whose signature cannot be read without running it. Raises
    JobUnusable when the file is not Python.
    """
    definition = _last_main(_parse(module).body)
    if definition is None:
        return False
    if isinstance(definition, ast.FunctionDef):
        return _takes_three(definition.args)
    if isinstance(definition, ast.Assign):
        value = definition.value
        return _takes_three(value.args) if isinstance(value, ast.Lambda) else None
    if isinstance(definition, ast.ImportFrom):
        return _imported_takes_three(definition, module, roots, depth)
    return None


def _imported_takes_three(
    statement: ast.ImportFrom, module: Module, roots: Tuple[str, ...], depth: int
) -> Optional[bool]:
    original = next(a.name for a in statement.names if (a.asname or a.name) == "main")
    package = module.name.split(".")
    if statement.level:
        keep = len(package) - statement.level + (1 if module.is_package else 0)
        name = ".".join(package[: max(keep, 0)] + (statement.module or "").split("."))
    else:
        name = statement.module or ""
    if original != "main" or depth == 0:
        return None
    for root in roots:
        source = module_in(root, name.strip("."))
        if source:
            return main_takes_three(source, roots, depth - 1)
    return None


def _takes_three(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    needs_keywords = any(default is None for default in arguments.kw_defaults)
    enough = positional >= 3 or arguments.vararg is not None
    return enough and required <= 3 and not needs_keywords


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
