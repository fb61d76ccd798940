"""A background process that does not come to serve."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embedded_mesos.background_process import BackgroundProcess, BackgroundProcessError


def processes(state_dir: Path) -> list[int]:
    """Return the processes of the folder's cluster, zombies left out."""
    found = []
    for process in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(state_dir).encode() in words:
            found.append(int(process))
    return found


def test_what_a_process_says_that_cannot_even_begin_is_told(tmp_path: Path) -> None:
    background = BackgroundProcess(tmp_path, "the cluster", "no_such_module", (), "a.json", "a.log")
    began = time.monotonic()
    with pytest.raises(BackgroundProcessError, match=r"ended with 1: .*No module named"):
        background.start({}, seconds=60.0)
    assert time.monotonic() - began < 50


def test_process_that_never_serves_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "sleeper.py"
    program.write_text("import time; time.sleep(1000)")
    background = BackgroundProcess(tmp_path, "it", "sleeper", (str(tmp_path),), "a.json", "a.log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with pytest.raises(BackgroundProcessError, match=r"it did not answer within 0\.5 s"):
            background.start({}, seconds=0.5)
    assert processes(tmp_path) == []


def test_a_process_whose_starter_is_gone_ends(tmp_path: Path) -> None:
    """It has heard nothing of what it shall do, and no starter hears when it serves."""
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "embedded_mesos", "serve", str(tmp_path)], stdin=its.fileno()
        )
    ours.close()
    assert process.wait(60.0) == 0
