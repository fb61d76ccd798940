"""The life of a queue whose records are in ZooKeeper: killed, moved, cut off, uninstalled."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from command_line import CommandLine
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.window.of_this_machine import OfThisMachine
from jobs.zookeeper_queue import SECONDS, ZooKeeperQueue
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(500)]


@pytest.fixture
def queue(own_zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[ZooKeeperQueue]:
    made = ZooKeeperQueue(tmp_path, own_zookeeper, "/queue")
    try:
        yield made
    finally:
        for name in ("long", "short", "late"):
            (tmp_path / f"{name}.finish").touch()
        made.end()


def until(queue: ZooKeeperQueue, name: str) -> str:
    """Return the command of a job that says that it runs, and ends when it is told."""
    begun, finish = (queue.folder / f"{name}.{what}" for what in ("begun", "finish"))
    return f"echo begun >> {begun}; until test -e {finish}; do sleep 0.1; done"


def starts_of(queue: ZooKeeperQueue, name: str) -> int:
    file = queue.folder / f"{name}.begun"
    return len(file.read_text().splitlines()) if file.exists() else 0


def runs(queue: ZooKeeperQueue, name: str) -> None:
    eventually(lambda: starts_of(queue, name), seconds=SECONDS, what=f"{name} to run")


def test_a_queue_that_is_killed_and_a_zookeeper_that_starts_again_cost_no_job(
    queue: ZooKeeperQueue,
) -> None:
    queue.submit("red", "long", until(queue, "long"))
    queue.submit("blue", "short", until(queue, "short"))
    runs(queue, "long")
    runs(queue, "short")
    queue.submit("red", "late", until(queue, "late"))
    queue.kill()
    # Its work is done while there is no queue, and it is found to be.
    (queue.folder / "short.finish").touch()
    queue.queue = queue.serve()
    queue.until("short", "succeeded")
    runs(queue, "late")
    queue.zookeeper.kill()
    # The queue and the jobs' schedulers wait for it.
    (queue.folder / "late.finish").touch()
    queue.zookeeper.restart()
    queue.until("late", "succeeded")
    assert queue.queue.poll() is None, queue.log()
    (queue.folder / "long.finish").touch()
    queue.until("long", "succeeded")
    assert [starts_of(queue, name) for name in ("long", "short", "late")] == [1, 1, 1]


def test_a_job_whose_scheduler_is_elsewhere_is_found_through_the_queue(
    queue: ZooKeeperQueue,
) -> None:
    queue.submit("red", "long", f"echo it runs; {until(queue, 'long')}")
    runs(queue, "long")
    queue.submit("red", "late", "true")
    queue.address_of("long")
    home = queue.home

    def is_seen() -> bool:
        asked = home.ask("status", "long")
        return asked.code == 0 and "worker-0" in asked.out

    eventually(is_seen, seconds=SECONDS, what=lambda: home.ask("status", "long").out)
    eventually(
        lambda: "it runs" in home.ask("logs", "long").out,
        seconds=SECONDS,
        what=lambda: home.ask("logs", "long").out,
    )
    listed = {one["service"]: one for one in json.loads(home.ask("list", "--json").out)}
    assert listed["long"]["scheduler"] == "the queue queue"
    window = OfThisMachine(WorkDirectory(home.home))
    assert window.has("long")
    assert [one["name"] for one in window.found() if one["served"]][-1] == "long"
    stopped = home.ask("stop", "long")
    assert stopped.code == 0, stopped.out
    queue.until("long", "cancelled")
    queue.until("late", "succeeded")
    assert "late has succeeded in the queue" in home.ask("status", "late").out


@pytest.mark.soak
def test_a_queue_goes_on_where_nothing_is_but_zookeeper(queue: ZooKeeperQueue) -> None:
    queue.submit("red", "long", until(queue, "long"))
    queue.submit("blue", "short", until(queue, "short"))
    runs(queue, "long")
    runs(queue, "short")
    code = queue.folder / "code"
    code.mkdir()
    (code / "train.py").write_text('print("its code is there")\n')
    queue.submit("red", "late", code=code)
    queue.kill()
    queue.home = CommandLine(queue.folder / "elsewhere")
    queue.queue = queue.serve()
    (queue.folder / "short.finish").touch()
    queue.until("short", "succeeded")
    assert queue.until("late", "succeeded")["why"]
    (queue.folder / "long.finish").touch()
    queue.until("long", "succeeded")


def test_a_queue_that_is_uninstalled_leaves_no_node(queue: ZooKeeperQueue) -> None:
    queue.submit("red", "long", until(queue, "long"))
    runs(queue, "long")
    queue.kill()
    assert queue.serve("--uninstall").wait(SECONDS) == 0
    client = KazooClient(hosts=queue.zookeeper.address)
    client.start()
    try:
        left = client.get_children(queue.chroot)
    finally:
        client.stop()
        client.close()
    assert left == []
    assert not queue.of_master("/state")["frameworks"]
