"""The tasks of a machine share its GPUs without one that two of them have."""

import os
import queue
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.gpu_work import DEVICES_VARIABLE, GpuWork, choice, take, variables_for
from dcos_tensorflow.task.python.python_packages import this_python
from dcos_tensorflow.task.supervise.starts import Installed
from waiting import eventually

#: linux/sched.h.
PF_EXITING = 0x4
#: ``make soak`` kills 500 times.
KILLS = int(os.environ.get("KILLS", "60"))


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[int], dict[str, str]]:
    """Make the device files of so many GPUs, and return the variables of a task there."""

    def make(gpus: int) -> dict[str, str]:
        for name in (*(f"nvidia{number}" for number in range(gpus)), "nvidiactl", "nvidia-uvm"):
            (tmp_path / name).touch()
        return {DEVICES_VARIABLE: str(tmp_path)}

    return make


def names(paths: Sequence[str]) -> list[str]:
    return [os.path.basename(path) for path in paths]


def release(held: dict[str, int] | None) -> None:
    for descriptor in (held or {}).values():
        os.close(descriptor)


@pytest.mark.parametrize(
    "chosen",
    [
        {"CUDA_VISIBLE_DEVICES": "1"},
        {"CUDA_VISIBLE_DEVICES": ""},
        {"NVIDIA_VISIBLE_DEVICES": "GPU-5a"},
        {"NVIDIA_VISIBLE_DEVICES": "void"},
    ],
)
def test_where_variables_name_gpus_there_is_nothing_to_choose(
    machine: Callable[[int], dict[str, str]], chosen: dict[str, str]
) -> None:
    assert choice(1, {**machine(4), **chosen}) == ()


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_where_an_isolator_shows_no_more_than_was_given_there_is_nothing_to_choose(
    machine: Callable[[int], dict[str, str]], seen: int
) -> None:
    assert choice(2, machine(seen)) == ()


def test_a_device_that_cannot_be_opened_is_not_chosen(
    machine: Callable[[int], dict[str, str]], tmp_path: Path
) -> None:
    variables = machine(3)
    (tmp_path / "nvidia1").unlink()
    (tmp_path / "nvidia1").symlink_to("/dev/null")
    assert names(choice(1, variables)) == ["nvidia0", "nvidia2"]


def test_nvidias_images_choose_nothing_by_all(machine: Callable[[int], dict[str, str]]) -> None:
    variables = {**machine(12), "NVIDIA_VISIBLE_DEVICES": "all"}
    assert names(choice(2, variables)) == [f"nvidia{number}" for number in range(12)]


def test_a_task_without_gpus_takes_none(machine: Callable[[int], dict[str, str]]) -> None:
    assert choice(0, machine(4)) == ()


def test_two_tasks_have_different_gpus(machine: Callable[[int], dict[str, str]]) -> None:
    devices = choice(2, machine(4))
    one, other = take(devices, 2), take(devices, 2)
    assert one is not None
    assert other is not None
    assert names([*one, *other]) == ["nvidia0", "nvidia1", "nvidia2", "nvidia3"]
    release(one)
    release(other)


def test_a_task_takes_all_its_gpus_or_none(machine: Callable[[int], dict[str, str]]) -> None:
    devices = choice(2, machine(3))
    one = take(devices, 2)
    assert take(devices, 2) is None
    third = take(devices, 1)
    assert third is not None, "what was tried in vain is not held"
    release(one)
    release(third)


def test_gpus_are_named_by_number_in_the_order_of_the_bus() -> None:
    assert variables_for(["/dev/nvidia1", "/dev/nvidia10"], "/nowhere") == {
        "CUDA_VISIBLE_DEVICES": "1,10",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


def test_gpus_are_named_by_uuid_where_the_driver_tells_them(tmp_path: Path) -> None:
    uuids = [f"GPU-{number:08x}-0000-0000-0000-000000000000" for number in range(2)]
    for number, uuid in enumerate(uuids):
        bus = tmp_path / f"0000:0{number}:00.0"
        bus.mkdir()
        text = f"Model: \t\t H100\nGPU UUID: \t {uuid}\nDevice Minor: \t {1 - number}\n"
        (bus / "information").write_text(text)
    found = variables_for(["/dev/nvidia0", "/dev/nvidia1"], str(tmp_path))
    assert found == {"CUDA_VISIBLE_DEVICES": f"{uuids[1]},{uuids[0]}"}


class Waiting:
    """A task that takes its GPUs."""

    def __init__(self, devices: Sequence[str], wanted: int, seconds: float = 30.0) -> None:
        self.lines: list[str] = []
        self.told: queue.SimpleQueue[Installed] = queue.SimpleQueue()
        self.held: tuple[int, ...] = ()
        self.work = GpuWork(
            wanted,
            devices,
            this_python(),
            log=self.lines.append,
            look=lambda: None,
            tell=self.told.put,
            hold=self._hold,
            wait_seconds=seconds,
        )
        self.work.begin()

    def _hold(self, descriptors: Sequence[int]) -> None:
        self.held = tuple(descriptors)


def test_a_task_waits_for_gpus_and_says_so(machine: Callable[[int], dict[str, str]]) -> None:
    devices = choice(1, machine(2))
    others = take(devices, 2)
    task = Waiting(devices, 1)
    eventually(lambda: task.work.doing, what="waiting")
    assert task.work.doing == "Waits for GPUs (1 of this machine's 2): other tasks hold too many"
    release(others)
    assert task.told.get(timeout=30).variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert task.work.names == ("nvidia0",)
    release(dict(enumerate(task.held)))  # type: ignore[arg-type]


def test_a_machine_whose_gpus_are_held_in_spite_of_mesos_is_at_fault(
    machine: Callable[[int], dict[str, str]],
) -> None:
    devices = choice(1, machine(2))
    others = take(devices, 2)
    refusal = Waiting(devices, 1, seconds=0.0).told.get(timeout=30).refusal
    assert refusal is not None
    assert refusal.exit_class is ExitClass.INTERRUPTED
    release(others)


def holder(devices: Sequence[str], wanted: int, marks: Path) -> int:
    """Begin a process that takes GPUs, says so, and holds them until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        while (held := take(devices, wanted)) is None:
            time.sleep(0.001)
        for path in held:
            mark = marks / os.path.basename(path)
            before = int(mark.read_text() or 0) if mark.exists() else 0
            if before and _lives(before):
                (marks / "two-holders").write_text(f"{mark.name}: {before} and {os.getpid()}")
            mark.write_text(str(os.getpid()))
        signal.pause()
    finally:
        os._exit(1)


def _lives(pid: int) -> bool:
    """Say whether a process runs; one that ends has closed its files before it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not int(fields[6]) & PF_EXITING


@pytest.mark.timeout(600)
def test_kills_at_any_moment_leave_no_gpu_with_two_holders_and_none_lost(
    machine: Callable[[int], dict[str, str]], tmp_path: Path
) -> None:
    devices, dice, marks = choice(1, machine(5)), random.Random(1), tmp_path / "marks"
    marks.mkdir()
    living = [holder(devices, dice.choice((1, 2)), marks) for _ in range(4)]
    for _ in range(KILLS):
        time.sleep(dice.random() * 0.01)
        pid = living.pop(dice.randrange(len(living)))
        os.kill(pid, signal.SIGKILL)
        living.append(holder(devices, dice.choice((1, 2)), marks))
        os.waitpid(pid, 0)
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert not (marks / "two-holders").exists(), (marks / "two-holders").read_text()
    held = take(devices, len(devices))
    assert held is not None
    release(held)
