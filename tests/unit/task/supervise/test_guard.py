"""The guard: a process beside the runner that outlives it just long enough."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dcos_tensorflow.task.supervise.guard import MARK_VARIABLE, NAME, Guard
from processes import alive
from waiting import eventually


@pytest.fixture
def guard() -> Iterator[Guard]:
    with Guard() as guard:
        yield guard


def marked(guard: Guard) -> subprocess.Popen[bytes]:
    """Start what the user might leave behind."""
    return subprocess.Popen(
        ["sleep", "600"], env={**os.environ, MARK_VARIABLE: guard.mark}, start_new_session=True
    )


def kill(guard: Guard) -> None:
    os.kill(guard.pid, signal.SIGKILL)
    eventually(lambda: not alive(guard.pid), what="its end")


def test_it_ends_with_the_runner_and_ends_what_carries_the_mark() -> None:
    with Guard() as guard:
        left = marked(guard)
    assert left.wait(60) == -signal.SIGKILL
    assert not alive(guard.pid)


def test_a_runner_whose_guard_was_killed_ends_all_the_same() -> None:
    with Guard() as guard:
        kill(guard)


def test_it_holds_nothing_that_was_open_when_it_began(guard: Guard) -> None:
    def held() -> list[str]:
        # It closes them one by one.
        return sorted(open_files(guard.pid))

    eventually(lambda: len(held()) == 4, what=lambda: f"alone with {held()}")
    assert held()[:3] == [os.devnull] * 3
    assert os.readlink(f"/proc/{guard.pid}/cwd") == "/"
    assert Path(f"/proc/{guard.pid}/comm").read_text().strip() == NAME


def test_another_comes_for_one_that_was_killed_and_knows_what_that_knew(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("secret")
    with Guard() as guard:
        guard.remove_at_end(str(secrets))
        first = guard.pid
        kill(guard)
        guard.keep(pytest.fail)
        assert guard.pid != first
        assert alive(guard.pid)
        left = marked(guard)
    assert left.wait(60) == -signal.SIGKILL
    assert not secrets.exists()


def test_a_guard_that_lives_stays(guard: Guard) -> None:
    pid = guard.pid
    guard.keep(pytest.fail)
    assert guard.pid == pid


@pytest.mark.parametrize("is_second", [False, True], ids=["the first one", "another one"])
def test_it_holds_what_the_runner_holds_until_nothing_is_left(
    guard: Guard, is_second: bool, tmp_path: Path
) -> None:
    device = tmp_path / "nvidia0"
    device.touch()
    held = os.open(device, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    guard.hold((held,))
    if is_second:
        kill(guard)
        guard.keep(pytest.fail)
    eventually(lambda: str(device) in open_files(guard.pid), what="the file in the guard")
    os.close(held)
    assert not is_free(device)
    kill(guard)
    assert is_free(device)


def open_files(pid: int) -> list[str]:
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def is_free(path: Path) -> bool:
    with path.open() as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
