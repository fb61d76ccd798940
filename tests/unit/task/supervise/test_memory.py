"""Where the kernel's count of kills for want of memory is found."""

from pathlib import Path

from dcos_tensorflow.task.supervise.memory import kernel_kills


def machine(tmp_path: Path, cgroup: str, **files: str) -> tuple[str, str]:
    """Make a /proc and a /sys/fs/cgroup; ``__`` in a name stands for ``/``."""
    for name, text in {"proc__self__cgroup": cgroup, **files}.items():
        path = tmp_path / name.replace("__", "/").replace("-dot-", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(tmp_path / "proc"), str(tmp_path / "cgroup")


def test_a_cgroup_of_version_2_counts_its_own(tmp_path):
    events = {"cgroup__mesos__memory-dot-events": "low 0\noom 3\noom_kill 2\n"}
    assert kernel_kills(*machine(tmp_path, "0::/mesos\n", **events)) == 2


def test_a_cgroup_of_version_1_counts_its_own(tmp_path):
    control = {"cgroup__memory__mesos__memory-dot-oom_control": "under_oom 0\noom_kill 4\n"}
    assert kernel_kills(*machine(tmp_path, "4:cpu,memory:/mesos\n0::/\n", **control)) == 4


def test_inside_a_container_its_cgroup_is_the_root(tmp_path):
    events = {"cgroup__memory-dot-events": "oom_kill 1\n"}
    assert kernel_kills(*machine(tmp_path, "0::/of/the/machine\n", **events)) == 1


def test_without_a_cgroup_the_machine_counts(tmp_path):
    assert kernel_kills(*machine(tmp_path, "0::/\n", proc__vmstat="nr_free 7\noom_kill 5\n")) == 5


def test_without_a_counter_there_is_no_count(tmp_path):
    assert kernel_kills(*machine(tmp_path, "")) is None
