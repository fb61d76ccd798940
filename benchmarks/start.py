"""How soon a job trains, and is over, under us beside the same TensorFlow processes by hand.

Read it so: each row is one round of one strategy with one TensorFlow: seconds from the command to
the first step that the deciding task prints, and behind the stroke to the end of the command; ``by
hand`` (a shell script starts plain ``python`` processes with the same TF_CONFIG and threads, waits
for the one that decides and kills the others), ``own`` (``dcos-tensorflow run``, with a cluster of
its own) and ``runs`` (the same on a cluster that runs already). Who begins changes from round to
round. ``ratio`` is that way's first step over the one by hand in the same round, and the line after
the rounds has the medians: 1 is as fast as by hand. ``whole`` is the same with a job that takes a
minute by hand; there the end counts. The last lines say what a run of nothing and ``validate``
take, and what the processes of a job have cost until its first step: ``start_cpu`` by hand, and the
user's, the command's and the cluster's under us; ``per_task`` what one task has of ours. Memory is
PSS: what processes share counts once.

    python benchmarks/start.py [--pairs 10] [--strategy NAME ...] [--tensorflow VERSION ...]
        [--whole-pairs 3] [--json FILE]

All of it takes some 40 minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "framework")]

import figures  # noqa: E402
import our_processes  # noqa: E402
import start_stages  # noqa: E402
from benchmarks.recovery import by_hand, evidence  # noqa: E402
from benchmarks.recovery.cases import Training  # noqa: E402
from start_stages import Stages  # noqa: E402

TENSORFLOWS = ("2.21.0", "2.15.1")
TRAININGS = {
    training.strategy: training
    for training in (
        Training("parameter_server", ("chief-0", "ps-0", "worker-0", "worker-1"), ("chief-0",)),
        Training("multi_worker", ("worker-0", "worker-1"), ("worker-0", "worker-1")),
        Training("between_graph", ("chief-0", "ps-0", "worker-0"), ("chief-0", "worker-0")),
        Training("independent", ("worker-0",), ("worker-0",)),
    )
}
#: Role in the options -> what the task's name begins with.
ROLES = {"chief": "chief", "parameter_server": "ps", "worker": "worker"}
#: Half a core for each task, as in the examples: the runner sets these threads.
CPUS = 0.5
THREADS = {"TF_NUM_INTEROP_THREADS": "2", "TF_NUM_INTRAOP_THREADS": "1", "OMP_NUM_THREADS": "1"}

#: Without byte code that is kept each start would compile our modules and pack the runner anew.
NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE",)

#: Until when the time of a job is compared: the ends of these stages.
FIRST_STEP, END = "connect", "end"

HAND, OWN, RUNS = WAYS = ("hand", "own", "runs")

#: A job that is over soon, and one that two workers take a minute for: steps, rows of a matrix.
SHORT: Mapping[str, object] = {"steps": 100}
WHOLE: Mapping[str, object] = {"steps": 2600, "matrix": 1000, "save_every": 200}
#: No pace is kept, so that what anybody else takes of the cores is seen.
CONTEXT: Mapping[str, object] = {"rounds_per_second": 1e6, "save_every": 50}
#: Longest time of one run, seconds.
DEADLINE = 600.0
#: How often a run of nothing and ``validate`` are measured.
TIMES = 5


@dataclass(frozen=True)
class Job:
    """What is run in each of the ways."""

    training: Training
    #: Of TensorFlow.
    version: str
    #: What the job is told beside ``CONTEXT``.
    context: Mapping[str, object]


#: A round: each way's stages.
Round = Mapping[str, Stages]


class Measuring:
    """Where jobs are run: a folder for all, and a cluster in it that runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)

    def run(self, job: Job, way: str) -> Stages:
        """Run the job once in this way."""
        folder = self._next_folder()
        began, ended = _timed(self._laid_out(job, way, folder), folder / "output")
        entries = evidence.parse((folder / "journal").read_text())
        return start_stages.of_journal(entries, job.training.trainers[0], began, ended)

    def costs(self, way: str, version: str) -> list[our_processes.Cost]:
        """Return what the processes of a job have cost when it makes its first step."""
        training, folder = TRAININGS["parameter_server"], self._next_folder()
        line = self._laid_out(Job(training, version, WHOLE), way, folder)
        with (folder / "output").open("wb") as output, _started(line, output) as command:
            entries = self._journal_with_a_step(folder, command)
            users = {entry.pid for entry in entries}
            found = our_processes.costs(folder, users)
            # By hand nobody listens to the shell: it ends when the job has.
            for pid in users if way == HAND else (command.pid,):
                os.kill(pid, signal.SIGTERM)
            command.wait(DEADLINE)
        return found

    def _journal_with_a_step(
        self, folder: Path, command: subprocess.Popen[bytes]
    ) -> list[evidence.Entry]:
        deadline, entries = time.monotonic() + DEADLINE, list[evidence.Entry]()
        while not any(entry.event == "step" for entry in entries):
            if time.monotonic() > deadline or command.poll() is not None:
                raise SystemExit((folder / "output").read_text()[-3000:])
            time.sleep(0.05)
            with contextlib.suppress(FileNotFoundError):
                whole, _, _ = (folder / "journal").read_text().rpartition("\n")
                entries = evidence.parse(whole)
        return entries

    def run_of_nothing(self) -> float:
        """Return the seconds of ``run`` for a script that does nothing."""
        folder = self._next_folder()
        (folder / "nothing.py").write_text("pass\n")
        began, ended = _timed(self._ours("run", folder / "nothing.py", folder), folder / "output")
        return ended - began

    def validate(self) -> float:
        """Return the seconds of ``validate``."""
        folder, options = self._next_folder(), ROOT / "examples/parameter_server/options.json"
        line = [sys.executable, "-m", "dcos_tensorflow", "validate", str(options)]
        began, ended = _timed(line, folder / "output")
        return ended - began

    @contextlib.contextmanager
    def cluster_that_runs(self) -> Iterator[None]:
        """Start the cluster of ``RUNS``, and end it."""
        work = ("--work-dir", str(self.folder / RUNS))
        line = [sys.executable, "-m", "dcos_tensorflow", "local"]
        subprocess.run([*line, "up", *work], check=True, stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            subprocess.run([*line, "down", *work], check=True, stdout=subprocess.DEVNULL)

    def _next_folder(self) -> Path:
        folder = self.folder / f"run-{next(self._numbers)}"
        folder.mkdir()
        return folder

    def _laid_out(self, job: Job, way: str, folder: Path) -> list[str]:
        """Write what a run needs into its folder; return its command line."""
        training = job.training
        context = {"journal": str(folder / "journal"), **CONTEXT, **job.context}
        python = ROOT / f".venvs/tensorflow-{job.version}/bin/python"
        if way == HAND:
            by_hand.lay_out(training, folder / "tasks", context, THREADS)
            return by_hand.command("run", folder / "tasks", python, training, training.tasks)
        options = folder / "options.json"
        options.write_text(json.dumps(options_of(training, folder, python, context), indent=1))
        return self._ours("run", options, folder if way == OWN else self.folder / RUNS)

    def _ours(self, command: str, what: Path, work: Path) -> list[str]:
        ours = [sys.executable, "-m", "dcos_tensorflow", command, str(what), "--yes"]
        return [*ours, "--work-dir", str(work)]


def options_of(
    training: Training, folder: Path, python: Path, context: dict[str, object]
) -> dict[str, Any]:
    """Return the options of a training; its service is named after the folder."""
    counts = {
        role: sum(task.startswith(f"{name}-") for task in training.tasks)
        for role, name in ROLES.items()
    }
    return {
        "service": {
            "name": folder.name,
            "job_url": str(by_hand.HERE / "jobs"),
            "job_name": training.job,
            "job_context": json.dumps(context),
            "strategy": training.strategy,
            "python": str(python),
        },
        "checkpoints": {"uri": str(folder / "checkpoints")},
        **{
            role: {"count": count, "cpus": CPUS, "mem": 1024, "disk": 100}
            for role, count in counts.items()
        },
    }


def _timed(line: Sequence[str], log: Path) -> tuple[float, float]:
    """Run a command to its end; return when it began and ended. Exits where it failed."""
    with log.open("wb") as output:
        began = time.monotonic()
        with _started(line, output) as command:
            code = command.wait(DEADLINE)
            ended = time.monotonic()
    if code:
        logs = (log, *log.parent.glob("tasks/*/stderr"))
        said = "\n".join(f"{each}: {each.read_text()[-1500:]}" for each in logs)
        raise SystemExit(f"{' '.join(line)} ended with {code}:\n{said}")
    return began, ended


@contextlib.contextmanager
def _started(line: Sequence[str], output: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command with a user's settings, of threads its own; end it where something fails."""
    left_out = {*THREADS, *NOT_A_USERS}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
    ) as command:
        try:
            yield command
        except BaseException:
            command.terminate()
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10, help="rounds of each job")
    parser.add_argument("--strategy", nargs="+", choices=TRAININGS, default=list(TRAININGS))
    parser.add_argument("--tensorflow", nargs="+", default=list(TENSORFLOWS), metavar="VERSION")
    parser.add_argument("--whole-pairs", type=int, default=3, help="rounds of a job of a minute")
    figures.add_option(parser)
    arguments = parser.parse_args()
    strategies, versions = arguments.strategy, arguments.tensorflow
    first = (versions[0], strategies[0])
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="start-") as folder:
        measuring = Measuring(Path(folder))
        with measuring.cluster_that_runs():
            for version, strategy in itertools.product(versions, strategies):
                job = Job(TRAININGS[strategy], version, SHORT)
                rounds = measured(measuring, job, WAYS, arguments.pairs)
                found |= ratios_of(rounds, f"{strategy}_{version}")
                if (version, strategy) == first:
                    found |= stages_of(rounds)
        starts = [value for name, value in found.items() if name.startswith("start_ratio_")]
        found["start_ratio"] = max(starts)
        if arguments.whole_pairs:
            job = Job(TRAININGS[strategies[0]], versions[0], WHOLE)
            rounds = measured(measuring, job, (HAND, OWN), arguments.whole_pairs)
            found["whole_ratio"] = median_ratio(rounds, OWN, "end")
        found["run_true_seconds"] = _median_of_calls(measuring.run_of_nothing)
        found["validate_seconds"] = _median_of_calls(measuring.validate)
        found |= costs_of(measuring.costs(HAND, versions[0]), measuring.costs(OWN, versions[0]))
    for name, value in found.items():
        if not name.startswith(("start_stage_", "start_ratio_", "end_ratio_")):
            print(f"{name} {value:.3g}")
    figures.write(arguments.json, found)


