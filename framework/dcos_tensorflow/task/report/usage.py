"""The present usage of a task: processor time, memory, GPUs, and its speed in steps.

``status_document`` asks for it with each status, and gets the newest measurement. The
numbers are those of the container's own cgroup (kernel documentation: cgroup-v2, cgroup-v1
``cpuacct`` and ``memory``) where nothing but the task is in it, else those of the processes. Looks
at a table of the machine take a fiftieth of a processor at most. GPUs are asked for by the
driver's ``nvidia-smi``, in a task that has any.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, Mapping, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.supervise.observer import Observer
from dcos_tensorflow.task.supervise.own_children import OwnChildren
from untrusted_input import process_table

#: Numbers are measured over so many seconds at least.
SECONDS = 2.0
#: How often it is looked whether the cgroup is the task's alone.
OWN_SECONDS = 60.0
_SHARE_OF_TIME = 0.02
#: The speed is that of the newest steps, in seconds.
SPEED_SECONDS = 30.0
#: How often the GPUs are asked, and how long the answer may take.
GPU_SECONDS = 5.0
GPU_ANSWER_SECONDS = 10.0
_MOST_GPUS = 64
_QUERY = (
    "nvidia-smi",
    "--query-gpu=index,uuid,utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
)
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Gpu:
    """One GPU: the share of time in which it computed, from 0 to 1, and its memory in bytes."""

    utilisation: float
    mem_bytes: int


class UsageMeter:
    """Measures one task. ``gpus`` is how many it was given, ``environment`` its variables."""

    def __init__(
        self,
        gpus: int,
        environment: Callable[[], Mapping[str, str]],
        children: OwnChildren,
        cgroup: "Optional[Cgroup]" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._cgroup = cgroup or Cgroup()
        self._gpus = GpuMeter(environment, children) if gpus else None
        self._lock = threading.Lock()
        self._observer: Optional[Observer] = None
        self._due = 0.0
        #: When the processor time was read last, and what it was, in seconds.
        self._before: Optional[Tuple[float, float]] = None
        self._found: Dict[str, Any] = {}
        self._steps: Deque[Tuple[float, int]] = deque()

    def usage(self, observer: Optional[Observer], step: Optional[int]) -> Optional[Dict[str, Any]]:
        """Return what the process that is observed uses; None while none runs. From any thread."""
        with self._lock:
            if observer is not self._observer:
                self._observer, self._before, self._found, self._due = observer, None, {}, 0.0
                self._steps.clear()
            if observer is None:
                return None
            now = self._clock()
            if now >= self._due:
                # What a busy machine makes it wait is no cost.
                began = time.thread_time()
                self._measure(observer, now)
                cost = time.thread_time() - began
                self._due = now + max(SECONDS, cost / _SHARE_OF_TIME)
            if "cpu_percent" not in self._found:
                return None
            return {
                **self._found,
                "gpus": [vars_of(gpu) for gpu in self._gpus.known()] if self._gpus else [],
                "steps_per_second": self._speed(step, now),
            }

    def _measure(self, observer: Observer, now: float) -> None:
        used, memory = self._cgroup.read()
        if used is None or memory is None:
            used = sum(map(process_table.cpu_used, observer.members()))
            memory = observer.memory_bytes()
        if self._before is not None and memory is not None:
            elapsed, more = now - self._before[0], max(0.0, used - self._before[1])
            self._found = {"cpu_percent": round(100 * more / elapsed, 1), "mem_bytes": memory}
        self._before = (now, used)

    def _speed(self, step: Optional[int], now: float) -> Optional[float]:
        """Return how many steps a second there were lately; None where no two are known."""
        steps = self._steps
        if step is None or (steps and step < steps[-1][1]):
            steps.clear()
        if step is not None and (not steps or step > steps[-1][1]):
            steps.append((now, step))
        while len(steps) > 2 and now - steps[1][0] > SPEED_SECONDS:
            steps.popleft()
        if len(steps) < 2:
            return None
        # A task that makes no more steps gets slower.
        (began, first), (ended, last) = steps[0], steps[-1]
        pause = now - ended
        elapsed = ended - began + (pause if pause > SPEED_SECONDS else 0.0)
        return round((last - first) / elapsed, 3) if elapsed > 0 else None


def vars_of(gpu: Gpu) -> Dict[str, Any]:
    """Return a GPU as JSON has it."""
    return {"utilisation": gpu.utilisation, "mem_bytes": gpu.mem_bytes}


class Cgroup:
    """The cgroup that this process is in, where it holds one task alone."""

    def __init__(self, proc: str = "/proc", root: str = "/sys/fs/cgroup") -> None:
        self._proc, self._root = proc, root
        self._own: Tuple[str, ...] = ()
        self._looked_at: Optional[float] = None

    def read(self) -> Tuple[Optional[float], Optional[int]]:
        """Return processor time in seconds, and memory in bytes; None where they are not known."""
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at > OWN_SECONDS:
            self._looked_at = now
            self._own = tuple(folder for folder in self._folders() if self._is_ours(folder))
        return self._cpu(), self._memory()

    def _folders(self) -> Iterator[str]:
        """Yield where the cgroup of this process is: one of version 2, or several of version 1."""
        for line in _text(f"{self._proc}/self/cgroup").splitlines():
            controllers, _, path = line.partition(":")[2].partition(":")
            if not controllers:
                yield f"{self._root}{path.rstrip('/')}"
                continue
            for name in controllers.split(","):
                if name in ("memory", "cpuacct"):
                    # Inside a container the machine's path is often not there: the root is ours.
                    below = f"{self._root}/{name}{path.rstrip('/')}"
                    yield below if os.path.isdir(below) else f"{self._root}/{name}"

    def _is_ours(self, folder: str) -> bool:
        """Say whether nothing is in a cgroup but us, what we have started, and what has started us.

        Those are Mesos' executor and its helpers; what is outside of our namespace is listed as 0.
        """
        inside = {int(word) for word in _text(f"{folder}/cgroup.procs").split() if word.isdigit()}
        if not inside:
            return False
        known = {process.pid for process in process_table.descendants_of(os.getpid())}
        above = os.getpid()
        while above not in known:
            known.add(above)
            process = process_table.read_process(above)
            above = process.parent if process is not None else 0
        return inside <= known | {0}

    def _cpu(self) -> Optional[float]:
        for folder in self._own:
            used = _named(f"{folder}/cpu.stat", "usage_usec")
            if used is not None:
                return used / 1e6
            text = _text(f"{folder}/cpuacct.usage").strip()
            if text.isdigit():
                return int(text) / 1e9
        return None

    def _memory(self) -> Optional[int]:
        """Return what is in use beside the cache of files that the kernel would give back."""
        for folder in self._own:
            for name, cache in (
                ("memory.current", "inactive_file"),
                ("memory.usage_in_bytes", "total_inactive_file"),
            ):
                text = _text(f"{folder}/{name}").strip()
                if text.isdigit():
                    return max(0, int(text) - (_named(f"{folder}/memory.stat", cache) or 0))
        return None


class GpuMeter:
    """Asks the driver about the task's GPUs now and then, without waiting for the answer."""

    def __init__(self, environment: Callable[[], Mapping[str, str]], children: OwnChildren) -> None:
        # A task without GPUs does not wait for it at its start.
        import shutil

        self._environment = environment
        self._children = children
        self._is_there = shutil.which(_QUERY[0]) is not None
        self._known: Tuple[Gpu, ...] = ()
        self._due = 0.0
        self._asking = False

    def known(self) -> Tuple[Gpu, ...]:
        """Return what was answered last."""
        now = time.monotonic()
        if self._is_there and not self._asking and now >= self._due:
            self._asking, self._due = True, now + GPU_SECONDS
            threading.Thread(target=self._ask, name="gpus", daemon=True).start()
        return self._known

    def _ask(self) -> None:
        try:
            process = self._children.begin(
                list(_QUERY), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            limit = threading.Timer(GPU_ANSWER_SECONDS, process.kill)
            limit.daemon = True
            limit.start()
            with process.stdout or open(os.devnull, "rb") as answer:
                text = answer.read(1 << 16).decode("utf-8", "replace")
            self._children.wait(process)
            limit.cancel()
            if self._children.reap(process) == 0:
                self._known = tuple(gpus_in(text, self._environment()))
        except OSError:
            # It is gone, or there is no room for it now: what was known stays.
            return
        finally:
            self._asking = False


def gpus_in(text: str, environment: Mapping[str, str]) -> Iterator[Gpu]:
    """Yield the GPUs of an answer that a process with these variables may use."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    names = None if visible is None else [name.strip() for name in visible.split(",")]
    for line in text.splitlines()[:_MOST_GPUS]:
        index, uuid, busy, used = ([part.strip() for part in line.split(",")] + [""] * 4)[:4]
        is_meant = names is None or index in names or any(_names(name, uuid) for name in names)
        if is_meant and used.isdigit():
            # A driver without the one number says [N/A].
            yield Gpu(int(busy) / 100 if busy.isdigit() else 0.0, int(used) * _MEBIBYTE)


def _names(name: str, uuid: str) -> bool:
    """Say whether a name of CUDA's, maybe shortened, is that of a GPU."""
    return name.startswith("GPU-") and uuid.startswith(name)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        # Not this kernel's, or not to be seen from here.
        return ""


def _named(path: str, wanted: str) -> Optional[int]:
    for line in _text(path).splitlines():
        name, _, value = line.partition(" ")
        if name == wanted and value.strip().isdigit():
            return int(value)
    return None
