"""Apps run for real: fetched, started, checked, restarted, replaced and ended."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded_mesos import APPS_ROLE, EmbeddedCluster
from embedded_mesos.master.allocator import meets_constraints
from local_dcos.mesos.mesos_client import MesosClient
from masters.mesos_scheduler import Scheduler
from servers.web_server import Files, served_folder
from untrusted_input.process_table import start_time
from waiting import eventually

from .conftest import WHO, MakeWorld
from .world import World

APPS = "/service/marathon/v2/apps"
SERVE = f"exec {sys.executable} -m http.server --bind 127.0.0.1 $PORT0"


def create(world: World, **definition: Any) -> dict[str, Any]:
    app = {"id": "app", "cpus": 0.1, "mem": 32, "backoffSeconds": 0.01, **definition}
    reply = world.ask("POST", APPS, app)
    assert reply.status == 201, reply
    return dict(reply.json())


def sandbox(world: World) -> Path:
    running(world)
    return world.sandbox("/app")


def running(world: World, app_id: str = "/app") -> dict[str, Any]:
    def one() -> dict[str, Any] | None:
        tasks = world.app(app_id)["tasks"]
        return tasks[0] if tasks and tasks[0]["state"] == "TASK_RUNNING" else None

    found = eventually(one, what=f"{app_id} to run")
    assert found is not None
    return found


@pytest.fixture
def bare(make_world: MakeWorld) -> World:
    return make_world()


class Asked(Files):
    asked: list[int]

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        self.asked.append(int(code))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[str, Path, list[int]]]:
    """A web server: its address, its folder, and the statuses of its answers."""
    folder = tmp_path / "www"
    folder.mkdir()
    asked: list[int] = []
    with served_folder(folder, type("Handler", (Asked,), {"asked": asked})) as url:
        yield url, folder, asked


def test_a_task_gets_the_variables_of_marathon_and_its_own(bare: World) -> None:
    create(bare, cmd="env > all; sleep 600", env={"MINE": "yes"}, labels={"a.b": "c"})
    path = sandbox(bare) / "all"
    text = eventually(lambda: path.read_text() if path.exists() else "")
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert found["MINE"] == "yes"
    assert found["MARATHON_APP_ID"] == "/app"
    assert found["MARATHON_APP_LABEL_A_B"] == "c"
    assert found["PORT0"] == found["PORT"] == found["PORTS"]
    assert found["MESOS_SANDBOX"] == str(path.parent)
    assert found["DCOS_TENSORFLOW_MASTER"].startswith("127.0.0.1:")


def test_a_secret_is_read_from_its_file(bare: World, tmp_path: Path) -> None:
    secret = tmp_path / "dcos" / "secrets" / "tf" / "key"
    secret.parent.mkdir(parents=True)
    secret.write_text("hidden")
    create(
        bare,
        cmd="echo $KEY; sleep 600",
        env={"KEY": {"secret": "s"}},
        secrets={"s": {"source": "tf/key"}},
    )
    path = sandbox(bare) / "stdout"
    eventually(lambda: path.read_text() == "hidden\n")


def test_a_missing_secret_is_named_as_the_reason(bare: World) -> None:
    create(bare, cmd="true", env={"K": {"secret": "s"}}, secrets={"s": {"source": "tf/key"}})
    failure = eventually(lambda: bare.app("/app").get("lastTaskFailure"))
    assert "there is no secret 'tf/key'" in failure["message"]


def test_a_failed_fetch_is_told_as_the_reason_and_the_sandbox_says_of_what(bare: World) -> None:
    create(bare, cmd="true", fetch=[{"uri": "http://127.0.0.1:1/none.zip"}])
    failure = eventually(lambda: bare.app("/app").get("lastTaskFailure"))
    assert "Failed to fetch all URIs" in failure["message"]
    log = f"/system/v1/logs/v2/task/{failure['taskId']}/file/stderr"
    assert b"http://127.0.0.1:1/none.zip" in bare.ask("GET", log).body


def test_a_cached_artifact_is_downloaded_once_and_asked_for_each_time(
    bare: World, files: tuple[str, Path, list[int]]
) -> None:
    address, folder, asked = files
    (folder / "data.txt").write_text("one")
    fetch = [{"uri": f"{address}/data.txt", "cache": True}]
    create(bare, cmd="sleep 600", fetch=fetch)
    first = running(bare)["id"]
    bare.ask("DELETE", f"{APPS}/app/tasks/{first}")
    eventually(lambda: running(bare)["id"] != first)
    assert asked == [200, 304]
    assert (sandbox(bare) / "data.txt").read_text() == "one"


def test_an_artifact_that_was_built_anew_is_downloaded_anew(
    bare: World, files: tuple[str, Path, list[int]]
) -> None:
    address, folder, _ = files
    artifact = folder / "data.txt"
    artifact.write_text("one")
    os.utime(artifact, (1, 1))
    create(bare, cmd="sleep 600", fetch=[{"uri": f"{address}/data.txt", "cache": True}])
    first = running(bare)["id"]
    artifact.write_text("two")
    bare.ask("DELETE", f"{APPS}/app/tasks/{first}")
    eventually(lambda: running(bare)["id"] != first)
    assert (sandbox(bare) / "data.txt").read_text() == "two"


def test_a_command_that_fails_is_started_again(bare: World) -> None:
    create(bare, cmd="exit 3")
    eventually(lambda: len(bare.ended()) >= 2)
    failure = bare.app("/app")["lastTaskFailure"]
    assert failure["message"] == "Command exited with status 3"


def test_after_a_failure_the_queue_tells_how_long_it_waits(bare: World) -> None:
    create(bare, cmd="exit 3", backoffSeconds=600)
    # The first start is in the queue as well, without a delay, and leaves it.
    held = eventually(
        lambda: [
            entry["app"]["id"]
            for entry in bare.get("/service/marathon/v2/queue")["queue"]
            if entry["delay"]["timeLeftSeconds"]
        ]
    )
    assert held == ["/app"]
    assert bare.ask("DELETE", "/service/marathon/v2/queue/app/delay").status == 204
    eventually(lambda: len(bare.ended()) >= 2)


def test_a_task_that_stays_unhealthy_is_killed_and_replaced(bare: World) -> None:
    check = {
        "protocol": "MESOS_HTTP",
        "path": "/",
        "gracePeriodSeconds": 0,
        "intervalSeconds": 0.05,
        "timeoutSeconds": 1,
        "maxConsecutiveFailures": 2,
    }
    create(bare, cmd="sleep 600", healthChecks=[check])
    eventually(bare.ended)
    assert "it was unhealthy" in bare.app("/app")["lastTaskFailure"]["message"]


@pytest.mark.parametrize(
    "check",
    [
        {"protocol": "TCP", "portIndex": 0},
        {"protocol": "MESOS_HTTP", "portIndex": 0, "path": "/"},
        {"protocol": "COMMAND", "command": {"value": "test -n $PORT0"}},
    ],
)
def test_a_task_is_found_healthy_by_every_kind_of_check(bare: World, check: Any) -> None:
    create(bare, cmd=SERVE, healthChecks=[check])
    eventually(lambda: bare.app("/app")["tasksHealthy"] == 1)


def test_an_update_replaces_the_task_with_the_new_definition(bare: World) -> None:
    create(bare, cmd="sleep 600", env={"A": "1"})
    first = running(bare)["id"]
    eventually(lambda: not bare.app("/app")["deployments"])
    reply = bare.ask("PUT", f"{APPS}/app", {"env": {"A": "2"}})
    assert reply.status == 200
    eventually(lambda: running(bare)["id"] != first)
    assert bare.app("/app")["env"] == {"A": "2"}
    assert len(bare.get(f"{APPS}/app/versions")["versions"]) == 2


def test_a_restart_keeps_the_version_before(bare: World) -> None:
    create(bare, cmd="sleep 600")
    before = bare.get(f"{APPS}/app/versions")["versions"]
    assert bare.ask("POST", f"{APPS}/app/restart?force=true").status == 200
    assert bare.get(f"{APPS}/app/versions")["versions"][1:] == before


def test_a_task_that_is_replaced_answers_no_more_once_the_change_is_answered(bare: World) -> None:
    labels = {"DCOS_SERVICE_NAME": "app", "DCOS_SERVICE_PORT_INDEX": "0"}
    at_once = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}
    create(bare, cmd=SERVE, labels=labels, upgradeStrategy=at_once)
    for number in range(5):
        eventually(lambda: bare.ask("GET", "/service/app/").status == 200)
        assert bare.ask("PUT", f"{APPS}/app?force=true", {"env": {"A": str(number)}}).status == 200
        assert bare.ask("GET", "/service/app/").status == 502


def test_marathon_answers_at_its_old_address_too(bare: World) -> None:
    create(bare, cmd="sleep 600")
    assert [app["id"] for app in bare.get("/marathon/v2/apps")["apps"]] == ["/app"]


def test_scaling_leaves_the_running_task_alone(bare: World) -> None:
    create(bare, cmd="sleep 600")
    first = running(bare)["id"]
    bare.ask("PUT", f"{APPS}/app?force=true", {"instances": 2})
    eventually(lambda: bare.app("/app")["tasksRunning"] == 2)
    assert first in [one["id"] for one in bare.app("/app")["tasks"]]


def test_an_app_in_deployment_is_locked(bare: World) -> None:
    create(bare, cmd="sleep 600", healthChecks=[{"protocol": "TCP", "portIndex": 0}])
    reply = bare.ask("PUT", f"{APPS}/app", {"instances": 2})
    assert reply.status == 409
    assert bare.ask("PUT", f"{APPS}/app?force=true", {"instances": 0}).status == 200


def test_a_refused_update_changes_nothing(bare: World) -> None:
    create(bare, cmd="sleep 600")
    before = running(bare)["id"]
    eventually(lambda: not bare.app("/app")["deployments"])
    reply = bare.ask("PUT", f"{APPS}/app", {"container": {"type": "DOCKER"}})
    assert reply.status == 422
    assert reply.json()["details"][0]["path"] == "/container/type"
    assert running(bare)["id"] == before


def test_a_deleted_app_leaves_no_process_behind(bare: World) -> None:
    create(bare, cmd="sleep 600 & echo $! > child; sleep 600", taskKillGracePeriodSeconds=1)
    path = sandbox(bare) / "child"
    child = int(eventually(lambda: path.exists() and path.read_text()))
    assert bare.ask("DELETE", f"{APPS}/app?force=true").status == 200
    bare.gone("/app")
    assert start_time(child) is None


def test_what_a_shell_started_has_its_grace_although_the_shell_is_gone(bare: World) -> None:
    inner = "trap 'sleep 0.3; echo tidy; exit' TERM; touch ready; while true; do sleep 0.05; done"
    create(bare, cmd=f'sh -c "{inner}"; true', taskKillGracePeriodSeconds=10)
    path = sandbox(bare)
    eventually((path / "ready").exists)
    bare.ask("DELETE", f"{APPS}/app?force=true")
    bare.gone("/app")
    assert (path / "stdout").read_text() == "tidy\n"


def test_a_task_that_ignores_sigterm_is_killed_after_its_grace(bare: World) -> None:
    create(
        bare,
        cmd="trap '' TERM; touch ready; while true; do sleep 0.05; done",
        taskKillGracePeriodSeconds=0.2,
    )
    path = sandbox(bare)
    eventually((path / "ready").exists)
    bare.ask("DELETE", f"{APPS}/app?force=true")
    bare.gone("/app")


def test_an_app_takes_nothing_from_what_jobs_are_offered(
    bare: World, cluster: EmbeddedCluster
) -> None:
    create(bare, cmd="sleep 600", cpus=2, mem=4096)
    agent = running(bare)["slaveId"]
    with Scheduler(cluster.master, credentials=WHO) as job:
        whole = job.offer(least_cpus=2)
        assert whole["agent_id"]["value"] != agent
        assert whole["hostname"] != "localhost"


def test_marathon_is_never_offered_what_is_for_jobs(bare: World, cluster: EmbeddedCluster) -> None:
    create(bare, cmd="sleep 600")
    app = running(bare)["slaveId"]
    marathon = cluster.core.state.frameworks[bare.dcos.marathon.framework_id]
    refused = {one.agent_id for one in marathon.filters}
    assert refused <= {app}
    for_jobs = [one for one in cluster.core.state.agents.values() if one.agent_id != app]
    assert for_jobs
    assert not any(meets_constraints(marathon.constraints, APPS_ROLE, one) for one in for_jobs)


def test_the_ports_of_apps_are_those_of_their_agent_and_required_ones_are_kept(
    bare: World,
) -> None:
    create(
        bare,
        cmd="sleep 600",
        portDefinitions=[{"port": 10123}, {"port": 0}],
        requirePorts=True,
    )
    first, second = running(bare)["ports"]
    assert first == 10123
    assert 20000 <= second <= 30999


def test_marathon_comes_back_as_another_framework_when_it_was_shut_down(
    bare: World, cluster: EmbeddedCluster
) -> None:
    create(bare, cmd="sleep 600")
    before, first = running(bare)["id"], bare.dcos.marathon.framework_id
    MesosClient(cluster.master, WHO).teardown(first)
    eventually(lambda: (tasks := bare.app("/app")["tasks"]) and tasks[0]["id"] != before)
    running(bare)
    assert bare.get("/service/marathon/v2/info")["frameworkId"] != first


def test_a_second_health_check_is_refused_by_name(bare: World) -> None:
    check = {"protocol": "TCP", "portIndex": 0}
    app = {"id": "app", "cmd": "true", "healthChecks": [check, check]}
    reply = bare.ask("POST", APPS, app)
    assert (reply.status, reply.json()["details"][0]["path"]) == (422, "/healthChecks/1")


def test_apps_come_back_with_the_local_dcos(make_world: MakeWorld, tmp_path: Path) -> None:
    first = make_world(folder=tmp_path / "own")
    create(first, cmd="sleep 600")
    running(first)
    address = first.dcos.address
    cluster_id = first.get("/metadata")["CLUSTER_ID"]
    first.dcos.stop()
    first.dcos.start()
    assert running(first)["state"] == "TASK_RUNNING"
    assert first.dcos.address == address
    assert first.get("/metadata")["CLUSTER_ID"] == cluster_id


def test_a_request_that_marathon_here_does_not_know_is_refused_by_name(bare: World) -> None:
    reply = bare.ask("GET", "/service/marathon/v2/events")
    assert reply.status == 501
    assert "/v2/events" in reply.json()["message"]


def test_only_the_sandboxes_of_the_last_ended_tasks_of_apps_stay(bare: World) -> None:
    create(bare, cmd="exit 1", backoffFactor=1)
    eventually(lambda: len(bare.ended()) >= 8, what="eight ended tasks")
    # Else the next ones end while these are looked for.
    bare.ask("PUT", f"{APPS}/app?force=true", {"instances": 0})
    gateway = MesosClient(bare.get("/mesos/state")["leader"].rpartition("@")[2], WHO)

    def bounded() -> bool:
        sandboxes = [gateway.sandbox_of(task["id"]) for task in bare.ended()]
        return 1 <= sum(1 for path in sandboxes if path is not None and path.exists()) <= 5

    eventually(bounded, what="the older sandboxes to be gone")
