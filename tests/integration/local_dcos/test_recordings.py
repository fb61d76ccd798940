"""Every command of the real ``dcos`` CLI, played from its recording."""

import json
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos, Login
from local_dcos.mesos.mesos_client import MesosClient
from masters.mesos_scheduler import Scheduler, task
from waiting import eventually

from . import recordings
from .conftest import WHO
from .packages import package, repository
from .recordings import Exchange
from .world import Reply, World

NAMES = recordings.names()
WORKER = "tf-two__worker-0-node__e702a436-85c6-59b7-81b3-5b0397c8f4df"
RECORDED_AGENT = "10ca1dc0-5000-4000-8000-000000000001-S0"
EXTRA = "http://127.0.0.1:PORT/repo/extra.json"
CHATTER = "for i in $(seq 40); do echo step $i; done; echo no errors >&2; sleep 600"

Prepare = Callable[["Stage"], None]


@dataclass
class Stage:
    """A local DC/OS on which a recording is played."""

    world: World
    answers: Path
    extra: str
    cluster: EmbeddedCluster
    replacements: dict[str, str] = field(default_factory=dict)

    def install(self, name: str) -> None:
        self.world.install(name=name, answers=str(self.answers))


def nothing(stage: Stage) -> None:
    """Prepare nothing more than the repository."""


def one_instance(stage: Stage) -> None:
    stage.install("tensorflow")


def two_instances(stage: Stage) -> None:
    stage.install("tensorflow")
    stage.install("tf-two")


def extra_repository(stage: Stage) -> None:
    stage.world.cosmos("repository/add", {"name": "extra", "uri": stage.extra, "index": 0})


def starting(stage: Stage) -> None:
    labels = {"DCOS_SERVICE_NAME": "tensorflow", "DCOS_SERVICE_PORT_INDEX": "0"}
    app = {"id": "tensorflow", "cmd": "sleep 600", "labels": labels}
    assert stage.world.ask("POST", "/service/marathon/v2/apps", app).status == 201


#: What each recording that changes something, or needs another cluster, begins with.
OWN_STAGE: dict[str, tuple[Prepare, dict[str, Any]]] = {
    "package-install": (nothing, {}),
    "package-install-once-more": (nothing, {}),
    "package-install-second-instance": (nothing, {}),
    "package-install-bad-options": (nothing, {}),
    "package-install-twice": (one_instance, {}),
    "old-open-install": (nothing, {}),
    "enterprise-package-install": (nothing, {"variant": "enterprise"}),
    "enterprise-update-start-version": (one_instance, {"variant": "enterprise"}),
    "enterprise-update-start-bad-version": (one_instance, {"variant": "enterprise"}),
    "cluster-setup-enterprise": (nothing, {"variant": "enterprise"}),
    "cluster-setup-password": (nothing, {"login": Login("admin", "secret")}),
    "auth-login": (nothing, {"login": Login("admin", "secret")}),
    "auth-list-providers": (nothing, {"login": Login("admin", "secret")}),
    "package-uninstall": (one_instance, {}),
    "package-uninstall-again": (nothing, {}),
    "package-uninstall-ambiguous": (two_instances, {}),
    "package-uninstall-app-id": (two_instances, {}),
    "package-list-afterwards": (nothing, {}),
    "package-repo-add": (nothing, {}),
    "package-repo-add-twice": (extra_repository, {}),
    "package-repo-remove": (extra_repository, {}),
    "tensorflow-update-start": (one_instance, {}),
    "tensorflow-update-start-renamed": (one_instance, {}),
    "tensorflow-update-start-bad-options": (one_instance, {}),
    "tensorflow-update-start-other-version-open": (one_instance, {}),
    "tensorflow-plan-list-while-starting": (starting, {}),
}


@pytest.fixture(scope="module")
def worker(cluster: EmbeddedCluster) -> Iterator[Scheduler]:
    """A framework with a running task that has the recorded id; another one was shut down."""
    with Scheduler(cluster.master, credentials=WHO) as ended:
        ended.call("TEARDOWN")
    with Scheduler(cluster.master, credentials=WHO) as scheduler:
        offer = scheduler.offer()
        scheduler.launch(offer, task(offer, WORKER, CHATTER))
        scheduler.run_until(WORKER, "TASK_RUNNING")
        yield scheduler


def set_up(stack: ExitStack, cluster: EmbeddedCluster, folder: Path, **options: Any) -> Stage:
    folder.mkdir(exist_ok=True)
    (folder / "credential.json").write_text(json.dumps(asdict(WHO)))
    config = DcosConfig(
        folder=folder / "dcos",
        master=cluster.master,
        credential=folder / "credential.json",
        uninstall_interval=0.05,
        **options,
    )
    world = World(LocalDcos(config, DcosIntegration()))
    # What has been a Marathon in another test would be shown to the clients of this one.
    gateway = MesosClient(cluster.master, WHO)
    stack.callback(lambda: gateway.teardown(world.dcos.marathon.framework_id))
    stack.enter_context(world.dcos)
    if "login" in options:
        login = {"uid": "admin", "password": "secret"}
        token = world.ask("POST", "/acs/api/v1/auth/login", login).json()["token"]
        world.headers["Authorization"] = f"token={token}"
    (folder / "tensorflow-cli").write_text("#!/bin/sh\n")
    files = folder.as_uri()
    uri = repository(folder, package("0.9.0", 0, files), package("1.0.0", 1, files))
    extra = repository(folder, name="extra.json")
    world.cosmos("repository/add", {"name": "Local", "uri": uri})
    answers = folder / "answers.json"
    answers.write_text("{}")
    return Stage(world, answers, extra, cluster, {EXTRA: extra})


