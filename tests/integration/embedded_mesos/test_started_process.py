"""A process that waits until it is told what to serve."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedded_mesos
from embedded_mesos import BackgroundProcess, BackgroundProcessError
from embedded_mesos.background_cluster import background_of
from waiting import eventually


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


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "state"
    yield path
    embedded_mesos.down(path)


def test_process_that_is_given_up_leaves_nothing(state_dir: Path) -> None:
    begun = background_of(state_dir).spawn()
    begun.give_up()
    begun.give_up()
    assert processes(state_dir) == []
    assert not state_dir.exists()


@pytest.mark.parametrize("moment", ["at once", "when it waits"])
def test_process_ends_when_its_starter_is_killed_before_it_was_told(
    state_dir: Path, moment: str
) -> None:
    program = (
        "import sys, pathlib; from embedded_mesos.background_cluster import background_of;"
        "begun = background_of(pathlib.Path(sys.argv[1])).spawn();"
        "print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, f"{state_dir}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdout is not None
        starter.stdout.readline()
        (pid,) = eventually(
            lambda: [one for one in processes(state_dir) if one != starter.pid], what="the process"
        )
        if moment == "when it waits":
            eventually(lambda: _waits_for_its_starter(pid), what="the process to wait")
        starter.kill()
    eventually(lambda: processes(state_dir) == [], what="the end of the process")
    assert not state_dir.exists()


def _waits_for_its_starter(pid: int) -> bool:
    """Say whether the process reads from its standard input (read, descriptor 0)."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[:2] == ["0", "0x0"]


def test_what_a_process_says_that_cannot_even_begin_is_told(tmp_path: Path) -> None:
    background = BackgroundProcess(tmp_path, "the cluster", "no_such_module", (), "a.json", "a.log")
    started = background.spawn()
    began = time.monotonic()
    with pytest.raises(BackgroundProcessError, match=r"ended with 1: .*No module named"):
        started.hand_over({}, seconds=60.0)
    assert time.monotonic() - began < 50


def test_process_that_never_serves_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "sleeper.py"
    program.write_text("import time; time.sleep(1000)")
    background = BackgroundProcess(tmp_path, "it", "sleeper", (str(tmp_path),), "a.json", "a.log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        started = background.spawn()
    with pytest.raises(BackgroundProcessError, match=r"it did not answer within 0\.5 s"):
        started.hand_over({}, seconds=0.5)
    assert processes(tmp_path) == []
