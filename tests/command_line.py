"""The command line as a person uses it, for the end-to-end tests."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import embedded_mesos
from dcos_tensorflow.cli.main import run_command_line

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
NEWEST = "2.21.0"
OLD = "2.15.1"
#: The oldest and the newest that are supported, and each change of Keras; ``make soak`` has all.
SUPPORTED = ("2.12.1", OLD, "2.16.2", "2.19.1", NEWEST)

#: Of a service: without Keras, which trainers that do not need it would import all the same, a new
#: TensorFlow is there in two thirds of the time. It looks for ``tf_keras``, and finds none.
NO_KERAS = {
    "legacy_keras": True,
    "env": json.dumps({"PYTHONPATH": str(ROOT / "tests" / "no_keras")}),
}
#: A job's command: run until the test touches ``finish`` among the checkpoints.
UNTIL_FINISH = "until test -e $CHECKPOINT_DIR/finish; do sleep 0.1; done"


def both(first: str) -> list[Any]:
    """Return both versions as parameters of a test: ``make test`` is content with the first."""
    other = OLD if first == NEWEST else NEWEST
    return [first, pytest.param(other, marks=pytest.mark.soak)]


@dataclass(frozen=True)
class Ended:
    """A command that has ended. ``out`` is standard output and error together."""

    code: int
    out: str


class CommandLine:
    """Runs ``dcos-tensorflow`` with a work directory of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        #: What the processes of ``start`` begin with: that which brings them to another machine.
        self.before: Sequence[str] = ()
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("DCOS_TENSORFLOW_")},
            "DCOS_TENSORFLOW_HOME": str(home),
            "COLUMNS": "200",
        }

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.before, sys.executable, "-m", "dcos_tensorflow", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            start_new_session=True,
        )

    def __call__(self, *arguments: str | Path, timeout: float = 180) -> Ended:
        process = self.start(*arguments)
        try:
            out, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            pytest.fail(f"{arguments} did not end within {timeout} s:\n{out}")
        return Ended(process.returncode, out)

    def ask(self, *arguments: str | Path) -> Ended:
        """Run a command in this process: a second of CPU less; it must end without a signal."""
        out = io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            code = run_command_line([str(each) for each in arguments])
        return Ended(code, out.getvalue())

    def mesos(self, path: str) -> bytes:
        """Return what the master that ``local up`` started answers to who knows the secret."""
        cluster = embedded_mesos.status(self.home / "local")
        assert cluster is not None
        url, known = f"http://{cluster.master}{path}", cluster.credential.header()
        with urllib.request.urlopen(urllib.request.Request(url, headers=known)) as answer:
            return bytes(answer.read())


def accuracy_in(out: str) -> float:
    """Return the test accuracy that a run printed at its end."""
    found = re.findall(r"test.accuracy\D+(\d\.\d+)", out)
    assert found, out[-3000:]
    return float(found[-1])


def write_options(folder: Path, **sections: object) -> Path:
    """Write an options file of small tasks; ``service`` and the like replace or add keys."""
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    options: dict[str, dict[str, object]] = {
        "service": {"python": sys.executable, "outcome_grace_seconds": 1, "kill_grace_seconds": 1},
        "retry": {"limit": 1, "initial_backoff_seconds": 0.2},
        "parameter_server": {"count": 0, **small},
        "worker": {"count": 1, **small},
    }
    for name, values in sections.items():
        both = isinstance(values, dict)
        options[name] = {**options.get(name, {}), **values} if both else values  # type: ignore
    file = folder / "options.json"
    file.write_text(json.dumps(options))
    return file
