"""What the examples take for granted of TensorFlow; that they train is shown end to end."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.py")), ids=lambda file: file.parent.name)
def test_an_example_needs_no_zip_that_autograph_of_tensorflow_2_12_does_not_know(file):
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    zips = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "zip"]
    assert not [c.lineno for c in zips if c.keywords]
