"""What commands do not import: each of these costs a tenth of a second before anything happens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: What only some jobs, some terminals or another process need.
LARGE = ("asyncio", "boto3", "kazoo", "numpy", "optuna", "rich", "starlette", "uvicorn")
#: The master, the agents and their servers: the cluster has a process of its own for them.
CLUSTER = ("embedded_mesos.cluster", "embedded_mesos.wire")


def loaded(program: str) -> set[str]:
    """Return the modules that are loaded when a program has run."""
    shown = f"{program}\nimport json, sys; print(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("what", "program", "unwanted"),
    [
        (
            "the command line itself",
            "import dcos_tensorflow.cli.main",
            (*LARGE, *CLUSTER, "pydantic", "dcos_tensorflow.options"),
        ),
        (
            "validate",
            "from dcos_tensorflow.cli.main import run_command_line\n"
            "import contextlib, os\n"
            "with open(os.devnull, 'w') as nowhere, contextlib.redirect_stdout(nowhere):\n"
            "    assert run_command_line(['validate', 'options.json']) == 0",
            (*LARGE, *CLUSTER, "http.client", "dcos_tensorflow.scheduler"),
        ),
        (
            "run",
            "import dcos_tensorflow.deploy.run",
            ("boto3", "kazoo", "numpy", "optuna", "rich", *CLUSTER),
        ),
        (
            "the cluster's process",
            "import embedded_mesos.__main__, embedded_mesos.cluster",
            (*LARGE, "pydantic", "dcos_tensorflow.options", "dcos_tensorflow.scheduler"),
        ),
    ],
)
def test_a_command_imports_only_what_it_needs(
    what: str,
    program: str,
    unwanted: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"service": {"name": "a", "job_cmd": "true", "python": sys.executable}}
    (tmp_path / "options.json").write_text(json.dumps({**options, "worker": {"count": 1}}))
    found = loaded(program)
    assert sorted(found.intersection(unwanted)) == [], what
