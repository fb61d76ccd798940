"""The scheduler of one team's job has no right of another team, nor of the queue."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from dcos_tensorflow.queue_service.rights import api_token
from embedded_mesos import Credential
from jobs.zookeeper_queue import LOGINS, ZooKeeperQueue
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(400)]

UNTIL = "until test -e {}; do sleep 0.1; done"


@pytest.fixture(scope="module")
def queue(
    zookeeper_server: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperQueue]:
    """A queue with a job of each team that runs."""
    folder = tmp_path_factory.mktemp("rights")
    made = ZooKeeperQueue(folder, zookeeper_server, "/rights")
    try:
        for team in ("red", "blue"):
            made.submit(team, f"of-{team}", UNTIL.format(folder / "finish"))
        for team in ("red", "blue"):
            made.address_of(f"of-{team}")
        yield made
    finally:
        (folder / "finish").touch()
        made.end()


def rights_of(queue: ZooKeeperQueue, team: str) -> dict[str, object]:
    """Return what a job's scheduler finds in its sandbox."""
    found: list[dict[str, object]] = []

    def is_there() -> bool:
        for file in (queue.folder / "mesos").rglob("scheduler.json"):
            told = json.loads(file.read_text())
            if told.get("settings", {}).get("principal") == team:
                found.append(told)
        return bool(found)

    eventually(is_there, what=f"a scheduler of {team}")
    return found[0]


def frameworks_of(queue: ZooKeeperQueue) -> dict[str, Any]:
    """Return what the master knows of each framework, by its name."""
    return {one["name"]: one for one in queue.of_master("/state")["frameworks"]}


def asked(address: str, path: str, token: str, method: str = "GET") -> int:
    with closing(http.client.HTTPConnection(address)) as connection:
        connection.request(method, path, headers={"authorization": f"Bearer {token}"})
        return connection.getresponse().status


def test_its_task_has_no_secret_but_its_own_teams(queue: ZooKeeperQueue) -> None:
    told = json.dumps(rights_of(queue, "red"))
    assert LOGINS["red"] in told
    assert LOGINS["blue"] not in told
    assert LOGINS["queue"] not in told


@pytest.mark.parametrize("node", ["dcos-service-of-blue", "dcos-service-queues__queue"])
def test_its_login_reads_nothing_of_others_in_zookeeper(queue: ZooKeeperQueue, node: str) -> None:
    client = KazooClient(
        hosts=queue.zookeeper.address, auth_data=[("digest", f"red:{LOGINS['red']}")]
    )
    client.start()
    try:
        assert client.get_children(f"{queue.chroot}/dcos-service-of-red")
        with pytest.raises(NoAuthError):
            client.get_children(f"{queue.chroot}/{node}")
    finally:
        client.stop()
        client.close()


def test_its_principal_ends_no_framework_of_others(queue: ZooKeeperQueue) -> None:
    others = ("of-blue", "queue-schedulers")
    frameworks: dict[str, Any] = eventually(
        lambda: found if {"of-red", *others} <= (found := frameworks_of(queue)).keys() else None,
        what="the frameworks",
    )
    red = Credential("red", LOGINS["red"])
    assert frameworks["of-red"]["principal"] == "red"
    for name in others:
        call = {"type": "TEARDOWN", "framework_id": {"value": frameworks[name]["id"]}}
        headers = {"content-type": "application/json", **red.header()}
        with closing(http.client.HTTPConnection(queue.cluster.master)) as connection:
            connection.request("POST", "/api/v1/scheduler", json.dumps(call), headers)
            assert connection.getresponse().status >= 400
    assert set(frameworks_of(queue)) == set(frameworks)


def test_its_token_stops_no_job_of_others(queue: ZooKeeperQueue) -> None:
    token = str(rights_of(queue, "red")["token"])
    own, other = (queue.address_of(f"of-{team}") for team in ("red", "blue"))
    assert asked(own, "/v1/plans", api_token(token, "of-red")) == 200
    assert asked(other, "/v1/plans", api_token(token, "of-blue")) == 401
    assert asked(other, "/v1/job/stop", api_token(token, "of-blue"), "POST") == 401


def test_its_token_asks_the_queue_for_no_job_of_others(queue: ZooKeeperQueue) -> None:
    token = str(rights_of(queue, "red")["token"])
    served = json.loads((queue.folder / "home" / "queue.json").read_text())["api"]
    assert asked(served, "/v1/schedulers/of-red", token) == 200
    assert asked(served, "/v1/schedulers/of-blue", token) == 401
    assert asked(served, "/v1/schedulers/of-blue/refused", token, "POST") == 401
    assert asked(served, "/v1/jobs", token) == 401


def test_the_queue_sees_how_a_teams_job_has_ended(queue: ZooKeeperQueue) -> None:
    (queue.folder / "finish").touch()
    for team in ("red", "blue"):
        assert queue.until(f"of-{team}", "succeeded")["why"]
