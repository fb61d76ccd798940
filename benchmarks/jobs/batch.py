"""A batch of many tiny shards beside ``xargs -P`` and GNU parallel with the same processes.

Read it so: each row is one batch of so many shards, ``shards/s`` from the command to its end, and
``ratio`` that over what xargs does in the same round. Shards of a ``command`` are ``sleep 0.1`` and
a file touched, by as many at a time as there are slots; those of a ``function`` write a file out of
``main(shard, context)``, where the others start ``python shard.py`` for each. ``CPU`` is what all
processes together take for a shard, the user's included; ``scheduler`` what the command's own takes
of that, in which the scheduler is, and ``memory`` the most that this one had.

    python -m benchmarks.jobs.batch [--shards 100 10000] [--parallelism 8] [--rounds 1]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import figures

#: The same for everybody: what one shard is, with the file that it has to write.
COMMAND = "sleep 0.1; touch {}"
KINDS = ("command", "function")
#: Called for one shard after the other, or started for each.
SHARD = """
import sys


def write(path):
    with open(path, "w") as output:
        output.write("done\\n")


def main(shard, context):
    write(shard["output"])


if __name__ == "__main__":
    write(sys.argv[1])
"""


@dataclass(frozen=True)
class Run:
    """What one batch has cost, from the command to its end."""

    seconds: float
    #: CPU seconds of all processes, the user's included ...
    cpu: float
    #: ... and of the command's own.
    own_cpu: float
    #: The most memory that the command's own process had.
    memory_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--parallelism", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    print(f"{'':>25} shards/s  ratio        CPU  scheduler  memory")
    for shards in arguments.shards:
        for kind in arguments.kinds:
            found |= measured(kind, shards, arguments.parallelism, arguments.rounds)
    figures.write(arguments.json, found)


def measured(kind: str, shards: int, parallelism: int, rounds: int) -> dict[str, float]:
    """Return the figures of batches of so many shards; everybody has a turn in each round."""
    runs: dict[str, list[Run]] = {}
    for _ in range(rounds):
        for name, run in ways(kind, parallelism).items():
            runs.setdefault(name, []).append(checked(run, shards))
    found: dict[str, float] = {}
    for name, mine in runs.items():
        pairs = zip(runs["xargs"], mine, strict=True)
        known = {
            "per_second": shards / statistics.median(run.seconds for run in mine),
            "ratio": statistics.median(other.seconds / run.seconds for other, run in pairs),
            "cpu_ms": 1_000 * statistics.median(run.cpu for run in mine) / shards,
            "scheduler_ms": 1_000 * statistics.median(run.own_cpu for run in mine) / shards,
            "scheduler_mb": max(run.memory_mb for run in mine),
        }
        told = "{per_second:>8.1f} {ratio:>6.2f} {cpu_ms:>7.2f} ms {scheduler_ms:>7.2f} ms"
        told = told.format(**known) + f" {known['scheduler_mb']:>4.0f} MB"
        print(f"{shards:>6,} {kind:<8} {name:<8} {told}", flush=True)
        for figure, value in known.items():
            if name == "slots" or figure == "per_second":
                found[f"batch_{kind}_{shards}_{name}_{figure}"] = value
    return found


def ways(kind: str, parallelism: int) -> dict[str, Callable[[Path, int], Run]]:
    """Return who works on a batch of shards of this kind, in a folder of its own."""
    python = [sys.executable, "shard.py", "{}"]
    each = ["sh", "-c", COMMAND] if kind == "command" else python
    xargs = ["xargs", "-P", str(parallelism), "-I{}", *each]
    found: dict[str, Callable[[Path, int], Run]] = {
        "slots": lambda folder, shards: by_slots(folder, shards, kind, parallelism),
        "xargs": lambda folder, shards: by_lines(folder, shards, xargs),
    }
    if shutil.which("parallel"):
        parallel = ["parallel", "--will-cite", "-j", str(parallelism)]
        parallel.append(COMMAND if kind == "command" else " ".join(python))
        found["parallel"] = lambda folder, shards: by_lines(folder, shards, parallel)
    return found


def checked(run: Callable[[Path, int], Run], shards: int) -> Run:
    """Return the cost of a run that has left each shard's file, and records of them at most."""
    with tempfile.TemporaryDirectory(prefix="batch-") as name:
        folder = Path(name)
        (folder / "out").mkdir()
        (folder / "shard.py").write_text(SHARD)
        known = run(folder, shards)
        left = {p.name for p in (folder / "out").iterdir() if not p.name.startswith(".")}
        if left != {f"part-{index}" for index in range(shards)}:
            raise SystemExit(f"{len(left)} outputs are there of {shards}")
    return known


def by_slots(folder: Path, shards: int, kind: str, parallelism: int) -> Run:
    """Run the batch as a user does."""
    service: dict[str, object] = {"name": "tiny", "python": sys.executable}
    if kind == "command":
        service["job_cmd"] = COMMAND.format("$SHARD_OUTPUT")
    else:
        service |= {"job_url": ".", "job_name": "shard"}
    options = {
        "service": service,
        "worker": {"count": 1, "cpus": 0.1, "mem": 64, "disk": 10},
        "batch": {
            "inputs": {"range": [0, shards, 1]},
            "output": f"{folder}/out/part-{{index}}",
            "parallelism": parallelism,
        },
    }
    (folder / "options.json").write_text(json.dumps(options))
    command = [*(sys.executable, "-m", "dcos_tensorflow", "run", "options.json"), "--yes"]
    home = {"DCOS_TENSORFLOW_HOME": str(folder / "home")}
    return watched(command, folder, None, {**os.environ, **home})


def by_lines(folder: Path, shards: int, command: Sequence[str]) -> Run:
    """Run a command that is told each shard's file on a line of its input."""
    lines = folder / "lines"
    lines.write_text("".join(f"out/part-{index}\n" for index in range(shards)))
    return watched(command, folder, lines, os.environ)


def watched(
    command: Sequence[str], folder: Path, lines: Path | None, variables: Mapping[str, str]
) -> Run:
    """Run a command to its end, and return what it has cost."""
    began, before, own, memory = time.monotonic(), children_cpu(), 0.0, 0.0
    with (folder / "log").open("w") as log, open(lines or os.devnull) as told:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=told, stdout=log, stderr=log
        )
        while process.poll() is None:
            # It may end between the two.
            with contextlib.suppress(OSError, IndexError):
                own, memory = cost_of(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{command[0]} failed: {(folder / 'log').read_text()[-2_000:]}")
    return Run(seconds, children_cpu() - before, own, memory)


def children_cpu() -> float:
    """Return the CPU seconds of all that was started from here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost_of(pid: int) -> tuple[float, float]:
    """Return the CPU (seconds) that a process has taken, and the most memory it had (MB)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{pid}/status").read_text()
    peak = status.partition("VmHWM:")[2].split()[0]
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak) / 1024


if __name__ == "__main__":
    main()
