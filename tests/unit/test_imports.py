"""What tests share lies in modules of their own: no test imports another test."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def imported(path: Path) -> set[str]:
    """Return the last parts of the names of what a module imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    named = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    named += [node.module for node in froms if node.module]
    named += [alias.name for node in froms for alias in node.names]
    return {name.rpartition(".")[2] for name in named}


def test_no_test_imports_another_one() -> None:
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    found = {path: imported(path) & tests for path in TESTS.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}
