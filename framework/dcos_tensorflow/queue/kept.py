"""The stored records of a queue, and the queue that a restart makes of them.

One record a job and one a team, in the core's codec. The service of the queue writes them before it
acts; a queue that is made of them decides as the one that wrote them would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import JobProgress, JobState, Placement, QueuedJob
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class KeptGang:
    """Where one gang of a job is."""

    placement: Placement
    since: float


@dataclass(frozen=True)
class KeptJob:
    """One job; the fields are those of ``line.Entry``."""

    job: QueuedJob
    number: int
    state: JobState
    held: bool = False
    gangs: tuple[KeptGang, ...] = ()
    began_at: float | None = None
    first_began_at: float | None = None
    ended_at: float | None = None
    ran_before: float = 0.0
    gave_way_at: float | None = None
    times_given_way: int = 0
    progress: JobProgress | None = None
    awaits: Mapping[str, int] = field(default_factory=dict)
    first_since: float | None = None
    slots_wanted: int = 0
    why: str = ""


@dataclass(frozen=True)
class KeptTeam:
    """The usage of a team, and how long its jobs ran."""

    usage: float
    told_at: float
    short_since: float | None = None
    run_times: tuple[float, ...] = ()


def kept_job(entry: Entry) -> KeptJob:
    """Return the record of a job."""
    return KeptJob(
        job=entry.job,
        number=entry.number,
        state=entry.state,
        held=entry.held,
        gangs=tuple(KeptGang(held.placement, held.since) for held in entry.holdings),
        began_at=entry.began_at,
        first_began_at=entry.first_began_at,
        ended_at=entry.ended_at,
        ran_before=entry.ran_before,
        gave_way_at=entry.gave_way_at,
        times_given_way=entry.times_given_way,
        progress=entry.progress,
        awaits=dict(entry.awaits),
        first_since=entry.first_since,
        slots_wanted=entry.slots_wanted,
        why=entry.why,
    )


def kept_teams(queue: Queue) -> dict[str, KeptTeam]:
    """Return the record of each team."""
    return {
        name: KeptTeam(*account.kept(), queue.short_since.get(name), queue.run_times[name].kept())
        for name, account in queue.accounts.items()
    }


def restore(
    queue: Queue, kept: Iterable[KeptJob], of_teams: Mapping[str, KeptTeam], now: float
) -> Queue:
    """Let a new queue, which knows its teams and hosts, be the one that was kept; return it."""
    for name, team in of_teams.items():
        if name not in queue.accounts:
            continue
        for seconds in team.run_times:
            queue.run_times[name].add(seconds)
        if team.short_since is not None:
            queue.short_since[name] = team.short_since
    for record in sorted(kept, key=lambda record: record.number):
        entry = Entry(
            record.job,
            record.number,
            state=record.state,
            held=record.held,
            began_at=record.began_at,
            first_began_at=record.first_began_at,
            ended_at=record.ended_at,
            ran_before=record.ran_before,
            gave_way_at=record.gave_way_at,
            times_given_way=record.times_given_way,
            progress=record.progress,
            awaits=dict(record.awaits),
            first_since=record.first_since,
            slots_wanted=record.slots_wanted,
            why=record.why,
        )
        queue.adopt(entry, [(gang.placement, gang.since) for gang in record.gangs], now)
    for name, team in of_teams.items():
        if name in queue.accounts:
            queue.accounts[name].restore(team.usage, team.told_at)
    return queue
