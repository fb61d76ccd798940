"""Runs the built artifacts where there is nothing: an empty directory, an empty environment.

Called by ``build.py`` at the end of a build, and by the tests of a build that is there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from untrusted_input.archives import unpack

_SECONDS = 120.0
_JOB = {"service": {"job_url": "https://example.org/mnist.zip", "job_name": "mnist"}}


class SmokeError(Exception):
    """An artifact does not do what it must; the text shows what it did."""


def check(scheduler: Path, plugin: Path, repository: Path, version: str) -> None:
    """Run each artifact once. Raises SmokeError."""
    with tempfile.TemporaryDirectory(prefix="dcos-tensorflow-smoke-") as scratch:
        sandbox = Path(scratch)
        with scheduler.open("rb") as file:
            unpack(file, scheduler.name, scratch)
        command = "./dcos-tensorflow/bin/dcos-tensorflow"
        _expect(run([command, "--version"], sandbox), 0, version)
        job = sandbox / "job.json"
        job.write_text(json.dumps(_JOB), encoding="utf-8")
        render = [command, "package", "render", "--options", str(job)]
        told = run([*render, "--repository", str(repository.absolute())], sandbox)
        app = json.loads(_expect(told, 0, '"OPTION__SERVICE__JOB_NAME": "mnist"'))
        # The app's own command, with an option that is wrong: the scheduler gets as far as that.
        variables = {name: value for name, value in app["env"].items() if isinstance(value, str)}
        variables |= {"OPTION__WORKER__COUNT": "many", "PORT_API": "0", "HOST": "127.0.0.1"}
        # Whether there are options of before to go on with is in the state, and not in a ZooKeeper.
        variables["DCOS_TENSORFLOW_STATE"] = f"sqlite:///{sandbox}/state.db"
        told = run(["/bin/sh", "-c", app["cmd"]], sandbox, {**variables, "HOME": str(sandbox)})
        _expect(told, 2, "worker.count: must be a whole number")
        _expect(run([sys.executable, "-I", str(plugin), "tensorflow", "--info"], sandbox), 0, "\n")


def run(
    command: list[str], folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` with ``variables`` and an empty PATH, and nothing else."""
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "", **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _expect(told: subprocess.CompletedProcess[str], code: int, text: str) -> str:
    output = told.stdout + told.stderr
    if told.returncode != code or text not in output:
        raise SmokeError(
            f"{' '.join(map(str, told.args))} ended with {told.returncode}, and not with {code} and"
            f" {text!r}:\n{output}"
        )
    return told.stdout
