"""How soon a job trains, and is over, under us beside the same TensorFlow processes by hand.

Read it so: each row is one round of one strategy with one TensorFlow: seconds from the command to
the first step that the deciding task prints, and behind the stroke to the end of the command; ``by
hand`` (a shell script starts plain ``python`` processes with the same TF_CONFIG and threads, waits
for the one that decides and kills the others), ``own`` (``dcos-tensorflow run``, with a cluster of
its own) and ``runs`` (the same on a cluster that runs already). Who begins changes from round to
round. Behind them is that way's time over the one by hand in the same round, and the last lines
have the medians: 1 is as fast as by hand. ``whole`` is the same with a job that takes a
minute by hand; there the end counts. The last lines say what a run of nothing and ``validate``
take, what Mesos alone takes for four tasks that sleep, and what the processes of a job have cost
until its first step: ``start_cpu`` by hand, and the user's, the command's and the cluster's under
us; ``per_task`` what one task has of ours. Memory is PSS: what processes share counts once.

    python benchmarks/start.py [--pairs 10] [--strategy NAME ...] [--tensorflow VERSION ...]
        [--whole-pairs 2] [--minutes 34] [--json FILE]

Each job has its turn in each round, and no round begins that would not be over after ``--minutes``:
all jobs have as many rounds, on a slow machine fewer. A round that fails is told and left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import contextlib
import itertools
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import embedded_mesos
from benchmarks import figures
from benchmarks.jobs import bare_mesos, our_processes, start_stages
from benchmarks.jobs.start_stages import Stages
from benchmarks.recovery import by_hand, evidence
from benchmarks.recovery.cases import Training

ROOT = Path(__file__).resolve().parents[1]
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
    context: Mapping[str, object] = field(hash=False)

    def __str__(self) -> str:
        """Return what the rows call it."""
        kind = "whole" if self.context is WHOLE else "start"
        return f"{kind} {self.training.strategy:<16} {self.version:<6}"


#: A round: each way's stages.
Round = Mapping[str, Stages]


class RunFailed(Exception):
    """A command did not end as it should; with what it has said."""


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
            # By hand no command listens to the shell: it ends when the job has.
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
                raise RunFailed((folder / "output").read_text()[-3000:])
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

    def sleepers(self) -> float:
        """Return the seconds that the cluster alone takes for as many tasks as sleep."""
        found = embedded_mesos.status(self.folder / RUNS / "local")
        if found is None:
            raise RunFailed("the cluster has ended")
        names = [f"sleeper-{next(self._numbers)}" for _ in TRAININGS["parameter_server"].tasks]
        return bare_mesos.seconds_of_sleepers(found, names)

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
    """Run a command to its end; return when it began and ended. Raises RunFailed."""
    with log.open("wb") as output:
        began = time.monotonic()
        try:
            with _started(line, output) as command:
                code = command.wait(DEADLINE)
                ended = time.monotonic()
        except subprocess.TimeoutExpired as error:
            raise RunFailed(str(error)) from error
    if code:
        logs = (log, *log.parent.glob("tasks/*/stderr"))
        said = "\n".join(f"{each}: {each.read_text()[-1500:]}" for each in logs)
        raise RunFailed(f"{' '.join(line)} ended with {code}:\n{said}")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10, help="rounds of each job")
    parser.add_argument("--strategy", nargs="+", choices=TRAININGS, default=list(TRAININGS))
    parser.add_argument("--tensorflow", nargs="+", default=list(TENSORFLOWS), metavar="VERSION")
    parser.add_argument("--whole-pairs", type=int, default=2, help="rounds of a job of a minute")
    parser.add_argument("--minutes", type=float, default=34.0, help="begin no round after that")
    figures.add_option(parser)
    arguments = parser.parse_args()
    strategies, versions = arguments.strategy, arguments.tensorflow
    jobs = [Job(TRAININGS[s], v, SHORT) for v, s in itertools.product(versions, strategies)]
    until = time.monotonic() + 60 * arguments.minutes
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="start-") as folder:
        measuring = Measuring(Path(folder))
        with measuring.cluster_that_runs():
            # First what is short: where the time runs out, it is of the rounds.
            found["run_true_seconds"] = _median_of_calls(measuring.run_of_nothing)
            found["validate_seconds"] = _median_of_calls(measuring.validate)
            found["sleepers_seconds"] = _median_of_calls(measuring.sleepers)
            try:
                hand, own = (measuring.costs(way, versions[0]) for way in (HAND, OWN))
                found |= costs_of(hand, own)
            except (RunFailed, OSError) as error:
                print(f"what the processes cost is left out: {error}", file=sys.stderr)
            if arguments.whole_pairs:
                job = Job(TRAININGS[strategies[0]], versions[0], WHOLE)
                wholes = measured(measuring, [job], (HAND, OWN), arguments.whole_pairs, until)
                if wholes[job]:
                    found["whole_ratio"] = median_ratio(wholes[job], OWN, "end")
            rounds = measured(measuring, jobs, WAYS, arguments.pairs, until)
    for job, several in rounds.items():
        if several:
            found |= ratios_of(several, f"{job.training.strategy}_{job.version}")
    if rounds[jobs[0]]:
        found |= stages_of(rounds[jobs[0]])
    starts = [value for name, value in found.items() if name.startswith("start_ratio_")]
    if starts:
        found["start_ratio"] = max(starts)
    for name, value in found.items():
        if not name.startswith(("start_stage_", "start_ratio_", "end_ratio_")):
            print(f"{name} {value:.3g}")
    figures.write(arguments.json, found)
    return 0 if all(rounds.values()) else 1


def measured(
    measuring: Measuring, jobs: Sequence[Job], ways: Sequence[str], pairs: int, until: float
) -> dict[Job, list[Round]]:
    """Run jobs in all these ways, each so many times; print each round, and the medians.

    ``until`` is when all is to be over, by the monotonic clock.
    """
    heads = "".join(f" {way:>14}" for way in ways) + "".join(f" {way:>12}" for way in ways[1:])
    print(f"{'':<36}{heads}", flush=True)
    rounds: dict[Job, list[Round]] = {job: [] for job in jobs}
    longest = 0.0
    for number in range(pairs):
        began = time.monotonic()
        if began + longest > until:
            print(f"the time is over after {number} rounds")
            break
        for job in jobs:
            # The first one finds other caches: the order changes.
            turn = number % len(ways)
            try:
                one = {way: measuring.run(job, way) for way in (*ways[turn:], *ways[:turn])}
            except (RunFailed, OSError, ValueError, LookupError) as error:
                print(f"round {number + 1} of {job} is left out: {error}", file=sys.stderr)
                continue
            rounds[job].append(one)
            print(f"{job} {number + 1:>7}{_line([one], ways)}", flush=True)
        longest = max(longest, time.monotonic() - began)
    for job, several in rounds.items():
        if several:
            print(f"{job}  median{_line(several, ways)}", flush=True)
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
    cpu, memory = defaultdict[str, float](float), defaultdict[str, float](float)
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
    sys.exit(main())
