"""A batch of many tiny shards beside ``xargs -P`` and GNU parallel with the same processes.

Read it so: each row is one batch of so many shards, ``shards/s`` from the command to its end, and
``ratio`` what we do over what xargs does in the same round. Shards of a ``command`` are
``sleep 0.1`` and a file written, by as many at a time as there are slots; those of a ``function``
write the same file out of ``main(shard, context)``, where xargs starts ``python shard.py`` for each.
``CPU`` is what the scheduler takes for a shard (its command included, its start left out of none),
and ``memory`` the most that it had.

    python benchmarks/batch.py [--shards 100 1000 10000] [--parallelism 8] [--rounds 1] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import figures

#: The same for everybody: what one shard is, with the file that it has to write.
COMMAND = "sleep 0.1; touch {}"
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
    #: Of the command's own process, in which the scheduler is: CPU, and the most memory it had.
    cpu_seconds: float
    memory_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--parallelism", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=1)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    print(
        f"{'shards':>7} {'of':<9} {'by':<9} {'shards/s':>9} {'ratio':>6} {'CPU':>9} {'memory':>7}"
    )
    for shards in arguments.shards:
        found |= measured(shards, arguments.parallelism, arguments.rounds)
    figures.write(arguments.json, found)


def measured(shards: int, parallelism: int, rounds: int) -> dict[str, float]:
    """Return the figures of batches of so many shards; everybody has a turn in each round."""
    found: dict[str, float] = {}
    for kind in ("command", "function"):
        runs: dict[str, list[Run]] = {}
        for _ in range(rounds):
            for name, run in ways(kind, parallelism).items():
                runs.setdefault(name, []).append(checked(run, shards))
        beside = [run.seconds for run in runs["xargs"]]
        for name, all_of_it in runs.items():
            pairs = zip(beside, (run.seconds for run in all_of_it), strict=True)
            ratio = statistics.median(other / own for other, own in pairs)
            rate = shards / statistics.median(run.seconds for run in all_of_it)
            cpu = 1_000 * statistics.median(run.cpu_seconds for run in all_of_it) / shards
            memory = max(run.memory_mb for run in all_of_it)
            print(
                f"{shards:>7,} {kind:<9} {name:<9} {rate:>9.1f} {ratio:>6.2f} {cpu:>6.2f} ms "
                f"{memory:>4.0f} MB",
                flush=True,
            )
            found[f"batch_{kind}_{shards}_{name}_per_second"] = rate
            if name == "slots":
                found[f"batch_{kind}_{shards}_ratio"] = ratio
                found[f"batch_{kind}_{shards}_scheduler_ms"] = cpu
                found[f"batch_{kind}_{shards}_scheduler_mb"] = memory
    return found


def ways(kind: str, parallelism: int) -> dict[str, Callable[[Path, int], Run]]:
    """Return who works on a batch of shards of this kind, in a folder of its own."""
    each = COMMAND if kind == "command" else f"{sys.executable} shard.py {{}}"
    xargs = ["xargs", "-P", str(parallelism), "-I{}", "sh", "-c", each]
    found: dict[str, Callable[[Path, int], Run]] = {
        "slots": lambda folder, shards: by_slots(folder, shards, kind, parallelism),
        "xargs": lambda folder, shards: by_lines(folder, shards, xargs),
    }
    if shutil.which("parallel"):
        parallel = ["parallel", "--will-cite", "-j", str(parallelism), each]
        found["parallel"] = lambda folder, shards: by_lines(folder, shards, parallel)
    return found


def checked(run: Callable[[Path, int], Run], shards: int) -> Run:
    """Return what a run has cost that has left each shard's file and nothing else."""
    with tempfile.TemporaryDirectory(prefix="batch-") as name:
        folder = Path(name)
        (folder / "out").mkdir()
        (folder / "shard.py").write_text(SHARD)
        known = run(folder, shards)
        left = {path.name for path in (folder / "out").iterdir()}
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
    command: Sequence[str],
    folder: Path,
    lines: Path | None,
    variables: "os._Environ[str] | dict[str, str]",
) -> Run:
    """Run a command to its end, and return what it has cost."""
    began, cpu, memory = time.monotonic(), 0.0, 0.0
    with (folder / "log").open("w") as log, open(lines or os.devnull) as told:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=told, stdout=log, stderr=log
        )
        while process.poll() is None:
            # It may end between the two.
            with contextlib.suppress(OSError, IndexError):
                cpu, memory = cost_of(process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{command[0]} failed: {(folder / 'log').read_text()[-2_000:]}")
    return Run(seconds, cpu, memory)


def cost_of(pid: int) -> tuple[float, float]:
    """Return the CPU (seconds) that a process has taken, and the most memory it had (MB)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = Path(f"/proc/{pid}/status").read_text()
    peak = status.partition("VmHWM:")[2].split()[0]
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak) / 1024


if __name__ == "__main__":
    main()
