"""Secrets and limits of tasks on the embedded cluster: as on Mesos, or refused by name."""

import base64
import http.client
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from embedded_mesos import EmbeddedCluster
from masters.mesos_scheduler import Scheduler, task
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., EmbeddedCluster]

SECRET = "only-for-the-task"


def value(text: str = SECRET) -> Json:
    data = base64.b64encode(text.encode()).decode()
    return {"type": "VALUE", "value": {"data": data}}


def secret_file(path: str, secret: Json) -> Json:
    source = {"type": "SECRET", "secret": secret}
    return {"type": "MESOS", "volumes": [{"container_path": path, "mode": "RO", "source": source}]}


def limits(*wanted: Json) -> Json:
    return {"type": "MESOS", "rlimit_info": {"rlimits": list(wanted)}}


def all_files(cluster: EmbeddedCluster) -> bytes:
    below = Path(cluster.agents[0].identity.work_dir).parent
    return b"".join(p.read_bytes() for p in below.rglob("*") if p.is_file())


def sandbox(cluster: EmbeddedCluster) -> Path:
    agents = Path(cluster.agents[0].identity.work_dir).parent
    (found,) = agents.glob("*/slaves/*/frameworks/*/executors/*/runs/*")
    return found


def test_a_task_reads_a_secret_file_that_no_other_user_may(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    seen = tmp_path / "seen"
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        command = f"stat -L -c %a conf/key > {seen}; cat conf/key >> {seen}"
        container = secret_file("conf/key", value())
        scheduler.launch(offer, task(offer, "t", command, container=container))
        scheduler.run_until("t", "TASK_FINISHED")
    assert seen.read_text() == f"600\n{SECRET}"


def test_a_secret_file_is_gone_with_its_task(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        container = secret_file("key", value())
        scheduler.launch(offer, task(offer, "t", "cat key > /dev/null", container=container))
        scheduler.run_until("t", "TASK_FINISHED")
        eventually(lambda: not (sandbox(cluster) / "key").exists(), what="the end of the file")
    assert SECRET.encode() not in all_files(cluster)


def test_the_agents_file_api_does_not_read_secrets(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(
            offer, task(offer, "t", "sleep 100", container=secret_file("key", value()))
        )
        scheduler.run_until("t", "TASK_RUNNING")
        path = sandbox(cluster) / "key"
        assert path.exists()
        agent = next(a for a in cluster.agents if path.is_relative_to(a.identity.work_dir))
        for call in ("read", "download"):
            connection = http.client.HTTPConnection(agent.identity.ip, agent.identity.port)
            query = urllib.parse.urlencode({"path": str(path), "offset": 0})
            connection.request("GET", f"/files/{call}?{query}")
            assert connection.getresponse().status == 404
            connection.close()


def test_no_secret_variable_is_in_what_master_and_agents_show(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        variable = {"name": "S", "type": "SECRET", "secret": value()}
        command = {"value": "sleep 100", "environment": {"variables": [variable]}}
        scheduler.launch(offer, task(offer, "t", command))
        scheduler.run_until("t", "TASK_RUNNING")
        encoded = base64.b64encode(SECRET.encode()).decode()
        addresses = [
            cluster.master,
            *(f"{a.identity.ip}:{a.identity.port}" for a in cluster.agents),
        ]
        for address in addresses:
            for path in ("/state", "/tasks", "/frameworks"):
                connection = http.client.HTTPConnection(address)
                connection.request("GET", path)
                body = connection.getresponse().read().decode()
                connection.close()
                assert SECRET not in body
                assert encoded not in body


def test_a_limit_holds_for_the_task_and_not_for_its_executor(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster = make_cluster()
    seen = tmp_path / "seen"
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        wanted = limits({"type": "RLMT_NOFILE", "soft": 77, "hard": 99}, {"type": "RLMT_CORE"})
        command = f"(ulimit -Sn; ulimit -Hn; ulimit -c) > {seen}"
        scheduler.launch(offer, task(offer, "t", command, container=wanted))
        scheduler.run_until("t", "TASK_FINISHED")
    assert seen.read_text().split() == ["77", "99", "unlimited"]


def test_a_limit_that_cannot_be_set_fails_the_task_with_the_reason(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        # The soft limit above the hard one: no user may do that.
        wanted = limits({"type": "RLMT_NOFILE", "soft": 9, "hard": 8})
        scheduler.launch(offer, task(offer, "t", "true", container=wanted))
        scheduler.run_until("t", "TASK_FAILED")
        assert (
            "Failed to set the limit RLMT_NOFILE to 9, 8"
            in (sandbox(cluster) / "stderr").read_text()
        )


REFERENCE = {"type": "REFERENCE", "reference": {"name": "team/key"}}


@pytest.mark.parametrize(
    ("container", "named"),
    [
        (secret_file("key", REFERENCE), "secrets of type REFERENCE (volume 'key')"),
        (secret_file("/etc/key", value()), "secrets outside of the sandbox ('/etc/key')"),
        (secret_file("../key", value()), "secrets outside of the sandbox ('../key')"),
        (
            {
                "type": "MESOS",
                "volumes": [{"container_path": "d", "host_path": "/d", "mode": "RW"}],
            },
            "container volumes that are no secrets ('d')",
        ),
        (limits({"type": "RLMT_DREAMS"}), "the limit RLMT_DREAMS"),
        (
            limits({"type": "RLMT_CORE", "soft": 1}),
            "the limit RLMT_CORE without both of 'soft' and 'hard'",
        ),
        (
            {"type": "MESOS", "linux_info": {"ipc_mode": "PRIVATE", "shm_size": 64}},
            "'container.linux_info'",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(
    container: Json, named: str, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()
    with Scheduler(cluster.master) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, "t", "true", container=container))
        status = scheduler.update("t")
        assert status["state"] == "TASK_ERROR"
        assert status["message"] == f"Not supported by the embedded cluster: {named}"


def test_the_secrets_of_a_cluster_that_was_killed_are_removed_by_the_next(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    left = tmp_path / "cluster-0" / "agents" / "0-secrets" / "container" / "0"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps(SECRET))
    make_cluster()
    assert not left.exists()
