"""The scheduler dies, ends, stands still; another one of the service is there, or comes."""

import signal
import socket
from pathlib import Path

import pytest

from dcos_tensorflow.scheduler.scheduler import EXIT_LOCKED
from dcos_tensorflow.state.store import open_store
from scheduler_process import SHORT_SESSION
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

from .conftest import MakeServed
from .training import ServedTraining

pytestmark = pytest.mark.timeout(240)

CRASHING = str(Path(__file__).parent / "crashing_scheduler.py")


def test_the_scheduler_is_killed_and_another_one_finds_the_job_as_it_was(
    served: ServedTraining,
) -> None:
    known = served.framework_id()
    served.leader.kill()
    served.trains()
    served.start()
    served.is_untouched()
    assert served.framework_id() == known
    assert served.incidents() == []
    served.ends_right()


def test_what_dies_while_there_is_no_scheduler_is_healed_by_the_next(
    served: ServedTraining,
) -> None:
    runner = served.task_id("worker-0")
    served.leader.kill()
    served.signal("worker-1", signal.SIGKILL)
    served.cluster.faults.signal_task(runner, signal.SIGKILL)
    served.start()
    served.recovers("worker-0", "worker-1", moved=("worker-0",))
    served.ends_right()


@pytest.mark.zookeeper
def test_a_second_scheduler_is_locked_out_and_the_store_unchanged(
    make_served: MakeServed, zookeeper_server: ZooKeeperServer
) -> None:
    training = make_served(state=zookeeper_server.url("/locked-out"))
    first = training.start()
    training.look()
    before = stored(training.state)
    waiting = training.start()
    waiting.says(f"is led by {socket.gethostname()} pid {first.process.pid}")
    refused = training.start("--no-wait-for-leadership")
    assert refused.exit_code() == EXIT_LOCKED
    assert f"pid {first.process.pid}" in refused.log
    assert stored(training.state) == before
    training.leader = first
    training.is_untouched()
    training.ends_right()


def stored(url: str) -> dict[str, bytes]:
    store = open_store(url, "job")
    try:
        return store.load()
    finally:
        store.close()


@pytest.mark.zookeeper
def test_a_frozen_scheduler_is_followed_by_its_standby_and_ends_without_harm(
    make_served: MakeServed, zookeeper_server: ZooKeeperServer
) -> None:
    training = make_served(state=zookeeper_server.url("/frozen"))
    frozen = training.start(*SHORT_SESSION)
    training.look()
    known = training.framework_id()
    standby = training.start("--standby")
    standby.says("is led by")
    status, body = standby.ask("/v1/health?verbose")
    assert (status, f"(pid {frozen.process.pid} on host" in body["reasons"][0]) == (503, True)
    assert standby.ask("/v1/job")[0] == 503
    frozen.freeze()
    training.is_untouched()
    # What happens now is the standby's to heal, and stays so when the old one wakes up.
    training.signal("worker-1", signal.SIGKILL)
    training.recovers("worker-1")
    assert standby.api.encode() in stored(training.state)["Properties/address"]
    frozen.thaw()
    assert frozen.exit_code() == EXIT_LOCKED
    assert "Traceback" not in frozen.log
    training.look()
    assert training.framework_id() == known
    training.is_untouched()
    training.ends_right()


@pytest.mark.parametrize(
    ("action", "when", "number"),
    [
        ("Accept", "before", 3),
        ("Accept", "after", 2),
        pytest.param("Acknowledge", "before", 2, marks=pytest.mark.soak),
    ],
)
def test_a_scheduler_that_crashes_between_store_and_act_launches_nothing_twice(
    make_served: MakeServed, action: str, when: str, number: int
) -> None:
    training = make_served()
    crashing = training.start(program=(CRASHING, action, when, str(number)))
    assert crashing.exit_code() == -signal.SIGKILL
    training.start()
    training.look()
    assert training.twice() == []
    assert not any(incident["charged"] for incident in training.incidents())
    training.ends_right()


def test_a_scheduler_that_crashes_between_store_and_kill_moves_the_task_all_the_same(
    make_served: MakeServed,
) -> None:
    training = make_served()
    crashing = training.start(program=(CRASHING, "Kill", "before", "1"))
    training.look()
    training.order("/v1/pod/worker-1/replace")
    assert crashing.exit_code() == -signal.SIGKILL
    training.start()
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    training.ends_right()


def test_a_scheduler_that_crashes_in_a_recovery_goes_on_with_it(make_served: MakeServed) -> None:
    training = make_served()
    # The first four launch the gang.
    crashing = training.start(program=(CRASHING, "Accept", "before", "5"))
    training.look()
    training.cluster.faults.signal_task(training.task_id("ps-0"), signal.SIGKILL)
    assert crashing.exit_code() == -signal.SIGKILL
    training.start()
    eventually(training.job, seconds=60, what="an answer")
    training.recovers("ps-0", "chief-0", moved=("ps-0",))
    training.ends_right()
