"""Random histories of a queue: teams, gangs, sweeps, lost machines, a queue that dies at any point.

``python tests/simulation/queue_history.py COUNT SEED`` plays so many and prints those that break a
rule; ``test_queue_histories`` plays a few in each run of the tests. The world carries out what the
queue decides, and looks at each step:

* a job runs once at a time, all of its gang, and no machine holds more than it has;
* a team that waits for what is its own has it back within the bound of the rules;
* when no more faults come every job ends, and nothing is taken then.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace

from dcos_tensorflow.core.kept.codec import decode, encode
from dcos_tensorflow.queue.kept import KeptJob, KeptTeam, kept_job, kept_teams, restore
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import (
    GangNeed,
    Host,
    Interval,
    JobProgress,
    JobState,
    Placement,
    QueuedJob,
    Rules,
    TaskNeed,
    Team,
)

RULES = Rules(
    reclaim_after=120.0, patience=600.0, grace=30.0, least_run=120.0, between_giving_way=600.0
)
STEP = 15.0
STEPS_WITH_FAULTS = 400
#: When no more faults come time passes to the next end, but no further.
LONG_STEP = 8 * STEP
# Faults that follow each other may keep a team waiting once more.
BOUND = RULES.reclaim_after + RULES.between_giving_way + RULES.least_run + 4 * RULES.grace
MOST_STEPS = 12_000


class BrokenRule(AssertionError):
    """A history broke a rule."""


@dataclass
class Running:
    """A job as the world has it."""

    work: float
    ends_at: float
    leaves_at: float | None = None
    slots: int = 1


@dataclass
class World:
    """The machines, and what runs on them."""

    seed: int
    now: float = 0.0
    running: dict[str, Running] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    #: The jobs that had not ended when it was looked last.
    open: set[str] = field(default_factory=set)
    numbers: int = 0
    deaths: int = 0
    #: Since when a team's small job waits for what is its own while others borrow.
    short: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        rng = self.random
        self.all_hosts = [
            Host(f"host-{k}", 1_000 * rng.choice((8, 16)), 65_536, 1_000 * rng.choice((0, 2, 4)))
            for k in range(rng.randint(2, 6))
        ]
        self.hosts = list(self.all_hosts)
        count = rng.randint(2, 4)
        parts = [rng.random() for _ in range(count)]
        self.teams = [
            Team(f"team-{k}", 0.9 * parts[k] / sum(parts), rng.choice((0.5, 1.0, 2.0)))
            for k in range(count)
        ]
        self.queue = self.new_queue()

    def new_queue(self) -> Queue:
        queue = Queue(RULES, self.teams, self.now)
        queue.hosts_are(self.hosts, self.now)
        return queue

    def play(self) -> None:
        """Play the history. Raises BrokenRule."""
        steps = 0
        while steps < STEPS_WITH_FAULTS or self.open_jobs():
            if steps < STEPS_WITH_FAULTS:
                self.something_happens()
            elif steps == STEPS_WITH_FAULTS:
                self.faults_end()
            self.step(STEP if steps < STEPS_WITH_FAULTS else self.until_an_end())
            steps += 1
            if steps > MOST_STEPS:
                raise BrokenRule(f"jobs never end: {sorted(self.open_jobs())[:5]}")
        if self.queue.places.used.any():
            raise BrokenRule("something is taken though every job has ended")
        lost = [name for name in self.work if not self.has_ended(name)]
        if lost:
            raise BrokenRule(f"jobs were lost: {lost}")

    def has_ended(self, name: str) -> bool:
        entry = self.queue.entries.get(name)
        return entry is not None and entry.state.ended

    def faults_end(self) -> None:
        self.hosts = list(self.all_hosts)
        self.queue.hosts_are(self.hosts, self.now)
        for entry in self.queue.entries.values():
            if entry.held:
                self.queue.release(entry.job.id, self.now)

    def open_jobs(self) -> set[str]:
        """Return the jobs that have not ended; one that has ended once must stay so."""
        self.open = {name for name in self.open if not self.queue.entries[name].state.ended}
        return self.open

    def something_happens(self) -> None:
        rng = self.random
        if rng.random() < 0.3:
            self.submit()
        if rng.random() < 0.02 and len(self.hosts) > 1:
            self.hosts.remove(rng.choice(self.hosts))
            self.queue.hosts_are(self.hosts, self.now)
        if rng.random() < 0.05 and len(self.hosts) < len(self.all_hosts):
            self.hosts = list(self.all_hosts)
            self.queue.hosts_are(self.hosts, self.now)
        if rng.random() < 0.03:
            self.queue_dies()
        waiting = [e for e in self.queue.entries.values() if e.state is JobState.WAITING]
        if waiting and rng.random() < 0.03:
            entry = rng.choice(waiting)
            if entry.held:
                self.queue.release(entry.job.id, self.now)
            elif rng.random() < 0.5:
                self.queue.ended(entry.job.id, JobState.CANCELLED, self.now)
            else:
                self.queue.hold(entry.job.id)

    def submit(self) -> None:
        rng = self.random
        self.numbers += 1
        gpus = rng.choice((0, 0, 1_000, 1_000, 2_000))
        need = TaskNeed(rng.choice((500, 1_000, 4_000)), 1_024, gpus)
        tasks = rng.choice((1, 1, 1, 2, 3))
        work = rng.choice((60.0, 300.0, 1_200.0, 6_000.0)) * rng.uniform(0.5, 1.5)
        job = QueuedJob(
            f"job-{self.numbers}",
            rng.choice(self.teams).name,
            ((need, tasks),),
            self.now,
            priority=rng.choice((0, 0, 0, 1)),
            deadline=self.now + 5_000 if rng.random() < 0.1 else None,
            after=f"job-{rng.randint(1, self.numbers - 1)}"
            if self.numbers > 1 and rng.random() < 0.1
            else None,
            slots=rng.choice((1, 1, 1, 4)),
        )
        job = replace(job, slots=job.slots if tasks == 1 else 1)
        if self.queue.submit(job, self.now) is None:
            self.work[job.id] = work
            self.open.add(job.id)

    def queue_dies(self) -> None:
        """Make the queue of its records, and do again what may not have been done."""
        self.deaths += 1
        jobs = [decode(KeptJob, encode(kept_job(e))) for e in self.queue.entries.values()]
        teams = {n: decode(KeptTeam, encode(t)) for n, t in kept_teams(self.queue).items()}
        self.queue = restore(self.new_queue(), jobs, teams, self.now)

    def until_an_end(self) -> float:
        """Return the seconds until a job ends or leaves, a step at least."""
        ends = (end for job in self.running.values() for end in (job.ends_at, job.leaves_at) if end)
        return max(min(min(ends, default=self.now) - self.now, LONG_STEP), STEP)

    def step(self, seconds: float) -> None:
        self.now += seconds
        for name, job in list(self.running.items()):
            if job.ends_at <= self.now:
                del self.running[name]
                self.queue.ended(name, JobState.SUCCEEDED, self.now)
            elif job.leaves_at is not None and job.leaves_at <= self.now:
                del self.running[name]
                self.work[name] = job.ends_at - self.now
                self.queue.gave_way(name, self.now)
            elif self.random.random() < 0.05:
                rest = job.ends_at - self.now
                self.queue.told(name, JobProgress(self.now, Interval(rest, rest, rest), 0.0))
            entry = self.queue.entries[name]
            if name in self.running and entry.slots_wanted < self.running[name].slots:
                self.running[name].slots = entry.slots_wanted
                self.queue.resized(name, entry.slots_wanted, self.now)
        decision = self.queue.decide(self.now)
        for asked in decision.give_way:
            self.running[asked.job].leaves_at = self.now + RULES.grace
        for admission in decision.admit:
            name = admission.job
            if name in self.running:
                raise BrokenRule(f"{name} runs twice")
            self.whole(self.queue.entries[name].job.gang, admission.placement, name)
            self.running[name] = Running(self.work[name], self.now + self.work[name])
        for change in decision.resize:
            job = self.running[change.job]
            job.slots = max(job.slots, change.slots)
        self.look()

    def whole(self, gang: GangNeed, placement: Placement, name: str) -> None:
        wanted, given = Counter[TaskNeed](), Counter[TaskNeed]()
        for need, count in gang:
            wanted[need] += count
        for _, need, count in placement:
            given[need] += count
        if wanted != given:
            raise BrokenRule(f"{name} has a part of its gang")

    def look(self) -> None:
        """Look at all rules that hold at each moment."""
        there = {host.name: host for host in self.hosts}
        used: Counter[str] = Counter()
        gpus: Counter[str] = Counter()
        if gone := self.running.keys() - self.open_jobs():
            raise BrokenRule(f"{gone} run and have ended")
        for entry in map(self.queue.entries.__getitem__, self.open):
            runs = entry.state in (JobState.RUNNING, JobState.GIVING_WAY)
            if runs != (entry.job.id in self.running):
                raise BrokenRule(f"{entry.job.id} is {entry.state} and the world says otherwise")
            if not runs:
                continue
            for held in entry.holdings:
                for name, need, count in held.placement:
                    used[name] += need.cpu_milli * count
                    gpus[name] += need.gpu_milli * count
        for name, host in there.items():
            if used[name] > host.cpu_milli or gpus[name] > host.gpu_milli:
                raise BrokenRule(f"{name} is given more than it has")
        self.look_at_guarantees()

    def look_at_guarantees(self) -> None:
        accounts = self.queue.accounts
        borrowed = max(a.share - a.team.guarantee for a in accounts.values())
        short = set(self.queue.short_since) if borrowed > MARGIN else set()
        self.short = {name: self.short.get(name, self.now) for name in short}
        for name, since in self.short.items():
            if self.now - since > BOUND and self.small_waits(name):
                raise BrokenRule(f"{name} waits for what is its own since {self.now - since:.0f} s")

    def small_waits(self, team: str) -> bool:
        """Return whether the first of the team's waiting jobs needs one small place."""
        first = next((e for e in self.queue.waiting() if e.job.team == team), None)
        return (
            first is not None
            and first.job.gang[0][1] == 1
            and first.job.gang[0][0].cpu_milli <= 1_000
            and first.job.gang[0][0].gpu_milli == 0
        )


MARGIN = 0.15


def main() -> int:
    """Play the histories that the command line asks for."""
    count, first = int(sys.argv[1]), int(sys.argv[2])
    broken = deaths = 0
    for seed in range(first, first + count):
        world = World(seed)
        try:
            world.play()
        except Exception as error:  # each history is told of, whatever broke it
            broken += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        deaths += world.deaths
    print(f"{count} histories, the queue died {deaths} times, {broken} broke a rule")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
