"""A real cluster's jobs through the queue, beside first-in-first-out, backfill and fair shares.

``python benchmarks/queue.py --traces DIR --json FILE`` replays ``pods.csv`` on so few machines of
``nodes.csv`` that their GPUs are asked for 0.8, 1.0 and 1.3 times. A job's life is its work. The
traces do not say these, so they are made of the job's name by a seed: its team (of five, which ask
for unequal parts and are guaranteed equal ones), its time limit (one to four times its life),
whether it tells its speed (four of five do), and whether it can publish a checkpoint (19 of 20).
A job that gives way takes the grace to do so and starts anew in half a minute; one that cannot
publish does everything again. Prints a table, and writes ``summary.<policy>.<figure>``: over the
three loads the mean, of ``longest_wait`` the longest, of ``fairness`` also each load's below
``loads``.

* ``wait_mean``, ``wait_p95``, ``longest_wait``: seconds from its coming to its end that a job did
  not run. ``slowdown_p95``: that time over its work, which counts as a minute at least.
* ``utilisation``: of the GPUs, while jobs come. ``lost_work``: done again, of all GPU work.
* ``estimates``: how many starts were foretold, now and then, of jobs that waited; ``within`` is the
  part of them that came in the interval that was told, ``width_median`` how wide that was, in
  seconds, ``error_median`` how far the likely one was off, of the time that there was to wait (five
  minutes at least).
* ``fairness``: Jain's index of what each team had while jobs came, over what it was due by what it
  could use at each moment (guarantee first, then equal parts).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import heapq
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dcos_tensorflow.queue.forecast import Calibration, capture, forecast
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import (
    Admission,
    Host,
    Interval,
    JobProgress,
    JobState,
    QueueDecision,
    QueuedJob,
    Rules,
    TaskNeed,
    Team,
)
from dcos_tensorflow.queue.places import Places, amount_of
from dcos_tensorflow.queue.shares import due_shares

LOADS = (0.8, 1.0, 1.3)
POLICIES = ("fifo", "backfill", "drf", "ours")
TEAMS = {"vision": 0.38, "speech": 0.24, "search": 0.18, "ads": 0.12, "maps": 0.08}
RESTART_SECONDS = 30.0
TICK_SECONDS = 300.0
#: So often in all the line is told when it starts.
FORETELLINGS = 20
TELLS_AFTER_SECONDS = 60.0
AMOUNTS = ("cpu_milli", "mem_mib", "gpu_milli")
# The first of the jobs that were there before the others came count as coming with them.
EARLY = 0.01


@dataclass(frozen=True)
class TraceJob:
    """One job of the trace."""

    name: str
    team: str
    need: TaskNeed
    arrival: float
    work: float
    limit: float
    tells: bool
    saves: bool

    @property
    def gpus(self) -> float:
        return self.need.gpu_milli / 1000


def chance(seed: int, name: str, what: str) -> float:
    """Return a number from 0 to 1 that is made of a name."""
    digest = hashlib.sha256(f"{seed}/{what}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def team_of(seed: int, name: str) -> str:
    drawn = chance(seed, name, "team")
    for team, part in TEAMS.items():
        drawn -= part
        if drawn < 0:
            return team
    return next(iter(TEAMS))


def read_jobs(path: Path, seed: int) -> list[TraceJob]:
    """Return the jobs of a trace by their arrival."""
    jobs = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            came = float(row["creation_time"])
            began = float(row.get("scheduled_time") or came)
            if not row.get("deletion_time"):
                continue
            work = max(float(row["deletion_time"]) - began, 1.0)
            gpus = int(float(row["num_gpu"] or 0))
            share = int(float(row["gpu_milli"] or 0)) if gpus == 1 else 1000
            models = tuple(m for m in (row.get("gpu_spec") or "").split("|") if m)
            name = row["name"]
            jobs.append(
                TraceJob(
                    name=name,
                    team=team_of(seed, name),
                    need=TaskNeed(
                        int(float(row["cpu_milli"])),
                        int(float(row["memory_mib"])),
                        gpus * share,
                        (("model", models),) if models and gpus else (),
                    ),
                    arrival=came,
                    work=work,
                    limit=work * (1 + 3 * chance(seed, name, "limit")) + 60,
                    tells=chance(seed, name, "tells") < 0.8,
                    saves=chance(seed, name, "saves") < 0.95,
                )
            )
    jobs.sort(key=lambda job: (job.arrival, job.name))
    return jobs


def window_of(jobs: Sequence[TraceJob]) -> tuple[float, float]:
    """Return from when to when jobs come."""
    return jobs[int(EARLY * len(jobs))].arrival, jobs[-1].arrival


def read_hosts(path: Path, jobs: Sequence[TraceJob], load: float, seed: int) -> list[Host]:
    """Return so many machines of the trace that their GPUs are asked for ``load`` times."""
    begin, end = window_of(jobs)
    asked = sum(j.gpus * min(j.work, end - max(j.arrival, begin)) for j in jobs)
    wanted = asked / (end - begin) / load
    with path.open(newline="") as file:
        hosts = [
            Host(
                row["sn"],
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                1000 * int(row["gpu"]),
                {"model": row["model"]},
            )
            for row in csv.DictReader(file)
        ]
    hosts.sort(key=lambda host: chance(seed, host.name, "host"))
    chosen: dict[str, Host] = {}
    # Each kind of job has at least one machine that holds it.
    kinds = {job.need for job in jobs}
    for need in sorted(kinds, key=lambda n: (-n.gpu_milli, -n.cpu_milli, n.mem_mib, n.where)):
        if not any(holds(host, need) for host in chosen.values()):
            for host in hosts:
                if holds(host, need):
                    chosen[host.name] = host
                    break
    for host in hosts:
        if sum(h.gpu_milli for h in chosen.values()) >= 1000 * wanted:
            break
        chosen[host.name] = host
    return list(chosen.values())


def holds(host: Host, need: TaskNeed) -> bool:
    return (
        host.cpu_milli >= need.cpu_milli
        and host.mem_mib >= need.mem_mib
        and host.gpu_milli >= need.gpu_milli
        and all(host.attributes.get(name) in values for name, values in need.where)
    )


class Policy(Protocol):
    """What the replay asks: ``Queue``, or the one below."""

    def submit(self, job: QueuedJob, now: float) -> str | None: ...
    def ended(self, job: str, state: JobState, now: float, why: str = "") -> None: ...
    def decide(self, now: float) -> QueueDecision: ...


class FirstInFirstOut:
    """In the order of coming; the first that has no room stops all others."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._places = Places()
        self._places.hosts_are(hosts)
        self._line: list[QueuedJob] = []
        self._running: dict[str, Any] = {}

    def submit(self, job: QueuedJob, now: float) -> str | None:
        if self._places.place(job.gang, (), self._places.total) is None:
            return "no machine holds it"
        self._line.append(job)
        return None

    def ended(self, job: str, state: JobState, now: float, why: str = "") -> None:
        self._places.give_back(self._running.pop(job))

    def decide(self, now: float) -> QueueDecision:
        admitted = []
        for job in self._line:
            placement = self._places.place(job.gang, (), self._places.free)
            if placement is None:
                break
            self._places.take(placement)
            self._running[job.id] = placement
            admitted.append(Admission(job.id, placement, ""))
        del self._line[: len(admitted)]
        return QueueDecision(admit=tuple(admitted))


