"""A queue: events in; admissions, jobs that give way and reasons to wait out.

``Queue`` is the one door of this room. The service of the queue hands in events (a job came,
reported progress, ended, gave way; hosts came and went) and asks ``decide``. In this order:

1. A job whose place was promised is admitted when all that stood there have left. Jobs leave hosts
   that go, if they can publish a checkpoint; others stay as long as the host does.
2. The team that is least ahead of its share is next, and before it one that reclaims its
   guarantee; its jobs by urgency, priority and age. A gang is placed whole. The first job that has
   no room reserves it for the time when it is likely to be free; others start before it
   if they are over by then or do not touch that room.
3. A team that waits for its guarantee for longer than ``Rules.reclaim_after`` has it back:
   jobs that borrow give way to it, and so do jobs of its own of lower priority. The first of the
   line, whose turn it is, waits no longer than ``Rules.patience`` for others that stand in its way.
4. Room that no waiting job can use goes to sweeps and batches, a slot at a time.

A restart needs the records of ``kept``: the service stores them before it acts. It never starts or
stops anything itself, and reads no clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import field
from itertools import islice
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from dcos_tensorflow.queue.books import Books, Entry, text_of
from dcos_tensorflow.queue.giving_way import Candidate, choose
from dcos_tensorflow.queue.model import (
    Admission,
    Constraint,
    GangNeed,
    GiveWay,
    JobState,
    Placement,
    QueueDecision,
    Resize,
    Rules,
    Team,
    Waiting,
)
from dcos_tensorflow.queue.places import Amounts, amount_of, amount_of_gang
from dcos_tensorflow.queue.shares import share_of
from dcos_tensorflow.queue.waiting import BucketKey, limit_class, longest_of_class
from dcos_tensorflow.records import dataclass

# What a job that gives way does again beside its steps: its processes start anew.
_RESTART_SECONDS = 30.0
# How often another choice is tried when one takes a team below what is its own.
_CHOICES = 8


@dataclass
class _Reservation:
    """The room that is kept for the first job that has none."""

    job: str
    at: float
    #: What others may use who run on after ``at``. Shape (3, hosts).
    late_free: Amounts


#: The kinds of waiting that end when there are more machines.
_HELPED_BY_MACHINES = frozenset(("room", "reserved", "machines"))


#: A team's machines, and what is to stand there.
_Wanted: TypeAlias = tuple[tuple[Constraint, ...], GangNeed]


@dataclass
class _Found:
    """The gangs that have no room, since room has grown last: admissions only make it less."""

    grown: int = -1
    nowhere: set[_Wanted] = field(default_factory=set)
    #: Nor beside what one decision reserves, for jobs that run on.
    reserved: set[_Wanted] = field(default_factory=set)


class Queue(Books):
    """The jobs of all teams: those that run, and those that wait."""

    def __init__(self, rules: Rules, teams: Iterable[Team], now: float) -> None:
        super().__init__(rules, teams, now)
        self._reservation: _Reservation | None = None
        #: Of each bucket that the last decision left waiting: why, by a kind of ``Waiting``.
        self._waits: dict[tuple[str, BucketKey], str] = {}
        self._found = _Found()

    def decide(self, now: float) -> QueueDecision:
        """Return what is to be done now. The queue counts on it that it will be done."""
        for account in self.accounts.values():
            account.decay(now, self.rules.half_life)
        self._make_urgent(now)
        give_way = self._over_their_limit(now) + self._leaving_hosts()
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

    # ── admission ─────────────────────────────────────────────────────────────────────────────────

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
        grown = self.places.grown
        nowhere = self._found.nowhere if self._found.grown == grown else set()
        self._found = found = _Found(grown, nowhere)
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
                if placement == "room" and self._needs_machines(entry):
                    placement = "machines"
                self._waits[name, key] = placement
                if placement not in ("limit", "machines"):
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

    def _needs_machines(self, entry: Entry) -> bool:
        """Say whether a job waits for machines that are not there, and not for others to end."""
        return self.rules.grows and self.never_fits(entry.job) is not None

    def short_of_room(self, most: int) -> list[Entry]:
        """Return the first jobs in the line that machines would help, at most so many."""
        waits = (e for e in self.waiting() if self.why(e.job.id).kind in _HELPED_BY_MACHINES)
        return list(islice(waits, most))

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

    def _keep_promises(self, now: float) -> list[Admission]:
        """Admit promised jobs whose places are empty."""
        admitted = []
        for job in list(self._promised):
            entry = self.entries[job]
            if not entry.awaits:
                del self._promised[job]
                admitted.append(self._begin(entry, now, entry.why))
        return admitted

    # ── giving way ────────────────────────────────────────────────────────────────────────────────

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

        A team that is still further ahead than the one that it gives way to may go below. A gang
        that is larger than all that is its team's own is borrowed as a whole: it may go, else a
        team with a single gang would never give back.
        """
        left: dict[str, float] = {}
        own: dict[str, list[tuple[float, tuple[str, int]]]] = {}
        for candidate in going:
            other = self.entries[candidate.job]
            account = self.accounts[other.job.team]
            size = share_of(other.holdings[candidate.slot].charge, self._capacity)
            left[account.team.name] = left.get(account.team.name, account.share) - size
            if size <= account.team.guarantee + 1e-9:
                own.setdefault(account.team.name, []).append((size, candidate.key))
        ahead = share / max(self.accounts[team].team.guarantee, 1e-9)
        for name, sizes in own.items():
            guarantee = self.accounts[name].team.guarantee
            below = left[name] < guarantee - 1e-9
            if name != team and below and left[name] / guarantee < ahead:
                return max(sizes)[1]
        return None

    def _promise(
        self, entry: Entry, going: Collection[Candidate], placement: Placement, now: float
    ) -> tuple[list[GiveWay], list[Resize]]:
        """Ask some to give way, and keep the place for the job that they give way to."""
        give_way: list[GiveWay] = []
        resize: list[Resize] = []
        job, team = entry.job.id, entry.job.team
        why = f"{job} of team {team} has waited for its guaranteed share"
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

    def _leaving_hosts(self) -> list[GiveWay]:
        """Have trainings leave hosts that go, the least lost first; none that begins anew then."""
        going = self.places.going
        if not going:
            return []
        found = [
            (entry.progress.unsaved_seconds or 0.0, entry.number, entry)
            for entry in self.running()
            if entry.state is JobState.RUNNING
            and entry.job.slots == 1
            and entry.progress is not None
            and entry.progress.can_save
            and any(name in going for held in entry.holdings for name, _, _ in held.placement)
        ]
        leaving = [entry for *_, entry in sorted(found, key=itemgetter(0, 1))]
        why = "its machine goes, and it has a checkpoint to go on from"
        for entry in leaving:
            self._changed.add(entry.job.id)
            entry.state, entry.why = JobState.GIVING_WAY, why
        return [GiveWay(entry.job.id, None, why) for entry in leaving]

    # ── sweeps and batches ────────────────────────────────────────────────────────────────────────

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

    # ── sentences ─────────────────────────────────────────────────────────────────────────────────

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
        if kind == "machines":
            return f"machines are waited for: {self.never_fits(entry.job) or 'they are there now'}"
        if kind == "turn":
            return "it is looked at with the next decision"
        return self._shortage(entry.job.gang, team)

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
                f"a task needs {text_of(need)}, and no machine has that free: the most {name} "
                f"free on one are {best:g}"
            )
        return "there is room for some of its tasks, not for all of them at once"


def _span(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"
