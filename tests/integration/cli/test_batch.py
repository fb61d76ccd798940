"""A batch whose command was killed, and all below it: ``--resume`` works on what is missing."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cluster_faults.processes import kill_from_top
from command_line import CommandLine, Ended, write_options
from waiting import eventually

pytestmark = pytest.mark.timeout(300)

SHARDS, AT_A_TIME = 12, 2
#: Fails where there is no file ``good``.
NEEDS_GOOD = "test -e {folder}/good || {{ echo no good >&2; exit 3; }}; "
SHARD = "echo $SHARD_INDEX >> {folder}/worked; sleep 0.3; echo $SHARD_BEGIN > $SHARD_OUTPUT"


class Batch:
    """A batch of shards of a third of a second, a few at a time."""

    def __init__(self, command_line: CommandLine, folder: Path, before: str = "") -> None:
        self.command_line, self.folder = command_line, folder
        self.options = write_options(
            folder,
            service={"name": "batch", "job_cmd": (before + SHARD).format(folder=folder)},
            worker={"count": 1},
            batch={
                "inputs": {"range": [0, 10 * SHARDS, 10]},
                "output": str(folder / "out" / "part-{index}"),
                "parallelism": AT_A_TIME,
                "max_retries": 0,
            },
        )

    def run(self, *flags: str) -> Ended:
        return self.command_line("run", self.options, "--yes", *flags)

    def killed_on_the_way(self, *flags: str, outputs: int = 4) -> set[str]:
        """Kill everything when some shards are there; return the names of those that were."""
        process = self.command_line.start("run", self.options, "--yes", *flags)
        eventually(lambda: len(self.there()) >= outputs, seconds=120, what="some outputs")
        kill_from_top(process.pid)
        process.communicate()
        return self.there()

    def there(self) -> set[str]:
        return {path.name for path in self.folder.glob("out/part-*")}

    def worked(self) -> Counter[str]:
        """How often each shard's process has begun."""
        return Counter(f"part-{line}" for line in (self.folder / "worked").read_text().split())

    def is_whole(self) -> bool:
        found = {path.name: path.read_text() for path in self.folder.glob("out/part-*")}
        return found == {f"part-{n}": f"{10 * n}\n" for n in range(SHARDS)}


@pytest.fixture
def batch(command_line: CommandLine, tmp_path: Path) -> Batch:
    return Batch(command_line, tmp_path)


def test_a_batch_of_which_nothing_is_left_but_its_output_does_what_is_missing(
    batch: Batch,
) -> None:
    there = batch.killed_on_the_way()
    shutil.rmtree(batch.command_line.home)
    refused = batch.run()
    assert (refused.code, "run --resume" in refused.out) == (1, True), refused.out
    ended = batch.run("--resume")
    assert ended.code == 0, ended.out
    assert batch.is_whole()
    assert {batch.worked()[name] for name in there} == {1}


def test_shards_that_have_failed_are_made_up_for_and_then_nothing_is_missing(
    lasting: Any, tmp_path: Path
) -> None:
    batch = Batch(lasting.command_line, tmp_path, before=NEEDS_GOOD)
    failed = batch.run()
    assert failed.code == 1, failed.out
    shown = lasting.command_line.ask("batch", "batch").out
    assert f"shard {SHARDS - 1} [{10 * SHARDS - 10}:{10 * SHARDS}] failed" in shown, shown
    assert "no good" in shown, shown
    (tmp_path / "good").touch()
    ended = batch.run("--resume")
    assert ended.code == 0, ended.out
    assert batch.is_whole()
    worked = batch.worked()
    again = batch.run("--resume")
    assert again.code == 0, again.out
    assert batch.worked() == worked


def test_a_script_resumes_by_itself(command_line: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hi')\n")
    refused = command_line.ask("run", tmp_path / "train.py", "--resume")
    assert (refused.code, "--resume is for a batch" in refused.out) == (2, True), refused.out


def test_only_a_batch_is_resumed(command_line: CommandLine, tmp_path: Path) -> None:
    refused = command_line.ask("run", write_options(tmp_path, service={"job_cmd": "x"}), "--resume")
    assert (refused.code, "batch.inputs" in refused.out) == (2, True), refused.out
