"""What 200 clients, 20 of them hostile, cost a training whose processes are killed.

    python -m benchmarks.scheduler.held_up [--friendly 180] [--hostile 20] [--seconds 30]
        [--json FILE]

A real service on an embedded cluster of this machine: two workers that step, one of which is killed
every few seconds. First without clients, then with them, for as long each. Of both: steps a second,
how late the API's event loop is, and how long a step of the scheduler takes; of the clients: what
they were answered. Used by the soak with fewer clients, too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import figures

FOLDER = Path(__file__).resolve().parent
WORKERS = ("worker-0", "worker-1")
#: Seconds between two kills.
KILL_EVERY = 5.0
_PROGRAM = (sys.executable, "-m", "dcos_tensorflow")


@dataclass(frozen=True)
class Phase:
    """What was seen for a while. All times in seconds."""

    #: Of both workers.
    steps_a_second: float
    #: Of each time that the API's loop was to wake.
    late: Sequence[float]
    #: Of each step of the scheduler.
    scheduler_steps: Sequence[float]
    kills: int


@dataclass(frozen=True)
class Found:
    """What came of it."""

    quiet: Phase
    crowded: Phase
    #: Seconds of each answer to a friendly client.
    answers: Sequence[float]
    #: What else friendly clients met, and how often.
    failed: dict[str, int]
    #: Steps that no line of a worker's log tells of.
    lost_steps: int
    #: Failures that the service has told of, and each follower of its events by them.
    told_failures: int
    known_failures: Sequence[int]
    #: Events to all followers.
    events: int


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Service:
    """A cluster, a scheduler and a job in a folder."""

    def __init__(self, folder: Path) -> None:
        self.job = folder / "job"
        self.job.mkdir()
        self.timings = folder / "timings"
        self.token = folder / "token"
        self.token.write_text("the operator's token\n")
        self._home = folder / "home"
        self._options = folder / "options.json"
        self._log = folder / "log"
        small = {"cpus": 0.5, "mem": 128, "disk": 10}
        command = f"{sys.executable} {FOLDER / 'crowded_job.py'} {self.job}"
        service = {"name": "crowded", "job_cmd": command, "strategy": "independent"}
        options = {
            "service": {**service, "python": sys.executable},
            "retry": {"limit": 10_000, "initial_backoff_seconds": 0.1, "max_backoff_seconds": 0.2},
            "parameter_server": {"count": 0, **small},
            "worker": {"count": len(WORKERS), **small},
        }
        self._options.write_text(json.dumps(options))
        own = {k: v for k, v in os.environ.items() if not k.startswith("DCOS_TENSORFLOW_")}
        self._environment = {**own, "DCOS_TENSORFLOW_HOME": str(self._home)}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have it run; everything is gone afterwards."""
        size = ("--agents=1", "--cpus=4", "--mem=1000", "--disk=500", "--gpus=0")
        self._run("local", "up", *size)
        timed = (sys.executable, str(FOLDER / "timed_scheduler.py"), str(self.timings))
        flags = ("--local", f"--api-token-file={self.token}")
        with self._log.open("ab") as log:
            scheduler = subprocess.Popen(
                [*timed, "scheduler", str(self._options), *flags],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            _wait(lambda: all(self.step_of(name) for name in WORKERS), 120, self._log)
            yield
        finally:
            scheduler.terminate()
            scheduler.wait(60)
            self._run("local", "down")

    def step_of(self, worker: str) -> tuple[int, int] | None:
        """Return a worker's process and its next step."""
        with suppress(OSError, ValueError):
            pid, step = (self.job / f"{worker}.step").read_text().split()
            return int(pid), int(step)
        return None

    @property
    def addresses(self) -> tuple[str, str]:
        """Where API and master listen."""
        known = json.loads((self._home / "services/crowded/scheduler.json").read_text())
        listening = json.loads(self._run("local", "status", "--json"))["master"]
        return str(known["api"]).removeprefix("http://"), str(listening)

    def told_failures(self) -> int:
        """Return how many failures the service has told of."""
        job = json.loads(self._run("status", "crowded", "--json"))
        return len(job["incidents"])

    def phase(self, seconds: float) -> Phase:
        """Watch for so long, and kill a process now and then."""
        began, first = time.time(), self._steps()
        kills = 0
        while (left := began + seconds - time.time()) > 0:
            time.sleep(min(KILL_EVERY, left))
            # Of another one so soon it would be taken for an effect of the failure before.
            found = self.step_of(WORKERS[0])
            if found is not None and left > KILL_EVERY:
                with suppress(ProcessLookupError):
                    os.kill(found[0], signal.SIGKILL)
                    kills += 1
        took, steps = time.time() - began, self._steps() - first
        timed = [json.loads(line) for line in self.timings.read_text().splitlines()]
        timed = [each for each in timed if each["at"] > began + 1]
        late = [one for each in timed for one in each["late"]]
        return Phase(steps / took, late, [s for each in timed for s in each["steps"]], kills)

    def lost_steps(self) -> int:
        """Return how many steps no line tells of; a step that was cut short is told of again."""
        lost = 0
        for name in WORKERS:
            # In this order: each step is told of before the next one is named.
            found = self.step_of(name)
            told = {int(line) for line in (self.job / f"{name}.log").read_text().split()}
            lost += len(set(range(found[1] if found else 0)) - told)
        return lost

    def _steps(self) -> int:
        return sum(found[1] for name in WORKERS if (found := self.step_of(name)))

    def _run(self, *arguments: str) -> str:
        ended = subprocess.run(
            [*_PROGRAM, *arguments], env=self._environment, check=True, stdout=subprocess.PIPE
        )
        return ended.stdout.decode()


def measured(friends: int, foes: int, seconds: float) -> Found:
    """Measure it on this machine."""
    with tempfile.TemporaryDirectory(prefix="held-up-") as name:
        service = Service(Path(name))
        with service.running():
            api, master = service.addresses
            # The API is served from the first request on.
            service.told_failures()
            quiet = service.phase(seconds)
            counts = (f"--friendly={friends}", f"--hostile={foes}", f"--seconds={seconds + 2}")
            clients = subprocess.Popen(
                [
                    sys.executable,
                    str(FOLDER / "crowd.py"),
                    api,
                    str(service.token),
                    master,
                    *counts,
                ],
                stdout=subprocess.PIPE,
            )
            crowded = service.phase(seconds)
            out, _ = clients.communicate(timeout=seconds + 60)
            told = service.told_failures()
            met: dict[str, Any] = json.loads(out)
            answers, failed, lost = met["seconds"], met["failed"], service.lost_steps()
            return Found(quiet, crowded, answers, failed, lost, told, met["known"], met["events"])


def _wait(condition: Any, seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"the job does not run:\n{log.read_text()[-3000:]}")
        time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--friendly", type=int, default=180)
    parser.add_argument("--hostile", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    figures.add_option(parser)
    given = parser.parse_args()
    found = measured(given.friendly, given.hostile, given.seconds)
    told: dict[str, float] = {}
    for name, phase in (("quiet", found.quiet), ("crowded", found.crowded)):
        told |= {
            f"held_up.{name}.steps_a_second": phase.steps_a_second,
            f"held_up.{name}.loop_late_p99_ms": 1000 * percentile(phase.late, 0.99),
            f"held_up.{name}.loop_late_median_ms": 1000 * statistics.median(phase.late or [0.0]),
            f"held_up.{name}.scheduler_step_p99_ms": 1000 * percentile(phase.scheduler_steps, 0.99),
            f"held_up.{name}.kills": phase.kills,
        }
    told |= {
        "held_up.answers": len(found.answers),
        "held_up.answer_p99_ms": 1000 * percentile(found.answers, 0.99),
        "held_up.failed": sum(found.failed.values()),
        "held_up.lost_steps": found.lost_steps,
        "held_up.told_failures": found.told_failures,
        "held_up.events": found.events,
        "held_up.followers": len(found.known_failures),
        "held_up.known_failures": min(found.known_failures),
    }
    for key, value in told.items():
        print(f"{key:40} {value:.4g}")
    for what, times in found.failed.items():
        print(f"  failed {times} times: {what}")
    figures.write(given.json, told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
