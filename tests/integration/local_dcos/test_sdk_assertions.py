"""What the DC/OS SDK's own integration tests assert of a service, asserted of this one.

One service of the project's package, with a chief and two workers, on a local DC/OS. Each assertion
is asked as the SDK's test asks it: by the commands of ``dcos tensorflow``, by Marathon's and by
Mesos' API. ``docs/package.md`` has the table; a row that is missing there, or here, fails.
"""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from dcos_tensorflow.plugin.main import run as run_plugin
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos
from processes import processes
from samples.checkout_package import package_in, repository_of
from waiting import eventually

from .world import World

ROOT = Path(__file__).resolve().parents[3]
NAME = "sdk/tf"
FOLDERED = NAME.replace("/", "__")
_SECONDS = 60.0


class Service:
    """The service, as the SDK's tests reach it."""

    def __init__(self, world: World) -> None:
        self.world = world

    def cli(self, *words: str) -> Any:
        """Return what ``dcos tensorflow`` prints, which must succeed: JSON where it is that."""
        out, err = StringIO(), StringIO()
        environ = {"DCOS_URL": f"http://{self.world.dcos.address}"}
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = run_plugin(["tensorflow", f"--name={NAME}", *words], environ)
            except SystemExit as end:
                code = int(str(end.code or 0))
        assert code == 0, (words, err.getvalue())
        try:
            return json.loads(out.getvalue())
        except ValueError:
            return out.getvalue()

    def ask(self, path: str) -> Any:
        return self.world.ask("GET", f"/service/{NAME}/v1/{path}")

    def tasks(self, prefix: str = "") -> dict[str, Any]:
        """Return the running tasks by id (sdk_tasks.get_service_tasks)."""
        return {
            task["id"]: task
            for framework in self.world.get("/mesos/master/state")["frameworks"]
            if framework["name"] == NAME
            for task in framework["tasks"]
            if task["state"] == "TASK_RUNNING" and task["name"].startswith(prefix)
        }

    def ids(self, prefix: str = "") -> set[str]:
        return set(self.tasks(prefix))

    def is_complete(self, plan: str = "deploy") -> bool:
        answer = self.ask(f"plans/{plan}")
        return answer.status == 200 and answer.json()["status"] == "COMPLETE"

    def completed(self, plan: str = "deploy") -> None:
        eventually(lambda: self.is_complete(plan), seconds=_SECONDS, what=f"plan {plan}")

    def update(self, options: dict[str, Any]) -> None:
        """Change options, and wait as the SDK's tests do: for Marathon, then for the plan."""
        body = {"appId": NAME, "options": options, "replace": False}
        self.world.service("update", body)
        self.world.settled(f"/{NAME}")
        self.completed()


