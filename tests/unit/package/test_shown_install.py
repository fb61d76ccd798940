"""What ``make demo`` shows while packages come down and are installed."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGING = Path(__file__).parents[3] / "packaging"
PIP = """
print("Collecting numpy==2.1.0 (from -r x (line 1))")
print("  Downloading numpy-2.1.0-cp311-cp311-linux.whl.metadata (60 kB)")
print("  Downloading numpy-2.1.0-cp311-cp311-linux.whl (16.3 MB)")
print("  Using cached pillow-1.whl (4.4 MB)")
print("Installing collected packages: numpy, pillow", flush=True)
"""


@pytest.fixture
def install():
    def call(code: str) -> subprocess.CompletedProcess[str]:
        program = PACKAGING / "shown_install.py"
        command = [sys.executable, str(program), "TensorFlow 2.21.0", sys.executable, "-c", code]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    return call


def test_it_says_what_comes_down_and_that_it_is_installed(install) -> None:
    ended = install(PIP)
    told = [line.partition(" (")[0].strip() for line in ended.stdout.splitlines()]
    assert told == [
        "TensorFlow 2.21.0: asking which packages there are",
        "TensorFlow 2.21.0: downloading numpy",
        "TensorFlow 2.21.0: downloading numpy",
        "TensorFlow 2.21.0: using cached pillow",
        "TensorFlow 2.21.0: installing 2 packages",
        "TensorFlow 2.21.0: installed",
    ]
    assert "downloading numpy (16.3 MB)" in ended.stdout
    assert ended.returncode == 0


def test_what_pip_complains_of_is_shown_and_its_exit_code_kept(install) -> None:
    ended = install("import sys; sys.exit('ERROR: no such package')")
    assert (ended.returncode, "ERROR: no such package" in ended.stderr) == (1, True)
    assert "pip ended with 1" in ended.stdout


def test_on_a_terminal_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGING))
    from shown_install import run

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    assert run("TensorFlow", [sys.executable, "-c", PIP], terminal) == 0
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().split("\r\x1b[K")[-1].startswith("  TensorFlow: installed (")
