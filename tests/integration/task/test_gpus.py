"""Tasks on one machine that isolates no GPUs: each computes on its own, as long as it runs."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from processes import alive
from runner_process import Task

SHOWS_GPUS = """
import os, time
with open("pid.txt", "w") as file:
    file.write(f"{os.getpid()}\\n")
print("sees", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
time.sleep(600)
"""


@pytest.fixture
def devices(tmp_path: Path) -> dict[str, str]:
    """A machine with three GPUs."""
    folder = tmp_path / "devices"
    folder.mkdir()
    for number in range(3):
        (folder / f"nvidia{number}").touch()
    return {"TASK_RUNNER_DEVICES": str(folder)}


def test_two_tasks_of_a_machine_see_different_gpus(
    start: Callable[..., Task], devices: dict[str, str]
) -> None:
    one = start(SHOWS_GPUS, variables=devices, gpus=2)
    one.wait_for_text("sees 0,1")
    other = start(SHOWS_GPUS, variables=devices, gpus=1)
    other.wait_for_text("sees 2")
    assert one.wait_for_state("running")["gpus"] == ["nvidia0", "nvidia1"]
    assert "GPUs (1 of this machine's 3): nvidia2" in other.text("stderr")


def test_a_choice_of_the_agent_is_kept(start: Callable[..., Task], devices: dict[str, str]) -> None:
    task = start(SHOWS_GPUS, variables={**devices, "CUDA_VISIBLE_DEVICES": "2"}, gpus=1)
    task.wait_for_text("sees 2")
    assert task.wait_for_state("running")["gpus"] == []


def test_a_task_that_waits_for_gpus_says_so_and_can_be_stopped(
    start: Callable[..., Task], devices: dict[str, str]
) -> None:
    start(SHOWS_GPUS, variables=devices, gpus=2).wait_for_text("sees 0,1")
    waits = start(SHOWS_GPUS, variables=devices, gpus=2)
    waits.wait_for_status(lambda s: "Waits for GPUs (2 of" in s["summary"], "what it waits for")
    waits.process.send_signal(signal.SIGTERM)
    waits.wait()
    assert "sees" not in waits.text()


def test_the_gpus_of_a_killed_runner_are_given_on_once_its_process_is_gone(
    start: Callable[..., Task], devices: dict[str, str]
) -> None:
    first = start(SHOWS_GPUS, variables=devices, gpus=2)
    first.wait_for_text("sees 0,1")
    pid = first.pid_in("pid.txt")
    os.kill(pid, signal.SIGSTOP)
    os.kill(first.process.pid, signal.SIGKILL)
    next_one = start(SHOWS_GPUS, variables=devices, gpus=2)
    next_one.wait_for_text("sees 0,1")
    assert not alive(pid)
