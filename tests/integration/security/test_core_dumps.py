"""Who knows secrets leaves no core dump; the user's process may leave its own."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import embedded_mesos
from command_line import UNTIL_FINISH, write_options
from dcos_tensorflow.task.pack import build_zipapp
from embedded_mesos import AgentConfig, EmbeddedCluster
from embedded_mesos.machine.executor_source import ExecutorSource
from processes import alive, processes
from runner_process import Starter
from scheduler_process import SchedulerProcess
from untrusted_input.process_table import children_of
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

#: Where the kernel puts the files, in the directory of the process that dies.
_PATTERN = Path("/proc/sys/kernel/core_pattern")
WAITS = "import time\nwhile True: time.sleep(60)\n"


@pytest.fixture
def cores(tmp_path: Path) -> Iterator[Callable[[], list[Path]]]:
    """Allow core files to what is started, and return what finds those that are new."""
    pattern = _PATTERN.read_text().strip()
    if not pattern.startswith("core"):
        pytest.skip(f"core dumps go elsewhere on this machine: {pattern}")
    before = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    except (ValueError, PermissionError):
        pytest.skip("this user may allow no core dumps")
    began = time.time() - 1

    def found() -> list[Path]:
        files = [*tmp_path.rglob("core*"), *Path("/").glob("core*"), *Path().glob("core*")]
        return [f for f in files if f.is_file() and f.stat().st_mtime > began]

    yield found
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path, [str(build_zipapp(tmp_path / "task-runner.pyz"))])
    yield starter
    starter.close()


def abort(pid: int) -> None:
    """End a process as a fault in it would, and wait until it is gone with all its files."""
    os.kill(pid, signal.SIGABRT)
    eventually(lambda: not alive(pid), seconds=60, what=f"the end of {pid}")


def child(pid: int, name: str) -> int:
    """Return the child of ``pid`` whose name or command line has this in it, once it has."""

    def found() -> int:
        children = children_of(pid) or ()
        known = (each for each in processes() if each.pid in children)
        return next((each.pid for each in known if name in each.name or name in each.command), 0)

    return eventually(found, seconds=30, what=f"a child {name} of {pid}")


def test_a_process_that_does_nothing_about_it_leaves_one(
    cores: Callable[[], list[Path]], tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-c", "import os; os.abort()"], cwd=tmp_path, check=False)
    assert cores(), "the tests beside this one would show nothing here"


def test_the_users_process_leaves_its_own(cores: Callable[[], list[Path]], start: Starter) -> None:
    task = start(job={"contract": "command", "command": "kill -ABRT $$"})
    task.wait()
    assert [file.parent for file in cores()] == [task.sandbox]


@pytest.mark.parametrize("which", ["runner", "guard"])
def test_the_task_runner_leaves_none(
    which: str, cores: Callable[[], list[Path]], start: Starter
) -> None:
    task = start(WAITS)
    task.wait_for_state("running")
    runner = task.process.pid
    pid = runner if which == "runner" else child(runner, "runner-guard")
    os.kill(pid, signal.SIGABRT)
    if which == "runner":
        assert task.wait() == -signal.SIGABRT
    else:
        task.wait_for_status(lambda _: child(runner, "runner-guard") != pid, "another guard")
    assert cores() == []


def test_the_scheduler_leaves_none(cores: Callable[[], list[Path]], tmp_path: Path) -> None:
    options = write_options(tmp_path, service={"name": "dumps", "job_cmd": UNTIL_FINISH})
    with EmbeddedCluster([AgentConfig(cpus=1, mem=512)], tmp_path / "cluster") as cluster:
        state = f"sqlite:///{tmp_path}/state.db"
        scheduler = SchedulerProcess(
            "scheduler", tmp_path, options, cluster.master, state, environment={}
        )
        try:
            eventually(lambda: "registered" in scheduler.log, seconds=60, what=scheduler.log)
            scheduler.process.send_signal(signal.SIGABRT)
            assert scheduler.process.wait(60) == -signal.SIGABRT
        finally:
            scheduler.close()
    assert cores() == []


def test_the_embedded_cluster_leaves_none(cores: Callable[[], list[Path]], tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    up = embedded_mesos.up(folder, [AgentConfig(cpus=1, mem=512)])
    try:
        abort(up.pid)
    finally:
        embedded_mesos.down(folder)
    assert cores() == []


def test_an_executor_and_what_it_comes_from_leave_none(
    cores: Callable[[], list[Path]], tmp_path: Path
) -> None:
    source = ExecutorSource()
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "log").open("wb") as log:
        executor = source.fork(str(tmp_path), [theirs.fileno(), log.fileno(), log.fileno()])
        abort(executor)
        source.forget(executor)
        abort(source._process.pid)
        source.end()
    assert cores() == []
