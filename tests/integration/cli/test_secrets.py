"""Secrets of a job: its tasks have them, and they are seen nowhere else."""

import base64
import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

from command_line import UNTIL_FINISH, CommandLine, write_options
from dcos_tensorflow.api.operations import OPERATIONS
from mlflow_server import tracking_server
from processes import processes
from waiting import eventually

from .conftest import end_schedulers

pytestmark = pytest.mark.timeout(120)

IN_VARIABLE, IN_FILE = "hush-in-a-variable-4711", "hush-in-a-file-0815"
ROOMY = ("--cpus", "4", "--mem", "2000", "--disk", "1000", "--gpus", "0")
COMMAND = (
    'printf %s "$PASSWORD" | sha256sum > $CHECKPOINT_DIR/variable; '
    "sha256sum < conf/key > $CHECKPOINT_DIR/file; "
    "ulimit -Sn > $CHECKPOINT_DIR/limit; "
    f"touch $CHECKPOINT_DIR/begun; {UNTIL_FINISH}"
)


Json = dict[str, object]


class Running(NamedTuple):
    """A job with secrets that runs, and where it lies."""

    command_line: CommandLine
    checkpoints: Path


def forms(secret: str) -> list[bytes]:
    """Return the secret as it is and in base64, at each of the three places in a group."""
    plain = secret.encode()
    shifted = (base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3))
    return [plain, *shifted]


def found_in(data: bytes) -> list[str]:
    secrets = (IN_VARIABLE, IN_FILE)
    return [secret for secret in secrets if any(form in data for form in forms(secret))]


