"""What ``update status`` and ``plan status deploy`` say at each moment of an update is true.

Of a service of the project's own package with its real scheduler, by both clients (``clients``).
Both commands are asked in turn as long as an update goes on. ``docs/package.md`` has the table of
what they say.
"""

import itertools
import threading
import zipfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from dcos_tensorflow.plugin.pack import build_plugin
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos
from samples.checkout_package import package_in, repository_of
from servers.s3_server import S3Server
from servers.web_server import Files, served_folder
from waiting import eventually

from .clients import (
    COMMANDS,
    NO_SCHEDULER,
    NO_SERVICE,
    Client,
    Plugin,
    SdkClient,
    UpdateRefused,
)
from .world import World

_SECONDS = 60.0
#: Asked without a pause, the services that answer would have no time for the update.
_BETWEEN_QUESTIONS = 0.1
#: What may be said of an update that goes on.
UNDER_WAY = {NO_SCHEDULER, "PENDING", "PREPARED", "STARTING", "STARTED", "IN_PROGRESS"}
#: It takes a moment to end, as a training that saves does.
SAVES = "trap 'sleep 1; exit 0' TERM; sleep 600 & wait"
NUMBERS = itertools.count()


@dataclass
class Service:
    """A service, and the client that changes it and asks about it."""

    world: World
    name: str
    client: Client

    def install(self, worker: dict[str, Any] | None = None, **service: Any) -> None:
        options = {
            "service": {
                "name": self.name,
                "user": "",
                "job_cmd": "exec sleep 600",
                "strategy": "independent",
                **service,
            },
            "worker": {"count": 1, "cpus": 0.1, "mem": 64, "disk": 10, **(worker or {})},
            "parameter_server": {"count": 0},
        }
        self.world.cosmos("install", {"packageName": "tensorflow", "options": options})
        self.world.settled(f"/{self.name}")

    def uninstall(self) -> None:
        self.world.cosmos("uninstall", {"packageName": "tensorflow", "appId": self.name})

    def running(self) -> dict[str, Any]:
        """Return the running tasks by id."""
        return {
            task["id"]: task
            for framework in self.world.get("/mesos/master/state")["frameworks"]
            if framework["name"] == self.name
            for task in framework["tasks"]
            if task["state"] == "TASK_RUNNING"
        }

    def output(self) -> list[str]:
        """Return what the running tasks have printed."""
        logs = (f"/system/v1/logs/v2/task/{task}/file/stdout" for task in self.running())
        return [self.world.ask("GET", log).body.decode() for log in logs]

    def says(self, word: str) -> bool:
        return all(self.client.says(command) == word for command in COMMANDS)

    def comes_to_say(self, word: str) -> None:
        eventually(lambda: self.says(word), seconds=_SECONDS, what=f"both commands to say {word}")


@dataclass
class Heard:
    """What was said, each word once as long as it stays, and what of it was not true."""

    words: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)

    def check(self, *, last: str, meanwhile: Collection[str] = UNDER_WAY) -> None:
        assert self.untrue == []
        assert self.words[-1] == last
        assert set(self.words[:-1]) <= {*meanwhile, last}


@contextmanager
def listening(service: Service, is_complete: Callable[[], bool]) -> Iterator[Heard]:
    """Ask both commands in turn; COMPLETE is true where ``is_complete`` says so afterwards."""
    heard, over = Heard(), threading.Event()

    def listen() -> None:
        for command in itertools.cycle(COMMANDS):
            is_last = over.is_set()
            word = service.client.says(command)
            if word == "COMPLETE" and not is_complete():
                heard.untrue.append(f"{command}: {word} after {heard.words}")
            if heard.words[-1:] != [word]:
                heard.words.append(word)
            if is_last:
                return
            over.wait(_BETWEEN_QUESTIONS)

    with ThreadPoolExecutor(1) as listener:
        done = listener.submit(listen)
        try:
            yield heard
        finally:
            over.set()
            done.result()


