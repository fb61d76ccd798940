"""The tasks of one gang by name and by fact: the core's index.

A step asks which tasks are down, have stopped, are to be killed, many times a second; with
thousands of tasks a step must not look at all of them. So the table works out the facts of
a task from its record, its runner's report and the roster when one of the three changes, as a set
of :class:`Fact`, and keeps the names that have a fact together.

Outside the step that makes it a table is immutable. ``core.draft`` opens a copy for one
step, puts records into that, and closes it: ten thousand updates in a step cost one copy.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from enum import Enum, auto
from typing import TypeVar

from dcos_tensorflow.core.model.report import (
    SILENT,
    Report,
    idle_since,
    is_behind,
    is_started,
    is_waiting,
    takes_workers,
    tells_done,
    tells_started,
    tells_stopped,
)
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.task import COMING_UP, TaskRecord, TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole

Key = TypeVar("Key")


class Fact(Enum):
    """What can be true of a task, by its record, its newest report and the roster alone."""

    #: Its attempt may still run.
    LIVE = auto()
    #: It has ended for good.
    ENDED = auto()
    FINISHED = auto()
    UNREACHABLE = auto()
    #: Written to the store; Mesos has not spoken of it yet.
    LAUNCHING = auto()
    #: Launched and not running yet.
    COMING_UP = auto()
    #: It has a container in which its process can be started again.
    CONTAINED = auto()
    #: It ended in any way but well, cannot be reached, or its process has failed.
    UNWELL = auto()
    #: Its process is wanted stopped.
    HELD = auto()
    #: Its runner has said that its process is stopped, as ordered.
    STOPPED = auto()
    #: The wanted start runs, or is done.
    STARTED = auto()
    #: Its process has done its unit of work, and its container waits for the next one.
    DONE = auto()
    #: Its runner itself has said so.
    TELLS_STARTED = auto()
    #: Its runner has said that its process waits for peers to listen.
    WAITS = auto()
    #: Its runner has said that its process takes other workers while it runs.
    TAKES_WORKERS = auto()
    #: Its process runs with an older version of the cluster than it is wanted to.
    BEHIND = auto()
    #: Its runner has said that its process does nothing.
    IDLE = auto()
    #: We have asked for its end, and it may still run.
    BEING_KILLED = auto()
    #: It stands beside the gang.
    SIDECAR = auto()
    #: It is live and of the gang's roles, and no member: it leaves, or is done without.
    STRANGER = auto()
    #: It has ended, and the options do not ask for it any more.
    LEFT = auto()


def facts_of(record: TaskRecord, report: Report, roster: Roster) -> frozenset[Fact]:
    """Return everything that is true of a task."""
    found = _of_ended(record, roster) if record.terminal else _of_live(record, report)
    if record.held:
        found.append(Fact.HELD)
    if not record.role.is_in_gang:
        found.append(Fact.SIDECAR)
    elif not record.terminal and record.name not in roster:
        found.append(Fact.STRANGER)
    return frozenset(found)


def _of_ended(record: TaskRecord, roster: Roster) -> list[Fact]:
    # The container of a slot has nothing to end for before it is told to.
    well = record.state is TaskState.FINISHED and not roster.is_of_slot
    found = [Fact.ENDED, *((Fact.FINISHED, Fact.STARTED) if well else (Fact.UNWELL,))]
    return found if record.name in roster.wanted else [*found, Fact.LEFT]


def _of_live(record: TaskRecord, report: Report) -> list[Fact]:
    away = record.state is TaskState.UNREACHABLE
    known = (
        (Fact.LIVE, True),
        (Fact.UNREACHABLE, away),
        (Fact.CONTAINED, not away),
        (Fact.UNWELL, away or record.process_failed),
        (Fact.COMING_UP, record.state in COMING_UP),
        (Fact.LAUNCHING, record.state is TaskState.LAUNCHING),
        (Fact.STOPPED, tells_stopped(record, report)),
        (Fact.STARTED, is_started(record, report)),
        (Fact.DONE, not away and tells_done(record, report)),
        (Fact.TELLS_STARTED, tells_started(record, report)),
        (Fact.WAITS, not away and is_waiting(report)),
        (Fact.TAKES_WORKERS, not away and takes_workers(record, report)),
        (Fact.BEHIND, not away and is_behind(record, report)),
        (Fact.IDLE, not away and not record.held and idle_since(report) is not None),
        (Fact.BEING_KILLED, bool(record.kill_reason)),
    )
    return [fact for fact, is_so in known if is_so]


class TaskTable(Mapping[str, TaskRecord]):
    """Task name -> record, in the order of the first launches, with the facts about each."""

    __slots__ = (
        "_facts",
        "_launched",
        "_named",
        "_on_agent",
        "_opener",
        "_records",
        "_shared",
        "_since",
        "_touched",
        "roster",
    )

    def __init__(
        self,
        roster: Roster,
        records: Iterable[TaskRecord] = (),
        reports: Mapping[str, Report] | None = None,
    ) -> None:
        #: The names of the gang.
        self.roster = roster
        self._records: dict[str, TaskRecord] = {}
        self._facts: dict[str, frozenset[Fact]] = {}
        self._named: dict[Fact, set[str]] = {fact: set() for fact in Fact}
        #: Sets in ``_named`` that another table holds too: copied before they change.
        self._shared: set[Fact] = set()
        #: (role, fingerprint) -> how many live tasks were launched so.
        self._launched: dict[tuple[TaskRole, str], int] = {}
        #: Agent id -> how many live tasks it has.
        self._on_agent: dict[str, int] = {}
        #: The step that may change this table; None once it is closed.
        self._opener: object | None = None
        #: The table that this one was opened from, and the names put or dropped since.
        self._since: TaskTable | None = None
        self._touched: set[str] = set()
        known = reports or {}
        for record in records:
            self._put(record, known.get(record.task_id, SILENT))

    # Questions.

    def __getitem__(self, name: str) -> TaskRecord:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, name: object) -> bool:
        return name in self._records

    def values(self) -> ValuesView[TaskRecord]:
        """Return the records."""
        return self._records.values()

    def items(self) -> ItemsView[str, TaskRecord]:
        """Return names and records."""
        return self._records.items()

    def having(self, fact: Fact) -> set[str]:
        """Return the names of the tasks of which this is true. Not to be changed."""
        return self._named[fact]

    def has(self, name: str, fact: Fact) -> bool:
        """Say whether this is true of a task; nothing is true of one that was never launched."""
        return name in self._named[fact]

    def is_news(self, record: TaskRecord, report: Report) -> bool:
        """Say whether what a task's runner says now makes something else true of the task."""
        return self._facts.get(record.name) != facts_of(record, report, self.roster)

    def records_of(self, names: Iterable[str]) -> tuple[TaskRecord, ...]:
        """Return the records of these tasks, sidecars last, in an order that is always the same."""
        mine = {name for name in names if name in self._records}
        members = self.roster.in_order(mine)
        others = sorted(mine.difference(members))
        return tuple(self._records[name] for name in (*members, *others))

    @property
    def live(self) -> tuple[TaskRecord, ...]:
        """Return the records whose attempt may still run: all tasks are looked at."""
        named = self._named[Fact.LIVE]
        return tuple(r for n, r in self._records.items() if n in named)

    @property
    def launched_with(self) -> Mapping[tuple[TaskRole, str], int]:
        """Return (role, fingerprint) -> how many live tasks were launched so."""
        return self._launched

    def on_agent(self, agent_id: str) -> int:
        """Return how many live tasks an agent has."""
        return self._on_agent.get(agent_id, 0)

    def changed_since(self, before: TaskTable) -> Iterable[str]:
        """Return the names whose records may differ from those in an earlier table, or are gone."""
        if self is before:
            return ()
        if self._since is before:
            return sorted(self._touched)
        return dict.fromkeys((*self, *before))

    # One step's changes; ``core.draft`` alone calls these.

    def opened(self, opener: object) -> TaskTable:
        """Return a copy that ``opener`` may change until it closes it; this one if it is that."""
        if self._opener is opener:
            return self
        copy = TaskTable(self.roster)
        copy._records = dict(self._records)
        copy._facts = dict(self._facts)
        copy._named = dict(self._named)
        copy._shared = set(Fact)
        copy._launched = dict(self._launched)
        copy._on_agent = dict(self._on_agent)
        copy._opener = opener
        copy._since = self
        return copy

    def close(self, opener: object) -> None:
        """Allow no more changes of this table, and let go of the one that it was opened from."""
        if self._opener is opener:
            self._opener = None
        self._since = None
        self._touched = set()

    def put(self, opener: object, record: TaskRecord, report: Report) -> None:
        """Take a record in place of the task's earlier one, with what its runner says."""
        self._check(opener)
        self._touched.add(record.name)
        self._put(record, report)

    def drop(self, opener: object, name: str) -> None:
        """Forget a task."""
        self._check(opener)
        self._touched.add(name)
        record = self._records.pop(name, None)
        if record is not None:
            self._uncount(record)
            for fact in self._facts.pop(name):
                self._own(fact).discard(name)

    def follow(self, opener: object, roster: Roster, reports: Mapping[str, Report]) -> None:
        """Take another roster: what it says about each task is worked out anew."""
        self._check(opener)
        self.roster = roster
        for record in self._records.values():
            self._note(record, reports.get(record.task_id, SILENT))

    def _check(self, opener: object) -> None:
        if self._opener is not opener:
            raise AssertionError("a task table is changed by the step that opened it alone")

    def _put(self, record: TaskRecord, report: Report) -> None:
        before = self._records.get(record.name)
        if before is not record:
            if before is not None:
                self._uncount(before)
            self._records[record.name] = record
            if not record.terminal:
                _count(self._launched, (record.role, record.fingerprint), 1)
                _count(self._on_agent, record.agent_id, 1)
        self._note(record, report)

    def _uncount(self, record: TaskRecord) -> None:
        if not record.terminal:
            _count(self._launched, (record.role, record.fingerprint), -1)
            _count(self._on_agent, record.agent_id, -1)

    def _note(self, record: TaskRecord, report: Report) -> None:
        name = record.name
        before = self._facts.get(name, frozenset())
        after = facts_of(record, report, self.roster)
        if before == after:
            return
        self._facts[name] = after
        for fact in after - before:
            self._own(fact).add(name)
        for fact in before - after:
            self._own(fact).discard(name)

    def _own(self, fact: Fact) -> set[str]:
        if fact in self._shared:
            self._shared.discard(fact)
            self._named[fact] = set(self._named[fact])
        return self._named[fact]


def _count(counts: dict[Key, int], key: Key, change: int) -> None:
    number = counts.get(key, 0) + change
    if number:
        counts[key] = number
    else:
        del counts[key]