def policy_of(name: str, hosts: Sequence[Host], now: float) -> Policy:
    """Return a queue that begins now."""
    if name == "fifo":
        return FirstInFirstOut(hosts)
    if name == "backfill":
        teams, rules = [Team("all")], Rules(patience=math.inf)
    elif name == "drf":
        teams, rules = [Team(team) for team in TEAMS], Rules(half_life=1e-3, patience=math.inf)
    else:
        teams, rules = [Team(team, guarantee=1 / len(TEAMS)) for team in TEAMS], Rules()
    queue = Queue(rules, teams, now)
    queue.hosts_are(hosts, now)
    return queue


@dataclass
class Life:
    """What became of a job in the replay."""

    job: TraceJob
    left: float
    began_at: float | None = None
    ended_at: float | None = None
    lost: float = 0.0
    life: int = 0
    #: When it was first told when it starts, the interval from then on, and when it did.
    told_at: float = 0.0
    told: Interval | None = None
    first_began_at: float | None = None


class Replay:
    """One policy at one load."""

    def __init__(self, policy: str, hosts: Sequence[Host], jobs: Sequence[TraceJob]) -> None:
        self.hosts, self.jobs = hosts, jobs
        self.begin, self.end = window_of(jobs)
        self.queue = policy_of(policy, hosts, self.begin)
        self.alone = policy == "backfill"
        self.tells = policy == "ours"
        self.grace = Rules().grace
        self.capacity = np.array(
            [sum(getattr(host, name) for host in hosts) for name in AMOUNTS], dtype=float
        )
        self.teams = [Team(team, guarantee=1 / len(TEAMS)) for team in TEAMS]
        self.running = {team: np.zeros(3) for team in TEAMS}
        self.wanted = {team: np.zeros(3) for team in TEAMS}
        self.received, self.due = dict.fromkeys(TEAMS, 0.0), dict.fromkeys(TEAMS, 0.0)
        self.lives = {job.name: Life(job, job.work) for job in jobs}
        self.used_gpus, self.gpus_now, self.waiting, self.given_way = 0.0, 0.0, 0, 0
        self.decisions, self.decide_seconds, self.longest_decision = 0, 0.0, 0.0
        self.calibration = Calibration()
        #: When, a number that makes each different, what, of which job, in which of its lives.
        self.events: list[tuple[float, int, str, str, int]] = []
        self._numbers = 0
        for job in jobs:
            self._later(max(job.arrival, self.begin), "comes", job.name, 0)

    def run(self) -> dict[str, float]:
        """Play all jobs to their end and return the figures."""
        happens = {
            "comes": self._comes,
            "tells": self._says,
            "ends": self._ends,
            "gives way": self._gives_way,
        }
        now = tick_at = foretell_at = self.begin
        while self.events:
            then = self.events[0][0]
            if then > now and now < self.end:
                self._pass(min(then, self.end) - now)
            now = then
            while self.events and self.events[0][0] == now:
                _, _, kind, name, number = heapq.heappop(self.events)
                if kind != "tick" and number == self.lives[name].life:
                    happens[kind](self.lives[name], now)
            self._decide(now)
            if self.tells and self.waiting and tick_at <= now:
                tick_at = now + TICK_SECONDS
                self._later(tick_at, "tick", "", 0)
                if foretell_at <= now < self.end:
                    foretell_at = now + (self.end - self.begin) / FORETELLINGS
                    self._foretell(now)
        return self._figures()

    def _foretell(self, now: float) -> None:
        """Note when jobs are said to start that have not been told yet."""
        assert isinstance(self.queue, Queue)
        starts = forecast(capture(self.queue, now)).starts
        starts = {name: at for name, at in starts.items() if self._is_new(self.lives[name])}
        for name, found in self.calibration.told(starts, now).items():
            self.lives[name].told_at, self.lives[name].told = now, found
        self.calibration.foretold(starts, now)

    def _is_new(self, life: Life) -> bool:
        return life.told is None and life.first_began_at is None

    def _later(self, at: float, kind: str, name: str, life: int) -> None:
        self._numbers += 1
        heapq.heappush(self.events, (at, self._numbers, kind, name, life))

    def _pass(self, seconds: float) -> None:
        """Count what each team has and is due while the time passes."""
        demand = {
            team: float(((self.running[team] + self.wanted[team]) / self.capacity).max())
            for team in TEAMS
        }
        owed = due_shares(demand, self.teams)
        for team in TEAMS:
            self.received[team] += float((self.running[team] / self.capacity).max()) * seconds
            self.due[team] += owed[team] * seconds
        self.used_gpus += self.gpus_now * seconds

    def _comes(self, life: Life, now: float) -> None:
        job = life.job
        team = "all" if self.alone else job.team
        wanted = QueuedJob(job.name, team, ((job.need, 1),), now, time_limit=job.limit)
        refused = self.queue.submit(wanted, now)
        assert refused is None, (job, refused)
        self._waits(job)

    def _waits(self, job: TraceJob) -> None:
        self.wanted[job.team] += amount_of(job.need)
        self.waiting += 1

    def _stands(self, life: Life, now: float) -> float:
        """Take a job off the machines; return how long it ran in this life."""
        self.running[life.job.team] -= amount_of(life.job.need)
        self.gpus_now -= life.job.gpus
        began, life.began_at = life.began_at, None
        assert began is not None
        return now - began

    def _says(self, life: Life, now: float) -> None:
        assert isinstance(self.queue, Queue)
        assert life.began_at is not None
        off = 0.8 + 0.4 * chance(0, life.job.name, f"speed {life.life}")
        rest = (life.left - (now - life.began_at)) * off
        said = Interval(0.8 * rest, rest, 1.25 * rest)
        saves = life.job.saves
        self.queue.told(
            life.job.name, JobProgress(now, said, 0.0 if saves else None, can_save=saves)
        )

    def _ends(self, life: Life, now: float) -> None:
        self._stands(life, now)
        life.ended_at = now
        self.queue.ended(life.job.name, JobState.SUCCEEDED, now)

    def _gives_way(self, life: Life, now: float) -> None:
        assert isinstance(self.queue, Queue)
        ran = self._stands(life, now)
        done = max(ran - self.grace, 0.0) if life.job.saves else 0.0
        life.lost += ran - done
        life.left -= done
        life.life += 1
        self.given_way += 1
        self.queue.gave_way(life.job.name, now, ran - done)
        self._waits(life.job)

    def _decide(self, now: float) -> None:
        started = time.perf_counter()
        decision = self.queue.decide(now)
        took = time.perf_counter() - started
        self.decisions += 1
        self.decide_seconds += took
        self.longest_decision = max(self.longest_decision, took)
        for asked in decision.give_way:
            life = self.lives[asked.job]
            assert life.began_at is not None
            if life.began_at + life.left > now + self.grace:
                life.life += 1
                self._later(now + self.grace, "gives way", asked.job, life.life)
        for admitted in decision.admit:
            life = self.lives[admitted.job]
            job = life.job
            self.wanted[job.team] -= amount_of(job.need)
            self.running[job.team] += amount_of(job.need)
            self.gpus_now += job.gpus
            self.waiting -= 1
            life.began_at = now
            if life.first_began_at is None:
                life.first_began_at = now
                self.calibration.began(job.name, now)
            if life.life:
                life.lost += RESTART_SECONDS
                life.left += RESTART_SECONDS
            self._later(now + life.left, "ends", job.name, life.life)
            if self.tells and job.tells and life.left > TELLS_AFTER_SECONDS:
                self._later(now + TELLS_AFTER_SECONDS, "tells", job.name, life.life)

    def _figures(self) -> dict[str, float]:
        waits, slowdowns = [], []
        for life in self.lives.values():
            assert life.ended_at is not None, life.job.name
            came = max(life.job.arrival, self.begin)
            waits.append(max(life.ended_at - came - life.job.work - life.lost, 0.0))
            slowdowns.append(max((life.ended_at - came) / max(life.job.work, 60.0), 1.0))
        parts = np.array([self.received[t] / self.due[t] for t in TEAMS if self.due[t] > 0])
        told = [
            (life.told, life.first_began_at - life.told_at)
            for life in self.lives.values()
            if life.told is not None and life.first_began_at is not None
        ]
        within = [one.low - TICK_SECONDS <= came <= one.high + TICK_SECONDS for one, came in told]
        off = [abs(one.likely - came) / max(came, TICK_SECONDS) for one, came in told]
        gpus = sum(host.gpu_milli for host in self.hosts) / 1000
        lost = sum(life.lost * life.job.gpus for life in self.lives.values())
        work = sum(life.job.work * life.job.gpus for life in self.lives.values())
        return {
            "wait_mean": float(np.mean(waits)),
            "wait_p95": float(np.percentile(waits, 95)),
            "slowdown_p95": float(np.percentile(slowdowns, 95)),
            "utilisation": self.used_gpus / ((self.end - self.begin) * gpus),
            "fairness": float(parts.sum() ** 2 / (len(parts) * (parts**2).sum())),
            "lost_work": lost / work,
            "longest_wait": float(np.max(waits)),
            "given_way": float(self.given_way),
            "estimates": float(len(told)),
            "within": float(np.mean(within)) if told else 0.0,
            "error_median": float(np.median(off)) if told else 0.0,
            "width_median": float(np.median([one.high - one.low for one, _ in told] or [0.0])),
            "decisions": float(self.decisions),
            "decision_ms": 1000 * self.decide_seconds / self.decisions,
            "longest_decision_ms": 1000 * self.longest_decision,
            "gpus": gpus,
        }


