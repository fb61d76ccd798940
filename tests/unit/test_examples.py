"""What the examples take for granted of TensorFlow; that they train is shown end to end."""

import ast
import json
import re
from pathlib import Path

import pytest

from dcos_tensorflow.options import load, service_spec

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.py")), ids=lambda file: file.parent.name)
def test_an_example_needs_no_zip_that_autograph_of_tensorflow_2_12_does_not_know(file):
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    zips = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "zip"]
    assert not [c.lineno for c in zips if c.keywords]


@pytest.mark.parametrize(
    "file", sorted(EXAMPLES.rglob("*.json")), ids=lambda file: f"{file.parent.name}/{file.name}"
)
def test_the_options_of_an_example_are_right(file):
    assert service_spec(load(file)).roles


@pytest.mark.parametrize("page", ["sweeps", "batch"])
def test_what_a_page_tells_to_write_is_right(page):
    """Its blocks of JSON are sections of options."""
    text = (EXAMPLES.parent / "docs" / f"{page}.md").read_text()
    sections = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert sections
    for section in sections:
        given = {"service": {"job_name": "train"}, **json.loads(f"{{{section}}}")}
        assert service_spec(load(given)).workload is not None
