"""A queue: events in; admissions, jobs that give way and reasons to wait out.

``Queue`` is the one door of this room. The service of the queue tells it what happened (a job came,
said how far it is, ended, gave way; hosts came and went) and asks ``decide``. In this order:

1. A job whose place was promised is admitted when all that stood there have left.
2. The team that is least ahead of its share is next, and before it one that is to have back what
   is its own; its jobs by urgency, priority and age. A gang is placed whole. The first job that has
   no room reserves what it needs at the time when it is likely to be free; others start before it
   if they are over by then or do not touch that room.
3. A team that waits for what it is guaranteed for longer than ``Rules.reclaim_after`` has it back:
   jobs that borrow give way to it, and so do jobs of its own of lower priority. The first of the
   line, whose turn it is, waits no longer than ``Rules.patience`` for others that stand in its way.
4. Room that no waiting job can use goes to sweeps and batches, a slot at a time.

A restart needs what ``kept`` has: the service stores it before it acts. It never starts or
stops anything itself, and reads no clock.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.queue.giving_way import Candidate, choose
from dcos_tensorflow.queue.model import (
    Admission,
    GangNeed,
    GiveWay,
    Host,
    JobProgress,
    JobState,
    Placement,
    QueueDecision,
    QueuedJob,
    Resize,
    Rules,
    TaskNeed,
    Team,
    Waiting,
)
from dcos_tensorflow.queue.places import Amounts, Places, amount_of, amount_of_gang
from dcos_tensorflow.queue.rest import RunTimes, rest_of
from dcos_tensorflow.queue.shares import Charge, TeamAccount, due_shares, share_of
from dcos_tensorflow.queue.waiting import BucketKey, TeamLine, limit_class, longest_of_class
from dcos_tensorflow.records import dataclass

# What a job that gives way does again beside its steps: its processes start anew.
_RESTART_SECONDS = 30.0
# How often another choice is tried when one takes a team below what is its own.
_CHOICES = 8


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
class Entry:
    """A job in the queue, and all that is known of it."""

    job: QueuedJob
    number: int
    state: JobState = JobState.WAITING
    held: bool = False
    #: One of a training, one a slot of a sweep or a batch.
    holdings: list[Holding] = field(default_factory=list)
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
    #: When it is likely to end, as it stands in the order of ends.
    likely_end: float | None = None
    why: str = ""

    def ran(self, now: float) -> float:
        """Return how long it has run in all its lives, in seconds."""
        return self.ran_before + (now - self.began_at if self.began_at is not None else 0.0)


@dataclass
class _Reservation:
    """The room that is kept for the first job that has none."""

    job: str
    at: float
    #: What others may use who run on after ``at``. Shape (3, hosts).
    late_free: Amounts


@dataclass
class _Found:
    """The gangs that one decision has found no room for: room only shrinks while it admits."""

    nowhere: set[tuple[object, GangNeed]] = field(default_factory=set)
    #: Nor beside what is reserved, for jobs that run on.
    reserved: set[tuple[object, GangNeed]] = field(default_factory=set)


class Queue:
    """The jobs of all teams: those that run, and those that wait."""

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
        self._reservation: _Reservation | None = None
        #: Those whose record is not as it was when these were last taken (``take_changed``).
        self._changed: set[str] = set()
        #: Of each bucket that the last decision left waiting: why, by a kind of ``Waiting``.
        self._waits: dict[tuple[str, BucketKey], str] = {}
        self.teams_are(teams, now)

    # ── what the service tells ──────────────────────────────────────────────────────────────────

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
        if refusal:
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
                return f"no machine of team {team.name} has {_text_of(need)} for one task"
            if self.places.place(((need, count),), team.where, self.places.total) is None:
                tasks = counted(count, "task")
                return (
                    f"the machines of team {team.name} together do not hold {tasks} of "
                    f"{_text_of(need)}"
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
        """Take what a running job's scheduler says."""
        entry = self.entries[job]
        entry.progress = progress
        self._changed.add(job)
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

    # ── what the queue decides ──────────────────────────────────────────────────────────────────

    def decide(self, now: float) -> QueueDecision:
        """Return what is to be done now. The queue counts on it that it will be done."""
        for account in self.accounts.values():
            account.decay(now, self.rules.half_life)
        self._make_urgent(now)
        give_way = self._over_their_limit(now)
        admit = self._keep_promises(now)
        blocked: list[str] = []
        admit += self._admit(now, blocked)
        resize: list[Resize] = []
        if not self.rules.drained:
            for job in blocked:
                asked, smaller = self._reclaim(self.entries[job], now, is_first=job == blocked[0])
                give_way += asked
                resize += smaller
        short = {self.entries[job].job.team for job in blocked if self._is_own(self.entries[job])}
        self.short_since = {
            name: since for name, since in self.short_since.items() if name in short
        }
        if not self.rules.drained:
            resize += self._grow(now)
        return QueueDecision(tuple(give_way), tuple(admit), tuple(resize))

    def take_changed(self) -> set[str]:
        """Return the jobs whose records are not as they were at the last call, ended ones too."""
        changed, self._changed = self._changed, set()
        return changed

    def forget(self, job: str) -> None:
        """Forget a job that has ended and that no other one runs after."""
        if self.entries[job].state.ended and job not in self._after:
            del self.entries[job]

    def why(self, job: str) -> Waiting:
        """Return why a job does not run; of one that runs, why it does."""
        entry = self.entries[job]
        team = self.accounts[entry.job.team].team
        if entry.state is not JobState.WAITING:
            return Waiting(entry.state.value, entry.why)
        if entry.held:
            return Waiting("held", "it is held until it is released")
        if self._waits_for(entry):
            return Waiting("after", f"it runs after {entry.job.after}")
        if self.rules.drained:
            return Waiting("drained", "the queue is drained: nothing new starts")
        if team.frozen:
            return Waiting("frozen", f"team {team.name} is frozen: nothing new of it starts")
        key = (entry.job.gang, limit_class(entry.job.time_limit))
        kind = self._waits.get((team.name, key), "turn")
        return Waiting(kind, self._why_waiting(kind, entry, team))

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

    # ── admission ───────────────────────────────────────────────────────────────────────────────

    def _admit(self, now: float, blocked: list[str]) -> list[Admission]:
        """Admit what has room, and note in ``blocked`` who may ask others to give way.

        These are the first job of each team that has no room, and the first of those whose place
        would be the team's own.
        """
        seen: set[str] = set()
        own: set[str] = set()
        admitted: list[Admission] = []
        self._waits.clear()
        self._reservation = None
        if self.rules.drained:
            return admitted
        heads = {
            name: line.heads()
            for name, line in self._lines.items()
            if len(line) and not self.accounts[name].team.frozen
        }
        order = [(*self._turn(name, now), name) for name in heads]
        heapq.heapify(order)
        found = _Found()
        while order:
            *_, name = heapq.heappop(order)
            team_heads, line = heads[name], self._lines[name]
            if not team_heads:
                continue
            _, job, key = heapq.heappop(team_heads)
            entry, team = self.entries[job], self.accounts[name].team
            placement = self._room_for(entry, team, key, now, found)
            if not isinstance(placement, str):
                admitted.append(self._start(entry, placement, now))
                following = line.first(key)
                if following is not None:
                    heapq.heappush(team_heads, (*following, key))
            else:
                self._waits[name, key] = placement
                if placement != "limit":
                    if not seen:
                        if entry.first_since is None:
                            entry.first_since = now
                            self._changed.add(job)
                        self._reserve(entry, team, now)
                    is_own = name not in own and self._is_own(entry)
                    if name not in seen or is_own:
                        blocked.append(job)
                    seen.add(name)
                    if is_own:
                        own.add(name)
            heapq.heappush(order, (*self._turn(name, now), name))
        return admitted

    def _turn(self, team: str, now: float) -> tuple[bool, float]:
        """Return when a team is next: first one that is to have back what is its own by now."""
        since = self.short_since.get(team)
        overdue = since is not None and now - since >= self.rules.reclaim_after
        return not overdue, self.accounts[team].order

    def _room_for(
        self, entry: Entry, team: Team, key: BucketKey, now: float, found: _Found
    ) -> Placement | str:
        """Return the place of the first job of a bucket, or the kind of its waiting."""
        gang, limit = key
        wanted = (team.where, gang)
        if team.limit < 1.0:
            after = self.accounts[team.name].charged + amount_of_gang(gang)
            if share_of(after, self._capacity) > team.limit + 1e-9:
                return "limit"
        if wanted in found.nowhere:
            return "room"
        reserved = self._reservation
        if reserved is not None:
            longest = longest_of_class(limit)
            if limit < 0:
                longest = self.run_times[team.name].rest(entry.ran(now)).high
            if now + longest - entry.ran_before > reserved.at:
                if wanted in found.reserved:
                    return "reserved"
                free = np.minimum(self.places.free, reserved.late_free)
                late = self.places.place(gang, team.where, free)
                if late is None:
                    found.reserved.add(wanted)
                    return "reserved"
                self.places.change(late, reserved.late_free, -1)
                return late
        placement = self.places.place(gang, team.where, self.places.free)
        if placement is None:
            found.nowhere.add(wanted)
            return "room"
        return placement

    def _why_waiting(self, kind: str, entry: Entry, team: Team) -> str:
        """Return the sentence of a kind of waiting, by what is free now."""
        if kind == "limit":
            share = self.accounts[team.name].share
            return (
                f"team {team.name} has {100 * share:.0f} % of the cluster, and its limit is "
                f"{100 * team.limit:.0f} %"
            )
        if kind == "reserved" and self._reservation is not None:
            first = self._reservation.job
            return f"the room that is free is kept for {first}, which is first in the line"
        if kind == "turn":
            return "it is looked at with the next decision"
        return self._shortage(entry.job.gang, team)

    def _reserve(self, entry: Entry, team: Team, now: float) -> None:
        """Keep for a job what it needs, from the time when it is likely to be free."""
        gang = entry.job.gang
        while self._ends and self._ends[0][0] <= now:
            overdue = self.entries[self._ends[0][1]]
            self._expect(overdue, now)
            if overdue.likely_end is not None and overdue.likely_end <= now:
                self._expect_at(overdue, now + 1.0)
        free = self.places.free
        done, step, ends = 0, 16, self._ends
        while done < len(ends):
            some = ends[done : done + step]
            then = free.copy()
            self._release(some, then)
            placement = self.places.place(gang, team.where, then)
            if placement is None:
                free, done, step = then, done + step, step * 2
                continue
            if len(some) > 1:
                # It is one of these: look closer.
                step = max(1, len(some) // 2)
                half = free.copy()
                self._release(some[:step], half)
                if self.places.place(gang, team.where, half) is None:
                    free, done, step = half, done + step, len(some) - step
                continue
            self.places.change(placement, then, -1)
            self._reservation = _Reservation(entry.job.id, some[0][0], then)
            return

    def _release(self, ends: Iterable[tuple[float, str]], free: Amounts) -> None:
        """Add to ``free`` what jobs have that end."""
        held = [holding for _, job in ends for holding in self.entries[job].holdings]
        if held:
            columns = np.concatenate([holding.columns for holding in held])
            amounts = np.concatenate([holding.amounts for holding in held], axis=1)
            for row in range(3):
                np.add.at(free[row], columns, amounts[row])

    def _start(self, entry: Entry, placement: Placement, now: float) -> Admission:
        """Admit a job to a place, which it takes."""
        self._lines[entry.job.team].remove(entry.job.id)
        account = self.accounts[entry.job.team]
        entry.holdings = [self._take(entry, placement, now, now)]
        entry.slots_wanted = 1
        return self._begin(
            entry,
            now,
            f"team {entry.job.team} has {100 * account.share:.0f} % with it, and there is room",
        )

    def _begin(self, entry: Entry, now: float, why: str) -> Admission:
        """Let a job that has its place run."""
        entry.state, entry.began_at, entry.why = JobState.RUNNING, now, why
        self._changed.add(entry.job.id)
        entry.progress = entry.first_since = None
        if entry.first_began_at is None:
            entry.first_began_at = now
        self._expect(entry, now)
        self._watch(entry)
        return Admission(entry.job.id, entry.holdings[0].placement, why)

    def _watch(self, entry: Entry) -> None:
        """Have a running job among those that grow, and those whose time may be over."""
        job = entry.job
        if job.slots > 1:
            self._elastic[job.id] = None
        if job.time_limit is not None and entry.began_at is not None:
            over_at = entry.began_at + job.time_limit - entry.ran_before
            heapq.heappush(self._limits, (over_at, job.id))

    def _keep_promises(self, now: float) -> list[Admission]:
        """Admit promised jobs whose places are empty."""
        admitted = []
        for job in list(self._promised):
            entry = self.entries[job]
            if not entry.awaits:
                del self._promised[job]
                admitted.append(self._begin(entry, now, entry.why))
        return admitted

    # ── giving way ──────────────────────────────────────────────────────────────────────────────

    def _is_own(self, entry: Entry) -> bool:
        """Return whether the place of a waiting job would be within what its team is guaranteed."""
        account = self.accounts[entry.job.team]
        guarantee = account.team.guarantee + 1e-9
        if account.share > guarantee:
            return False
        charge = account.charged + amount_of_gang(entry.job.gang)
        return share_of(charge, self._capacity) <= guarantee

    def _reclaim(
        self, entry: Entry, now: float, *, is_first: bool
    ) -> tuple[list[GiveWay], list[Resize]]:
        """Let others give way to a job of a team that waits for what is its own, or to the first.

        One that was the first in the line, and is behind others by now, has no such right.
        Nothing is asked for a job for which others gave way in the same decision.
        """
        name = entry.job.team
        if entry.state is not JobState.WAITING:
            return [], []
        account = self.accounts[name]
        charge = account.charged + amount_of_gang(entry.job.gang)
        own = self._is_own(entry)
        if own:
            own = now - self.short_since.setdefault(name, now) >= self.rules.reclaim_after
        first = is_first and (
            entry.first_since is not None and now - entry.first_since >= self.rules.patience
        )
        mates = self._on_hosts[name].values()
        lower = any(mate.job.priority < entry.job.priority for mate in mates)
        looked_at = self._looked_at.get(entry.job.id)
        if not (own or first or lower) or (
            looked_at is not None and now - looked_at < self.rules.grace
        ):
            return [], []
        candidates = [
            candidate
            for other in (self.running() if own or first else mates)
            if self._may_give_way(other, entry, now, own=own, first=first)
            for candidate in self._candidates(other, now)
        ]
        if not candidates:
            return [], []
        self._looked_at[entry.job.id] = now
        excluded: set[tuple[str, int]] = set()
        for _ in range(_CHOICES):
            found = choose(
                entry.job.gang,
                account.team.where,
                [candidate for candidate in candidates if candidate.key not in excluded],
                self.places,
            )
            if found is None:
                return [], []
            going, placement = found
            share = share_of(charge, self._capacity)
            too_many = None if first else self._takes_too_much(going, name, share)
            if too_many is None:
                self.short_since.pop(name, None)
                return self._promise(entry, going, placement, now)
            excluded.add(too_many)
        return [], []

    def _may_give_way(
        self, other: Entry, entry: Entry, now: float, *, own: bool, first: bool
    ) -> bool:
        """Return whether a running job may give way to a waiting one."""
        if other.state is not JobState.RUNNING or other.began_at is None:
            return False
        if other.slots_wanted < len(other.holdings):
            # It is giving slots back already.
            return False
        if other.job.team == entry.job.team:
            may = other.job.priority < entry.job.priority or (
                first and other.job.priority == entry.job.priority
            )
        else:
            account = self.accounts[other.job.team]
            may = first or (own and account.share > account.team.guarantee + 1e-9)
        if not may:
            return False
        if now - other.began_at < self.rules.least_run:
            return False
        if other.gave_way_at is not None and (
            now - other.gave_way_at < self.rules.between_giving_way
        ):
            return False
        # One that ends by itself in that time need not be asked.
        return other.likely_end is None or other.likely_end - now > self.rules.grace

    def _candidates(self, other: Entry, now: float) -> list[Candidate]:
        """Return the gangs of a job that may go: slots beyond the first, or the job itself."""
        slots = list(enumerate(other.holdings))
        if len(slots) > 1:
            slots = slots[1:]
        progress, found = other.progress, []
        for slot, holding in slots:
            ran = now - holding.since
            if progress is None:
                lost = ran
            elif progress.can_save:
                lost = 0.0
            else:
                unsaved = progress.unsaved_seconds
                lost = ran if unsaved is None else min(ran, unsaved + now - progress.at)
            work = (lost + _RESTART_SECONDS) * share_of(holding.charge, self._capacity)
            found.append(Candidate(other.job.id, slot, holding.placement, other.job.priority, work))
        return found

    def _takes_too_much(
        self, going: Collection[Candidate], team: str, share: float
    ) -> tuple[str, int] | None:
        """Return the largest of those that would take their team below what is its own, or None.

        A team that is still further ahead than the one that it gives way to may go below.
        """
        by_team: dict[str, list[tuple[float, tuple[str, int]]]] = {}
        for candidate in going:
            other = self.entries[candidate.job]
            size = share_of(other.holdings[candidate.slot].charge, self._capacity)
            by_team.setdefault(other.job.team, []).append((size, candidate.key))
        ahead = share / max(self.accounts[team].team.guarantee, 1e-9)
        for other_team, sizes in by_team.items():
            if other_team == team:
                continue
            account = self.accounts[other_team]
            guarantee = account.team.guarantee
            left = account.share - sum(size for size, _ in sizes)
            if left < guarantee - 1e-9 and left / guarantee < ahead:
                return max(sizes)[1]
        return None

    def _promise(
        self,
        entry: Entry,
        going: Collection[Candidate],
        placement: Placement,
        now: float,
    ) -> tuple[list[GiveWay], list[Resize]]:
        """Ask some to give way, and keep the place for the job that they give way to."""
        give_way: list[GiveWay] = []
        resize: list[Resize] = []
        job, team = entry.job.id, entry.job.team
        why = f"{job} of team {team} has waited for what it is due"
        if all(self.entries[candidate.job].job.team == team for candidate in going):
            why = f"{job} of the same team has a higher priority"
        slots: dict[str, list[int]] = {}
        for candidate in going:
            slots.setdefault(candidate.job, []).append(candidate.slot)
        for other_job, gone in slots.items():
            other = self.entries[other_job]
            self._changed.add(other_job)
            if gone == [0] and len(other.holdings) == 1:
                other.state, other.why = JobState.GIVING_WAY, why
                give_way.append(GiveWay(other_job, job, why))
                entry.awaits[other_job] = 0
                continue
            # Slots are alike: those that stay move to the front, and the last ones go.
            leave = [other.holdings[slot] for slot in gone]
            other.holdings = [held for held in other.holdings if held not in leave] + leave
            other.slots_wanted = len(other.holdings) - len(gone)
            resize.append(Resize(other_job, other.slots_wanted, why))
            entry.awaits[other_job] = other.slots_wanted
        self._lines[team].remove(job)
        entry.state = JobState.PROMISED
        names = ", ".join(sorted(slots))
        entry.why = f"{names} gave way to it"
        entry.holdings = [self._take(entry, placement, now, now)]
        entry.slots_wanted = 1
        self._promised[job] = None
        return give_way, resize

    def _left(self, job: str, slots: int) -> None:
        """Note for promised jobs that a job has left hosts, or has so many slots."""
        for promised in self._promised:
            awaits = self.entries[promised].awaits
            if job in awaits and slots <= awaits[job]:
                del awaits[job]
                self._changed.add(promised)

    def _over_their_limit(self, now: float) -> list[GiveWay]:
        """Return the jobs whose time is over; the service ends them."""
        over = []
        while self._limits and self._limits[0][0] <= now:
            _, job = heapq.heappop(self._limits)
            entry = self.entries.get(job)
            if entry is None or entry.state is not JobState.RUNNING:
                continue
            limit = entry.job.time_limit
            if limit is not None and entry.ran(now) >= limit - 1e-6:
                self._changed.add(job)
                entry.why = f"its time limit of {_span(limit)} is over"
                over.append(GiveWay(job, None, entry.why))
        return over

    # ── sweeps and batches ──────────────────────────────────────────────────────────────────────

    def _grow(self, now: float) -> list[Resize]:
        """Let sweeps and batches have what no waiting job can use, a slot each by turns."""
        grown: dict[str, int] = {}
        open_jobs = [
            job
            for job in self._elastic
            if self.entries[job].state is JobState.RUNNING
            and self.entries[job].slots_wanted == len(self.entries[job].holdings)
            and not self.accounts[self.entries[job].job.team].team.frozen
        ]
        while open_jobs:
            open_jobs.sort(key=lambda job: self.accounts[self.entries[job].job.team].order)
            still = []
            for job in open_jobs:
                entry = self.entries[job]
                account = self.accounts[entry.job.team]
                if len(entry.holdings) >= entry.job.slots:
                    continue
                after = account.charged + amount_of_gang(entry.job.gang)
                if share_of(after, self._capacity) > account.team.limit + 1e-9:
                    continue
                free = self.places.free
                if self._reservation is not None:
                    free = np.minimum(free, self._reservation.late_free)
                placement = self.places.place(entry.job.gang, account.team.where, free)
                if placement is None:
                    continue
                if self._reservation is not None:
                    self.places.change(placement, self._reservation.late_free, -1)
                entry.holdings.append(self._take(entry, placement, now, now))
                entry.slots_wanted = grown[job] = len(entry.holdings)
                still.append(job)
            open_jobs = still
        why = "there is room that no other job can use"
        return [Resize(job, slots, why) for job, slots in grown.items()]

    # ── after a restart ─────────────────────────────────────────────────────────────────────────

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

    # ── keeping the books ───────────────────────────────────────────────────────────────────────

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

    def _shortage(self, gang: GangNeed, team: Team) -> str:
        """Say which task of a gang has no room now, and what the best host has."""
        free = np.where(self.places.allowed(team.where), self.places.free, 0)
        for need, _ in gang:
            wanted = amount_of(need)
            fits = self.places.allowed(team.where) & self.places.allowed(need.where)
            fits = fits & (self.places.free >= wanted[:, None]).all(axis=0)
            if fits.any():
                continue
            row, name = (2, "GPUs") if need.gpu_milli else (0, "CPUs")
            best = max(int(free[row].max(initial=0)), 0) / 1000
            return (
                f"a task needs {_text_of(need)}, and no machine has that free: the most {name} "
                f"free on one are {best:g}"
            )
        return "there is room for some of its tasks, not for all of them at once"


def _text_of(need: TaskNeed) -> str:
    """Return a need for people."""
    parts = [counted(need.cpu_milli / 1000, "CPU"), f"{need.mem_mib} MiB"]
    if need.gpu_milli:
        parts.append(counted(need.gpu_milli / 1000, "GPU"))
    parts.extend(f"{name} {'|'.join(values)}" for name, values in need.where)
    return ", ".join(parts)


def _span(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"
