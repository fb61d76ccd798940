"""The pure parts of benchmarks/start.py: the stages of a start, and whose each process is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
RUN = "/tmp/run-1"
RUNNER = f"python {RUN}/sandbox/task-runner.pyz"


@dataclass(frozen=True)
class Entry:
    """A line of a job's journal, as far as it is asked for."""

    at: float
    task: str
    event: str


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("start_stages")


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("our_processes")


def test_the_stages_of_a_start_add_up_to_the_whole_run(stages: ModuleType) -> None:
    found = stages.of_journal(
        [
            Entry(12.0, "chief-0", "process"),
            Entry(12.5, "worker-0", "step"),
            Entry(13.0, "chief-0", "started"),
            Entry(16.0, "chief-0", "imported"),
            Entry(21.0, "chief-0", "step"),
            Entry(26.0, "chief-0", "step"),
            Entry(26.5, "chief-0", "saved"),
        ],
        "chief-0",
        began=10.0,
        ended=28.0,
    )
    assert found == stages.Stages(launch=2, python=1, load=3, connect=5, train=5, end=2)
    assert found.until("connect") == 11
    assert found.until("end") == 18


def test_a_function_is_called_when_tensorflow_is_imported(stages: ModuleType) -> None:
    events = {"process": 1.0, "started": 4.0, "step": 6.0}
    entries = [Entry(at, "chief-0", event) for event, at in events.items()]
    found = stages.of_journal(entries, "chief-0", began=0.0, ended=7.0)
    assert (found.python, found.load, found.connect) == (3, 0, 2)


def test_a_job_that_made_no_step_has_no_stages(stages: ModuleType) -> None:
    with pytest.raises(ValueError, match="chief-0 has made no step"):
        stages.of_journal([Entry(1.0, "chief-0", "started")], "chief-0", began=0.0, ended=2.0)


def test_each_process_of_a_run_is_told_from_the_others(ours: ModuleType) -> None:
    commands = {
        10: (1, f"python -m dcos_tensorflow run {RUN}/options.json --yes"),
        11: (1, f"python -m embedded_mesos serve {RUN}/services/run-1/cluster"),
        20: (11, "python -c from embedded_mesos.machine.executor import main"),
        21: (20, RUNNER),
        22: (21, f"python -S {RUN}/sandbox/task-runner.pyz --guard"),
        23: (21, f"{RUNNER} --wrapper"),
        30: (1, "python /tmp/run-2/sandbox/task-runner.pyz"),
        31: (1, f"less {RUN}/output"),
    }
    processes = {pid: ours.Process(pid, *rest) for pid, rest in commands.items()}
    assert ours.kinds_of(processes, f"{RUN}/", {23}) == {
        10: "command",
        11: "cluster",
        20: "executor",
        21: "runner",
        22: "guard",
        23: "user",
    }


def test_a_runner_that_the_cluster_itself_started_has_no_executor(ours: ModuleType) -> None:
    commands = {11: (1, f"python -m embedded_mesos serve {RUN}/cluster"), 21: (11, RUNNER)}
    processes = {pid: ours.Process(pid, *rest) for pid, rest in commands.items()}
    assert ours.kinds_of(processes, RUN, set()) == {11: "cluster", 21: "runner"}


def test_what_executors_are_forked_from_is_a_part_of_the_cluster(ours: ModuleType) -> None:
    source = "python -c from embedded_mesos.machine.executor_source import main"
    commands = {
        11: (1, "python -m embedded_mesos serve"),
        19: (11, source),
        20: (19, source),
        21: (20, RUNNER),
        22: (21, RUNNER),
    }
    processes = {pid: ours.Process(pid, *rest) for pid, rest in commands.items()}
    assert ours.kinds_of(processes, RUN, set()) == {
        11: "cluster",
        19: "cluster",
        20: "executor",
        21: "runner",
        22: "guard",
    }
