"""The options that typer and fire make of the arguments of functions. Pure.

``names`` asks for each file. Nothing is said of code that imports neither.
"""

from __future__ import annotations

import ast
import re
from typing import Iterator, List, Optional, Sequence, Tuple

from dcos_tensorflow.job_code.arguments import BOTH, REPEATED, VALUE

_TYPER, _FIRE = "typer", "fire"
#: The decorator, and the calls, by which a function becomes a command.
_MAKE_COMMANDS = frozenset({"command", "run", "Fire"})
_OWN_NAME = re.compile(r"--[\w-]+")


def options_of_functions(tree: ast.AST, imports: Sequence[ast.stmt]) -> Iterator[Tuple[str, str]]:
    """Yield the options of commands that are made of functions: name, kind."""
    modules = set(_modules(imports))
    if not modules & {_TYPER, _FIRE}:
        return
    called = {
        getattr(argument, "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name_of(node) in _MAKE_COMMANDS
        for argument in node.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (
            node.name in called or {_name_of(each) for each in node.decorator_list} & _MAKE_COMMANDS
        ):
            for argument, default in _arguments(node.args):
                if _FIRE in modules:
                    yield f"--{argument.arg}", VALUE
                else:
                    yield from _of_typer(argument, default)


def _of_typer(argument: ast.arg, default: Optional[ast.expr]) -> Iterator[Tuple[str, str]]:
    """Yield the options that an argument is: none where it stands by its place alone."""
    parts = [part for part in (argument.annotation, default) if part is not None]
    told = [node for part in parts for node in ast.walk(part)]
    words = {getattr(node, "attr", getattr(node, "id", "")) for node in told}
    if "Option" not in words and (default is None or "Argument" in words):
        return
    texts = [str(node.value) for node in told if isinstance(node, ast.Constant)]
    own = [text.partition("/")[0] for text in texts if _OWN_NAME.match(text)]
    kind = REPEATED if words & {"List", "list"} else BOTH if "bool" in words else VALUE
    for name in own or [f"--{argument.arg.replace('_', '-')}"]:
        yield name, kind


def _arguments(given: ast.arguments) -> Iterator[Tuple[ast.arg, Optional[ast.expr]]]:
    by_place: List[ast.arg] = [*given.posonlyargs, *given.args]
    without = len(by_place) - len(given.defaults)
    yield from zip(by_place, [*[None] * without, *given.defaults])
    yield from zip(given.kwonlyargs, given.kw_defaults)


def _modules(imports: Sequence[ast.stmt]) -> Iterator[str]:
    for node in imports:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _name_of(node: ast.expr) -> str:
    """Return the last part of the name of what is called, or of what decorates."""
    function = node.func if isinstance(node, ast.Call) else node
    return str(getattr(function, "attr", getattr(function, "id", "")))