def job(folder: Path, command: str, *, worker: Json | None = None, **service: object) -> Path:
    """Write the options of a command job of one worker."""
    given = {"name": "job", "job_cmd": command, "strategy": "independent", **service}
    return write_options(folder, service=given, worker=worker or {})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One job that several tests look at; the last of them lets it end."""
    folder = tmp_path_factory.mktemp("running")
    command_line = CommandLine(folder / "home")
    command_line.environment["DB_PASSWORD"] = IN_VARIABLE
    secret_file = folder / "outside" / "key"
    secret_file.parent.mkdir()
    secret_file.write_text(IN_FILE)
    options = job(
        folder,
        COMMAND,
        secrets=[{"source": "env:DB_PASSWORD", "env": "PASSWORD"}],
        rlimits=[{"name": "RLIMIT_NOFILE", "soft": 333, "hard": 1024}],
        worker={"secrets": [{"source": f"file:{secret_file}", "file": "conf/key"}]},
    )
    up = command_line("local", "up", *ROOMY)
    assert up.code == 0, up.out
    begun = command_line("run", options, "--detach")
    assert begun.code == 0, begun.out
    assert not found_in(begun.out.encode())
    checkpoints = command_line.home / "services" / "job" / "checkpoints"
    eventually((checkpoints / "begun").exists, seconds=60, what="the job")
    yield Running(command_line, checkpoints)
    (checkpoints / "finish").touch()
    end_schedulers(command_line)
    assert command_line.ask("local", "down").code == 0


def files_with_secrets(folder: Path) -> dict[str, list[str]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and (secrets := found_in(path.read_bytes())):
            found[str(path)] = secrets
    return found


def ask(url: str, token: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            # A stream of events begins with all that it tells of, and has no end.
            streams = answer.headers.get_content_type() == "text/event-stream"
            return b"".join(takewhile(bytes.strip, answer)) if streams else bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.read()


def test_the_job_has_its_secrets_and_its_limit(running: Running) -> None:
    def read(name: str) -> str:
        return (running.checkpoints / name).read_text().split()[0]

    assert read("variable") == hashlib.sha256(IN_VARIABLE.encode()).hexdigest()
    assert read("file") == hashlib.sha256(IN_FILE.encode()).hexdigest()
    assert read("limit") == "333"


def test_a_secret_is_nowhere_else(running: Running) -> None:
    command_line = running.command_line
    registered = json.loads((command_line.home / "services/job/scheduler.json").read_text())
    asked = 0
    for operation in OPERATIONS:
        if operation.method.upper() == "GET" and "{" not in operation.path:
            asked += 1
            body = ask(f"http://{registered['api']}{operation.path}", registered["token"])
            assert not found_in(body), operation.path
    assert asked > 10
    for path in ("/state", "/tasks", "/frameworks"):
        assert not found_in(command_line.mesos(path)), path
    for command in (
        ("status", "job"),
        ("status", "job", "--json"),
        ("why", "job"),
        ("cluster", "job"),
        ("options", "job"),
        ("plan", "show", "deploy"),
        ("pod", "info", "worker-0"),
    ):
        assert not found_in(command_line.ask(*command).out.encode()), command
    assert not found_in("".join(one.command for one in processes()).encode())
    assert files_with_secrets(command_line.home) == {}


def test_a_secret_is_nowhere_after_the_job_either(running: Running) -> None:
    command_line = running.command_line
    (running.checkpoints / "finish").touch()
    eventually(
        lambda: (
            '"phase": "done"' in command_line.ask("status", "job", "--json").out.lower()
            or not (command_line.home / "services/job/scheduler.json").exists()
        ),
        seconds=60,
        what="the end of the job",
    )
    assert files_with_secrets(command_line.home) == {}


def test_validate_shows_nothing_of_what_stands_where_a_source_belongs(
    command_line: CommandLine, tmp_path: Path
) -> None:
    wrong: Json = {"secrets": [{"source": f"{IN_FILE} oops", "file": "key"}]}
    ended = command_line.ask("validate", job(tmp_path, "true", worker=wrong))
    assert ended.code != 0
    assert "worker.secrets.0.source: is no place where a secret can be" in ended.out
    assert not found_in(ended.out.encode())


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("env:NOT_THERE", "service.secrets.0: the scheduler has no variable NOT_THERE"),
        ("file:/no/such", "service.secrets.0: /no/such cannot be read"),
        ("team/key", "service.secrets.0: team/key is a path of a secret store, and this cluster"),
    ],
)
def test_a_job_whose_secret_is_missing_is_not_begun_and_its_option_is_named(
    source: str, why: str, command_line: CommandLine, tmp_path: Path
) -> None:
    file = job(tmp_path, "true", secrets=[{"source": source, "env": "PASSWORD"}])
    ended = command_line.ask("run", file, *ROOMY)
    assert ended.code == 1
    assert why in ended.out


def test_a_folder_stands_for_the_secret_store(command_line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "store" / "team").mkdir(parents=True)
    (tmp_path / "store" / "team" / "key").write_text(IN_FILE)
    file = job(
        tmp_path,
        "sha256sum < key > $CHECKPOINT_DIR/sum",
        worker={"secrets": [{"source": "team/key", "file": "key"}]},
    )
    ended = command_line.ask("run", file, f"--secrets-dir={tmp_path / 'store'}", *ROOMY)
    assert ended.code == 0, ended.out
    found = (command_line.home / "services/job/checkpoints/sum").read_text().split()[0]
    assert found == hashlib.sha256(IN_FILE.encode()).hexdigest()


def test_what_the_embedded_cluster_cannot_give_is_refused_by_its_option(
    command_line: CommandLine, tmp_path: Path
) -> None:
    ended = command_line.ask("run", job(tmp_path, "true", worker={"shm_size": 64}), *ROOMY)
    assert ended.code != 0
    assert "service.shm_size: the embedded cluster cannot give tasks a /dev/shm" in ended.out


def test_a_tracking_server_is_told_with_a_token_that_is_seen_nowhere(
    command_line: CommandLine, tmp_path: Path
) -> None:
    command_line.environment["MLFLOW"] = IN_VARIABLE
    with tracking_server() as server:
        mlflow = {"tracking_uri": server.url, "experiment": "demo", "token": "env:MLFLOW"}
        steps = "for n in 1 2 3; do echo step $n loss 0.$n; sleep 0.3; done; exit 3"
        options = write_options(
            tmp_path,
            service={"name": "told", "job_cmd": steps},
            worker={"count": 1},
            retry={"limit": 0},
            mlflow=mlflow,
        )
        assert command_line("run", options, "--yes", *ROOMY).code == 3
        run = server.called("told@1")
        assert (run.experiment, run.status) == ("demo", "FAILED")
        assert run.metrics["loss"][-1] == (3, 0.3)
        assert server.logins == {f"Bearer {IN_VARIABLE}"}
    files = [file for file in command_line.home.rglob("*") if file.is_file()]
    assert [str(file) for file in files if found_in(file.read_bytes())] == []
