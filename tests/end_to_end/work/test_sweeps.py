"""Sweeps with real TensorFlow: what is killed changes nothing, and a trial may be distributed."""

import contextlib
import csv
import io
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cluster_faults import FaultError, FaultyCluster
from command_line import EXAMPLES, NEWEST, CommandLine
from embedded_mesos import AgentConfig, Timing
from jobs.worked_units import Work
from processes import processes
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.tensorflow, pytest.mark.timeout(5000)]

#: A machine that is shared with others' work needs ten minutes for a sweep.
DEADLINE = 2000.0
TRIALS = 60
KILLS = 24


class Sweep(Work):
    """``examples/<example>`` as a sweep, on a cluster of which all can be killed."""

    def __init__(
        self, folder: Path, example: str, python: str, agents: int, **changes: Mapping[str, Any]
    ) -> None:
        given = json.loads((EXAMPLES / example / "options.json").read_text())
        script = EXAMPLES / example / "train.py"
        job = {"job_cmd": f"{python}/bin/python {script}", "python": python}
        job["strategy"] = given.pop("service").get("strategy", "auto")
        kept = {"uri": str(folder / "kept")}
        name = f"{example}-{folder.name}".replace("_", "-")
        super().__init__(folder, name, job, **{**given, "checkpoints": kept, **changes})
        # Mesos gives an agent up after 75 s; here it is two, because it happens so often.
        timing = Timing(agent_ping=0.5, agent_ping_timeouts=4)
        configs = [
            AgentConfig(
                address=f"127.0.0.{n}", cpus=1, mem=2600, ports=(30000 + 500 * n, 30499 + 500 * n)
            )
            for n in range(1, agents + 1)
        ]
        self.cluster = FaultyCluster(configs, folder / "mesos", timing=timing)
        self.kills: list[str] = []
        self.seconds = 0.0

    def play(self, ways: list[Callable[[], str]], trials_between: int) -> None:
        """Let all trials be decided; whenever so many more have begun, kill by the next way."""
        began = time.monotonic()
        with self.cluster:
            self.running = self.scheduler(self.cluster.master)
            try:
                for number, way in enumerate(ways):
                    wanted = 1 + trials_between * number
                    eventually(lambda n=wanted: len(self.begun()) >= n, seconds=DEADLINE)
                    self.kills.append(eventually(way, seconds=DEADLINE, what="something to kill"))
            finally:
                self.ends_well(self.running, DEADLINE)
        self.seconds = time.monotonic() - began

    def begun(self) -> list[str]:
        """Return the names of the trials that have a directory."""
        return [path.name for path in self.folder.glob("kept/trial-*")]

    # What can be killed.

    def kill_scheduler(self) -> str:
        self.running.kill()
        self.running.wait()
        self.running = self.scheduler(self.cluster.master)
        return "the scheduler"

    def kill_process(self, dice: random.Random, of: str = "") -> str:
        """Kill the process of the user's code of some task whose name has ``of`` in it."""
        found = sorted(one for one in self._processes() if of in one[0])
        # It may end by itself just now, or none may have begun.
        with contextlib.suppress(ProcessLookupError, IndexError):
            name, pid = dice.choice(found)
            os.kill(pid, signal.SIGKILL)
            return f"the process of {name}"
        return ""

    def kill_runner(self, dice: random.Random) -> str:
        return self._kill_task(dice, self.cluster.faults.signal_task, "the runner of")

    def kill_executor(self, dice: random.Random) -> str:
        return self._kill_task(dice, self.cluster.faults.kill_executor, "the executor of")

    def lose_machine(self, agent: int) -> str:
        self.cluster.faults.lose_machine(agent)
        self.cluster.faults.replace_machine(agent)
        return f"machine {agent} with all that runs on it"

    def crash_agent(self, agent: int) -> str:
        self.cluster.faults.crash_agent(agent)
        self.cluster.faults.restart_agent(agent)
        return f"agent {agent}, which starts again"

    def _processes(self) -> list[tuple[str, int]]:
        """Return the processes of the user's code, each with the name of its task."""
        found = processes("/train.py", SERVICE_NAME=self.name)
        return [(one.variables["TASK_NAME"], one.pid) for one in found]

    def _kill_task(self, dice: random.Random, kill: Callable[[str], None], what: str) -> str:
        with self.cluster.lock:
            containers = [
                container
                for agent in self.cluster.agents
                for container in agent.containerizer.containers.values()
            ]
        with contextlib.suppress(FaultError, IndexError):
            task_id = dice.choice(sorted(c.task_id for c in containers if not c.gone))
            kill(task_id)
            return f"{what} {task_id.split('__')[1]}"
        return ""