def measured(measuring: Measuring, job: Job, ways: Sequence[str], pairs: int) -> list[Round]:
    """Run a job in all these ways, so many times; print each round, and the medians."""
    heads = "".join(f" {way:>14}" for way in ways) + "".join(f" {way:>12}" for way in ways[1:])
    kind = "whole" if job.context is WHOLE else "start"
    print(f"{kind}: {job.training.strategy}, TensorFlow {job.version}\nround {heads}", flush=True)
    rounds: list[Round] = []
    for number in range(pairs):
        # Whoever goes first finds other caches: the order changes.
        turn = number % len(ways)
        found = {way: measuring.run(job, way) for way in (*ways[turn:], *ways[:turn])}
        rounds.append(found)
        print(f"{number + 1:>5} {_line([found], ways)}", flush=True)
    print(f"median{_line(rounds, ways)}", flush=True)
    return rounds


def _line(rounds: Sequence[Round], ways: Sequence[str]) -> str:
    cells = []
    for way in ways:
        first, end = (
            statistics.median(one[way].until(stage) for one in rounds)
            for stage in (FIRST_STEP, END)
        )
        cells.append(f" {first:>6.2f} |{end:>6.2f}")
    for way in ways[1:]:
        first, end = (median_ratio(rounds, way, stage) for stage in (FIRST_STEP, END))
        cells.append(f" {first:>5.2f} |{end:>5.2f}")
    return "".join(cells)


