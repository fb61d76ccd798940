"""How fast a checkpoint goes to S3 and back, and with how much memory, beside ``aws s3 sync``.

Read it so: one row per operation; ``ratio`` is the time of ``aws s3 sync`` over ours (above 1: ours
is faster), memory is the largest resident size of the process that did it. Both talk to the same
moto server on this machine, one after the other, each in a process of its own whose start is not
counted; the best of ``--rounds`` counts. ``cpu`` is what the process itself used, and does not
depend on who else is busy. The server does most of the work: the ratio means more than the MB/s.
Ours also does what ``sync`` does not: it digests every byte, writes a manifest, moves a pointer.

    python -m benchmarks.jobs.checkpoint_sync [--megabytes 2000] [--files 40] [--rounds 2]
        [--json FILE]

Without an ``aws`` on the PATH ours is measured alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import figures
from benchmarks.jobs.moto_process import BUCKET, KEYS, moto_server

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    **KEYS,
    "AWS_DEFAULT_REGION": "us-east-1",
    "PYTHONPATH": str(ROOT / "framework"),
}

#: Seconds, seconds of CPU, and the largest resident memory in MB.
Measured = tuple[float, float, float]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the sync of checkpoints.")
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    figures.add_option(parser)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(*arguments.inside)
        return
    with tempfile.TemporaryDirectory(prefix="checkpoint-sync-") as folder:
        source = Path(folder) / "checkpoints"
        write_files(source, arguments.files, arguments.megabytes * 1_000_000)
        rounds = [one_round(Path(folder), source) for _ in range(arguments.rounds)]
    show(rounds, arguments.megabytes)
    found = {
        f"checkpoint_{operation}_mb_per_second": arguments.megabytes
        / min(one[operation]["ours"][0] for one in rounds)
        for operation in ("up", "down")
    }
    figures.write(arguments.json, found)


def write_files(folder: Path, files: int, size: int) -> None:
    folder.mkdir()
    for number in range(files):
        with (folder / f"variables-{number:02d}.bin").open("wb") as file:
            left = size // files
            while left:
                count = min(left, 1 << 20)
                file.write(os.urandom(count))
                left -= count


def one_round(folder: Path, source: Path) -> dict[str, dict[str, Measured]]:
    """Every operation by both, in turn, against one server that is new."""
    found: dict[str, dict[str, Measured]] = {"up": {}, "up, 1 file changed": {}, "down": {}}
    with moto_server() as url, Ours(url) as engine:
        tools: dict[str, Callable[[str, Path], Measured]] = {"ours": engine.run}
        if shutil.which("aws"):
            tools["aws s3 sync"] = functools.partial(aws, url)
        for tool, run in tools.items():
            found["up"][tool] = run("up", source)
        change_one(source)
        for tool, run in tools.items():
            found["up, 1 file changed"][tool] = run("up", source)
        for tool, run in tools.items():
            target = folder / "restored"
            found["down"][tool] = run("down", target)
            check(source, target)
            shutil.rmtree(target)
    return found


def change_one(source: Path) -> None:
    path = sorted(source.iterdir())[0]
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(os.urandom(min(size, 1 << 20)))


def check(source: Path, target: Path) -> None:
    for path in source.iterdir():
        if (target / path.name).stat().st_size != path.stat().st_size:
            raise SystemExit(f"{path.name} did not come back as it was")


class Ours:
    """The engine in processes of its own, as the task runner is: one publishes, one restores."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes.values():
            process.communicate()

    def run(self, operation: str, folder: Path) -> Measured:
        if operation not in self._processes:
            module = ("-m", "benchmarks.jobs.checkpoint_sync")
            command = [sys.executable, *module, "--inside", operation, str(folder), self._url]
            self._processes[operation] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._processes[operation]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        seconds, cpu, memory = json.loads(process.stdout.readline())
        return seconds, cpu, memory


def inside(operation: str, folder: str, url: str) -> None:
    """Do the operation once for each line of the input; print what it took."""
    from dcos_tensorflow.task.storage.publisher import Publisher, PublishPlan
    from dcos_tensorflow.task.storage.restorer import Restorer
    from dcos_tensorflow.task.storage.s3.location import Location, S3Settings
    from dcos_tensorflow.task.storage.s3.object_store import Connection
    from dcos_tensorflow.task.storage_spec import Writer

    connection = Connection(S3Settings(endpoint_url=url, region="us-east-1"))
    place = Location(BUCKET, "ours")
    connection.store(BUCKET)
    publisher = Publisher(
        PublishPlan(folder, place, Writer("benchmark", 1, "benchmark")), connection
    )
    for _ in sys.stdin:
        began, cpu = time.perf_counter(), time.process_time()
        if operation == "down":
            Restorer(place, connection).restore(folder)
        elif not publisher.publish_once(ended=True):
            raise SystemExit(f"not published: {publisher.status()}")
        seconds = time.perf_counter() - began
        print(
            json.dumps([seconds, time.process_time() - cpu, peak_memory(os.getpid())]), flush=True
        )


def aws(url: str, operation: str, folder: Path) -> Measured:
    """``aws s3 sync``; what it takes to start is taken off."""
    remote = f"s3://{BUCKET}/aws"
    ends = [str(folder), remote] if operation == "up" else [remote, str(folder)]
    start, start_cpu, _ = run_aws("--version")
    seconds, cpu, peak = run_aws("s3", "sync", *ends, "--endpoint-url", url, "--only-show-errors")
    return max(0.01, seconds - start), max(0.01, cpu - start_cpu), peak


def run_aws(*words: str) -> Measured:
    began = time.perf_counter()
    process = subprocess.Popen(["aws", *words], env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode:
        raise SystemExit(f"aws {words[0]} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - began, cpu, usage.ru_maxrss * 1024 / 1e6


def peak_memory(process: int) -> float:
    """The largest resident size so far, MB, as the kernel counts it."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"process {process} has no VmHWM")


def show(rounds: list[dict[str, dict[str, Measured]]], megabytes: int) -> None:
    print("operation            tool          seconds    MB/s      cpu   memory  ratio")
    for operation in rounds[0]:
        tools = list(rounds[0][operation])
        best = {tool: min(one[operation][tool][0] for one in rounds) for tool in tools}
        for tool in tools:
            cpu = min(one[operation][tool][1] for one in rounds)
            peak = max(one[operation][tool][2] for one in rounds)
            ratio = best.get("aws s3 sync", best[tool]) / best[tool]
            print(
                f"{operation:20} {tool:12} {best[tool]:8.2f} {megabytes / best[tool]:7.0f} "
                f"{cpu:6.2f} s {peak:5.0f} MB {ratio:6.2f}"
            )


if __name__ == "__main__":
    main()
