"""A sweep and a batch as a person plays them: their end, their board, the best trial in full."""

import json
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from command_line import CommandLine, Ended, write_options
from waiting import eventually

pytestmark = pytest.mark.timeout(300)

#: Four fit at a time, whatever machine this is.
ROOMY = ("--cpus", "1", "--mem", "1000", "--disk", "500", "--gpus", "0")
#: A trial: one of three fails.
TRIAL = """
import json, os, pathlib, sys
context, rate = json.loads(os.environ["JOB_CONTEXT"]), float(os.environ["PARAM_RATE"])
if rate > 0.7 and context["trial"]:
    raise ValueError(f"{rate} is too much")
print(f"epoch 3 step 3 score {1 - abs(rate - 0.5)}")
pathlib.Path(os.environ["CHECKPOINT_DIR"], "context").write_text(os.environ["JOB_CONTEXT"])
"""
SHARD = """
import os
if os.environ["SHARD_INDEX"] == "1":
    raise ValueError("this one is bad")
with open(os.environ["SHARD_OUTPUT"], "w") as output:
    output.write(os.environ["SHARD_BEGIN"])
"""


def options(folder: Path, name: str, code: str, **sections: object) -> Path:
    """Write a script, and options that run it for each unit."""
    folder.mkdir(exist_ok=True)
    (folder / "program.py").write_text(code)
    context = json.dumps({"trial": True, "kept": 1})
    service = {"name": name, "job_url": ".", "job_name": "program", "job_context": context}
    return write_options(folder, service=service, **sections)


def sweep(values: list[float], metric: str = "score", **more: object) -> dict[str, object]:
    return {
        "parameters": {"rate": values},
        "objective": {"metric": metric},
        "method": "grid",
        "max_retries": 0,
        **more,
    }


class LastingCluster(Protocol):
    """What ``conftest`` has: a command line whose embedded cluster is up."""

    command_line: CommandLine


class Swept(NamedTuple):
    """A sweep that was run to its end."""

    command_line: CommandLine
    file: Path
    ended: Ended


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """Three trials, of which the last one in the grid's values fails."""
    folder = tmp_path_factory.mktemp("sweep")
    command_line = CommandLine(folder / "home")
    file = options(folder / "job", "swept", TRIAL, sweep=sweep([0.25, 0.5, 0.75], parallelism=2))
    return Swept(command_line, file, command_line("run", file, *ROOMY))


def test_what_a_trial_has_printed_is_shown_after_its_end(swept: Swept) -> None:
    told = [swept.command_line.ask("logs", "swept", f"trial-{n}").out for n in range(3)]
    for text in ("score 0.75", "score 1.0", "ValueError: 0.75 is too much"):
        assert [text in one for one in told].count(True) == 1, told


def test_a_trial_that_is_not_there_is_told(swept: Swept) -> None:
    told = swept.command_line.ask("logs", "swept", "trial-7")
    assert (told.code, "no output of trial-7: there are 3" in told.out) == (1, True)
    told = swept.command_line.ask("logs", "swept", "trial-1", "--follow")
    assert (told.code, "stands alone" in told.out) == (2, True)


def test_the_output_of_a_trial_whose_file_has_gone_is_told(swept: Swept) -> None:
    (file,) = swept.command_line.home.rglob("unit-0.log")
    file.unlink()
    told = swept.command_line.ask("logs", "swept", "trial-0")
    assert (told.code, "the output of trial-0 is gone" in told.out) == (1, True)


def test_a_run_says_how_many_trials_there_are_and_what_came_of_them(swept: Swept) -> None:
    code, out = swept.ended.code, swept.ended.out
    assert code == 0, out
    assert "swept: run 1, 3 trials, 2 at a time, 1 task each, on an embedded cluster" in out
    assert "2 of 3 trials have succeeded, 1 has failed" in out
    assert "score 1 (rate 0.5)" in out
    assert "0.75 is too much" in out.split("has succeeded after")[1]
    assert "all trials      dcos-tensorflow sweep swept" in out
    assert "train the best  dcos-tensorflow sweep best swept --run" in out


def test_the_end_is_shown_again_later_and_as_json(swept: Swept) -> None:
    told = swept.command_line.ask("status", "swept")
    assert "score 1 (rate 0.5)" in told.out
    units = json.loads(swept.command_line.ask("status", "swept", "--json").out)["units"]
    assert units["best"]["parameters"] == {"rate": 0.5}
    assert units["failed"] == len(units["failures"]) == 1


def test_what_the_trials_printed_is_there_after_the_end(swept: Swept) -> None:
    told = swept.command_line.ask("logs", "--name", "swept")
    assert (told.code, "score 0.75" in told.out) == (0, True), told.out


def test_the_board_is_shown_with_and_without_its_own_name(swept: Swept) -> None:
    told = swept.command_line.ask("sweep", "swept")
    assert told.out.startswith("3 trials: 2 finished, 1 failed.")
    assert swept.command_line.ask("sweep", "board", "swept") == told


