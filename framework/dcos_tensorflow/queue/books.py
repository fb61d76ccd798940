"""The books of a queue: its jobs, the standing of each, the teams' use, the service's reports.

``line.Queue`` decides by them, ``kept`` stores them. Events come in here and nothing is decided:
a job that waits stands in its team's line, one that runs has its machines and its team is charged.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.queue.model import (
    Host,
    JobProgress,
    JobState,
    Placement,
    QueuedJob,
    Rules,
    TaskNeed,
    Team,
)
from dcos_tensorflow.queue.places import Amounts, Places, amount_of, amount_of_gang
from dcos_tensorflow.queue.rest import RunTimes, rest_of
from dcos_tensorflow.queue.shares import Charge, TeamAccount, due_shares, share_of
from dcos_tensorflow.queue.waiting import TeamLine
from dcos_tensorflow.records import dataclass


@dataclass(eq=False)
class Holding:
    """The place of one gang of a job."""

    placement: Placement
    #: Of each entry of the placement: the host's column, and the amounts. Shapes (n,), (3, n).
    columns: NDArray[np.int64]
    amounts: Amounts
    charge: Charge
    since: float


@dataclass
class JobRecord:
    """What is known of a job and is kept (``kept``). Times are unix seconds, spans seconds."""

    job: QueuedJob
    #: The order in which jobs came.
    number: int
    state: JobState = JobState.WAITING
    held: bool = False
    #: When its present life began; None while it waits.
    began_at: float | None = None
    #: When it ran first.
    first_began_at: float | None = None
    ended_at: float | None = None
    #: Seconds of its former lives whose work is saved.
    ran_before: float = 0.0
    gave_way_at: float | None = None
    times_given_way: int = 0
    progress: JobProgress | None = None
    #: Of a promised job: those that have to leave first, by job and number of slots that stay.
    awaits: dict[str, int] = field(default_factory=dict)
    #: Since when it is, now and then, the first in the line, without room.
    first_since: float | None = None
    #: How many slots it is asked to have.
    slots_wanted: int = 0
    why: str = ""


@dataclass
class Entry(JobRecord):
    """A job in the queue, with what follows of its record and of where it is."""

    #: One of a training, one a slot of a sweep or a batch.
    holdings: list[Holding] = field(default_factory=list)
    #: When it is likely to end, as it stands in the order of ends.
    likely_end: float | None = None

    def ran(self, now: float) -> float:
        """Return how long it has run in all its lives, in seconds."""
        return self.ran_before + (now - self.began_at if self.began_at is not None else 0.0)


class Books:
    """The jobs of all teams, as far as they are known."""

    def __init__(self, rules: Rules, teams: Iterable[Team], now: float) -> None:
        self.rules = rules
        self.places = Places()
        self.entries: dict[str, Entry] = {}
        self.accounts: dict[str, TeamAccount] = {}
        self.run_times: dict[str, RunTimes] = {}
        self._lines: dict[str, TeamLine] = {}
        #: Since when a team waits for what is its own.
        self.short_since: dict[str, float] = {}
        self._ends: list[tuple[float, str]] = []
        #: Those that have a place on hosts, by team.
        self._on_hosts: dict[str, dict[str, Entry]] = {}
        #: When it was last looked for others that give way to a job.
        self._looked_at: dict[str, float] = {}
        self._promised: dict[str, None] = {}
        self._elastic: dict[str, None] = {}
        self._urgent: list[tuple[float, str]] = []
        self._limits: list[tuple[float, str]] = []
        self._after: dict[str, list[str]] = {}
        self._capacity: Charge = np.zeros(3)
        self._numbers = 0
        #: Those whose record is not as it was when these were last taken (``take_changed``).
        self._changed: set[str] = set()
        #: Those that have ended since these were last taken (``take_ended``).
        self._ended: list[str] = []
        self.teams_are(teams, now)

    # ── what the service tells ────────────────────────────────────────────────────────────────────

    def teams_are(self, teams: Iterable[Team], now: float) -> None:
        """Take the teams that there are now; one with jobs stays, frozen, without a guarantee."""
        given = {team.name: team for team in teams}
        for name, account in self.accounts.items():
            if name not in given:
                account.team = replace(account.team, frozen=True, guarantee=0.0)
        for name, team in given.items():
            if name in self.accounts:
                self.accounts[name].team = team
            else:
                self.accounts[name] = TeamAccount(team, now)
                self.run_times[name] = RunTimes()
                self._lines[name] = TeamLine()
                self._on_hosts[name] = {}

    def hosts_are(self, hosts: Iterable[Host], now: float) -> None:
        """Take the hosts that there are; what stood on those that are gone needs a place anew."""
        gone = self.places.hosts_are(hosts)
        self._capacity = self.places.capacity()
        for account in self.accounts.values():
            account.decay(now, self.rules.half_life)
            account.share = share_of(account.charged, self._capacity)
        if not gone:
            return
        for entry in list(self.entries.values()):
            if any(name in gone for held in entry.holdings for name, _, _ in held.placement):
                self._move_off(entry, gone, now)

    def submit(self, job: QueuedJob, now: float) -> str | None:
        """Take a job into the line; return why it is refused, or None."""
        account = self.accounts.get(job.team)
        if account is None:
            return f"there is no team {job.team!r}: the teams are {', '.join(self.accounts)}"
        if job.id in self.entries and not self.entries[job.id].state.ended:
            return f"{job.id} is in the queue already"
        refusal = self.never_fits(job)
        if refusal and not self.rules.grows:
            return refusal
        if job.after is not None and job.after not in self.entries:
            return f"it is to run after {job.after!r}, which the queue does not know"
        self._numbers += 1
        entry = Entry(job, self._numbers)
        self.entries[job.id] = entry
        self._changed.add(job.id)
        if job.after is not None and self.entries[job.after].state is not JobState.SUCCEEDED:
            if self.entries[job.after].state.ended:
                self._end(entry, JobState.FAILED, now, f"{job.after} did not succeed")
            else:
                self._after.setdefault(job.after, []).append(job.id)
            return None
        self._enter(entry, now)
        return None

    def never_fits(self, job: QueuedJob) -> str | None:
        """Return why a job could not run on this cluster even if it were empty, or None."""
        team = self.accounts[job.team].team
        if self.places.place(job.gang, team.where, self.places.total) is not None:
            share = share_of(amount_of_gang(job.gang).astype(float), self._capacity)
            if share <= team.limit + 1e-9:
                return None
            return (
                f"it wants {100 * share:.0f} % of the cluster, and team {team.name} may have "
                f"{100 * team.limit:.0f} %"
            )
        for need, count in job.gang:
            if self.places.place(((need, 1),), team.where, self.places.total) is None:
                return f"no machine of team {team.name} has {text_of(need)} for one task"
            if self.places.place(((need, count),), team.where, self.places.total) is None:
                tasks = counted(count, "task")
                return (
                    f"the machines of team {team.name} together do not hold {tasks} of "
                    f"{text_of(need)}"
                )
        return f"the machines of team {team.name} together do not hold all of its tasks"

    def hold(self, job: str) -> None:
        """Let a waiting job wait until it is released; its place in the line is kept."""
        entry = self.entries[job]
        entry.held = True
        self._changed.add(job)
        self._lines[entry.job.team].remove(job)

    def release(self, job: str, now: float) -> None:
        """Let a held job wait for its turn."""
        entry = self.entries[job]
        entry.held = False
        self._changed.add(job)
        if entry.state is JobState.WAITING and not self._waits_for(entry):
            self._enter(entry, now)

    def told(self, job: str, progress: JobProgress) -> None:
        """Take what a running job's scheduler says; it will say so again to the next queue."""
        entry = self.entries[job]
        entry.progress = progress
        if entry.likely_end is not None:
            self._expect(entry, progress.at)

    def placed(self, job: str, placement: Placement, now: float, slot: int = 0) -> None:
        """Take where the tasks of a gang are, which its own scheduler has placed."""
        entry = self.entries[job]
        if slot < len(entry.holdings) and entry.holdings[slot].placement != placement:
            since = entry.holdings[slot].since
            self._drop(entry, slot, now)
            entry.holdings.insert(slot, self._take(entry, placement, since, now))

    def ended(self, job: str, state: JobState, now: float, why: str = "") -> None:
        """Take the end of a job: it succeeded, failed or was cancelled."""
        entry = self.entries[job]
        if not entry.state.ended:
            self._end(entry, state, now, why)

    def gave_way(self, job: str, now: float, lost_seconds: float = 0.0) -> None:
        """Take that a job has ended because it was asked to; it waits in its old place again."""
        entry = self.entries[job]
        entry.ran_before = max(0.0, entry.ran(now) - lost_seconds)
        entry.gave_way_at = now
        entry.times_given_way += 1
        self._leave_hosts(entry, now)
        entry.state = JobState.WAITING
        entry.began_at = None
        if not entry.held:
            self._enter(entry, now)

    def resized(self, job: str, slots: int, now: float) -> None:
        """Take that a sweep or a batch has no more than so many slots now."""
        entry = self.entries[job]
        while len(entry.holdings) > max(slots, 1):
            self._drop(entry, len(entry.holdings) - 1, now)
        self._left(job, len(entry.holdings))

    # ── what others read ──────────────────────────────────────────────────────────────────────────

    def running(self) -> Iterable[Entry]:
        """Yield the jobs that have a place on hosts."""
        return (entry for entries in self._on_hosts.values() for entry in entries.values())

    @property
    def has_waiting(self) -> bool:
        """Return whether a job is in the line."""
        return any(map(len, self._lines.values()))

    def waiting(self) -> list[Entry]:
        """Return the jobs in the line, the next team's first one first."""
        ordered = {name: list(line.ordered()) for name, line in self._lines.items()}
        share = {name: account.order for name, account in self.accounts.items()}
        step = {
            name: 1.0 / max(account.team.weight, 1e-9) for name, account in self.accounts.items()
        }
        heap = [(share[name], name, 0) for name, jobs in ordered.items() if jobs]
        heapq.heapify(heap)
        found: list[Entry] = []
        while heap:
            order, name, index = heapq.heappop(heap)
            entry = self.entries[ordered[name][index]]
            found.append(entry)
            if index + 1 < len(ordered[name]):
                charge = share_of(amount_of_gang(entry.job.gang).astype(float), self._capacity)
                heapq.heappush(heap, (order + charge * step[name], name, index + 1))
        return found

    def shares_due(self) -> dict[str, float]:
        """Return the share that each team is due of the cluster, by what it could use now."""
        demands = {name: account.share for name, account in self.accounts.items()}
        for name, line in self._lines.items():
            wanted = np.zeros(3)
            for job in line.ordered():
                wanted += amount_of_gang(self.entries[job].job.gang)
            demands[name] += share_of(wanted, self._capacity)
        return due_shares(demands, [account.team for account in self.accounts.values()])

    def take_changed(self) -> set[str]:
        """Return the jobs whose records are not as they were at the last call, ended ones too."""
        changed, self._changed = self._changed, set()
        return changed

    def take_ended(self) -> list[str]:
        """Return the jobs that have ended since the last call, those that followed one too."""
        ended, self._ended = self._ended, []
        return ended

    def forget(self, job: str) -> None:
        """Forget a job that has ended and that no other one runs after."""
        if self.entries[job].state.ended and job not in self._after:
            del self.entries[job]

    # ── after a restart ───────────────────────────────────────────────────────────────────────────

    def adopt(self, entry: Entry, gangs: Iterable[tuple[Placement, float]], now: float) -> None:
        """Take a job as it was kept; jobs come in the order of their numbers."""
        job = entry.job
        self.entries[job.id] = entry
        self._numbers = max(self._numbers, entry.number)
        for placement, since in gangs:
            self.places.know(name for name, _, _ in placement)
            entry.holdings.append(self._take(entry, placement, since, now))
        if entry.state is JobState.WAITING and self._waits_for(entry):
            self._after.setdefault(job.after or "", []).append(job.id)
        elif entry.state is JobState.WAITING and not entry.held:
            self._enter(entry, now)
        elif entry.state is JobState.PROMISED:
            self._promised[job.id] = None
        elif entry.state is JobState.RUNNING and entry.began_at is not None:
            self._expect(entry, now)
            self._watch(entry)

    # ── the line ──────────────────────────────────────────────────────────────────────────────────

    def _enter(self, entry: Entry, now: float) -> None:
        """Let a job wait in its team's line."""
        job = entry.job
        urgent = False
        if job.deadline is not None:
            longest = job.time_limit or self.run_times[job.team].rest(entry.ran(now)).likely
            urgent_at = job.deadline - 1.5 * max(longest - entry.ran_before, 0.0)
            urgent = urgent_at <= now
            if not urgent:
                heapq.heappush(self._urgent, (urgent_at, job.id))
        self._lines[job.team].add(job, entry.number, urgent=urgent)

    def _make_urgent(self, now: float) -> None:
        """Move jobs to the front of their team's line that would miss their deadline."""
        while self._urgent and self._urgent[0][0] <= now:
            _, job = heapq.heappop(self._urgent)
            entry = self.entries.get(job)
            if entry is not None and job in self._lines[entry.job.team]:
                self._lines[entry.job.team].add(entry.job, entry.number, urgent=True)

    def _waits_for(self, entry: Entry) -> bool:
        after = entry.job.after
        return after is not None and (
            after not in self.entries or self.entries[after].state is not JobState.SUCCEEDED
        )

    def _end(self, entry: Entry, state: JobState, now: float, why: str) -> None:
        job = entry.job
        self._changed.add(job.id)
        self._ended.append(job.id)
        if state is JobState.SUCCEEDED:
            self.run_times[job.team].add(entry.ran(now))
        self._leave_hosts(entry, now)
        self._lines[job.team].remove(job.id)
        self._promised.pop(job.id, None)
        entry.ran_before, entry.began_at = entry.ran(now), None
        entry.state, entry.ended_at, entry.why = state, now, why
        entry.awaits.clear()
        for name in self._after.pop(job.id, ()):
            follower = self.entries.get(name)
            if follower is None or follower.state.ended:
                continue
            if state is JobState.SUCCEEDED:
                if not follower.held:
                    self._enter(follower, now)
            else:
                self._end(follower, JobState.FAILED, now, f"{job.id} did not succeed")

    # ── the machines ──────────────────────────────────────────────────────────────────────────────

    def _take(self, entry: Entry, placement: Placement, since: float, now: float) -> Holding:
        """Take a placement for a job, and charge its team."""
        columns = np.array([self.places.host(name) for name, _, _ in placement], dtype=np.int64)
        amounts = np.stack([amount_of(need, count) for _, need, count in placement], axis=1)
        holding = Holding(placement, columns, amounts, self.places.charge_of(placement), since)
        self.places.take(placement)
        self._changed.add(entry.job.id)
        self._charge(entry.job.team, holding.charge, now)
        self._on_hosts[entry.job.team][entry.job.id] = entry
        return holding

    def _drop(self, entry: Entry, slot: int, now: float) -> None:
        """Give back what one gang of a job has."""
        holding = entry.holdings.pop(slot)
        self._changed.add(entry.job.id)
        self.places.give_back(holding.placement)
        self._charge(entry.job.team, -holding.charge, now)

    def _charge(self, team: str, charge: Charge, now: float) -> None:
        account = self.accounts[team]
        account.decay(now, self.rules.half_life)
        account.charged = account.charged + charge
        account.share = share_of(account.charged, self._capacity)

    def _leave_hosts(self, entry: Entry, now: float) -> None:
        """Give back all that a job has."""
        while entry.holdings:
            self._drop(entry, len(entry.holdings) - 1, now)
        self._on_hosts[entry.job.team].pop(entry.job.id, None)
        self._looked_at.pop(entry.job.id, None)
        self._forget_end(entry)
        self._elastic.pop(entry.job.id, None)
        self._left(entry.job.id, 0)

    def _left(self, job: str, slots: int) -> None:
        """Note for promised jobs that a job has left hosts, or has so many slots."""
        for promised in self._promised:
            awaits = self.entries[promised].awaits
            if job in awaits and slots <= awaits[job]:
                del awaits[job]
                self._changed.add(promised)

    def _move_off(self, entry: Entry, gone: Collection[str], now: float) -> None:
        """Find other hosts for the tasks of a job that stood on hosts that are gone.

        Its own scheduler starts them again wherever there is room. Where the queue finds none the
        job keeps the rest, and is short until hosts come or others go.
        """
        where = self.accounts[entry.job.team].team.where
        for slot, holding in enumerate(list(entry.holdings)):
            lost = tuple(part for part in holding.placement if part[0] in gone)
            if not lost:
                continue
            wanted = tuple((need, count) for _, need, count in lost)
            found = self.places.place(wanted, where, self.places.free)
            if found is not None:
                kept = tuple(part for part in holding.placement if part[0] not in gone)
                self.placed(entry.job.id, kept + found, now, slot)

    # ── the order of ends ─────────────────────────────────────────────────────────────────────────

    def _watch(self, entry: Entry) -> None:
        """Have a running job among those that grow, and those whose time may be over."""
        job = entry.job
        if job.slots > 1:
            self._elastic[job.id] = None
        if job.time_limit is not None and entry.began_at is not None:
            over_at = entry.began_at + job.time_limit - entry.ran_before
            heapq.heappush(self._limits, (over_at, job.id))

    def _expect(self, entry: Entry, now: float) -> None:
        """Work out when a job is likely to end."""
        rest = rest_of(
            now,
            entry.ran(now),
            entry.progress,
            entry.job.time_limit,
            self.run_times[entry.job.team],
        )
        self._expect_at(entry, now + rest.likely)

    def _expect_at(self, entry: Entry, end: float) -> None:
        self._forget_end(entry)
        entry.likely_end = end
        insort(self._ends, (end, entry.job.id))

    def _forget_end(self, entry: Entry) -> None:
        if entry.likely_end is not None:
            del self._ends[bisect_left(self._ends, (entry.likely_end, entry.job.id))]
            entry.likely_end = None


def text_of(need: TaskNeed) -> str:
    """Return a need for people."""
    parts = [counted(need.cpu_milli / 1000, "CPU"), f"{need.mem_mib} MiB"]
    if need.gpu_milli:
        parts.append(counted(need.gpu_milli / 1000, "GPU"))
    parts.extend(f"{name} {'|'.join(values)}" for name, values in need.where)
    return ", ".join(parts)