@pytest.fixture(scope="module")
def standing(
    cluster: EmbeddedCluster, worker: Scheduler, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """A stage with two instances for all recordings that only look."""
    with ExitStack() as stack:
        stage = set_up(stack, cluster, tmp_path_factory.mktemp("standing"))
        two_instances(stage)
        log = f"/system/v1/logs/v2/task/{WORKER}/file/"
        for name in ("stdout", "stderr"):
            eventually(lambda name=name: stage.world.ask("GET", log + name).status == 200)
        yield stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    name = request.node.callspec.params["name"]
    if name not in OWN_STAGE:
        yield request.getfixturevalue("standing")
        return
    prepare, options = OWN_STAGE[name]
    with ExitStack() as stack:
        own = set_up(stack, request.getfixturevalue("cluster"), tmp_path, **options)
        prepare(own)
        yield own


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_command_gets_the_recorded_answers(name: str, stage: Stage) -> None:
    exchanges = recordings.read(name)
    teach(stage, exchanges)
    replacements = known_names(stage)
    with ExitStack() as stack:
        if name == "service-shutdown":
            replacements |= {"10ca1dc0-5000-4000-8000-000000000001-0004": victim(stage, stack)}
        for exchange in exchanges:
            reply = play(stage.world, replaced(exchange, replacements))
            recordings.check(exchange, reply)
            replacements |= learned(exchange, reply)


def teach(stage: Stage, exchanges: list[Exchange]) -> None:
    """Let the installed services answer what the recorded ones did."""
    answers = {}
    for one in exchanges:
        if recordings.to_service(one) and one.status != 502:
            target = "/v1" + one.path.partition("/v1")[2]
            text = one.answer if isinstance(one.answer, str) else json.dumps(one.answer)
            answers[f"{one.method} {target}"] = [one.status, one.media_type, text]
    stage.answers.write_text(json.dumps(answers))


def known_names(stage: Stage) -> dict[str, str]:
    """Return what the recorded names are called here."""
    found = {"127.0.0.1:PORT": stage.world.dcos.address, **stage.replacements}
    agents = stage.world.get("/mesos/slaves")["slaves"]
    found[RECORDED_AGENT] = agents[0]["id"]
    return found


def learned(exchange: Exchange, reply: Reply) -> dict[str, str]:
    """Return what an answer calls the things that later requests name."""
    if not isinstance(exchange.answer, dict) or reply.status != 200:
        return {}
    found = {}
    if exchange.path.endswith("/files/debug"):
        for virtual, path in reply.json().items():
            if WORKER in virtual:
                found[f"/sandbox/{WORKER}"] = path
    if exchange.path == "/package/describe":
        recorded, actual = exchange.answer["package"], reply.json()["package"]
        binary = ("resource", "cli", "binaries", "linux", "x86-64", "url")
        old, new = at(recorded, binary), at(actual, binary)
        parsed = urllib.parse.urlsplit(new)
        query = f"?{parsed.query}" if parsed.query else ""
        found[urllib.parse.urlsplit(old).path] = f"{parsed.path}{query}"
    if exchange.path == "/service/marathon/v2/apps/tensorflow":
        old, new = exchange.answer["app"]["tasks"][0], reply.json()["app"]["tasks"][0]
        found[old["id"]] = new["id"]
    return found


def at(document: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        document = document[name]
    return document


def replaced(exchange: Exchange, replacements: dict[str, str]) -> Exchange:
    def everywhere(text: str) -> str:
        for old, new in sorted(replacements.items(), key=lambda one: -len(one[0])):
            text = text.replace(old, new)
        return text

    body = exchange.body
    if isinstance(body, dict) and "base64" not in body:
        body = json.loads(everywhere(json.dumps(body)))
    return replace(exchange, path=everywhere(exchange.path), body=body)


def play(world: World, exchange: Exchange) -> Reply:
    headers = {k: v for k, v in exchange.headers.items() if k != "Authorization"}
    if exchange.headers.get("Accept") == "text/event-stream":
        return follow(world, exchange, headers)
    if exchange.path.startswith(("/pkgpanda", "/acs")):
        # Asked before the login: the recorded client had no token yet.
        return replace_headers(world).ask(
            exchange.method, exchange.path, recordings.body_of(exchange), headers
        )
    return world.ask(exchange.method, exchange.path, recordings.body_of(exchange), headers)


def replace_headers(world: World) -> World:
    return World(world.dcos)


def follow(world: World, exchange: Exchange, headers: dict[str, str]) -> Reply:
    """Read the last two lines of a stream that never ends."""
    import http.client

    connection = http.client.HTTPConnection(world.dcos.address, timeout=20)
    try:
        connection.request(exchange.method, exchange.path, headers=headers)
        response = connection.getresponse()
        seen = b""
        while seen.count(b"data: ") < 2:
            seen += response.readline()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, seen)
    finally:
        connection.close()


def victim(stage: Stage, stack: ExitStack) -> str:
    """Return a framework that may be shut down."""
    return stack.enter_context(Scheduler(stage.cluster.master, credentials=WHO)).framework_id
