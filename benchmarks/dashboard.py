"""What the dashboard costs: a browser that shows a large service, a scheduler with 50 viewers.

The service has ``--tasks`` tasks of which twenty report twenty times a second, and curves of
``--points`` points. A process steps the core with these reports as the scheduler does, with the API
in a thread of its own: *late* is how long after its time the result of a step was there, which
viewers must not change. Chromium opens the page: how long until it paints, until the job
and its curves are shown, and how long its longest task is at rest, while everything changes: by the
clock, and of a CPU, which is the same on a busy machine.

    python benchmarks/dashboard.py [--tasks 1000] [--points 50000] [--viewers 50] [--json FILE]

It needs what the tests in a browser need (CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import figures
from large_service import report, running_service, settled

from answering_service import Service
from browser_page import DESKTOP, Page
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.step import step
from sample_states import NOW

#: Tasks that have curves.
CURVES = 8
REPORTS, PERIOD = 20, 0.05
#: What a page may take to be there at all.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Point:
    """A point of a curve, as the API shows it."""

    at: float
    step: int
    metrics: Mapping[str, float]


class Kept:
    """Curves with so many points in all; nothing is added to them."""

    def __init__(self, points: int) -> None:
        each = range(points // CURVES)
        self._points = {
            f"worker-{n}": tuple(
                Point(NOW - len(each) + i, i, {"loss": 1 / (i + 1), "accuracy": 1 - 1 / (i + 1)})
                for i in each
            )
            for n in range(CURVES)
        }

    def points(self) -> Mapping[str, tuple[Point, ...]]:
        return self._points


@dataclass
class Scheduler(Service):
    """Steps the core with reports, and shows its state."""

    tasks: int
    points: int
    #: Seconds that each step was late, since they were asked for last.
    late: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(token="")
        self.current = settled(running_service(self.tasks))
        self.server = ApiServer(create_app(self, curves=Kept(self.points)))  # type: ignore[arg-type]

    def work(self) -> None:
        """Step for ever."""
        assert self.current is not None
        records, told, due = list(self.current.tasks.values()), 1, time.monotonic()
        while True:
            due += PERIOD
            time.sleep(max(0.0, due - time.monotonic()))
            told += 1
            first = told * REPORTS % len(records)
            # Those with curves tell something each time, and others in turn.
            those = {r.task_id: r for r in records[1 : CURVES + 1] + records[first:][:REPORTS]}
            events = [RunnerReported(r.task_id, report(r, told)) for r in those.values()]
            self.current = step(self.current, events, NOW + told * PERIOD).state
            self.late.append(time.monotonic() - due)


def serve(tasks: int, points: int) -> None:
    """Be the scheduler: print the address, then figures for each line that is read."""
    scheduler = Scheduler(tasks, points)
    threading.Thread(target=scheduler.work, daemon=True).start()
    print(scheduler.server.start(), flush=True)
    since, spent = time.monotonic(), time.process_time()
    for _ in sys.stdin:
        late, scheduler.late = sorted(scheduler.late), []
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(
            json.dumps(
                {
                    "late_median_ms": 1000 * late[len(late) // 2],
                    "late_99_ms": 1000 * late[int(len(late) * 0.99)],
                    "memory_mb": pages * 4096 / 1e6,
                    "cpu_percent": 100 * (time.process_time() - spent) / (time.monotonic() - since),
                }
            ),
            flush=True,
        )
        since, spent = time.monotonic(), time.process_time()
    scheduler.server.stop()


@contextmanager
def scheduler(tasks: int, points: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, "--serve", "--tasks", str(tasks), "--points", str(points)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE_SECONDS)


def asked(process: subprocess.Popen[str]) -> dict[str, float]:
    """Return the figures since the last time."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    found: dict[str, float] = json.loads(process.stdout.readline())
    return found


def watch(address: str) -> None:
    """Read the events of a service and drop them, as long as they come."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)
    connection.request("GET", "/v1/events")
    answer = connection.getresponse()
    while answer.read1(1 << 16):
        pass


def crowd(address: str, viewers: int) -> None:
    """Be so many viewers, until this process is ended."""
    watching = [threading.Thread(target=watch, args=(address,)) for _ in range(viewers)]
    for thread in watching:
        thread.start()
    for thread in watching:
        thread.join()


def with_viewers(process: subprocess.Popen[str], address: str, viewers: int, seconds: float) -> Any:
    """Return what the scheduler tells of itself without viewers, and with them."""
    asked(process)
    time.sleep(seconds)
    without = asked(process)
    command = [sys.executable, __file__, "--watch", address, "--viewers", str(viewers)]
    watching = subprocess.Popen(command)
    try:
        # They have come, and have been told everything.
        time.sleep(5)
        asked(process)
        time.sleep(seconds)
        return without, asked(process)
    finally:
        watching.kill()
        watching.wait()


def in_browser(address: str, seconds: float) -> dict[str, float]:
    """Return what the page takes, in milliseconds."""
    since = "Math.round(performance.now())"
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    opened = {"url": f"http://{address}/", "scheme": "light", **DESKTOP}
    with Page() as page:
        cpu = page.order("paintCpu", where=".chart canvas", **opened)
        page.order("open", **opened)
        page.see(".facts")
        shown = page.order("evaluate", script=since)
        page.see(".chart canvas")
        drawn = page.order("evaluate", script=since)
        found = {"first_paint_ms": page.order("evaluate", script=paint), "job_ms": shown}
        found["first_paint_cpu_ms"] = cpu
        found["curves_ms"] = drawn
        for view in ("overview", "tasks", "plans"):
            page.order("click", where=f'nav a[href="#/{view}"]')
            page.see("main")
            # What the view's first drawing takes is over.
            time.sleep(2)
            longest = page.order("longestTask", seconds=seconds / 2)
            found[f"{view}_longest_task_ms"] = longest["clock"]
            found[f"{view}_longest_task_cpu_ms"] = longest["cpu"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the dashboard.")
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--watch", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    figures.add_option(parser)
    given = parser.parse_args()
    if given.watch:
        crowd(given.watch, given.viewers)
        return
    if given.serve:
        serve(given.tasks, given.points)
        return
    found: dict[str, float] = {}
    with scheduler(given.tasks, given.points) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        found |= in_browser(address, given.seconds)
        without, watched = with_viewers(process, address, given.viewers, given.seconds)
    found |= {f"alone_{name}": value for name, value in without.items()}
    found |= {f"watched_{name}": value for name, value in watched.items()}
    for name, value in found.items():
        print(f"{name:32} {value:10.1f}")
    figures.write(given.json, {f"dashboard_{name}": value for name, value in found.items()})


if __name__ == "__main__":
    main()
