"""``examples/keras``: one file for one worker, for several, and for parameter servers.

Each is killed in the middle of an epoch, and goes on from the end of the one before. ``make test``
has one row of each strategy of several tasks, with one TensorFlow each.
"""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from command_line import EXAMPLES, NEWEST, OLD, CommandLine, accuracy_in
from processes import processes
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(700)]

DEADLINE = 300.0
EPOCHS, STEPS = 6, 100
#: What is set beside the example's options, and whose output tells of the epochs.
ALONE = ("worker-0", ())
MIRRORED = ("worker-0", ("worker.count=2",))
SERVED = ("chief-0", ("chief.count=1", "parameter_server.count=1", "worker.count=1"))
SMALL = [f"{role}.mem=1200" for role in ("chief", "parameter_server", "worker", "evaluator")]


def row(way: tuple[str, tuple[str, ...]], victim: str, version: str, *, gate: bool = False):
    marks = () if gate else (pytest.mark.soak,)
    return pytest.param(*way, victim, version, id=f"{len(way[1])}-{victim}-{version}", marks=marks)


def wait_for_the_second_epoch(cluster, name: str, teller: str) -> None:
    """Wait until a training is in the midst of its epochs."""
    eventually(
        lambda: 2 in epochs_begun(cluster, name, teller), seconds=DEADLINE, what="the second epoch"
    )


@pytest.mark.parametrize(
    ("teller", "settings", "victim", "version"),
    [
        row(SERVED, "ps-0", NEWEST, gate=True),
        *(row(ALONE, "worker-0", version) for version in (OLD, NEWEST)),
        *(row(MIRRORED, "worker-0", version) for version in (OLD, NEWEST)),
        *(row(MIRRORED, "worker-1", version) for version in (OLD, NEWEST)),
        row(SERVED, "ps-0", OLD),
        *(row(SERVED, "chief-0", version) for version in (OLD, NEWEST)),
    ],
)
def test_a_training_that_is_killed_in_an_epoch_goes_on_from_the_one_before(
    local_cluster, tensorflow, *, teller, settings, victim, version
):
    name = f"keras-{len(settings)}-{victim}-{version}".replace(".", "-")
    run = local_cluster.start(*run_arguments(name, tensorflow(version), *settings))
    try:
        wait_for_the_second_epoch(local_cluster, name, teller)
        os.kill(process_of(name, victim), signal.SIGKILL)
        out, _ = run.communicate(timeout=DEADLINE)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    begun = epochs_begun(local_cluster, name, teller)
    # That in which it was killed is begun twice, unless its last step had just been made.
    assert begun == sorted(begun)
    assert {*begun} == {*range(1, EPOCHS + 1)}
    assert len(begun) <= EPOCHS + 1
    result = result_of(local_cluster, name, teller)
    # Of the epoch that was begun twice, the steps of the first time count for nothing.
    assert result["steps"] == EPOCHS * STEPS
    assert Path(result["model"]).is_file()
    assert accuracy_in(out) > 0.9


def begun_again(begun: list[int]) -> list[int]:
    """Return the epochs from the first that was begun twice on; empty when none was."""
    back = (i for i in range(1, len(begun)) if begun[i] <= begun[i - 1])
    return begun[next(back, len(begun)) :]


# Each has a directory of its own then, and BackupAndRestore reads that: what is published counts.
@pytest.mark.soak
@pytest.mark.parametrize("version", [OLD, NEWEST])
def test_with_checkpoints_in_s3_all_workers_go_on_from_the_same_epoch(
    local_cluster, s3, tmp_path, *, tensorflow, version
):
    name, epochs = f"keras-s3-{version}".replace(".", "-"), 12
    options = json.loads((EXAMPLES / "keras" / "options.json").read_text())
    options["service"] |= {"name": name, "job_url": str(EXAMPLES / "keras")}
    options["service"] |= {"python": tensorflow(version), "job_args": arguments_of(epochs)}
    options["worker"]["count"] = 2
    options["checkpoints"] = {"uri": "s3://bucket/keras", "interval_seconds": 1}
    file = tmp_path / "options.json"
    file.write_text(json.dumps({**options, "s3": s3.options(tmp_path)}))
    run = local_cluster.start("run", file, "--yes")
    try:
        eventually(
            lambda: (
                "keras/latest.json" in s3.list_keys("keras/")
                and any("/backup/chief/ckpt-" in key for key in s3.list_keys("keras/data/"))
            ),
            seconds=DEADLINE,
            what="a published checkpoint",
        )
        os.kill(process_of(name, "worker-1"), signal.SIGKILL)
        out, _ = run.communicate(timeout=DEADLINE)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    begun, others = (epochs_begun(local_cluster, name, f"worker-{n}") for n in range(2))
    # Who is killed between two epochs, while the first is saved, begins none of them twice.
    again = [found for found in (begun_again(begun), begun_again(others)) if found]
    assert all(found == [*range(found[0], epochs + 1)] and found[0] > 1 for found in again)
    assert again == again[:1] * len(again), "both go on from one epoch"
    assert sorted({*begun}) == sorted({*others}) == [*range(1, epochs + 1)]
    assert result_of(local_cluster, name, "worker-0")["steps"] == epochs * STEPS