def main() -> None:
    """Replay, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of nodes.csv, pods.csv")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--seed", type=int, default=1, help="of teams, limits and machines")
    parser.add_argument("--loads", type=float, nargs="+", default=LOADS)
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    given = parser.parse_args()
    jobs = read_jobs(given.traces / "pods.csv", given.seed)
    loads: dict[str, dict[str, dict[str, float]]] = {}
    for load in given.loads:
        hosts = read_hosts(given.traces / "nodes.csv", jobs, load, given.seed)
        for policy in given.policies:
            figures = Replay(policy, hosts, jobs).run()
            loads.setdefault(f"{load:g}", {})[policy] = figures
            told = " ".join(f"{name} {value:.4g}" for name, value in figures.items())
            print(f"{load:g} {policy:8} {told}", flush=True)
    summary: dict[str, dict[str, float]] = {}
    for policy in given.policies:
        by_load = [figures[policy] for figures in loads.values()]
        summary[policy] = {
            name: float(
                max(figures[name] for figures in by_load)
                if name.startswith("longest")
                else np.mean([figures[name] for figures in by_load])
            )
            for name in by_load[0]
        }
    print(json.dumps(summary, indent=1))
    if given.json:
        given.json.write_text(json.dumps({"summary": summary, "loads": loads}, indent=1))


if __name__ == "__main__":
    main()
