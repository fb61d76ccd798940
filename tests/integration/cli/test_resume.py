"""A service that has ended: run once more as it was, listed, and removed with the others."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from waiting import eventually

pytestmark = pytest.mark.timeout(150)

SMALL = {"cpus": 0.2, "mem": 64, "disk": 16}
COUNTS = "echo run $(ls $CHECKPOINT_DIR | wc -l) with $WORD; touch $CHECKPOINT_DIR/$RANDOM$$"


@pytest.fixture
def counted(command_line: CommandLine, job: Any) -> CommandLine:
    """A command line with a job that has ended."""
    file: Path = job(COUNTS, "counts", worker={"count": 1, **SMALL})
    options = json.loads(file.read_text())
    options["service"]["env"] = {"WORD": "this"}
    file.write_text(json.dumps(options))
    ended = command_line("run", file)
    assert ended.code == 0, ended.out
    # What it was run with is known without the file.
    file.unlink()
    return command_line


def printed(command_line: CommandLine) -> str:
    return command_line.ask("logs", "counts", "--file", "stdout").out


def test_it_goes_on_from_its_checkpoints_with_the_options_that_it_had(
    counted: CommandLine,
) -> None:
    assert "run 0 with this" in printed(counted)
    again = counted("resume", "counts", "--json")
    assert again.code == 0, again.out
    assert json.loads(again.out[again.out.index("\n{") :])["run"] == 2
    assert "run 1 with this" in printed(counted)
    changed = counted("resume", "counts", "--set", "service.env.WORD=that", "--logs")
    assert (changed.code, "run 2 with that" in changed.out) == (0, True), changed.out
    assert len(json.loads(counted.ask("runs", "counts", "--json").out)) == 3


def test_the_list_has_a_head_and_times_and_nothing_that_was_removed(counted: CommandLine) -> None:
    head, line = counted.ask("list").out.splitlines()
    assert head.split() == ["service", "state", "begun", "ended", "why", "served", "by"]
    assert re.match(r"counts +succeeded +(now|[0-9 a-z]+ ago) ", line), line
    (known,) = json.loads(counted.ask("list", "--json").out)
    assert known["started_at"] <= known["finished_at"]
    assert counted.ask("rm", "counts", "--yes").code == 0
    assert "There is no service" in counted.ask("list").out
    # What it has left is the user's.
    assert len(json.loads(counted.ask("runs", "counts", "--json").out)) == 1
    gone = counted.ask("resume", "counts")
    assert (gone.code, "counts has no run that could be resumed" in gone.out) == (1, True)


def test_those_that_have_ended_are_removed_together_and_those_that_run_are_not(
    counted: CommandLine, job: Any
) -> None:
    refused = counted.ask("prune")
    assert (refused.code, "counts would be removed: confirm with --yes" in refused.out) == (2, True)
    waits = "until test -e $CHECKPOINT_DIR/finish; do sleep 0.1; done"
    run = counted.start("run", job(waits, "waits", worker={"count": 1, **SMALL}))
    eventually(lambda: "running" in counted.ask("status", "waits").out, seconds=60)
    pruned = counted.ask("prune", "--yes", "--json")
    assert json.loads(pruned.out) == {"removed": ["counts"], "left": {}}
    still = counted.ask("resume", "waits")
    assert (still.code, "has not ended, it is running" in still.out) == (1, True)
    (counted.home / "services/waits/checkpoints/finish").touch()
    run.communicate(timeout=60)
    assert counted.ask("prune", "--yes").out == "Removed waits.\n"
    assert counted.ask("prune", "--yes").out == "No service has ended: nothing is removed.\n"


def test_a_job_whose_code_has_gone_is_refused_with_what_to_say(
    command_line: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('done')")
    small = [f"--set=worker.{name}={value}" for name, value in SMALL.items()]
    assert command_line("run", folder / "train.py", *small).code == 0
    (folder / "train.py").unlink()
    folder.rmdir()
    refused = command_line.ask("resume", "train")
    assert refused.code == 1
    assert "is not in" in refused.out
    assert "--set service.job_url=" in refused.out
