"""Which GPUs of a machine are this task's, where nothing else has said so.

An isolator of the agent shows a container its own GPUs, or names them in a variable. Where there is
none, each task sees all GPUs of the machine, and TensorFlow takes all that it sees. So the runners
of a machine agree: a task has a GPU as long as its runner, or the guard beside it, holds a lock on
the GPU's device file. The kernel gives the lock back when both are gone, whatever has killed them.

``before_start`` makes a ``GpuWork`` for a task with GPUs. It never touches a
GPU that is not its own, and never waits on the runner's thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import threading
import time
from types import MappingProxyType
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.task.exits.exit_analysis import runner_failed
from dcos_tensorflow.task.python.python_packages import Base
from dcos_tensorflow.task.supervise.starts import Installed

CUDA_VARIABLE = "CUDA_VISIBLE_DEVICES"
#: NVIDIA's images set it to ``all``, which chooses nothing.
NVIDIA_VARIABLE, _EVERY = "NVIDIA_VISIBLE_DEVICES", "all"
#: Where the device files are, for tests.
DEVICES_VARIABLE = "TASK_RUNNER_DEVICES"
_DEVICES, _DRIVER = "/dev", "/proc/driver/nvidia/gpus"
_DEVICE = re.compile(r"nvidia(\d+)")
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-f-]{36})\s*$", re.MULTILINE)
_MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
#: For so long a task waits for GPUs that others hold, which Mesos has given to it. Those of a task
#: that has ended are free once its guard has killed all that was left: in seconds.
WAIT_SECONDS = 60.0
#: Between two tries, more or less: several runners must not try in step.
_AGAIN_SECONDS = 0.3


def choice(wanted: int, variables: Mapping[str, str]) -> Sequence[str]:
    """Return the device files to choose ``wanted`` of; none where there is nothing to choose.

    That is where an isolator or the options have named some, and where no more can be used than
    are wanted. A device that an isolator denies cannot be opened.
    """
    named = variables.get(NVIDIA_VARIABLE, _EVERY) != _EVERY
    if not wanted or named or CUDA_VARIABLE in variables:
        return ()
    folder = variables.get(DEVICES_VARIABLE, _DEVICES)
    usable = [path for path in _device_files(folder) if _is_usable(path)]
    return usable if len(usable) > wanted else ()


def take(devices: Sequence[str], wanted: int) -> Optional[Dict[str, int]]:
    """Lock as many of these as wanted, and return the descriptors by path; None: too few are free.

    All or none: two tasks that each hold a part would wait for each other.
    """
    held: Dict[str, int] = {}
    for path in devices:
        descriptor = _locked(path)
        if descriptor is not None:
            held[path] = descriptor
        if len(held) == wanted:
            return held
    for descriptor in held.values():
        os.close(descriptor)
    return None


def variables_for(devices: Sequence[str], driver: str = _DRIVER) -> Mapping[str, str]:
    """Return what lets CUDA see these alone: by UUID, or else by number, in the bus's order."""
    uuids, numbers = _uuids(driver), [_number(path) for path in devices]
    if all(number in uuids for number in numbers):
        return {CUDA_VARIABLE: ",".join(uuids[number] for number in numbers)}
    # Without it CUDA counts the fastest one first.
    return {CUDA_VARIABLE: ",".join(map(str, numbers)), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


class GpuWork:
    """Takes a task's GPUs on a thread; ``tell`` gets ``Installed`` from there, with the variables.

    ``hold`` is given the descriptors, for the guard; ``look`` is called when ``doing`` has changed.
    """

    def __init__(
        self,
        wanted: int,
        devices: Sequence[str],
        base: Base,
        *,
        log: Callable[[str], None],
        look: Callable[[], None],
        tell: Callable[[Installed], None],
        hold: Callable[[Sequence[int]], None],
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._wanted = wanted
        self._devices = devices
        self._base = base
        self._log = log
        self._look = look
        self._tell = tell
        self._hold = hold
        self._wait_seconds = wait_seconds
        self._stopped = threading.Event()
        self._thread: Optional[threading.Thread] = None
        #: What is being done, as a sentence for the status.
        self.doing = ""
        #: Whether they are taken, and the names of their device files then.
        self.done = False
        self.names: Tuple[str, ...] = ()

    def begin(self) -> None:
        """Take them; then ``Installed`` is told. Once is enough while that goes on."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="gpus", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait no more. What is held stays so until this process has ended."""
        self._stopped.set()

    def _work(self) -> None:
        until = time.monotonic() + self._wait_seconds
        while not self._stopped.is_set():
            held = take(self._devices, self._wanted)
            if held is not None:
                self._taken(held)
                return
            if not self.doing:
                self.doing = f"Waits for GPUs ({self._part}): other tasks hold too many"
                self._log(self.doing)
                self._look()
            if time.monotonic() > until:
                self._tell(Installed(self._base, refusal=runner_failed(self._in_vain())))
                return
            self._stopped.wait(_AGAIN_SECONDS * (0.5 + random.random()))

    @property
    def _part(self) -> str:
        return f"{self._wanted} of this machine's {len(self._devices)}"

    def _taken(self, held: Mapping[str, int]) -> None:
        self._hold(tuple(held.values()))
        self.names = tuple(map(os.path.basename, held))
        variables = variables_for(tuple(held))
        told = " ".join(f"{name}={value}" for name, value in variables.items())
        self._log(f"GPUs ({self._part}): {', '.join(self.names)}; {told}")
        self.done = True
        self._tell(Installed(self._base, variables))

    def _in_vain(self) -> str:
        return (
            f"The task was given GPUs ({self._part}), and other tasks held too many of them for"
            f" {self._wait_seconds:g} s"
        )


def _device_files(folder: str) -> List[str]:
    with contextlib.suppress(OSError):
        found = [name for name in os.listdir(folder) if _DEVICE.fullmatch(name)]
        return [os.path.join(folder, name) for name in sorted(found, key=_number)]
    return []


def _number(path: str) -> int:
    found = _DEVICE.fullmatch(os.path.basename(path))
    return int(found[1]) if found else -1


def _opened(path: str) -> Optional[int]:
    try:
        # Never handed on: a process that outlives the task must hold no GPU.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        # Denied by an isolator, or broken.
        return None


def _is_usable(path: str) -> bool:
    descriptor = _opened(path)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def _locked(path: str) -> Optional[int]:
    descriptor = _opened(path)
    if descriptor is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _uuids(driver: str) -> Mapping[int, str]:
    """Return the UUIDs of the machine's GPUs by the numbers of their device files."""
    found: Dict[int, str] = {}
    with contextlib.suppress(OSError):
        for bus in os.listdir(driver):
            with open(os.path.join(driver, bus, "information"), encoding="ascii") as file:
                text = file.read()
            uuid, minor = _UUID.search(text), _MINOR.search(text)
            if uuid and minor:
                found[int(minor[1])] = uuid[1]
    return MappingProxyType(found)