def median_ratio(rounds: Sequence[Round], way: str, stage: str) -> float:
    """Return the median over the rounds of a way's time over the one by hand.

    The time is from the command to the end of ``stage``.
    """
    return statistics.median(one[way].until(stage) / one[HAND].until(stage) for one in rounds)


def ratios_of(rounds: Sequence[Round], name: str) -> dict[str, float]:
    """Return how soon a job trains, and is over, in each way of ours."""
    kinds = {"start": FIRST_STEP, "end": END}
    return {
        f"{kind}_ratio_{name}_{way}": median_ratio(rounds, way, stage)
        for kind, stage in kinds.items()
        for way in (OWN, RUNS)
    }


def stages_of(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the median seconds of each stage of each way, for the picture."""
    return {
        f"start_stage_{way}_{stage}_seconds": statistics.median(
            getattr(one[way], stage) for one in rounds
        )
        for way in WAYS
        for stage in start_stages.NAMES
    }


def costs_of(
    hand: Sequence[our_processes.Cost], ours: Sequence[our_processes.Cost]
) -> dict[str, float]:
    """Return what a start costs by hand and under us, and what one task has cost of the latter."""
    tasks = sum(cost.kind == our_processes.USER for cost in ours)
    cpu, memory = Counter[str](), Counter[str]()
    for cost in ours:
        cpu[cost.kind] += cost.cpu_seconds
        memory[cost.kind] += cost.memory_mb
    of_task = {f"cpu_per_task_{kind}_seconds": cpu[kind] / tasks for kind in our_processes.OF_TASK}
    held = {f"memory_per_task_{kind}_mb": memory[kind] / tasks for kind in our_processes.OF_TASK}
    return {
        "start_cpu_by_hand_seconds": sum(cost.cpu_seconds for cost in hand),
        "start_cpu_user_seconds": cpu[our_processes.USER],
        **{f"start_cpu_{kind}_seconds": cpu[kind] for kind in our_processes.ONCE},
        "cpu_per_task_seconds": sum(of_task.values()),
        "memory_per_task_mb": sum(held.values()),
        **of_task,
        **held,
    }


def _median_of_calls(measured: Callable[[], float]) -> float:
    return statistics.median(measured() for _ in range(TIMES))


if __name__ == "__main__":
    main()