def kills_of(sweep: Sweep, dice: random.Random) -> list[Callable[[], str]]:
    """Return the kills of a sweep in their order: each way comes before any comes again."""
    ways: list[Callable[[], str]] = [
        sweep.kill_scheduler,
        lambda: sweep.kill_process(dice),
        lambda: sweep.kill_runner(dice),
        lambda: sweep.lose_machine(dice.randrange(4)),
        lambda: sweep.kill_executor(dice),
        lambda: sweep.crash_agent(dice.randrange(4)),
    ]
    return [way for _ in range(KILLS // len(ways)) for way in dice.sample(ways, len(ways))]


def test_a_sweep_of_tensorflow_finds_the_same_whatever_is_killed(
    tmp_path: Path, tensorflow: Callable[[str], str]
) -> None:
    python = tensorflow(NEWEST)
    quiet, rough = (
        Sweep(tmp_path / name, "sweep", python, agents=4) for name in ("quiet", "rough")
    )
    quiet.play([], 0)
    rough.play(kills_of(rough, random.Random(1)), 2)
    assert len(rough.kills) == KILLS
    assert rough.finds_the_same_as(quiet)
    check_board(rough)
    print(f"quiet {quiet.seconds:.0f} s, rough {rough.seconds:.0f} s: {rough.kills}")


def check_board(work: Sweep) -> None:
    """All ways to look at the leaderboard tell of the same 60 trials."""
    shows = CommandLine(work.home)
    told = json.loads(shows("sweep", work.name, "--json").out)
    assert told == work.document()
    finished = [unit for unit in told["units"] if unit["value"] is not None]
    # Asynchronous successive halving stops two of three at each of three turns.
    assert 5 <= len(finished) <= TRIALS // 2
    assert {unit["state"] for unit in told["units"]} <= {"succeeded", "pruned"}
    assert sum(unit["tries"] for unit in told["units"]) > TRIALS
    best = max(finished, key=lambda unit: (unit["value"], -unit["number"]))
    assert best["value"] > 0.95
    assert json.loads(shows("sweep", "best", work.name, "--json").out) == best["parameters"]
    rows = list(csv.DictReader(io.StringIO(shows("sweep", work.name, "--csv").out)))
    assert len(rows) == TRIALS
    assert (rows[0]["rank"], rows[0]["trial"]) == ("1", str(best["number"]))
    table = shows("sweep", work.name, "--all").out.splitlines()
    assert len(table) == TRIALS + 2
    assert table[2].split()[:2] == ["1", str(best["number"])]
    drawn = work.folder / "sweep.svg"
    assert shows("sweep", work.name, "--plot", drawn).code == 0
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")


def test_trials_of_a_chief_two_workers_and_a_parameter_server_reuse_their_places(
    tmp_path: Path, tensorflow: Callable[[str], str]
) -> None:
    sweep = {
        "parameters": {"learning_rate": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]},
        "objective": {"metric": "test_accuracy"},
        "method": "grid",
        "parallelism": 1,
    }
    work = Sweep(
        tmp_path / "distributed", "parameter_server", tensorflow(NEWEST), agents=2, sweep=sweep
    )
    dice = random.Random(1)
    work.play([lambda: work.kill_process(dice, "ps-0")], 0)
    units = work.document()["units"]
    assert {unit["state"] for unit in units} == {"succeeded"}
    assert len(units) == 6
    found = {unit["parameters"]["learning_rate"]: unit["value"] for unit in units}
    assert found[0.3] > 0.9 > found[0.01]
    assert sum(unit["tries"] for unit in units) > len(units)
    # One launch for each task of the slot, whatever was started in them.
    launched = work.folder.glob("mesos/agents/*/slaves/*/frameworks/*/executors/*")
    assert sorted(path.name.split("__")[1] for path in launched) == [
        f"slot-0-{task}" for task in ("chief-0", "ps-0", "worker-0", "worker-1")
    ]
    print(f"{work.seconds:.0f} s: {found}, {work.kills}")