@pytest.fixture(scope="module")
def service(
    cluster: EmbeddedCluster, credential: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("sdk")
    package = package_in(folder)
    config = DcosConfig(
        folder=folder / "dcos",
        master=cluster.master,
        credential=credential,
        uninstall_interval=0.05,
    )
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    options = {
        "service": {
            "name": NAME,
            "user": "",
            # It takes a moment to end, as a training that saves does.
            "job_cmd": "trap 'sleep 1; exit 0' TERM; sleep 600 & wait",
            "strategy": "independent",
        },
        "worker": {"count": 2, **small},
        "chief": {"count": 1, **small},
        "parameter_server": {"count": 0},
    }
    with LocalDcos(config, DcosIntegration()) as dcos:
        world = World(dcos)
        world.cosmos("repository/add", {"name": "real", "uri": repository_of(package, folder)})
        world.cosmos("install", {"packageName": package.name, "options": options})
        world.settled(f"/{NAME}")
        found = Service(world)
        found.completed()
        yield found
        if NAME in "".join(world.app_ids()):
            world.cosmos("uninstall", {"packageName": package.name})
            world.gone(f"/{NAME}")


Check = Callable[[Service], None]
#: The name of the SDK's test and what it asserts -> the same, asked of this service; in order.
CHECKS: dict[str, Check] = {}


def holds(name: str) -> Callable[[Check], Check]:
    """Enter a check under the name of the SDK's test that makes it."""

    def enter(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return enter


# test_sanity.py: what is looked at.


@holds("test_pod_list: every instance is listed, in alphanumerical order")
def _(service: Service) -> None:
    assert service.cli("pod", "list") == ["chief-0", "worker-0", "worker-1"]


@holds("test_pod_status_all: the service has its whole name")
def _(service: Service) -> None:
    assert service.cli("pod", "status", "--json")["service"] == NAME


@holds("test_pod_status_all: instances are named POD-INDEX")
def _(service: Service) -> None:
    for pod in service.cli("pod", "status", "--json")["pods"]:
        for instance in pod["instances"]:
            assert re.fullmatch(rf"{pod['name']}-[0-9]+", instance["name"])


@holds("test_pod_status_all: a task has an id, a name and a status")
def _(service: Service) -> None:
    for task in _pod_tasks(service):
        assert sorted(task) == ["id", "name", "status"]


@holds("test_pod_status_all: a task's id is SERVICE__TASK__UUID")
def _(service: Service) -> None:
    for task in _pod_tasks(service):
        service_name = re.escape(NAME.replace("/", "."))
        assert re.match(rf"(?:{service_name}|{FOLDERED})__[a-z]+-[0-9]+.*__[0-9a-f-]+", task["id"])


@holds("test_pod_status_all: every task is RUNNING")
def _(service: Service) -> None:
    assert {task["status"] for task in _pod_tasks(service)} == {"RUNNING"}


def _pod_tasks(service: Service) -> list[Any]:
    pods = service.cli("pod", "status", "--json")["pods"]
    return [task for pod in pods for one in pod["instances"] for task in one["tasks"]]


@holds("test_pod_status_one: one instance, one task")
def _(service: Service) -> None:
    found = service.cli("pod", "status", "--json", "worker-0")
    assert (found["name"], len(found["tasks"])) == ("worker-0", 1)


@holds("test_pod_status_one: it is RUNNING")
def _(service: Service) -> None:
    assert service.cli("pod", "status", "--json", "worker-0")["tasks"][0]["status"] == "RUNNING"


@holds("test_pod_info: one task, with its info and its status")
def _(service: Service) -> None:
    (task,) = service.cli("pod", "info", "worker-1")
    assert sorted(task) == ["info", "status"]


@holds("test_pod_info: both name the same task id")
def _(service: Service) -> None:
    (task,) = service.cli("pod", "info", "worker-1")
    assert task["info"]["taskId"]["value"] == task["status"]["taskId"]["value"]


@holds("test_pod_info: the state is TASK_RUNNING")
def _(service: Service) -> None:
    (task,) = service.cli("pod", "info", "worker-1")
    assert task["status"]["state"] == "TASK_RUNNING"


@holds("test_task_dns_prefix_points_to_all_tasks: a task is discovered by its pod's name")
def _(service: Service) -> None:
    (task,) = service.cli("pod", "info", "worker-0")
    assert task["info"]["discovery"]["name"] == "worker-0"


@holds("test_state_properties_get: the list is in alphabetical order")
def _(service: Service) -> None:
    names = service.cli("debug", "state", "properties")
    assert names == sorted(names)


@holds("test_state_cli: framework_id is JSON")
def _(service: Service) -> None:
    assert len(service.cli("debug", "state", "framework_id")) == 1


@holds("test_state_cli: properties is JSON")
def _(service: Service) -> None:
    assert isinstance(service.cli("debug", "state", "properties"), list)


@holds("test_state_refresh_disable_cache: 409 where nothing is cached")
def _(service: Service) -> None:
    answer = service.world.ask("PUT", f"/service/{NAME}/v1/state/refresh")
    assert answer.status == 409


@holds("test_help_cli: help is a command")
def _(service: Service) -> None:
    assert "usage" in service.cli("help")


@holds("test_config_cli: at least one configuration is listed")
def _(service: Service) -> None:
    assert len(service.cli("debug", "config", "list")) >= 1


@holds("test_config_cli: the first one is shown")
def _(service: Service) -> None:
    first = service.cli("debug", "config", "list")[0]
    assert service.cli("debug", "config", "show", first)["name"] == NAME


@holds("test_config_cli: target is JSON")
def _(service: Service) -> None:
    assert service.cli("debug", "config", "target")["name"] == NAME


@holds("test_config_cli: target_id is JSON, and one of the list")
def _(service: Service) -> None:
    (target,) = service.cli("debug", "config", "target_id")
    assert target in service.cli("debug", "config", "list")


@holds("test_plan_cli: plan list is JSON")
def _(service: Service) -> None:
    assert service.cli("plan", "list")[:2] == ["deploy", "recovery"]


@holds("test_plan_cli: plan show prints a tree")
def _(service: Service) -> None:
    assert "COMPLETE" in service.cli("plan", "show", "deploy")


@holds("test_plan_cli: plan show --json, before the name and after it")
def _(service: Service) -> None:
    before = service.cli("plan", "show", "--json", "deploy")
    assert before == service.cli("plan", "show", "deploy", "--json")
    assert before["status"] == "COMPLETE"


@holds("test_deploy (web-url): a phase for each kind of pod")
def _(service: Service) -> None:
    plan = service.cli("plan", "show", "deploy", "--json")
    assert sorted(phase["name"] for phase in plan["phases"]) == ["chief", "worker"]


@holds("test_deploy (web-url): a step for each instance")
def _(service: Service) -> None:
    plan = service.cli("plan", "show", "deploy", "--json")
    assert {phase["name"]: len(phase["steps"]) for phase in plan["phases"]} == {
        "chief": 1,
        "worker": 2,
    }


@holds("test_custom_plan: a step is named POD:[TASK]")
def _(service: Service) -> None:
    plan = service.cli("plan", "show", "deploy", "--json")
    names = [step["name"] for phase in plan["phases"] for step in phase["steps"]]
    assert all(re.fullmatch(r"[a-z]+-[0-9]+:\[[a-z]+\]", name) for name in names)


@holds("test_custom_service_tld: endpoints are listed by name")
def _(service: Service) -> None:
    assert set(service.cli("endpoints")) >= {"worker"}


@holds("test_custom_service_tld: an endpoint has addresses and DNS names")
def _(service: Service) -> None:
    assert set(service.cli("endpoints", "worker")) >= {"address", "dns"}


@holds("test_custom_service_tld: one address and one name for each task, as HOST:PORT")
def _(service: Service) -> None:
    found = service.cli("endpoints", "worker")
    for entries in (found["address"], found["dns"]):
        assert len(entries) == 2
        assert all(len(entry.split(":")) == 2 for entry in entries)


@holds("recovery_plan_is_empty: no phase and no error while nothing fails")
def _(service: Service) -> None:
    plan = service.cli("plan", "show", "recovery", "--json")
    assert (plan["phases"], plan["errors"], plan["status"]) == ([], [], "COMPLETE")


@holds("test_metrics_cli_for_scheduler_metrics: the scheduler tells metrics")
def _(service: Service) -> None:
    assert service.ask("metrics").json()["counters"]


# What is done, in the order in which the SDK's tests do it.


@holds("test_bump_hello_cpus: tasks are replaced, the plan completes, cpus are the new ones")
def _(service: Service) -> None:
    before = service.ids("worker")
    service.update({"worker": {"cpus": 0.2}})
    after = service.tasks("worker")
    assert len(after) == 2
    assert not before & set(after)
    assert {task["resources"]["cpus"] for task in after.values()} == {0.2}


@holds("test_increase_decrease_world_nodes: two more tasks run, and the others are untouched")
def _(service: Service) -> None:
    before = service.ids()
    service.update({"worker": {"count": 4}})
    assert before < service.ids()
    assert len(service.ids()) == len(before) + 2


@holds("test_increase_decrease_world_nodes: decommission is COMPLETE after fewer are asked for")
def _(service: Service) -> None:
    kept = {task for task in service.ids() if not re.search(r"worker-[23]", task)}
    service.update({"worker": {"count": 2}})
    service.completed("decommission")
    eventually(lambda: service.ids() == kept, seconds=_SECONDS, what="the tasks of before alone")


@holds("test_plan_cli: force-restart makes the plan incomplete")
def _(service: Service) -> None:
    service.cli("plan", "force-restart", "deploy")
    assert not service.is_complete()
    service.completed()


@holds("test_plan_cli: interrupt and continue of a phase are accepted, the plan completes")
def _(service: Service) -> None:
    service.cli("plan", "force-restart", "deploy")
    service.cli("plan", "interrupt", "deploy", "worker")
    service.cli("plan", "continue", "deploy", "worker")
    service.completed()


@holds("test_pod_restart: the answer names the pod and its one task")
def _(service: Service) -> None:
    found = service.cli("pod", "restart", "worker-0")
    assert found["pod"] == "worker-0"
    assert len(found["tasks"]) == 1
    service.completed("recovery")


@holds("test_pod_replace: the answer names the pod and its one task")
def _(service: Service) -> None:
    before = service.ids("worker-0")
    found = service.cli("pod", "replace", "worker-0")
    assert found["pod"] == "worker-0"
    assert len(found["tasks"]) == 1
    eventually(
        lambda: (now := service.ids("worker-0")) and not now & before,
        seconds=_SECONDS,
        what="another worker-0",
    )


@holds("test_pod_replace: the service is healthy again")
def _(service: Service) -> None:
    service.completed("recovery")
    service.completed()


@holds("test_pod_pause_resume: pause names the pod and its task, status is PAUSED")
def _(service: Service) -> None:
    found = service.cli("debug", "pod", "pause", "worker-1")
    assert found["pod"] == "worker-1"
    assert len(found["tasks"]) == 1
    eventually(lambda: _status(service) == "PAUSED", seconds=_SECONDS, what="PAUSED")


@holds("test_pod_pause_resume: the deploy plan stays COMPLETE meanwhile")
def _(service: Service) -> None:
    assert service.is_complete()


@holds("test_pod_pause_resume: after resume its task is RUNNING")
def _(service: Service) -> None:
    service.cli("debug", "pod", "resume", "worker-1")
    eventually(lambda: _status(service) == "RUNNING", seconds=_SECONDS, what="RUNNING")
    service.completed("recovery")


def _status(service: Service) -> str:
    return str(service.cli("pod", "status", "--json", "worker-1")["tasks"][0]["status"])


@holds("test_kill_scheduler: another scheduler leads, and no task is touched")
def _(service: Service) -> None:
    before, old = service.ids(), _scheduler(service)
    os.kill(old, signal.SIGKILL)
    eventually(lambda: _scheduler(service) not in (0, old), seconds=_SECONDS, what="a scheduler")
    service.completed()
    assert service.ids() == before


def _scheduler(service: Service) -> int:
    tasks = service.world.app(f"/{NAME}")["tasks"]
    found = (one for task in tasks for one in processes(MESOS_TASK_ID=task["id"]))
    return next((one.pid for one in found if one.leads_a_session), 0)


@holds("test_kill_all_executors: every task is placed anew, and the service is healthy")
def _(service: Service) -> None:
    before = service.ids()
    for task in before:
        for one in processes(MESOS_EXECUTOR_ID=task):
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
    eventually(
        lambda: len(now := service.ids()) == len(before) and not now & before,
        seconds=_SECONDS,
        what="all tasks anew",
    )
    service.completed("recovery")


@holds("test_uninstall: with SDK_UNINSTALL the deploy plan is the uninstall, and completes")
def _(service: Service) -> None:
    world = service.world
    app = world.app(f"/{NAME}")
    env = {**app["env"], "SDK_UNINSTALL": "w00t"}
    assert (
        world.ask("PUT", f"/service/marathon/v2/apps/{NAME}?force=true", {"env": env}).status == 200
    )
    service.completed()
    eventually(lambda: not service.ids(), seconds=_SECONDS, what="no task")


@pytest.mark.timeout(600)
def test_the_assertions_of_the_sdks_tests_hold(service: Service) -> None:
    failed = {}
    for name, check in CHECKS.items():
        try:
            check(service)
        except (AssertionError, LookupError, TypeError) as error:
            failed[name] = f"{type(error).__name__}: {error}"[:400]
    assert not failed, json.dumps(failed, indent=1)


def test_the_table_of_the_package_page_says_what_is_shown_here() -> None:
    page = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(test_\w+|recovery_\w+)`(?: \(([\w-]+)\))? \| (.+?) \| (.+?) \|$", page, re.M
    )
    told = {f"{test}{f' ({file})' if file else ''}: {what}": so for test, file, what, so in rows}
    assert {name for name, so in told.items() if so.startswith(("holds", "mended"))} == set(CHECKS)
    assert len(told) >= 40
    assert sum(so.startswith("differs") for so in told.values()) <= 5
