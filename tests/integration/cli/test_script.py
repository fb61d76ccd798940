"""``run train.py``: a script and a command line, and what is asked of the service then."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import CommandLine
from waiting import eventually

SCRIPT = """
import os, sys, time
import beside

step = 0
print("arguments", sys.argv[1:], "with", os.environ.get("TF_CONFIG", "nobody"), flush=True)
while not os.path.exists(os.environ["CHECKPOINT_DIR"] + "/finish"):
    step += 1
    print(f"step {step} loss 0.5", flush=True)
    time.sleep(0.2)
"""
SMALL = (
    *("--set", "worker.cpus=0.1", "--set", "worker.mem=64", "--set", "worker.disk=10"),
    *("--set", f"service.python={sys.executable}", "--set", "service.kill_grace_seconds=1"),
)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "beside.py").touch()
    (folder / "train.py").write_text(SCRIPT)
    return folder / "train.py"


def test_gpus_are_those_of_the_workers(command_line: CommandLine, script: Path) -> None:
    ended = command_line.ask("run", script, "--gpus", "1000", *SMALL)
    assert ended.code == 2
    assert "1000 gpus (" in ended.out


@pytest.fixture
def up(command_line: CommandLine) -> Iterator[CommandLine]:
    size = ("--cpus", "2", "--mem", "1000", "--disk", "500", "--gpus", "0")
    assert command_line("local", "up", *size).code == 0
    yield command_line
    assert command_line.ask("local", "down").code == 0


def test_a_script_trains_with_its_arguments_grows_while_it_runs_and_is_one_service(
    up: CommandLine, script: Path, tmp_path: Path
) -> None:
    def printed() -> str:
        return up.ask("logs", "--name", "train", "--lines", "1000").out

    def why() -> str:
        return up.ask("why", "train").out

    words = ("--", "--rate", "0.1", "two words", "$HOME")
    begun = up("run", script, "--detach", *SMALL, *words)
    assert begun.code == 0, begun.out
    alone = f"arguments {list(words[1:])} with nobody"
    eventually(lambda: alone in printed(), seconds=60, what=printed)
    more = up.ask("update", "start", "train", "--set", "worker.count=3")
    assert more.code == 0, more.out
    eventually(lambda: "all 3 tasks of the gang run" in why(), seconds=60, what=why)
    assert all(f"worker-{n}" in printed() for n in range(3))
    other = tmp_path / "cifar" / "train.py"
    other.parent.mkdir()
    other.write_text(SCRIPT)
    refused = up.ask("run", other, *SMALL)
    assert refused.code == 2
    assert "give this one a name of its own with --name" in refused.out
    assert up.ask("stop", "train").code == 0
    (up.home / "services" / "train" / "checkpoints" / "finish").touch()
    again = up("run", script, *SMALL)
    assert again.code == 0, again.out
    assert "Training goes on from the checkpoints" in again.out
