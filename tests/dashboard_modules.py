"""Asks the dashboard's own modules in node, without a browser."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from dcos_tensorflow.api.pages import FOLDER


def in_node(script: str, given: Any, modules: Mapping[str, str]) -> Any:
    """Return what an expression over ``given`` is, as JSON is read.

    ``modules`` are the files in the dashboard's folder by the names that are imported from them.
    """
    if shutil.which("node") is None:
        pytest.skip("no node: apt-get install nodejs")
    imports = "\n".join(f'import {{ {n} }} from "{FOLDER}/{f}";' for n, f in modules.items())
    command = ["node", "--input-type=module", "-"]
    text = f"{imports}\nconst given = {json.dumps(given)};\nconsole.log(JSON.stringify({script}));"
    ran = subprocess.run(command, check=False, capture_output=True, text=True, input=text)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
