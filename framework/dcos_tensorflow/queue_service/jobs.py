"""The jobs of a queue: their standing, their submissions, and the one commit that stores both.

Shared by ``service``, which answers callers, and ``bringing``, which runs the jobs; both hold
``lock`` while they ask or change. It starts no scheduler, and decides nothing: ``queue`` does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, UnitKind
from dcos_tensorflow.options import Options, OptionsError, load, service_spec
from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.forecast import Captured, capture
from dcos_tensorflow.queue.kept import restore
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import Host, JobState
from dcos_tensorflow.queue_service import records
from dcos_tensorflow.queue_service.code_store import CodeStore
from dcos_tensorflow.queue_service.estimates import Estimates
from dcos_tensorflow.queue_service.history import SAMPLE_SECONDS, QueueHistory
from dcos_tensorflow.queue_service.records import KeptQueue, Submitted
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.store import StateStore

log = logging.getLogger(__name__)

#: Jobs that have ended and are still shown.
_ENDED_KEPT = 1_000
#: How often a team's usage is stored where nothing else is; seconds.
_TEAMS_SECONDS = 60.0


class Refused(Exception):
    """A request that the queue does not grant; the text says why."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Asker:
    """Who asks: a team, or the operator of the queue."""

    #: In the words of the audit log.
    name: str
    #: Empty: the operator, who may do everything.
    team: str = ""

    def may_touch(self, team: str) -> bool:
        """Say whether a team's jobs are this asker's."""
        return self.team in ("", team)


