"""Schedulers as processes: one leads, one stands by, and whatever is between them fails."""

import itertools
import urllib.request
from pathlib import Path

import pytest

from dcos_tensorflow.scheduler.scheduler import EXIT_LOCKED
from scheduler_process import SHORT_SESSION, SchedulerProcess
from tcp_proxy import TcpProxy
from waiting import eventually, stays
from zookeeper_server import ZooKeeperServer

pytestmark = [pytest.mark.timeout(180), pytest.mark.zookeeper]

_numbers = itertools.count()


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeperServer) -> str:
    """A place of the test's own on the session's server."""
    return zookeeper_server.url(f"/failover-{next(_numbers)}")


def attempts(job: dict) -> set[str]:
    return {task["task_id"] for task in job["tasks"].values()}


def framework(scheduler: SchedulerProcess) -> str:
    status, body = scheduler.ask("/v1/state/frameworkId")
    assert status == 200, body
    return body[0]


def ends_well(scheduler: SchedulerProcess, marks: Path) -> dict:
    """Let the job end; every process of it was started once."""
    (marks / "finish").touch()
    job = scheduler.wait_for("done")
    assert job["verdict"]["outcome"] == "succeeded", job
    started_once(marks)
    return job


def started_once(marks: Path) -> None:
    assert {p.name: p.read_text() for p in marks.glob("worker-*")} == {
        "worker-0": "started\n",
        "worker-1": "started\n",
    }


@pytest.mark.parametrize("backend", [pytest.param("zookeeper", marks=pytest.mark.soak), "sqlite"])
def test_a_standby_answers_that_it_is_one_and_takes_over_from_a_leader_that_is_killed(
    start, zookeeper, tmp_path, marks, backend
):
    state = zookeeper if backend == "zookeeper" else f"sqlite:///{tmp_path}/state.db"
    leader = start("leader", state)
    before = leader.wait_for("running")
    known = framework(leader)
    standby = start("standby", state, "--standby")
    standby.says("is led by")
    assert f"(pid {leader.process.pid} on host" in standby.log
    status, body = standby.ask("/v1/health?verbose")
    assert (status, body["value"]) == (503, 503)
    assert f"(pid {leader.process.pid} on host" in body["reasons"][0]
    assert standby.ask("/v1/job")[0] == 503
    leader.kill()
    after = standby.wait_for("running")
    assert framework(standby) == known
    assert attempts(after) == attempts(before)
    ends_well(standby, marks)


def test_a_leader_that_is_cut_off_from_zookeeper_makes_room_for_another(
    start, zookeeper, zookeeper_server, marks
):
    with TcpProxy(zookeeper_server.address) as proxy:
        through_proxy = zookeeper.replace(zookeeper_server.address, proxy.address)
        leader = start("leader", through_proxy, *SHORT_SESSION)
        before = leader.wait_for("running")
        standby = start("standby", zookeeper, "--standby")
        standby.says("is led by")
        proxy.hang()
        after = standby.wait_for("running")
        assert attempts(after) == attempts(before)
        proxy.heal()
        assert leader.exit_code() == EXIT_LOCKED
        ends_well(standby, marks)


def test_a_zookeeper_that_freezes_costs_the_job_nothing(start, own_zookeeper, marks):
    one = start("one", own_zookeeper.url(), "--standby", *SHORT_SESSION)
    before = one.wait_for("running")
    other = start("other", own_zookeeper.url(), "--standby", *SHORT_SESSION)
    other.says("is led by")
    with own_zookeeper.frozen():
        # Longer than the session lasts: whether it survives is the server's to say.
        assert stays(lambda: other.job() == {}, 3.0), "no leader while the leader is not known"
    (marks / "finish").touch()
    after = eventually(
        lambda: next((job for s in (one, other) if (job := s.job()).get("phase") == "done"), None),
        seconds=60,
        what="an end of the job",
    )
    assert after["verdict"]["outcome"] == "succeeded"
    assert attempts(after) == attempts(before)
    started_once(marks)


@pytest.mark.parametrize("how", [pytest.param("cut", marks=pytest.mark.soak), "hang"])
def test_a_leader_that_is_cut_off_from_mesos_keeps_the_job_and_finds_its_way_back(
    start, zookeeper, cluster, marks, how
):
    with TcpProxy(cluster.master) as proxy:
        leader = start("leader", zookeeper, master=proxy.address)
        before = leader.wait_for("running")
        known = framework(leader)
        getattr(proxy, how)()
        leader.says("disconnected from the master")
        assert leader.job()["phase"] == "running"
        proxy.heal()
        eventually(lambda: leader.log.count("registered with") >= 2, seconds=60)
        assert framework(leader) == known
        assert attempts(ends_well(leader, marks)) == attempts(before)


def test_a_framework_that_the_master_has_removed_meanwhile_is_explained_and_replaced(
    start, zookeeper, cluster, marks
):
    first = start("first", zookeeper)
    first.wait_for("running")
    known = framework(first)
    first.kill()
    body = f"frameworkId={known}".encode()
    with urllib.request.urlopen(f"http://{cluster.master}/teardown", body) as answer:
        assert answer.status == 200
    second = start("second", zookeeper)
    second.says("has been removed; subscribing as a new framework")
    job = second.wait_for("running")
    assert framework(second) != known
    assert "has been removed" in str(job["incidents"])
    assert not any(incident["charged"] for incident in job["incidents"])
    (marks / "finish").touch()
    assert second.wait_for("done")["verdict"]["outcome"] == "succeeded"