@pytest.fixture(scope="module")
def world(
    cluster: EmbeddedCluster, credential: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("updates")
    config = DcosConfig(
        folder=folder / "dcos",
        master=cluster.master,
        credential=credential,
        uninstall_interval=0.05,
    )
    with LocalDcos(config, DcosIntegration()) as dcos:
        found = World(dcos)
        package = package_in(folder)
        found.cosmos("repository/add", {"name": "real", "uri": repository_of(package, folder)})
        yield found


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_plugin(tmp_path_factory.mktemp("plugin") / "dcos-tensorflow-cli.pyz")


@pytest.fixture(params=["plugin", "sdk"])
def service(
    request: pytest.FixtureRequest, world: World, packed: Path, tmp_path: Path
) -> Iterator[Service]:
    name = f"tf-{next(NUMBERS)}"
    files = tmp_path / "options"
    files.mkdir()
    client: Client = SdkClient(world, name)
    if request.param == "plugin":
        client = Plugin(world, name, packed, files)
    found = Service(world, name, client)
    yield found
    if f"/{name}" in world.app_ids():
        found.uninstall()


def first_by(client: str) -> pytest.MarkDecorator:
    """Let ``make test`` look with this client alone, where the other one sees the same."""
    other = {"plugin": "sdk", "sdk": "plugin"}[client]
    both = [client, pytest.param(other, marks=pytest.mark.soak)]
    return pytest.mark.parametrize("service", both, indirect=True)


@pytest.fixture
def deployed(service: Service) -> Service:
    service.install()
    service.comes_to_say("COMPLETE")
    return service


def replaced(service: Service, before: Collection[str], count: int = 1) -> bool:
    """Say whether so many tasks run, and none of those before."""
    now = service.running()
    return len(now) == count and not set(now) & set(before)


def test_an_update_is_complete_when_its_tasks_run(deployed: Service) -> None:
    before = deployed.running()
    deployed.client.update({"worker": {"mem": 65}})
    with listening(deployed, lambda: replaced(deployed, before)) as heard:
        deployed.comes_to_say("COMPLETE")
    heard.check(last="COMPLETE")


#: A job that runs cannot change to it, which its scheduler alone can say.
REFUSED = {"service": {"strategy": "multi_worker"}}


def refused(service: Service) -> str:
    """Ask for what is refused, and return what both commands say of that.

    The SDK's client hands it to the package manager, whose next scheduler refuses it. The project's
    own asks the scheduler before.
    """
    if isinstance(service.client, SdkClient):
        service.client.update(REFUSED)
        return "ERROR"
    with pytest.raises(UpdateRefused, match="the strategy would change"):
        service.client.update(REFUSED)
    return "COMPLETE"


def test_an_update_that_is_refused_is_an_error_or_never_begins(deployed: Service) -> None:
    before = deployed.running()
    last = refused(deployed)
    with listening(deployed, lambda: last == "COMPLETE") as heard:
        deployed.comes_to_say(last)
        deployed.world.settled(f"/{deployed.name}")
    heard.check(last=last, meanwhile={NO_SCHEDULER})
    assert deployed.running().keys() == before.keys()


@first_by("plugin")
def test_after_a_refusal_the_next_update_is_complete_with_what_it_names_alone(
    deployed: Service,
) -> None:
    before = deployed.running()
    deployed.comes_to_say(refused(deployed))
    deployed.client.update({"service": {"log_level": "DEBUG"}})
    with listening(deployed, lambda: deployed.running().keys() == before.keys()) as heard:
        deployed.comes_to_say("COMPLETE")
        deployed.world.settled(f"/{deployed.name}")
    heard.check(last="COMPLETE", meanwhile={NO_SCHEDULER})


@first_by("sdk")
def test_an_update_of_a_job_that_waits_for_its_place_is_complete_when_it_runs(
    service: Service,
) -> None:
    service.install(worker={"cpus": 500})
    service.comes_to_say("PENDING")
    service.client.update({"worker": {"cpus": 0.1}})
    with listening(service, lambda: len(service.running()) == 1) as heard:
        service.comes_to_say("COMPLETE")
    heard.check(last="COMPLETE")


@first_by("sdk")
def test_an_update_of_a_job_that_starts_is_complete_when_its_tasks_run_with_it(
    service: Service, tmp_path: Path
) -> None:
    with Code(tmp_path).held_back() as (url, let_go):
        service.install(job_url=url)
        service.comes_to_say("IN_PROGRESS")
        service.client.update({"worker": {"mem": 65}})

        def is_complete() -> bool:
            return [task["resources"]["mem"] for task in service.running().values()] == [65]

        with listening(service, is_complete) as heard:
            eventually(lambda: NO_SCHEDULER in heard.words and heard.words[-1] != NO_SCHEDULER)
            let_go.set()
            service.comes_to_say("COMPLETE")
    heard.check(last="COMPLETE")


@first_by("sdk")
def test_an_update_of_a_job_that_is_done_is_complete_when_the_next_run_runs(
    service: Service,
) -> None:
    service.install(job_cmd="true")

    def is_done() -> bool:
        answer = service.world.ask("GET", f"/service/{service.name}/v1/job")
        return answer.status == 200 and answer.json()["phase"] == "done"

    eventually(is_done, seconds=_SECONDS, what="the end of the job")
    service.client.update({"service": {"job_cmd": "exec sleep 600"}})
    with listening(service, lambda: len(service.running()) == 1) as heard:
        service.comes_to_say("COMPLETE")
    heard.check(last="COMPLETE")


def test_while_a_service_is_uninstalled_an_update_is_refused_and_the_uninstall_is_told(
    service: Service,
) -> None:
    service.install(job_cmd=SAVES)
    service.comes_to_say("COMPLETE")
    service.uninstall()
    with listening(service, lambda: not service.running()) as heard:
        with pytest.raises(UpdateRefused, match="is being uninstalled"):
            service.client.update({"worker": {"mem": 65}})
        service.world.gone(f"/{service.name}")
    heard.check(last=NO_SERVICE, meanwhile={*UNDER_WAY, "COMPLETE"})


@first_by("plugin")
def test_two_updates_at_once_are_complete_when_both_are(deployed: Service) -> None:
    before = deployed.running()
    wanted = [{"worker": {"mem": 65}}, {"worker": {"count": 2}}]
    with ThreadPoolExecutor(2) as both:
        list(both.map(deployed.client.update, wanted))

    def is_complete() -> bool:
        memory = {task["resources"]["mem"] for task in deployed.running().values()}
        return replaced(deployed, before, count=2) and memory == {65}

    with listening(deployed, is_complete) as heard:
        deployed.comes_to_say("COMPLETE")
    heard.check(last="COMPLETE")


@contextmanager
def serving(folder: Path, let_go: threading.Event | None = None) -> Iterator[str]:
    """Serve the files of a folder, from when the event is set; return the address."""

    class Late(Files):
        def do_GET(self) -> None:
            if let_go is not None:
                let_go.wait(_SECONDS)
            with suppress(ConnectionError):
                super().do_GET()

    with served_folder(folder, Late) as url:
        yield url


@dataclass
class Code:
    """A job's code in two versions, each where a job's URL may lead."""

    folder: Path

    def archive(self, version: str) -> Path:
        path = self.folder / f"{version}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("version.txt", version)
        return path

    @contextmanager
    def in_files(self) -> Iterator[tuple[str, str]]:
        def folder(version: str) -> str:
            path = self.folder / version
            path.mkdir()
            (path / "version.txt").write_text(version)
            return path.as_uri()

        yield folder("old"), folder("new")

    @contextmanager
    def over_http(self) -> Iterator[tuple[str, str]]:
        with serving(self.folder) as url:
            yield f"{url}/{self.archive('old').name}", f"{url}/{self.archive('new').name}"

    @contextmanager
    def held_back(self) -> Iterator[tuple[str, threading.Event]]:
        """Serve code that no task gets before the event is set."""
        let_go = threading.Event()
        with serving(self.folder, let_go) as url:
            try:
                yield f"{url}/{self.archive('old').name}", let_go
            finally:
                let_go.set()

    @contextmanager
    def in_s3(self) -> Iterator[tuple[str, str]]:
        s3 = S3Server()

        def signed(version: str) -> str:
            s3.client.upload_file(str(self.archive(version)), s3.bucket, f"{version}.zip")
            place = {"Bucket": s3.bucket, "Key": f"{version}.zip"}
            return str(s3.client.generate_presigned_url("get_object", Params=place))

        yield signed("old"), signed("new")
        s3.close()


@first_by("sdk")
@pytest.mark.parametrize(
    "place", [Code.in_files, Code.over_http, pytest.param(Code.in_s3, marks=pytest.mark.soak)]
)
def test_an_update_to_code_elsewhere_is_complete_when_that_code_runs(
    service: Service,
    place: Callable[[Code], Any],
    tmp_path: Path,
) -> None:
    with place(Code(tmp_path)) as (old, new):
        service.install(job_url=old, job_cmd="cat version.txt; exec sleep 600")
        service.comes_to_say("COMPLETE")
        before = service.running()
        service.client.update({"service": {"job_url": new}})
        with listening(service, lambda: replaced(service, before)) as heard:
            service.comes_to_say("COMPLETE")
        heard.check(last="COMPLETE")
        eventually(lambda: ["new" in text for text in service.output()] == [True], what="the code")
