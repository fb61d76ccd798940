"""A secret by every way in, and each of them looked for in everything that goes out."""

import base64
import json
import stat
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from command_line import UNTIL_FINISH, CommandLine, write_options
from dcos_tensorflow.api.operations import OPERATIONS
from embedded_mesos import AgentConfig, EmbeddedCluster
from processes import processes
from scheduler_process import SchedulerProcess
from servers.trace_collector import Collector, collector
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(240)]

#: By the way that it goes in.
CANARIES = {
    way: f"canary-{number}-4711-hush"
    for number, way in enumerate(
        (
            *("a variable", "a file", "the secret store", "credentials of S3", "ZooKeeper's login"),
            *("the principal's secret", "the API's token", "a URL's password"),
        )
    )
}
#: The options are stored as they are, and so is a URL in them; what is shown of it is masked.
IN_OPTIONS = {"a URL's password"}
#: What the job is given, and says aloud.
SAID = {"a variable", "a file", "the secret store", "a URL's password"}


def ways_in(data: bytes) -> set[str]:
    """Return whose canary is there, as it is or in base64 wherever that begins."""
    found = set()
    for way, canary in CANARIES.items():
        shifted = [base64.b64encode(b"x" * n + canary.encode())[4:-4] for n in range(3)]
        if any(form in data for form in (canary.encode(), *shifted)):
            found.add(way)
    return found


@dataclass(frozen=True)
class Running:
    """A service that was given every canary, and what is around it."""

    folder: Path
    scheduler: SchedulerProcess
    cluster: EmbeddedCluster
    zookeeper: str
    traces: Collector

    def api(self, path: str, token: str = CANARIES["the API's token"]) -> bytes:
        return _read(f"http://{self.scheduler.api}{path}", f"Bearer {token}")

    def mesos(self, address: str, path: str) -> bytes:
        known = base64.b64encode(f"tf:{CANARIES[_SECRET]}".encode()).decode()
        return _read(f"http://{address}{path}", f"Basic {known}")


_SECRET = "the principal's secret"


def _read(url: str, authorization: str) -> bytes:
    request = urllib.request.Request(url, headers={"Authorization": authorization})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.read()


