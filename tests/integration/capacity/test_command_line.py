"""``capacity plan`` and ``capacity release --all``: machines of options, without a scheduler."""

import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from jobs.machine_rack import Rack

NODE = {
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "price": 0.5,
    "resources": {"cpus": 2.0, "mem": 4096.0, "disk": 50_000.0},
    "available": 8,
}


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path, "127.0.0.1:1", [dict(NODE)], 31_000)


@pytest.fixture
def options(tmp_path: Path, rack: Rack, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of three workers, two of which have room on a node."""
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    document: dict[str, Any] = {
        "service": {"name": "job", "job_cmd": "true", "python": "/usr/bin/python3"},
        "worker": {"count": 3, "cpus": 1.0, "mem": 1024, "disk": 1000},
        "parameter_server": {"count": 0},
        "capacity": {"provider": "command", "command": {"cmd": rack.command}},
    }
    file = tmp_path / "options.json"
    file.write_text(json.dumps(document))
    return file


def test_a_plan_says_what_would_be_bought_and_buys_nothing(
    options: Path, rack: Rack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["capacity", "plan", str(options), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["count"], each["instance_type"]) for each in found["wanted"]] == [(2, "node")]
    assert found["price_per_hour"] == 1.0
    assert rack.machines == []


def test_a_plan_is_told_in_words(options: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["capacity", "plan", str(options)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first == "2 on-demand machines of node in row-1 at 0.5 an hour each, for main"
    assert last == "1 an hour. Nothing is bought."


def test_all_machines_of_a_service_end_without_a_scheduler(
    options: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["capacity", "release", "--all", str(options), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ended": []}
