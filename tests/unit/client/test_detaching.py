"""``run --detach``: what is said of a scheduler that has ended when it is looked for."""

import json
import sys
from pathlib import Path

import pytest

from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.deploy import background
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.settings import collect


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path)


@pytest.fixture
def directory(work: WorkDirectory) -> ServiceDirectory:
    found = work.service("job")
    found.prepare()
    return found


def detach(
    monkeypatch: pytest.MonkeyPatch, work: WorkDirectory, directory: ServiceDirectory, script: str
) -> registry.Registration:
    """Detach with this script in place of the scheduler: it ends without having answered."""
    python = work.path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    given = GivenOptions(work.path / "options.json")
    settings = collect(None, {}, {})
    return background.start_scheduler(given, settings, directory, work, local=False, service="job")


@pytest.mark.parametrize("code", [0, 5])
def test_a_job_that_has_ended_before_its_scheduler_was_seen_was_started(
    monkeypatch: pytest.MonkeyPatch,
    work: WorkDirectory,
    directory: ServiceDirectory,
    code: int,
) -> None:
    ending.keep(directory, {"exit_code": code, "finished_at": 1.0})
    registry.register(directory, registry.Registration("job", 0, ""))
    ended = json.dumps({"exit_code": code, "finished_at": 2.0})
    script = f"echo '{ended}' > {directory.last_end}; exit {code}"
    started = detach(monkeypatch, work, directory, script)
    assert (started.service, started.api) == ("job", "")


@pytest.mark.parametrize("code", [5, 8])
def test_a_scheduler_that_ended_without_a_job_says_why_though_an_earlier_job_had_ended(
    monkeypatch: pytest.MonkeyPatch, work: WorkDirectory, directory: ServiceDirectory, code: int
) -> None:
    ending.keep(directory, {"exit_code": 5, "finished_at": 1.0})
    with pytest.raises(CliError, match="ended at once:\n  no such place") as raised:
        detach(monkeypatch, work, directory, f"echo no such place; exit {code}")
    assert raised.value.exit_code == code


def test_no_login_of_zookeeper_is_in_the_schedulers_command_line():
    login = "me:mine12345@"
    settings = collect(None, {}, {"master": f"zk://{login}h/mesos", "state": f"zk://{login}h"})
    assert not any(login in flag for flag in background._flags(settings, local=False))
    assert background._secrets(settings) == {
        "DCOS_TENSORFLOW_MASTER": f"zk://{login}h/mesos",
        "DCOS_TENSORFLOW_STATE": f"zk://{login}h",
    }
