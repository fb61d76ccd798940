"""What docs/teams.md tells a newcomer to type works as it stands there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import ROOT, CommandLine
from document_commands import blocks, commands
from waiting import eventually

PAGE = ROOT / "docs" / "teams.md"
FIRST = "Begin on one machine"
SCRIPT = """
import sys
for step in range(1, 4):
    print(f"step {step} loss {1 / step}")
"""
#: Small enough that all of them have room.
SMALL = "--set worker.cpus=0.1 --set worker.mem=64 --set worker.disk=10"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CommandLine]:
    made = CommandLine(tmp_path / "home")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "teams.json").write_text(blocks(PAGE, "json")[FIRST])
    yield made
    subprocess.run(["pkill", "-f", str(tmp_path / "teams.json")], check=False)
    made("local", "down", "--yes")


@pytest.mark.timeout(300)
def test_what_the_page_of_teams_says_can_be_typed(home: CommandLine, tmp_path: Path) -> None:
    python = os.path.dirname(sys.executable)
    said = {}
    for command in commands(blocks(PAGE, "sh")[FIRST]):
        line = command.replace(
            "dcos-tensorflow", f"{shlex.quote(sys.executable)} -m dcos_tensorflow"
        )
        line = line.replace("serve teams.json &", f"serve {tmp_path}/teams.json > queue.log 2>&1 &")
        line = line.replace(
            "submit train.py", f"submit train.py --set service.python={python}/.. {SMALL}"
        )
        ended = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env=home.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
        said[command] = ended.stdout
        if "serve" in line:
            eventually(lambda: home.ask("queue", "--json").code == 0, seconds=60.0, what="a queue")
    assert (
        "third has succeeded"
        in said["dcos-tensorflow submit train.py --name third --team students --after late --wait"]
    )
    listed = said["dcos-tensorflow queue list --all"]
    assert [
        name for name in ("train", "late", "third", "fourth", "fifth") if name not in listed
    ] == []
