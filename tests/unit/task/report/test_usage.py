"""What a task uses: by its container's cgroup, by its processes, and of its GPUs."""

import os
from pathlib import Path

import pytest

from dcos_tensorflow.task.report import usage
from dcos_tensorflow.task.report.usage import Cgroup, Gpu, UsageMeter, gpus_in
from dcos_tensorflow.task.supervise.own_children import OwnChildren
from untrusted_input.process_table import Process
from waiting import eventually

UUID = "GPU-6ee94f0c-1bb2-90b1-2a4e-bf4e3ee94b1c"


class Clock:
    """Time as a test sets it."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Observed:
    """A process and its children, by the table."""

    def __init__(self, ticks=0, memory=1 << 20):
        self.ticks = ticks
        self.memory = memory

    def members(self):
        return (Process(1, 0, 1, 1, "R", cpu=self.ticks), Process(2, 1, 1, 1, "S", cpu=self.ticks))

    def memory_bytes(self):
        return self.memory


class NoCgroup:
    def read(self):
        return None, None


def meter(clock, gpus=0):
    return UsageMeter(gpus, dict, OwnChildren(), NoCgroup(), clock)


def test_without_a_cgroup_of_its_own_it_is_what_its_processes_use(clock):
    found, process = meter(clock), Observed()
    assert found.usage(process, None) is None
    clock.now += 4
    # Both have computed for two seconds.
    process.ticks = 2 * os.sysconf("SC_CLK_TCK")
    assert found.usage(process, None) == {
        "cpu_percent": 100.0,
        "mem_bytes": 1 << 20,
        "gpus": [],
        "steps_per_second": None,
    }


def test_another_process_begins_anew_and_without_one_there_is_nothing(clock):
    found, process = meter(clock), Observed(ticks=10_000)
    found.usage(process, 5)
    clock.now += 4
    assert found.usage(process, 5)["cpu_percent"] == 0.0
    assert found.usage(Observed(), 6) is None
    assert found.usage(None, 6) is None


def test_the_speed_is_that_of_the_newest_steps(clock):
    found, process = meter(clock), Observed()
    found.usage(process, 0)
    for step in (20, 40, 60):
        clock.now += 10
        told = found.usage(process, step)
    assert told["steps_per_second"] == 2.0
    clock.now += 3600
    assert found.usage(process, 60)["steps_per_second"] < 0.02


def cgroup(tmp_path: Path, files: dict[str, str], line: str) -> Cgroup:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(line)
    return Cgroup(str(tmp_path / "proc"), str(tmp_path / "sys"))


V2 = {
    "sys/mesos/1/cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
    "sys/mesos/1/memory.current": "5000\n",
    "sys/mesos/1/memory.stat": "anon 1\ninactive_file 1000\n",
}
V1 = {
    "sys/memory/mesos/1/memory.usage_in_bytes": "5000\n",
    "sys/memory/mesos/1/memory.stat": "total_inactive_file 1000\n",
    "sys/cpuacct/mesos/1/cpuacct.usage": "2500000000\n",
}
V1_LINES = "4:cpu,cpuacct:/mesos/1\n3:memory:/mesos/1\n2:pids:/mesos/1\n"


@pytest.mark.parametrize(("files", "line"), [(V2, "0::/mesos/1\n"), (V1, V1_LINES)])
def test_the_containers_cgroup_tells_both_without_the_cache_of_files(tmp_path, files, line):
    ours = f"{os.getppid()}\n{os.getpid()}\n0\n"
    procs = {f"{Path(name).parent}/cgroup.procs": ours for name in files}
    assert cgroup(tmp_path, {**files, **procs}, line).read() == (2.5, 4000)


def test_a_cgroup_that_others_are_in_too_tells_nothing(tmp_path):
    others = {"sys/mesos/1/cgroup.procs": f"{os.getpid()}\n999999999\n"}
    assert cgroup(tmp_path, {**V2, **others}, "0::/mesos/1\n").read() == (None, None)


ANSWER = f"0, {UUID}, 45, 1024\n1, GPU-other, [N/A], 2048\n2, GPU-third, 7, [N/A]\nnonsense\n"


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [Gpu(0.45, 1 << 30), Gpu(0.0, 2 << 30)]),
        ("1", [Gpu(0.0, 2 << 30)]),
        (f"{UUID[:12]}", [Gpu(0.45, 1 << 30)]),
        ("", []),
    ],
)
def test_of_the_gpus_those_are_told_that_the_task_may_use(visible, expected):
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert list(gpus_in(ANSWER, variables)) == expected


def test_a_machine_without_the_drivers_program_has_no_gpus_to_tell_of(clock, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found, process = meter(clock, gpus=1), Observed()
    found.usage(process, None)
    clock.now += 4
    assert found.usage(process, None)["gpus"] == []


def test_the_drivers_program_is_asked_beside_it_all(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '0, {UUID}, 45, 1024'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    children = OwnChildren()
    found = usage.GpuMeter(dict, children)
    eventually(lambda: found.known() == (Gpu(0.45, 1 << 30),))
    eventually(lambda: not children.pids())