class Request(BaseModel):
    """A job as it is asked for; the words are those of ``QueuedJob``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    options: dict[str, Any]
    folder: str = "/"
    code: str = ""
    team: str = ""
    priority: int = Field(0, ge=-1_000_000, le=1_000_000)
    time_limit: float | None = Field(None, gt=0.0)
    deadline: float | None = Field(None, gt=0.0)
    after: str | None = None
    #: It waits until it is released.
    hold: bool = False


class Jobs:
    """All jobs and their records. ``clock`` returns unix seconds."""

    def __init__(
        self,
        teams: Teams,
        kept: KeptQueue,
        *,
        store: StateStore,
        code: CodeStore,
        history: QueueHistory,
        clock: Callable[[], float],
    ) -> None:
        self.lock = threading.RLock()
        #: Set where there is something for a turn to do.
        self.wake = threading.Event()
        self.teams = teams
        self.code = code
        self.history = history
        self.clock = clock
        self.submitted = dict(kept.submitted)
        self.queue = Queue(teams.rules, teams.teams, clock())
        self.estimates = Estimates(kept.starts)
        self._store = store
        #: What was stored, until the machines are known that the jobs are on.
        self._kept: KeptQueue | None = kept
        self._specs: dict[str, ServiceSpec] = {}
        #: The code of jobs that have ended since the last commit.
        self._unneeded: set[str] = set()
        #: The shares that were noted last, and when.
        self._sampled: tuple[dict[str, float], float] = ({}, 0.0)
        self._stored_teams_at = 0.0
        #: Writes that the state store has not taken yet.
        self._unstored: list[Write] = []

    @property
    def is_starting(self) -> bool:
        """Whether the master has not told its machines yet: nothing is decided before."""
        return self._kept is not None

    def check_started(self) -> None:
        """Raise Refused while the queue is starting."""
        if self.is_starting:
            raise Refused("the queue is starting: the master has not told its machines", 503)

    def hosts_are(self, hosts: Iterable[Host], now: float) -> None:
        """Take the machines that there are; with the first ones the jobs are as they were."""
        self.queue.hosts_are(hosts, now)
        if self._kept is not None:
            kept, self._kept = self._kept, None
            self.queue = restore(self.queue, kept.jobs, kept.teams, now)
            self.queue.hosts_are(hosts, now)
            self.queue.take_changed()

    def going(self) -> list[str]:
        """Return the jobs that have not ended."""
        if self._kept is not None:
            return [one.job.id for one in self._kept.jobs if not one.state.ended]
        return [name for name, entry in self.queue.entries.items() if not entry.state.ended]

    def add(self, found: Submitted, spec: ServiceSpec) -> None:
        """Store a job that the queue has taken."""
        self.submitted[found.job] = found
        self._specs[found.job] = spec
        code = self.code.writes(found.code) if found.code else ()
        self.commit([records.submission(found), *code])

    def change(self, found: Submitted) -> None:
        """Store another state of what was submitted."""
        self.submitted[found.job] = found
        self.commit([records.submission(found)])

    def touched(self, asker: Asker, job: str) -> Entry:
        """Return a job that has not ended and is the asker's. Raises Refused."""
        self.check_started()
        entry = self.queue.entries.get(job)
        if entry is None or not asker.may_touch(entry.job.team):
            raise unknown(job)
        if entry.state.ended:
            raise Refused(f"{job} has ended: it {entry.state}", 409)
        return entry

    def admitted(self, job: str) -> Entry:
        """Return a job that is to run. Raises Refused."""
        self.check_started()
        entry = self.queue.entries.get(job)
        if entry is None or not entry.holdings or entry.state is JobState.PROMISED:
            raise Refused(f"{job} is not to run now", 404)
        return entry

    def read(self, request: Request) -> tuple[Options, ServiceSpec]:
        """Return the options, and what they become. Raises OptionsError, Refused."""
        asked = Submitted("", "", request.options, request.folder, request.code)
        if request.code and not self.code.place(request.code).is_file():
            raise Refused("the queue does not have the code of this job", 409)
        options = load(self._with_code(asked), folder=Path(request.folder))
        return options, service_spec(options)

    def spec(self, job: str) -> ServiceSpec | None:
        """Return what the options of a job become; None where this release refuses them."""
        if job not in self._specs:
            found = self.submitted[job]
            try:
                self._specs[job] = service_spec(
                    load(self._with_code(found), folder=Path(found.folder))
                )
            except OptionsError as error:
                # Another release may refuse what an older one took; its start will tell.
                log.warning("the options of %s cannot be read: %s", job, error)
                return None
        return self._specs[job]

    def section_of(self, job: str) -> str:
        """Return the section of options that says what the units of a job are; else empty."""
        spec = self.spec(job)
        if spec is None or spec.units is None:
            return ""
        return "sweep" if spec.units.kind is UnitKind.TRIAL else "batch"

    def _with_code(self, found: Submitted) -> Mapping[str, Any]:
        if not found.code:
            return found.options
        service = {**found.options.get("service", {}), "job_url": str(self.code.place(found.code))}
        return {**found.options, "service": service}

    def note(self, job: str, what: str, now: float, why: str) -> None:
        """Note in the history what happened to a job."""
        entry = self.queue.entries[job]
        hosts = sorted({name for held in entry.holdings for name, _, _ in held.placement})
        self.history.note(now, what, job=job, team=entry.job.team, why=why, machines=hosts)

    def sample(self, now: float) -> None:
        """Note the shares that have changed; as they are, too, where nothing has for long."""
        accounts = self.queue.accounts.items()
        shares = {name: round(account.share, 4) for name, account in accounts}
        before, at = self._sampled
        if shares != before or now - at >= SAMPLE_SECONDS:
            self._sampled = shares, now
            self.history.note(now, "shares", shares=shares)

    def captured(self) -> Captured:
        """Return what a forecast is made of."""
        with self.lock:
            return capture(self.queue, self.clock())

    def commit(self, more: Iterable[Write] = ()) -> None:
        """Store all that has changed, and ``more``. Raises StateError."""
        self._note_ends()
        # What could not be stored before goes first: nothing is done that no record tells.
        self._unstored += [*more, *records.changes(self.queue), *self._without_code()]
        if self._unstored or self.clock() - self._stored_teams_at >= _TEAMS_SECONDS:
            often = (*records.teams(self.queue), records.starts(self.estimates.kept()))
            self._store.commit([*self._unstored, *often])
            self._stored_teams_at = self.clock()
            self._unstored.clear()

    def _note_ends(self) -> None:
        """Note the jobs that have ended, those too that were to run after one that failed."""
        for job in self.queue.take_ended():
            entry = self.queue.entries[job]
            self.note(job, str(entry.state), entry.ended_at or 0.0, entry.why)
            self.estimates.left(job)
            self._unneeded.add(self.submitted[job].code)

    def _without_code(self) -> Iterator[Write]:
        """Drop the code of jobs that have ended, but what another one needs."""
        gone, self._unneeded = self._unneeded - {""}, set()
        if gone:
            for name in gone - {self.submitted[job].code for job in self.going()}:
                yield from self.code.drop(name)

    def forget_oldest(self) -> list[tuple[str, str]]:
        """Forget the oldest ended jobs with the next commit; return them with their teams."""
        self._note_ends()
        ended = [entry for entry in self.queue.entries.values() if entry.state.ended]
        ended.sort(key=lambda entry: entry.ended_at or 0.0)
        gone = []
        for entry in ended[: max(len(ended) - _ENDED_KEPT, 0)]:
            job = entry.job.id
            self.queue.forget(job)
            if job not in self.queue.entries:
                gone.append((job, entry.job.team))
                del self.submitted[job]
                self._specs.pop(job, None)
                self._unstored.extend(records.forgotten(job))
        return gone


def unknown(job: str) -> Refused:
    """Return the refusal of a job that is not there, or not the asker's."""
    return Refused(f"there is no job {job} in the queue", 404)
