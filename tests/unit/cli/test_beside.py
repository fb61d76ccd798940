"""A function that is called in a process beside this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError, UsageError
from dcos_tensorflow.options import OptionProblem, OptionsError


def answered(function: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Call a function beside a process that has no other thread; it prints what comes of it."""
    (tmp_path / "called.py").write_text(
        f"""
from dcos_tensorflow.deploy.beside import Beside
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.options import OptionProblem, OptionsError
import os, sys, time
def function():
    {function}
with Beside(function) as beside:
    try:
        print("answer", beside.answer())
    except BaseException as error:
        print(type(error).__name__, getattr(error, "exit_code", ""), error)
        print(*getattr(error, "__notes__", ()), file=sys.stderr)
"""
    )
    return subprocess.run(
        [sys.executable, "called.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )


def test_the_answer_comes_back_with_all_that_was_printed_before_it(tmp_path: Path) -> None:
    ran = answered("print('said'); return {'pid': os.getppid()}['pid'] > 1", tmp_path)
    assert ran.stdout == "said\nanswer True\n"


def test_an_answer_may_be_larger_than_a_pipe(tmp_path: Path) -> None:
    ran = answered("return len(('x' * 3_000_000).encode())", tmp_path)
    assert ran.stdout == "answer 3000000\n"


@pytest.mark.parametrize(
    "error",
    [
        CliError("locked", EXIT_LOCKED),
        UsageError("wrong"),
        OptionsError([OptionProblem("a.b", "is wrong", "1", "2", "a.c")], "file"),
        KeyboardInterrupt(),
    ],
)
def test_an_error_is_raised_as_it_would_be_here(error: BaseException, tmp_path: Path) -> None:
    calls = {
        CliError: "raise CliError('locked', 8)",
        UsageError: "raise UsageError('wrong')",
        OptionsError: "raise OptionsError([OptionProblem('a.b', 'is wrong', '1', '2', 'a.c')],"
        " 'file')",
        KeyboardInterrupt: "raise KeyboardInterrupt",
    }
    ran = answered(calls[type(error)], tmp_path)
    code = getattr(error, "exit_code", "")
    assert ran.stdout == f"{type(error).__name__} {code} {error}\n"


def test_a_mistake_of_ours_brings_its_traceback(tmp_path: Path) -> None:
    ran = answered("return 1 / 0", tmp_path)
    assert ran.stdout == "ZeroDivisionError  division by zero\n"
    assert "return 1 / 0" in ran.stderr


def test_a_process_that_is_killed_is_told(tmp_path: Path) -> None:
    ran = answered("os.kill(os.getpid(), 9)", tmp_path)
    assert ran.stdout == "RuntimeError  the process beside this one has ended with -9\n"


def test_what_is_not_waited_for_is_ended(tmp_path: Path) -> None:
    program = (
        "from dcos_tensorflow.deploy.beside import Beside\n"
        "import time\n"
        "with Beside(lambda: time.sleep(100)):\n"
        "    pass\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=50, check=True)


def test_wrong_options_are_told_by_a_run_that_has_them_read_beside_it(tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text('{"service": {"name": "a"}, "wroker": {}}')
    # A cluster of its own would have the other core.
    line = [sys.executable, "-m", "dcos_tensorflow", "run", "options.json", "--master=127.0.0.1:1"]
    ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "wroker: unknown option; did you mean worker?" in ran.stderr