# The chief goes on with the other worker meanwhile: nothing is repeated.
@pytest.mark.soak
@pytest.mark.parametrize("version", [OLD, NEWEST])
def test_with_parameter_servers_a_killed_worker_interrupts_nothing(
    local_cluster, tensorflow, version
):
    teller, settings = SERVED
    name = f"keras-worker-{version}".replace(".", "-")
    python = tensorflow(version)
    run = local_cluster.start(*run_arguments(name, python, *settings, "worker.count=2"))
    try:
        wait_for_the_second_epoch(local_cluster, name, teller)
        os.kill(process_of(name, "worker-1"), signal.SIGKILL)
        out, _ = run.communicate(timeout=DEADLINE)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    assert epochs_begun(local_cluster, name, teller) == [*range(1, EPOCHS + 1)]
    # A step that was under way on the killed one is computed once more.
    assert EPOCHS * STEPS <= result_of(local_cluster, name, teller)["steps"] <= EPOCHS * STEPS + 2


@pytest.mark.soak
@pytest.mark.parametrize("version", [OLD, NEWEST])
def test_an_only_worker_gets_another_one_while_it_trains(local_cluster, tensorflow, version):
    teller, _ = ALONE
    name = f"keras-joined-{version}".replace(".", "-")
    # So many that it still trains when the other one has its container.
    epochs = 15
    many = f"service.job_args={arguments_of(epochs)}"
    run = local_cluster.start(*run_arguments(name, tensorflow(version), many))
    try:
        wait_for_the_second_epoch(local_cluster, name, teller)
        update = local_cluster.ask("update", "start", name, "--set", "worker.count=2")
        assert update.code == 0, update.out
        out, _ = run.communicate(timeout=DEADLINE)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    # The one that came goes on from what the other had kept.
    first, *others = epochs_begun(local_cluster, name, "worker-1")
    assert first > 1
    assert others == [*range(first + 1, epochs + 1)]
    assert result_of(local_cluster, name, teller)["steps"] == epochs * STEPS


@pytest.mark.soak
@pytest.mark.parametrize("version", [OLD, NEWEST])
@pytest.mark.parametrize(("teller", "settings"), [ALONE, MIRRORED, SERVED])
def test_an_evaluator_measures_each_epoch_beside_the_training(
    local_cluster, tensorflow, *, teller, settings, version
):
    name = f"evaluated-{len(settings)}-{version}".replace(".", "-")
    more = (*settings, "evaluator.count=1", "service.outcome_grace_seconds=30")
    ended = local_cluster(*run_arguments(name, tensorflow(version), *more), timeout=DEADLINE)
    assert ended.code == 0, ended.out[-4000:]
    said = output_of(local_cluster, name, "evaluator-0")
    measured = re.findall(r"after epoch (\d+): test accuracy (\d\.\d+)", said)
    assert [int(epoch) for epoch, _ in measured] == [*range(1, EPOCHS + 1)]
    assert float(measured[-1][1]) == pytest.approx(
        result_of(local_cluster, name, teller)["test_accuracy"], abs=1e-4
    )


@pytest.mark.soak
def test_a_job_run_again_with_more_epochs_goes_on_where_it_ended(local_cluster, tensorflow):
    teller, settings = ALONE
    arguments = run_arguments("keras-again", tensorflow(NEWEST), *settings)
    first = local_cluster(*arguments, timeout=DEADLINE)
    more = ("--set", f"service.job_args={arguments_of(EPOCHS + 1)}")
    second = local_cluster(*arguments, *more, timeout=DEADLINE)
    assert [first.code, second.code] == [0, 0], second.out[-4000:]
    assert epochs_begun(local_cluster, "keras-again", teller) == [EPOCHS + 1]
    result = result_of(local_cluster, "keras-again", teller)
    assert result["steps"] == (EPOCHS + 1) * STEPS


def run_arguments(name: str, python: str, *settings: str) -> tuple[object, ...]:
    given = (
        f"service.name={name}",
        f"service.python={python}",
        f"service.job_args={arguments_of(EPOCHS)}",
        # Parameter servers and their workers never end by themselves.
        "service.outcome_grace_seconds=1",
    )
    roles = {setting.partition(".")[0] for setting in settings}
    small = [setting for setting in SMALL if setting.partition(".")[0] in roles]
    words = [word for setting in (*given, *small, *settings) for word in ("--set", setting)]
    return ("run", EXAMPLES / "keras" / "options.json", "--yes", *words)


def arguments_of(epochs: int) -> str:
    return json.dumps(["--epochs", str(epochs), "--steps-per-epoch", str(STEPS)])


def output_of(cluster: CommandLine, name: str, task: str) -> str:
    return cluster.ask("logs", "--name", name, task, "--lines", "1000").out


def epochs_begun(cluster: CommandLine, name: str, task: str) -> list[int]:
    return [int(epoch) for epoch in re.findall(r"\bEpoch (\d+)/", output_of(cluster, name, task))]


def result_of(cluster: CommandLine, name: str, task: str) -> dict[str, Any]:
    (result,) = re.findall(r"\bresult: (\{.*\})", output_of(cluster, name, task))
    return json.loads(result)


def process_of(name: str, task: str) -> int:
    """Return the process of a task's own code."""
    return next(processes("/train.py", SERVICE_NAME=name, TASK_NAME=task)).pid
