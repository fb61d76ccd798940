"""What schedulers cost while nothing happens: memory, CPU, and the CPU of asking task runners.

Read it so: ``memory`` is the resident size of a scheduler process whose job of two tasks runs, with
its API, on the embedded cluster; ``share`` is what is its own of it, with its part of what several
have mapped (PSS); ``cpu`` is what it takes of one core, ``runner_cpu`` what a task's runner does.
Of several services at once it is the mean, and that of the one that takes most. In the table
``CPU`` is what asking so many idle runners takes of one core, as ``requests/s`` go out;
``per request`` is the one over the other. These runners are
one server in a process of its own which answers as a task runner does (docs/task-runner.md).

    python -m benchmarks.scheduler.idle [--runners 100 1000] [--services 1 50] [--seconds 20]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.scheduler.large_service import running_service
from command_line import write_options
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.scheduler.runners.runner_client import RunnerClient
from embedded_mesos import AgentConfig, EmbeddedCluster
from processes import processes
from samples.states import changed, with_records
from scheduler_process import SchedulerProcess
from untrusted_input.process_table import read_process
from waiting import eventually

PATIENCE_SECONDS = 120.0
#: What begins with a job is over by then.
SETTLE_SECONDS = 30.0

#: Answers a status at once, or after ``wait`` seconds to a client that knows the newest one.
RUNNERS = """
import asyncio, json, re

async def serve(reader, writer):
    global asked
    try:
        head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode()
        path = head.split(" ", 2)[1]
        if path == "/asked":
            answer = {"asked": asked}
        else:
            asked += 1
            wait = re.search("wait=([0-9.]+)", path)
            # As long as a task runner holds an answer back.
            await asyncio.sleep(min(float(wait.group(1)), 30.0) if wait else 0)
            answer = {"start": 1, "run": True, "state": "running", "revision": 1}
        body = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asked = 0
asyncio.run(main())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure an idle scheduler.")
    parser.add_argument("--runners", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--services", type=int, nargs="*", default=[1])
    parser.add_argument("--seconds", type=float, default=20.0)
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    print(f"{'runners':>8} {'requests/s':>11} {'CPU':>8} {'per request':>12}")
    for runners in arguments.runners:
        rate, share = asking(runners, arguments.seconds)
        print(
            f"{runners:>8,} {rate:>11.1f} {share:>8.2%} {1e6 * share / rate:>9.0f} us", flush=True
        )
        found[f"idle_runners_{runners}_cpu_percent"] = 100 * share
        found[f"idle_runners_{runners}_requests_per_second"] = rate
    for services in arguments.services:
        suffix = "" if services == 1 else f"_of_{services}"
        for name, values in schedulers(services, arguments.seconds).items():
            mean, most = statistics.mean(values), max(values)
            print(f"{services} services, {name}: {mean:.2f} each, {most:.2f} at most", flush=True)
            found[f"idle_scheduler_{name}{suffix}"] = mean
    figures.write(arguments.json, found)


class Service:
    """A state that takes in reports as the core does."""

    def __init__(self, tasks: int, port: int) -> None:
        state = running_service(tasks)
        here = [
            replace(record, address="127.0.0.1", ports=(1, port)) for record in state.tasks.values()
        ]
        self.reports: dict[str, Mapping[str, Any]] = {}
        self.state = changed(with_records(state, *here), reports=self.reports)
        self.heard: set[str] = set()

    def now(self) -> ServiceState:
        return self.state

    def take(self, event: RunnerReported) -> None:
        self.reports[event.task_id] = event.report
        self.heard.add(event.task_id)


def asking(runners: int, seconds: float) -> tuple[float, float]:
    """Return requests a second and the share of a core that they take."""
    with fake_runners() as port:
        service = Service(runners, port)
        client = RunnerClient(service.now, service.take)
        client.start()
        try:
            eventually(lambda: len(service.heard) == runners, seconds=PATIENCE_SECONDS)
            # A runner that is asked to hold the answer back knows so from the second question on.
            time.sleep(5.0)
            asked, used, began = asked_at(port), time.process_time(), time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - began
            return (asked_at(port) - asked) / took, (time.process_time() - used) / took
        finally:
            client.stop()


@contextlib.contextmanager
def fake_runners() -> Iterator[int]:
    """Yield the port of the server that answers for all of them."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNNERS], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.kill()


def asked_at(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/asked") as answer:
        return int(json.load(answer)["asked"])


def schedulers(count: int, seconds: float) -> Mapping[str, Sequence[float]]:
    """Return what each scheduler of so many services takes whose jobs run, for so long."""
    with tempfile.TemporaryDirectory(prefix="idle-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        agent = AgentConfig(
            address="127.0.0.1", cpus=2 * count, mem=2048 * count, ports=(17000, 17099 + 10 * count)
        )
        cluster = stack.enter_context(EmbeddedCluster([agent], folder / "mesos"))
        begun = []
        for number in range(count):
            own = folder / f"idle-{number}"
            own.mkdir()
            service = {"name": own.name, "job_cmd": "exec sleep 6000"}
            options = write_options(own, service=service, worker={"count": 2})
            where = own, options, cluster.master, f"sqlite:///{own}/state.db"
            scheduler = SchedulerProcess("idle", *where, "--api-port", "0", environment={})
            stack.callback(scheduler.close)
            scheduler.wait_for("running")
            begun.append(scheduler)
        time.sleep(SETTLE_SECONDS)
        pids = [scheduler.process.pid for scheduler in begun]
        runners = runners_in(folder)
        assert len(runners) == 2 * count, len(runners)
        before = {pid: cpu_seconds(pid) for pid in (*pids, *runners)}
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        cpu = {pid: 100 * (cpu_seconds(pid) - used) / took for pid, used in before.items()}
        return {
            "memory_mb": [memory_mb(pid, "Rss") for pid in pids],
            "share_mb": [memory_mb(pid, "Pss") for pid in pids],
            "cpu_percent": [cpu[pid] for pid in pids],
            "runner_cpu_percent": [cpu[pid] for pid in runners],
        }


def runners_in(folder: Path) -> list[int]:
    """Return the task runners of a cluster in ``folder``: each is the parent of its guard."""
    guards = (each for each in processes(str(folder)) if each.name == "runner-guard")
    return [process.parent for each in guards if (process := read_process(each.pid))]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, kind: str) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    told = dict(line.split(":", 1) for line in lines)
    return int(told[kind].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    main()
