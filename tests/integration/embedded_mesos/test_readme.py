"""What the README of the embedded Mesos shows works when it is typed."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedded_mesos

PACKAGE = Path(embedded_mesos.__file__).parent
README = (PACKAGE / "README.md").read_text()


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "embedded_mesos", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "mesos"
    embedded_mesos.down(tmp_path / "mesos")


def test_the_program_with_stock_pymesos_runs_its_task(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"]


def test_the_commands_keep_a_cluster_in_a_folder(folder: Path) -> None:
    up = command("up", folder, "--agents", 2, "--cpus", 4)
    assert up.returncode == 0, up.stderr
    found = embedded_mesos.status(folder)
    assert found is not None
    assert [(one.address, one.cpus) for one in found.agents] == [("127.0.0.1", 4), ("127.0.0.2", 4)]
    assert f"master      {found.master}\n" in up.stdout
    assert command("status", folder).stdout == up.stdout
    assert command("down", folder).returncode == 0
    assert embedded_mesos.status(folder) is None


def test_no_output_shows_the_secret(folder: Path) -> None:
    up = command("up", folder)
    found = embedded_mesos.status(folder)
    assert found is not None
    assert found.credential.secret not in up.stdout + up.stderr


def test_without_a_cluster_its_status_is_a_failure(folder: Path) -> None:
    assert command("status", folder).returncode == 1


def test_more_agents_than_addresses_are_refused_by_number(folder: Path) -> None:
    refused = command("up", folder, "--agents", 251)
    assert refused.returncode == 1
    assert refused.stderr == "embedded-mesos: there can be 1 to 250 agents, not 251\n"
