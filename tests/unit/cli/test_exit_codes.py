"""The table of exit codes is the code's and the manual's, and each code means what it says."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import dcos_tensorflow.cli
import dcos_tensorflow.scheduler
from dcos_tensorflow.cli import main
from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.errors import EXIT_CODES, EXIT_LOCKED, CliError
from dcos_tensorflow.core import contract
from dcos_tensorflow.options import OptionProblem, OptionsError

MANUAL = Path(__file__).resolve().parents[3] / "docs" / "cli.md"


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def manual() -> dict[int, str]:
    section = MANUAL.read_text().partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE)
    return {int(code): meaning.replace("`", "") for code, meaning in rows}


def test_the_manual_has_the_table_of_the_code() -> None:
    assert manual() == dict(EXIT_CODES)


@pytest.mark.parametrize("package", [dcos_tensorflow.cli, dcos_tensorflow.scheduler])
def test_no_module_has_a_code_that_is_not_in_the_table(package: ModuleType) -> None:
    found = {
        value: f"{module.__name__}.{name}"
        for module in modules(package)
        for name, value in vars(module).items()
        if name.startswith("EXIT_") and isinstance(value, int)
    }
    assert {value: name for value, name in found.items() if value not in EXIT_CODES} == {}


def test_a_job_that_can_never_run_has_the_task_runners_code() -> None:
    assert "can never run" in EXIT_CODES[contract.EXIT_JOB_UNUSABLE]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (CliError("it failed"), 1),
        (CliError("it is taken", EXIT_LOCKED), 8),
        (OptionsError([OptionProblem("a", "is wrong")]), 2),
        (click.UsageError("no such flag"), 2),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (SystemExit(1), 141),
        (ZeroDivisionError("a mistake"), 70),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_ends_a_command_has_its_code(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise raised

    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    monkeypatch.setattr(main.cli, "main", fail)
    assert run_command_line(["why"]) == code
    assert code in EXIT_CODES
