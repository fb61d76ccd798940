"""The package, and a scheduler started as Marathon starts its app."""

import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import embedded_mesos
from command_line import CommandLine
from dcos_tensorflow.package.definition import (
    Package,
    marathon_app,
    package_folder,
    read_folder,
    read_repository,
)
from untrusted_input.archives import unpack

REPOSITORY = Path(__file__).resolve().parents[3]
ARTIFACT_URL = "https://repository.example.org/1.0.0"
ARTIFACT = "dcos-tensorflow-scheduler-linux-x86-64.tar.gz"


class AppProcess:
    """The command of a Marathon app as a process, and the API of the scheduler in it."""

    def __init__(self, app: Mapping[str, Any], sandbox: Path, variables: Mapping[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.output = sandbox / "stdout"
        given = {name: value for name, value in app["env"].items() if isinstance(value, str)}
        marathon = {"HOST": "127.0.0.1", "PORT_API": str(port), "MESOS_SANDBOX": str(sandbox)}
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                ["/bin/sh", "-c", app["cmd"]],
                cwd=sandbox,
                env={"PATH": os.defpath, **given, **marathon, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def get(self, path: str) -> tuple[int, Any]:
        """Ask the API. Return status and answer; 0 while no server listens."""
        assert self.process.poll() is None, self.output.read_text(errors="replace")
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as response:
                text = response.read().decode()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, None
        except OSError:
            return 0, None


class Fetched(NamedTuple):
    """A package, and the folder that the scheduler's artifact of it is unpacked to."""

    package: Package
    folder: Path


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Fetched:
    """This checkout's package, and its command laid out as in the artifact."""
    folder = tmp_path_factory.mktemp("checkout")
    command = folder / "bin" / "dcos-tensorflow"
    command.parent.mkdir()
    python, code = shlex.quote(sys.executable), shlex.quote(str(REPOSITORY / "framework"))
    command.write_text(f'#!/bin/sh\nPYTHONPATH={code} exec {python} -m dcos_tensorflow "$@"\n')
    command.chmod(0o755)
    places = {
        "package-version": "1.0.0",
        "artifact-dir": ARTIFACT_URL,
        "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
    }
    return Fetched(read_folder(package_folder(), places), folder)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``make package`` builds of this checkout; skip where it cannot be built."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the package is built on Linux x86-64")
    missing = [tool for tool in ("strip", "ldd") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the package cannot be built without {' and '.join(missing)}")
    folder = tmp_path_factory.mktemp("built") / "package"
    build = [sys.executable, str(REPOSITORY / "packaging" / "build.py")]
    told = subprocess.run(
        [*build, "--artifact-url", ARTIFACT_URL, "--output", str(folder)],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return folder


@pytest.fixture(scope="session")
def artifact(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Fetched:
    """The package that ``make package`` builds, and its artifact."""
    folder = tmp_path_factory.mktemp("artifact")
    with (built / ARTIFACT).open("rb") as file:
        unpack(file, ARTIFACT, str(folder))
    (package,) = read_repository(built / "stub-universe-tensorflow.json")
    return Fetched(package, folder / "dcos-tensorflow")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line of an embedded cluster that lives as long as the module's tests."""
    line = CommandLine(tmp_path_factory.mktemp("home"))
    size = ("--agents", "1", "--cpus", "2", "--mem", "2000", "--disk", "2000", "--gpus", "0")
    up = line("local", "up", *size, "--json")
    assert up.code == 0, up.out
    yield line
    assert line("local", "down").code == 0


@pytest.fixture
def start(tmp_path: Path, cluster: CommandLine) -> Iterator[Callable[..., AppProcess]]:
    """Start the app's command in a sandbox of its own, on the embedded cluster."""
    processes = []
    running = embedded_mesos.status(cluster.home / "local")
    assert running is not None

    def start_app(fetched: Fetched, options: Mapping[str, Any], **variables: str) -> AppProcess:
        sandbox = tmp_path / f"sandbox-{len(processes)}"
        sandbox.mkdir()
        (sandbox / "dcos-tensorflow").symlink_to(fetched.folder)
        elsewhere = {
            "DCOS_TENSORFLOW_MASTER": running.master,
            # The test is Admin Router.
            "DCOS_TENSORFLOW_API_FROM": "127.0.0.1",
            "DCOS_TENSORFLOW_PRINCIPAL": running.credential.principal,
            "DCOS_TENSORFLOW_SECRET_FILE": str(
                embedded_mesos.credential_file(cluster.home / "local")
            ),
            "DCOS_TENSORFLOW_STATE": f"sqlite:///{tmp_path}/state.db",
        }
        app = marathon_app(fetched.package, options)
        processes.append(AppProcess(app, sandbox, {**elsewhere, **variables}))
        return processes[-1]

    yield start_app
    for started in processes:
        started.process.kill()
        started.process.wait()
