"""The local DC/OS in the background: started, killed, found again, ended."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import local_dcos
from dcos_tensorflow.cli.main import run_command_line
from embedded_mesos import BackgroundProcessError, EmbeddedCluster
from local_dcos import DcosConfig
from untrusted_input.process_table import start_time
from waiting import eventually

APPS = "/service/marathon/v2/apps"
PROGRAM = "dcos_tensorflow.deploy.embedded.dcos_integration"


@pytest.fixture
def config(cluster: EmbeddedCluster, credential: Path, tmp_path: Path) -> Iterator[DcosConfig]:
    folder = tmp_path / "dcos"
    found = DcosConfig(folder=folder, master=cluster.master, credential=credential)
    yield found
    local_dcos.down(found.folder)


def up(config: DcosConfig) -> local_dcos.DcosStatus:
    return local_dcos.up(config, PROGRAM)


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=20) as answer:
        return json.load(answer)


def running_task(url: str) -> dict[str, Any]:
    def one() -> dict[str, Any] | None:
        tasks = ask(f"{url}{APPS}/app")["app"]["tasks"]
        return tasks[0] if tasks and tasks[0]["state"] == "TASK_RUNNING" else None

    found = eventually(one)
    assert found is not None
    return found


def kill(status: local_dcos.DcosStatus) -> None:
    os.kill(status.pid, signal.SIGKILL)
    eventually(lambda: start_time(status.pid) is None)
    # It is a child of this process, which started it.
    os.waitpid(status.pid, 0)


def test_a_second_start_finds_the_first(config: DcosConfig) -> None:
    assert up(config).pid == up(config).pid


def test_apps_go_on_while_the_daemon_is_dead_and_are_found_again(config: DcosConfig) -> None:
    first = up(config)
    ask(f"{first.url}{APPS}", {"id": "app", "cmd": "sleep 600"})
    before = running_task(first.url)["id"]
    eventually(lambda: not ask(f"{first.url}{APPS}/app")["app"]["deployments"])
    kill(first)
    second = up(config)
    assert second.address == first.address
    assert running_task(second.url)["id"] == before


def test_an_app_that_ended_while_the_daemon_was_dead_is_started_again(
    config: DcosConfig, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    command = f"while [ ! -e {end} ]; do sleep 0.05; done; rm {end}"
    first = up(config)
    ask(f"{first.url}{APPS}", {"id": "app", "cmd": command, "backoffSeconds": 0.01})
    before = running_task(first.url)["id"]
    kill(first)
    end.touch()
    eventually(lambda: not end.exists())
    second = up(config)
    eventually(lambda: running_task(second.url)["id"] != before)


def test_down_ends_every_task(config: DcosConfig, tmp_path: Path) -> None:
    status = up(config)
    command = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    ask(f"{status.url}{APPS}", {"id": "app", "cmd": command})
    running_task(status.url)
    path = tmp_path / "pid"
    pid = int(eventually(lambda: path.exists() and path.read_text()))
    assert local_dcos.down(config.folder)
    assert start_time(pid) is None
    assert not local_dcos.down(config.folder)


def test_in_front_of_another_master_it_is_started_anew(config: DcosConfig) -> None:
    first = up(config)
    second = up(replace(config, master="127.0.0.1:1"))
    assert second.pid != first.pid
    assert second.master == "127.0.0.1:1"


def test_it_follows_the_master_with_everything_else_as_it_was(config: DcosConfig) -> None:
    first = up(replace(config, variant="enterprise"))
    local_dcos.follow(config.folder, first.master, PROGRAM)
    assert local_dcos.status(config.folder) == first
    local_dcos.follow(config.folder, "127.0.0.1:1", PROGRAM)
    second = local_dcos.status(config.folder)
    assert second is not None
    assert second.master == "127.0.0.1:1"
    assert ask(f"{second.url}/dcos-metadata/dcos-version.json")["dcos-variant"] == "enterprise"


def test_a_start_that_fails_tells_why(config: DcosConfig) -> None:
    config.folder.mkdir()
    (config.folder / "dcos.json").write_text("{")
    with pytest.raises(BackgroundProcessError, match=r"dcos\.json cannot be read"):
        up(config)


def test_its_state_is_for_this_user_alone(config: DcosConfig) -> None:
    up(config)
    for name in ("dcos.json", "config.json", "daemon.json"):
        assert (config.folder / name).stat().st_mode & 0o077 == 0


def test_local_up_with_dcos_serves_and_local_down_ends_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = ["--work-dir", str(tmp_path)]
    try:
        assert run_command_line(["local", "up", "--dcos", "--json", *work]) == 0
        url = json.loads(capsys.readouterr().out)["dcos"]["url"]
        assert ask(f"{url}/dcos-metadata/dcos-version.json")["dcos-variant"] == "open"
        assert run_command_line(["local", "status", *work]) == 0
        assert f"dcos cluster setup {url}" in capsys.readouterr().out
    finally:
        assert run_command_line(["local", "down", *work]) == 0
    with pytest.raises(OSError, match="refused"):
        ask(f"{url}/metadata")


def test_flags_of_the_local_dcos_need_the_local_dcos(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["local", "up", "--dcos-variant", "open"]) == 2
    assert "add --dcos" in capsys.readouterr().err


def test_a_login_needs_a_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DCOS_USERNAME", raising=False)
    monkeypatch.setenv("DCOS_PASSWORD", "x")
    assert run_command_line(["local", "up", "--dcos", "--dcos-login"]) == 2
    assert "DCOS_USERNAME: not set" in capsys.readouterr().err
