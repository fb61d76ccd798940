"""How the option models are worked out: with the first options, and by no foreign code."""

import subprocess
import sys

_LOADS = """
import importlib.metadata, os
looked = []
real = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **which: (looked.append(which), real(**which))[1]
from dcos_tensorflow.options import effective, load
effective(load({"service": {"name": "a", "job_cmd": "true"}, "worker": {"count": 1}}))
"""


def _said(program: str) -> str:
    line = [sys.executable, "-c", program]
    ran = subprocess.run(line, check=False, capture_output=True, text=True)
    return ran.stdout + ran.stderr


def test_no_plugin_of_pydantics_is_looked_for() -> None:
    assert _said(f"{_LOADS}print(looked)") == "[]\n"


def test_who_is_started_later_finds_the_plugins_it_has() -> None:
    assert _said(f"{_LOADS}print(os.environ.get('PYDANTIC_DISABLE_PLUGINS'))") == "None\n"
