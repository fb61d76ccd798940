"""The app that the package renders, run as Marathon runs it, with the real scheduler in it."""

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.client import KazooClient

from command_line import CommandLine
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

from .conftest import Fetched

SMALL = {"cpus": 0.1, "mem": 64, "disk": 16}
JOB: dict[str, Any] = {
    "service": {
        "job_cmd": 'test "$GREETING" = "say \\"hi\\"" && echo done',
        "strategy": "independent",
        "outcome": "all_workers",
        "python": sys.executable,
        "user": "",
        "env": '{"GREETING": "say \\"hi\\""}',
    },
    "worker": {**SMALL, "count": 2},
    "parameter_server": {"count": 0},
}


def with_options(**sections: dict[str, Any]) -> dict[str, Any]:
    return {**JOB, **{name: {**JOB.get(name, {}), **more} for name, more in sections.items()}}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("fetched", ["checkout", pytest.param("artifact", marks=pytest.mark.soak)])
def test_the_app_deploys_its_job_and_answers_for_it(
    start: Callable[..., Any], request: pytest.FixtureRequest, fetched: str
) -> None:
    options = with_options(service={"name": "team/mnist"})
    running = start(request.getfixturevalue(fetched), options)
    eventually(lambda: running.get("/v1/plans/deploy")[0] == 200, seconds=60, what="the deploy")
    found = eventually(
        lambda: (running.get("/v1/job")[1] or {}).get("verdict"), seconds=60, what="the job's end"
    )
    assert found["outcome"] == "succeeded", found
    assert 200 <= running.get("/v1/health")[0] < 400
    assert len(running.get("/v1/state/frameworkId")[1]) == 1
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(30) == 0


@pytest.mark.parametrize(
    ("section", "options", "message"),
    [
        ("service", {"tensorflow_version": "1.0.0", "python": ""}, "service.tensorflow_version"),
        # What is judged, and how, the tests of ``options`` show.
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in (
                ("service", {"job_name": "train"}, "service.job_cmd: both"),
                ("worker", {"placement_constraint": "[["}, "worker.placement_constraint"),
                (
                    *("cluster_spec", {"addressing": "dns", "dns_domain": "a b"}),
                    "cluster_spec.dns_domain",
                ),
            )
        ),
    ],
)
def test_options_that_only_the_scheduler_can_judge_end_it_with_their_path(
    start: Callable[..., Any],
    checkout: Fetched,
    section: str,
    options: dict[str, Any],
    message: str,
) -> None:
    ended = start(checkout, with_options(**{section: options}))
    assert ended.process.wait(60) == 2
    assert message in ended.output.read_text()


def nodes(server: ZooKeeperServer) -> set[str]:
    """Return the paths of everything in ZooKeeper that is not its own."""
    client = KazooClient(server.address)
    client.start()
    found, look = set(), ["/"]
    while look:
        path = look.pop()
        below = [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
        below = [one for one in below if not one.startswith("/zookeeper")]
        found |= set(below)
        look += below
    client.stop()
    client.close()
    return found


@pytest.mark.zookeeper
@pytest.mark.timeout(300)
def test_an_uninstall_as_cosmos_does_it_leaves_nothing_in_zookeeper_and_mesos(
    start: Callable[..., Any],
    checkout: Fetched,
    own_zookeeper: ZooKeeperServer,
    cluster: CommandLine,
) -> None:
    options = with_options(service={"name": "team/gone", "job_cmd": "sleep 600"})
    state = {"DCOS_TENSORFLOW_STATE": own_zookeeper.url()}
    first = start(checkout, options, **state)
    eventually(lambda: first.get("/v1/plans/deploy")[0] == 200, seconds=60, what="the deploy")
    assert "/dcos-service-team__gone" in nodes(own_zookeeper)
    first.process.kill()
    first.process.wait()
    uninstalling = start(checkout, options, SDK_UNINSTALL="true", **state)
    eventually(lambda: uninstalling.get("/v1/plans/deploy")[0] == 200, seconds=60, what="its end")
    assert uninstalling.get("/v1/state/frameworkId")[0] == 404
    uninstalling.process.send_signal(signal.SIGTERM)
    assert uninstalling.process.wait(30) == 0
    assert nodes(own_zookeeper) == set()
    found = json.loads(cluster.mesos("/state"))
    assert "team/gone" not in [one["name"] for one in found["frameworks"]]
    assert [one["reserved_resources"] for one in found["slaves"]] == [{}]
