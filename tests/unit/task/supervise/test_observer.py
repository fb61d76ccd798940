"""What can be seen of a process from outside: its port, its memory, its server's address."""

import itertools
import os
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.task.output.progress import Progress
from dcos_tensorflow.task.spec import ServerCluster, TaskCluster
from dcos_tensorflow.task.supervise import memory, observer, watchdog
from dcos_tensorflow.task.supervise.observer import Observer, own_port
from dcos_tensorflow.task.supervise.watchdog import WatchdogLimits
from free_ports import free_port
from untrusted_input import process_table
from waiting import eventually

SERVER = ServerCluster({"ps": ("h:1",), "worker": ("h:2", "[::1]:3")}, "worker", 1)


def tf_config(role, index, **cluster):
    return {"cluster": cluster, "task": {"type": role, "index": index}}


@pytest.mark.parametrize(
    ("contract", "cluster", "port"),
    [
        ("function", TaskCluster(1, server=SERVER), 3),
        ("function", TaskCluster(1), 0),
        ("script", TaskCluster(1, tf_config("worker", 1, worker=["h:4", "h:5"])), 5),
        ("command", TaskCluster(1, tf_config("chief", 0, chief=["h:6"])), 6),
        ("script", TaskCluster(1, tf_config("evaluator", 0, chief=["h:6"])), 0),
        ("script", TaskCluster(1, tf_config("worker", 7, worker=["h:4"])), 0),
        ("script", TaskCluster(1, tf_config("worker", 0, worker=["nowhere"])), 0),
        ("script", TaskCluster(1, {"cluster": []}), 0),
        ("script", TaskCluster(1), 0),
        ("tensorboard", TaskCluster(1, tf_config("worker", 0, worker=["h:4"])), 0),
    ],
)
def test_the_port_of_its_own_server_is_that_of_its_place_in_the_cluster(contract, cluster, port):
    assert own_port(Found(contract, ()), cluster) == port


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
)
def test_a_port_that_is_listened_on_is_found_with_its_owner(family, host):
    try:
        server = socket.socket(family)
    except OSError:
        pytest.skip("this machine has no such addresses")
    with server:
        server.bind((host, 0))
        port = server.getsockname()[1]
        assert observer.listening_inodes(port) == set()
        server.listen()
        inodes = observer.listening_inodes(port)
        assert inodes == {os.fstat(server.fileno()).st_ino}
        assert observer.owner_of(inodes, [2**22 + 1, os.getpid()]) == os.getpid()
    assert observer.listening_inodes(port) == set()


def test_a_socket_without_an_owner_has_none():
    assert observer.owner_of({1}, [os.getpid()]) is None


class OurProcess:
    """This process, as if it were the user's."""

    pid = os.getpid()

    def members(self):
        return [process_table.read_process(self.pid)]


def test_a_port_that_was_closed_for_a_moment_is_not_taken_for_closed(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        observer, "time", SimpleNamespace(monotonic=lambda: clock.now, time=time.time)
    )
    port = free_port()
    limits = WatchdogLimits(freeze_seconds=1.0)
    watching = Observer(OurProcess(), limits, port=port, in_shell=False, directories=())

    def look(seconds):
        clock.now = seconds
        return watching.look(Progress())

    with socket.create_server(("127.0.0.1", port)):
        verdicts = [look(seconds) for seconds in (0.0, 0.25, 0.5, 0.75)]
    verdicts.append(look(1.0))
    with socket.create_server(("127.0.0.1", port)):
        verdicts += [look(seconds) for seconds in (1.25, 1.5, 1.75, 2.0)]
    assert verdicts == [None] * 9


def test_the_memory_of_several_processes_is_added_up():
    code = "data = bytearray(50_000_000); print(flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe) as child:
        child.stdout.readline()
        alone = memory.resident_bytes([child.pid])
        assert 50_000_000 < alone < 200_000_000
        assert memory.resident_bytes([os.getpid(), child.pid]) > alone
        child.communicate(b"\n")


def test_processes_that_are_gone_have_no_memory():
    assert memory.resident_bytes([2**22 + 1]) is None


class Child:
    """A process as if it were the user's."""

    def __init__(self, pid):
        self.pid = pid

    def members(self):
        return [process_table.read_process(self.pid)]


def test_a_process_that_sleeps_is_idle_and_one_that_computes_or_prints_is_not(monkeypatch):
    monkeypatch.setattr(observer, "ACTIVITY_SECONDS", 0.2)
    monkeypatch.setattr(watchdog, "IDLE_SECONDS", 0.5)
    codes = ["input()", "input()", "while True: pass"]
    pipe = subprocess.PIPE
    children = [subprocess.Popen([sys.executable, "-S", "-c", c], stdin=pipe) for c in codes]
    try:
        seen = [
            Observer(Child(child.pid), WatchdogLimits(), port=0, in_shell=False, directories=())
            for child in children
        ]
        lines = itertools.count(1)

        def look(sleeper_printed):
            for each, printed in zip(seen, (sleeper_printed, next(lines), 0), strict=True):
                each.look(Progress(), printed)
            return seen[0].idle_since

        since = eventually(lambda: look(0), what="the sleeper is known to be idle")
        assert since <= time.time() - 0.5
        assert [each.idle_since for each in seen[1:]] == [None, None]
        # What waits for a CPU is not idle, however little it gets.
        computing = process_table.read_process(children[2].pid)
        assert sum(process_table.cpu_seconds(computing)) > 0.3
        eventually(lambda: look(1) is None, what="the sleeper has printed something")
    finally:
        for child in children:
            child.kill()
            child.communicate()
