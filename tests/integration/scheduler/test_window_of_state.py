"""The window over a real ZooKeeper: two services, a failover, a dead scheduler, an uninstall."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.state.services import services_at
from scheduler_process import DEADLINE, SHORT_SESSION, SchedulerProcess
from waiting import eventually
from zookeeper_server import ZooKeeperServer

pytestmark = [pytest.mark.timeout(180), pytest.mark.zookeeper]

TOKEN = "the-operator-s-token"


@pytest.fixture
def state(zookeeper_server: ZooKeeperServer) -> str:
    return zookeeper_server.url("/window-of-many")


@pytest.fixture
def begin(
    tmp_path: Path, options: Path, cluster: FaultyCluster, state: str
) -> Iterator[Callable[..., SchedulerProcess]]:
    """Return a function that starts a scheduler process of a service of this name."""
    started: list[SchedulerProcess] = []

    def begin(name: str, process: str, *flags: str) -> SchedulerProcess:
        document = json.loads(options.read_text())
        document["service"]["name"] = name
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(document))
        flags = (*SHORT_SESSION, *flags)
        environment = {
            "DCOS_TENSORFLOW_API_TOKEN": TOKEN,
            "DCOS_TENSORFLOW_API_OPEN": "false",
        }
        one = SchedulerProcess(
            process, tmp_path, file, cluster.master, state, *flags, environment=environment
        )
        started.append(one)
        return one

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def browser(tmp_path: Path, state: str) -> Iterator[httpx.Client]:
    """A browser that has said the token to ``dashboard serve``."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    command = [sys.executable, "-m", "dcos_tensorflow", "dashboard", "serve", "--state", state]
    flags = ["--api-port", "0", "--api-token-file", str(token)]
    process = subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process, httpx.Client(timeout=DEADLINE) as browser:
        address = process.stdout.readline().split()[-1].rstrip(".")
        browser.base_url = httpx.URL(address)
        assert browser.post("/login", headers={"authorization": f"Bearer {TOKEN}"}).is_success
        yield browser
        process.terminate()
    assert process.returncode == 0


def listed(browser: httpx.Client) -> dict[str, dict]:
    return {one["name"]: one for one in browser.get("/services").json()["services"]}


def job(browser: httpx.Client, name: str) -> dict:
    answer = browser.get(f"/services/{name}/v1/job")
    return answer.json() if answer.is_success else {}


def waits(condition: Callable[[], object], what: str) -> None:
    eventually(condition, seconds=DEADLINE, what=what)


def test_services_are_followed_from_scheduler_to_scheduler(begin, browser, state, marks) -> None:
    first, second = begin("first", "leader"), begin("second", "other")
    for name in ("first", "second"):
        waits(lambda name=name: job(browser, name).get("phase") == "running", f"{name} runs")
    assert all(one["served"] for one in listed(browser).values())

    standby = begin("first", "standby", "--standby")
    standby.says("is led by")
    first.kill()
    waits(lambda: standby.api in str(services_at(state, ("Properties/address",))), "it tells")
    waits(lambda: job(browser, "first").get("service") == "first", "the standby is asked")
    answer = browser.post("/services/first/v1/pod/worker-1/pause")
    assert answer.is_success, answer.text

    second.kill()
    waits(lambda: not listed(browser)["second"]["served"], "the second is dead")
    assert job(browser, "second")["service"] == "second"
    answer = browser.post("/services/second/v1/job/stop")
    assert (answer.status_code, "no scheduler serves it" in answer.text) == (409, True)

    assert browser.post("/services/first/v1/uninstall").is_success
    waits(lambda: set(listed(browser)) == {"second"}, "the first is uninstalled")
