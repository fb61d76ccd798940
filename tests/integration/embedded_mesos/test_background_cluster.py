"""The cluster in the background: up, status, down."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import embedded_mesos
from cluster_faults import FaultyCluster, background, door
from dcos_tensorflow.deploy.embedded.machine import AgentWishes, agents
from embedded_mesos import AgentConfig, BackgroundProcessError, Credential
from masters.mesos_scheduler import Scheduler, task
from processes import alive
from waiting import eventually

MakeCluster = Callable[..., FaultyCluster]


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "state"
    yield path
    embedded_mesos.down(path)


def test_cluster_answers_when_up_returns_and_is_gone_after_down(state_dir: Path) -> None:
    found = embedded_mesos.up(state_dir, agents(AgentWishes(agents=2, cpus=1, gpus=1), state_dir))
    assert found.answering
    with Scheduler(found.master, credentials=found.credential) as scheduler:
        offers = [scheduler.offer("127.0.0.1"), scheduler.offer("127.0.0.2")]
        ports = [
            (r["ranges"]["range"][0]["begin"], r["ranges"]["range"][0]["end"])
            for offer in offers
            for r in offer["resources"]
            if r["name"] == "ports"
        ]
        # Others than these where another cluster of the machine has them.
        assert [last - first for first, last in ports] == [999, 999]
        assert ports[0][1] + 1 == ports[1][0]
        scheduler.launch(offers[0], task(offers[0], "t", "sleep 100"))
        pid = scheduler.run_until("t", "TASK_RUNNING")["container_status"]["executor_pid"]
        assert embedded_mesos.down(state_dir)
    eventually(lambda: not alive(pid), what="the task's end")
    assert not alive(found.pid)
    assert embedded_mesos.status(state_dir) is None


def asked(url: str, header: dict[str, str], body: Any = None) -> tuple[int, Any]:
    """Return status and JSON of the answer; None where it is none."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **header}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, None


def test_a_client_without_the_secret_can_neither_act_nor_read(state_dir: Path) -> None:
    found = embedded_mesos.up(state_dir, [AgentConfig()])
    known = found.credential.header()
    strangers = ({}, Credential(found.credential.principal, "guessed").header())
    with Scheduler(found.master, credentials=found.credential) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, "t", "echo hush; exec sleep 100"))
        scheduler.run_until("t", "TASK_RUNNING")
        master = f"http://{found.master}"
        (entry,) = asked(f"{master}/slaves", known)[1]["slaves"]
        agent = f"http://{entry['pid'].partition('@')[2]}"
        (framework,) = asked(f"{agent}/state", known)[1]["frameworks"]
        sandbox = framework["executors"][0]["directory"]
        reads = (
            *(f"{master}/{path}" for path in ("state", "tasks", "metrics/snapshot")),
            f"{agent}/state",
            f"{agent}/files/browse?path={sandbox}",
            f"{agent}/files/read?path={sandbox}/stdout&offset=0",
        )
        for url in reads:
            assert [asked(url, header)[0] for header in (*strangers, known)] == [401, 401, 200], url
        for kind in ("SUBSCRIBE", "ACCEPT", "KILL"):
            call = {"type": kind, "framework_id": {"value": scheduler.framework_id}}
            for header in strangers:
                assert asked(f"{master}/api/v1/scheduler", header, call)[0] == 401
        for path in ("api/v1", "teardown", "machine/down", "quota", "reserve"):
            assert asked(f"{master}/{path}", {}, {"type": "GET_AGENTS"})[0] == 401


def test_the_secret_is_this_users_alone_and_on_no_command_line(state_dir: Path) -> None:
    found = embedded_mesos.up(state_dir, [AgentConfig()])
    file = embedded_mesos.credential_file(state_dir)
    assert json.loads(file.read_text())["secret"] == found.credential.secret
    assert file.stat().st_mode & 0o777 == 0o600
    for folder in (state_dir, state_dir / "work"):
        assert folder.stat().st_mode & 0o777 == 0o700
    for shown in ("cmdline", "environ"):
        text = Path(f"/proc/{found.pid}/{shown}").read_bytes()
        assert found.credential.secret.encode() not in text
    assert found.credential.secret not in repr(found)


def test_the_next_cluster_of_a_folder_asks_for_the_same_secret(state_dir: Path) -> None:
    before = embedded_mesos.up(state_dir, [AgentConfig()]).credential
    embedded_mesos.down(state_dir)
    assert embedded_mesos.up(state_dir, [AgentConfig()]).credential == before