def test_the_best_parameters_are_told_to_people_and_to_programs(swept: Swept) -> None:
    assert swept.command_line.ask("sweep", "best", "swept").out.split() == ["rate", "0.5"]
    told = swept.command_line.ask("sweep", "best", "swept", "--json").out
    assert json.loads(told) == {"rate": 0.5}


def test_what_a_job_runs_with_is_for_run_alone(swept: Swept) -> None:
    told = swept.command_line.ask("sweep", "best", "swept", "--set", "worker.count=2")
    assert (told.code, told.out) == (2, "Error: --set is for --run.\n")


@pytest.fixture(scope="module")
def trained(swept: Swept) -> Ended:
    """The best trial, trained in full by the code that the sweep packed."""
    (swept.file.parent / "program.py").write_text("raise SystemExit('changed since')")
    return swept.command_line("sweep", "best", "swept", "--run", "--yes", *ROOMY)


def test_the_best_trial_is_trained_in_full_as_a_job_of_its_own(
    swept: Swept, trained: Ended
) -> None:
    assert trained.code == 0, trained.out
    assert "The job swept-best has succeeded" in trained.out
    home = swept.command_line.home / "services" / "swept-best"
    context = json.loads((home / "checkpoints" / "context").read_text())
    assert context == {"trial": True, "kept": 1, "rate": 0.5}
    assert "worker-0" in [path.name for path in (home / "tasks").iterdir()]


def test_the_best_of_another_sweep_does_not_go_on_from_it(swept: Swept, trained: Ended) -> None:
    folder = swept.file.parent.parent / "other"
    home = swept.command_line
    other = options(folder, "swept", TRIAL, sweep=sweep([0.375]))
    assert home("run", other, *ROOMY).code == 0
    again = home("sweep", "best", "swept", "--run", *ROOMY)
    assert again.code == 2
    assert "swept-best has trained with other parameters before: remove its" in again.out


def test_trials_that_never_tell_the_metric_fail_and_say_what_they_told(
    command_line: CommandLine, tmp_path: Path
) -> None:
    wanted = sweep([0.1, 0.2, 0.3, 0.4, 0.5], metric="val_accuracy", parallelism=1)
    ended = command_line("run", options(tmp_path / "job", "silent", TRIAL, sweep=wanted), *ROOMY)
    assert ended.code == 1
    reason = "3 trials have ended without the objective's metric val_accuracy, and told "
    assert reason in ended.out
    assert "its metric val_accuracy never came; it told" in ended.out
    none = command_line.ask("sweep", "best", "silent")
    assert (none.code, none.out) == (1, "Error: No trial has finished yet.\n")


def test_a_batch_that_fails_in_part_says_what_and_how_to_do_the_rest(
    command_line: CommandLine, tmp_path: Path
) -> None:
    output = tmp_path / "out" / "part-{index}"
    work = {"inputs": {"range": [0, 30, 10]}, "output": str(output), "max_retries": 0}
    file = options(tmp_path / "job", "worked", SHARD, batch=work)
    ended = command_line("run", file, *ROOMY)
    assert ended.code == 1
    assert "worked: run 1, 3 shards, as many as fit at a time, 1 task each, on" in ended.out
    assert "2 of 3 shards have succeeded, 1 has failed" in ended.out
    assert "failed         shard 1: slot-" in ended.out
    assert "this one is bad" in ended.out
    assert f"shards         {output}" in ended.out
    assert f"dcos-tensorflow run {file} {' '.join(ROOMY)} --resume" in ended.out
    again = command_line("run", file, *ROOMY)
    assert again.code == 1
    assert "2 outputs of this batch are there already, such as" in again.out
    assert "run missing units" in again.out


# -- while a scheduler serves it -------------------------------------------------------------------


@pytest.mark.soak
def test_the_best_of_a_service_is_asked_of_its_scheduler(
    lasting: LastingCluster, tmp_path: Path
) -> None:
    person = lasting.command_line
    file = options(tmp_path / "job", "served", TRIAL, sweep=sweep([0.25, 0.5]))
    served = person.start("scheduler", file, "--local")
    try:
        eventually(lambda: "succeeded" in person.ask("status", "served").out, seconds=120)
        registered = json.loads((person.home / "services/served/scheduler.json").read_text())
        token = tmp_path / "token"
        token.write_text(registered["token"])
        token.chmod(0o600)
        by_api = ("--api", f"http://{registered['api']}", "--api-token-file", token)
        assert json.loads(person.ask("sweep", "best", *by_api, "--json").out) == {"rate": 0.5}
        nowhere = person.ask("sweep", "best", *by_api, "--run")
        assert (nowhere.code, "name the cluster with --master" in nowhere.out) == (2, True)
        no_code = person.ask("sweep", "best", *by_api, "--run", "--local")
        assert (no_code.code, "The code of served, ., lies with" in no_code.out) == (1, True)
        trained = person("sweep", "best", "served", "--run")
        assert "The job served-best has succeeded" in trained.out, trained.out
    finally:
        served.terminate()
        served.communicate(timeout=60)
