"""Standard streams that are closed, full, or cannot say what is to be said."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OPTIONS = '{"service": {"job_cmd": "true", "python": "/usr/bin/python3"}, "worker": {"count": 1}}'


def run(command: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell; ``$COMMAND`` is dcos-tensorflow."""
    (tmp_path / "options.json").write_text(OPTIONS)
    known = {**os.environ, "DCOS_TENSORFLOW_HOME": str(tmp_path), **environ}
    known["COMMAND"] = f"{sys.executable} -m dcos_tensorflow"
    return subprocess.run(
        ["/bin/sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env=known,
    )


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error(closed: str, tmp_path: Path) -> None:
    ended = run(f"$COMMAND validate options.json {closed}", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_printed_to_a_closed_stream_gets_into_no_file(tmp_path: Path) -> None:
    program = (
        "from dcos_tensorflow.cli import main\n"
        "main._complete_standard_streams()\n"
        "file = open('opened', 'w')\n"
        "import os; os.write(1, b'printed'); os.write(2, b'printed')\n"
        "raise SystemExit(file.fileno() < 3)"
    )
    (tmp_path / "program.py").write_text(program)
    ended = run(f"{sys.executable} program.py <&- >&- 2>&-", tmp_path)
    assert ended.returncode == 0
    assert (tmp_path / "opened").read_text() == ""


def test_a_full_disk_is_told_in_a_sentence(tmp_path: Path) -> None:
    ended = run("$COMMAND validate options.json > /dev/full", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == "Error: The output cannot be written: No space left on device.\n"


def test_what_an_encoding_cannot_say_is_written_out(tmp_path: Path) -> None:
    ended = run(
        "$COMMAND list --work-dir $(printf 'caf\\303\\251')", tmp_path, PYTHONIOENCODING="ascii"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert r"caf\xe9" in ended.stdout


def test_ctrl_c_while_the_command_is_imported_says_nothing(tmp_path: Path) -> None:
    # The first that it imports which is not Python's own.
    (tmp_path / "click.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    line = [sys.executable, "-m", "dcos_tensorflow", "list"]
    ended = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")
