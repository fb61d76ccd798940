"""Secrets of a job on the command line: where they are from, and what is said without one.

That they are seen nowhere, ``tests/integration/security/test_canaries.py`` looks at.
"""

import base64
import hashlib
from pathlib import Path

import pytest

from command_line import CommandLine, write_options
from servers.mlflow_server import tracking_server

pytestmark = pytest.mark.timeout(120)

IN_VARIABLE, IN_FILE = "hush-in-a-variable-4711", "hush-in-a-file-0815"
ROOMY = ("--cpus", "4", "--mem", "2000", "--disk", "1000", "--gpus", "0")
Json = dict[str, object]


def is_in(secret: str, data: bytes) -> bool:
    """Say whether it is there, as it is or in base64 at each of the three places in a group."""
    plain = secret.encode()
    shifted = (base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3))
    return any(form in data for form in (plain, *shifted))


def job(folder: Path, command: str, *, worker: Json | None = None, **service: object) -> Path:
    """Write the options of a command job of one worker."""
    given = {"name": "job", "job_cmd": command, "strategy": "independent", **service}
    return write_options(folder, service=given, worker=worker or {})


def test_validate_shows_nothing_of_what_stands_where_a_source_belongs(
    command_line: CommandLine, tmp_path: Path
) -> None:
    wrong: Json = {"secrets": [{"source": f"{IN_FILE} oops", "file": "key"}]}
    ended = command_line.ask("validate", job(tmp_path, "true", worker=wrong))
    assert ended.code != 0
    assert "worker.secrets.0.source: is no place where a secret can be" in ended.out
    assert not is_in(IN_FILE, ended.out.encode())


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
    assert [str(file) for file in files if is_in(IN_VARIABLE, file.read_bytes())] == []