def _file(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeperServer
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("canaries")
    inside, outside = folder / "ours", folder / "theirs"
    inside.mkdir()
    store = _file(outside, "store/team/key", CANARIES["the secret store"]).parents[1]
    key = CANARIES["credentials of S3"]
    s3 = f"[default]\naws_access_key_id = AK\naws_secret_access_key = {key}\n"
    _file(outside, "store/team/s3", s3)
    secret = _file(outside, "task-secrets/file", CANARIES["a file"])
    # The job says its secrets aloud, as jobs do when something is wrong: in what it prints, tells
    # of its training, and fails with.
    said = '{"step": 3, "loss": 0.5, "result": {"said": "%s %s %s"}}'
    command = (
        'echo "step 1 loss 0.5 password=$PASSWORD"; cat conf/key store/key; echo; env; '
        f"printf '{said}\\n' \"$PASSWORD\" $(cat conf/key store/key) >> $PROGRESS_FILE; "
        "if ! mkdir $CHECKPOINT_DIR/begun; then :; else sleep 2; "
        'echo "ValueError: no such user: $PASSWORD $(cat conf/key store/key)" >&2; exit 3; fi; '
        f"{UNTIL_FINISH}"
    )
    options = write_options(
        folder,
        service={
            "name": "canaries",
            "job_cmd": command,
            "strategy": "independent",
            "log_format": "json",
            "env": json.dumps({"DATA_URL": f"http://me:{CANARIES[_URL]}@data.example/x"}),
            "secrets": [
                {"source": "env:DB_PASSWORD", "env": "PASSWORD"},
                {"source": f"file:{secret}", "file": "conf/key"},
                {"source": "team/key", "file": "store/key"},
            ],
        },
        s3={"credentials": {"secret": "team/s3"}},
    )
    agents, known = [AgentConfig(cpus=2, mem=512)], {"tf": CANARIES[_SECRET]}
    with (
        collector() as traces,
        EmbeddedCluster(agents, inside / "cluster", credentials=known) as cluster,
    ):
        scheduler = SchedulerProcess(
            "scheduler",
            inside,
            options,
            cluster.master,
            zookeeper_server.url("/canaries"),
            f"--zookeeper-login-file={_file(outside, 'login', _LOGIN)}",
            "--principal=tf",
            f"--secret-file={_file(outside, 'secret', CANARIES[_SECRET])}",
            f"--api-token-file={_file(outside, 'token', _TOKEN)}",
            f"--secrets-dir={store}",
            f"--task-secrets-dir={secret.parent}",
            "--task-secret-env=DB_PASSWORD",
            environment={
                "DB_PASSWORD": CANARIES["a variable"],
                "DCOS_TENSORFLOW_API_OPEN": "",
                "OTEL_EXPORTER_OTLP_ENDPOINT": traces.url,
                "OTEL_BSP_SCHEDULE_DELAY": "200",
            },
        )
        found = Running(inside, scheduler, cluster, zookeeper_server.address, traces)
        try:
            eventually(
                lambda: json.loads(found.api("/v1/job")).get("phase") == "running",
                seconds=90,
                what=lambda: scheduler.log,
            )
            # A task runs before it has said anything, and its output is on its way for a moment.
            eventually(lambda: _said(found) >= SAID, seconds=60, what="the job says its secrets")
            eventually(
                lambda: _has_told_of_its_failure(found), seconds=60, what=lambda: scheduler.log
            )
            yield found
        finally:
            scheduler.close()


def _has_told_of_its_failure(running: Running) -> bool:
    job = json.loads(running.api("/v1/job"))
    (task,) = job["tasks"].values()
    told = bool((task["report"] or {}).get("result"))
    (kept,) = json.loads(running.api("/v1/runs")) or ({"incidents": ()},)
    return job["phase"] == "running" and told and bool(kept["incidents"])


def _said(running: Running) -> set[str]:
    found = running.folder.glob("cluster/agents/0/**/stdout")
    return set().union(*(ways_in(stdout.read_bytes()) for stdout in found))


_URL = "a URL's password"
_API_TOKEN = "the API's token"
_TOKEN = CANARIES[_API_TOKEN]
_LOGIN = f"me:{CANARIES['ZooKeeper' + chr(39) + 's login']}"


def _state(running: Running) -> bytes:
    client = KazooClient(hosts=running.zookeeper, auth_data=[("digest", _LOGIN)])
    client.start()
    try:
        found, waiting = b"", ["/canaries"]
        while waiting:
            node = waiting.pop()
            found += client.get(node)[0]
            waiting += [f"{node}/{name}" for name in client.get_children(node)]
        return found
    finally:
        client.stop()
        client.close()


def _api(running: Running) -> bytes:
    shown = [o for o in OPERATIONS if o.method.upper() == "GET" and "{" not in o.path]
    # The stream of events has no end.
    paths = [o.path for o in shown if o.id != "events"]
    names = ("worker-0/info", "worker-0/status", "worker-0/files/stdout", "worker-0/files/stderr")
    found = b"".join(running.api(path) for path in (*paths, *(f"/v1/pod/{n}" for n in names)))
    for identifier in json.loads(running.api("/v1/configurations")):
        found += running.api(f"/v1/configurations/{identifier}")
    for kept in json.loads(running.api("/v1/runs")):
        found += running.api(f"/v1/curves?run={kept['id']}")
    # What a stranger is told, and errors.
    return found + running.api("/v1/job", "wrong") + running.api("/v1/pod/no/files/x?offset=-1")


def _events(running: Running) -> bytes:
    known = {"Authorization": f"Bearer {CANARIES[_API_TOKEN]}"}
    request = urllib.request.Request(f"http://{running.scheduler.api}/v1/events", headers=known)
    found = b""
    with urllib.request.urlopen(request, timeout=30) as stream:
        while b"event: whole" not in found or not found.endswith(b"\n\n"):
            found += stream.readline()
    return found


def _traces(running: Running) -> bytes:
    eventually(lambda: "recovery" in str(running.traces.spans), seconds=30, what="its recovery")
    return running.traces.raw


def _mesos(running: Running) -> bytes:
    identity = running.cluster.agents[0].identity
    agent, master = f"{identity.ip}:{identity.port}", running.cluster.master
    asked = [(master, p) for p in ("/state", "/tasks", "/frameworks")]
    asked += [(agent, p) for p in ("/state", "/files/debug")]
    return b"".join(running.mesos(address, path) for address, path in asked)


def _command_lines(running: Running) -> bytes:
    return "".join(one.command for one in processes()).encode()


def _files(running: Running) -> bytes:
    # What a task writes is its own, and what its runner writes beside it of the same: it says its
    # secrets aloud here. The token is, for the commands of this user, in the registration.
    (registration,) = running.folder.rglob("scheduler.json")
    assert stat.S_IMODE(registration.stat().st_mode) == 0o600
    told = ("progress.jsonl", "task-exit.json", "task-exits.jsonl")
    own = ("stdout", "stderr", "task-console.log", *told, registration.name)
    paths = (p for p in running.folder.rglob("*") if p.is_file() and not p.is_symlink())
    return b"".join(path.read_bytes() for path in paths if path.name not in own)


def _made(running: Running) -> bytes:
    """Return what commands make of a service: a plot, a run as a document, an export."""
    outside = running.folder.parent / "theirs"
    home = CommandLine(outside / "home")
    api = ("--api", f"http://{running.scheduler.api}", "--api-token-file", outside / "token")
    plot, export = outside / "loss.svg", outside / "state"
    state = ("--state", f"zk://{running.zookeeper}/canaries", "--name", "canaries")
    login = ("--zookeeper-login-file", outside / "login")
    eventually(
        lambda: home.ask("plot", "canaries", *api, "--out", plot).code == 0,
        what="a curve of the job",
    )
    shown = home.ask("runs", "show", "canaries", *api, "--json")
    exported = home.ask("state", "export", export, *state, *login)
    assert (shown.code, exported.code) == (0, 0), shown.out + exported.out
    return plot.read_bytes() + shown.out.encode() + export.read_bytes()


def _log(running: Running) -> bytes:
    return running.scheduler.log.encode()


PLACES: dict[str, Callable[[Running], bytes]] = {
    "the state": _state,
    "the API": _api,
    "the stream of events": _events,
    "traces": _traces,
    "Mesos": _mesos,
    "command lines": _command_lines,
    "files of ours": _files,
    "plots and exports": _made,
    "the log": _log,
}


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_is_in(running: Running, place: str) -> None:
    found = PLACES[place](running)
    assert len(found) > 500, "nothing was looked at"
    as_they_are = ("the state", "files of ours", "Mesos", "plots and exports")
    stored = IN_OPTIONS if place in as_they_are else set()
    assert ways_in(found) - stored == set()


def test_the_job_had_them_all(running: Running) -> None:
    assert _said(running) >= SAID


def test_a_canary_would_be_found() -> None:
    for way, canary in CANARIES.items():
        for shift in range(3):
            coded = base64.b64encode(b"y" * shift + canary.encode() + b"zz")
            assert ways_in(b"..." + coded) == {way}


def test_no_secret_is_in_files_of_a_job_that_has_ended(running: Running) -> None:
    known = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
    stop = urllib.request.Request(f"http://{running.scheduler.api}/v1/job/stop", b"{}", known)
    urllib.request.urlopen(stop, timeout=30).close()
    eventually(lambda: json.loads(running.api("/v1/job"))["phase"] == "done", seconds=60)
    assert ways_in(_files(running)) <= IN_OPTIONS
