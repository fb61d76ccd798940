"""The stored records of a queue, and the queue that a restart makes of them.

One record a job and one a team, in the core's codec. The service of the queue writes them before it
acts; a queue that is made of them decides as the one that wrote them would have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from dcos_tensorflow.queue.books import Entry, JobRecord
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import Placement
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class KeptGang:
    """Where one gang of a job is."""

    placement: Placement
    since: float


@dataclass
class KeptJob(JobRecord):
    """One job as it is stored: its record, and where it is."""

    gangs: tuple[KeptGang, ...] = ()


@dataclass(frozen=True)
class KeptTeam:
    """The usage of a team, and how long its jobs ran."""

    usage: float
    told_at: float
    short_since: float | None = None
    run_times: tuple[float, ...] = ()


def kept_job(entry: Entry) -> KeptJob:
    """Return the record of a job."""
    gangs = tuple(KeptGang(held.placement, held.since) for held in entry.holdings)
    return KeptJob(**_record(entry), gangs=gangs)


def _record(job: JobRecord) -> dict[str, Any]:
    """Return the fields of a record, none of which changes with it."""
    found = {each.name: getattr(job, each.name) for each in fields(JobRecord)}
    return {**found, "awaits": dict(job.awaits)}


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
        entry = Entry(**_record(record))
        queue.adopt(entry, [(gang.placement, gang.since) for gang in record.gangs], now)
    for name, team in of_teams.items():
        if name in queue.accounts:
            queue.accounts[name].restore(team.usage, team.told_at)
    return queue