def test_second_up_finds_the_first(state_dir: Path) -> None:
    first = embedded_mesos.up(state_dir, [AgentConfig()])
    assert embedded_mesos.up(state_dir, [AgentConfig(cpus=3)]) == first


def test_files_of_a_killed_cluster_are_no_cluster(state_dir: Path) -> None:
    first = embedded_mesos.up(state_dir, [AgentConfig()])
    os.kill(first.pid, signal.SIGKILL)
    eventually(
        lambda: embedded_mesos.status(state_dir) is None, what="the stale files to be seen as such"
    )
    second = embedded_mesos.up(state_dir, [AgentConfig()])
    assert second.pid != first.pid
    assert second.answering


def test_a_cluster_whose_folder_was_removed_ends(state_dir: Path) -> None:
    found = embedded_mesos.up(state_dir, agents(AgentWishes(agents=1), state_dir))
    state_dir.rename(state_dir.with_name("moved away"))
    eventually(lambda: not alive(found.pid), what="the cluster's end")


def test_process_id_of_another_process_is_no_cluster(state_dir: Path) -> None:
    state_dir.mkdir()
    with subprocess.Popen(["sleep", "100"]) as other:
        record = {"pid": other.pid, "started": 1, "master": "127.0.0.1:1", "agents": []}
        (state_dir / "cluster.json").write_text(json.dumps(record))
        assert embedded_mesos.status(state_dir) is None
        assert not embedded_mesos.down(state_dir)
        assert other.poll() is None
        other.kill()


def test_up_says_why_the_cluster_cannot_start(state_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BackgroundProcessError, match="Address already in use"):
            embedded_mesos.up(state_dir, [AgentConfig()], port=taken.getsockname()[1])


def test_down_of_nothing_says_so(tmp_path: Path) -> None:
    assert not embedded_mesos.down(tmp_path / "nothing")


def test_faults_are_ordered_from_another_process(state_dir: Path) -> None:
    found, faults = background.up(state_dir, [AgentConfig()])
    with Scheduler(found.master, credentials=found.credential) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, "t", "exec sleep 100"))
        scheduler.run_until("t", "TASK_RUNNING")
        (pid,) = door.order(faults, "task_pids", task_id="t")
        door.order(faults, "drain_agent", agent=0, max_grace_seconds=0.5)
        assert scheduler.run_until("t", "TASK_KILLED")["reason"] == "REASON_AGENT_DRAINING"
        eventually(lambda: not alive(pid), what="the task's end")


def test_killed_cluster_leaves_no_frozen_process_behind(state_dir: Path) -> None:
    found, faults = background.up(state_dir, [AgentConfig()])
    with Scheduler(found.master, credentials=found.credential) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, "t", "setsid sleep 100 & sleep 100"))
        scheduler.run_until("t", "TASK_RUNNING")
        pids = eventually(lambda: _three(faults), what="every process of the task")
        door.order(faults, "freeze_agent", agent=0, tasks=True)
        os.kill(found.pid, signal.SIGKILL)
        eventually(lambda: not any(map(alive, pids)), what="the end of every process")


def _three(faults: str) -> list[int]:
    pids: list[int] = door.order(faults, "task_pids", task_id="t")
    return pids if len(pids) == 3 else []


def test_faults_can_be_ordered_while_there_is_no_master(state_dir: Path) -> None:
    found, faults = background.up(state_dir, [AgentConfig()])
    door.order(faults, "stop_master")
    gone = embedded_mesos.status(state_dir)
    assert gone is not None
    assert not gone.answering
    door.order(faults, "start_master")
    with Scheduler(found.master, credentials=found.credential) as scheduler:
        scheduler.offer()


@pytest.mark.parametrize(
    ("fault", "arguments", "why"),
    [
        ("set_on_fire", {}, "no fault 'set_on_fire'; there are agent_id, agent_of, cancel_main"),
        ("crash_agent", {"agent": 7}, "there is no such agent"),
        ("crash_agent", {"host": 0}, "missing a required argument: 'agent'"),
        ("kill_executor", {"task_id": "t"}, "no agent has a container of task t"),
    ],
)
def test_fault_that_cannot_be_is_refused_by_name(
    fault: str, arguments: dict[str, object], why: str, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()
    server = door.make_server(("127.0.0.1", 0), cluster.faults)
    server.start()
    with pytest.raises(ValueError, match=re.escape(why)):
        door.order(f"127.0.0.1:{server.server_address[1]}", fault, **arguments)
    server.stop()
