"""The service of a queue: requests and looks in, records written, then schedulers brought along.

``turn`` is one round, as of a Kubernetes controller: it reads what is, tells the queue, has it
decide, stores what has changed, and only then brings each job nearer to where it should be. The
wanted state is in the records alone, so a round that was cut short is made good by the next one, of
this process or another. Requests come from the API's threads, looks from a pool; one lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, UnitKind
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.options import Options, OptionsError, load, service_spec
from dcos_tensorflow.options.sections.storage import linked_data
from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.forecast import Calibration, Captured, Forecast, capture, forecast
from dcos_tensorflow.queue.kept import restore
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import Host, Interval, JobState, Placement, QueuedJob, TaskNeed
from dcos_tensorflow.queue_service import records
from dcos_tensorflow.queue_service.cluster_view import ClusterView
from dcos_tensorflow.queue_service.code_store import CodeStore
from dcos_tensorflow.queue_service.history import SAMPLE_SECONDS, QueueHistory
from dcos_tensorflow.queue_service.job_schedulers import JobLook, JobSchedulers
from dcos_tensorflow.queue_service.needs import (
    HOSTNAME,
    demand_of,
    gang_of,
    need_of_task,
    slots_of,
    with_scheduler,
)
from dcos_tensorflow.queue_service.records import KeptQueue, Submitted
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.store import StateStore

log = logging.getLogger(__name__)

#: Jobs that have ended and are still shown.
_ENDED_KEPT = 1_000
#: So long the scheduler of a job that begins is for the machine that the queue has for it; seconds.
_PLACE_SECONDS = 60.0
#: Machines are bought for so many jobs at a time: the next look sees the others.
_DEMANDS = 20
#: How often a team's usage is stored where nothing else is; seconds.
_TEAMS_SECONDS = 60.0
#: So long a forecast is shown, and so many times as long as it took to make; seconds.
_FRESH_SECONDS, _PER_COST = 2.0, 20.0
#: How long after a start that failed the next one is tried, the longest one last; seconds.
_START_AGAIN = (2.0, 5.0, 15.0, 30.0)


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


@dataclass(frozen=True)
class Request:
    """A job as it is asked for; the words are those of ``QueuedJob``."""

    options: Mapping[str, Any]
    folder: str
    code: str = ""
    team: str = ""
    priority: int = 0
    time_limit: float | None = None
    deadline: float | None = None
    after: str | None = None
    #: It waits until it is released.
    hold: bool = False


class QueueService:
    """One queue, its records and its jobs' schedulers. ``clock`` returns unix seconds."""

    def __init__(
        self,
        teams: Teams,
        kept: KeptQueue,
        *,
        store: StateStore,
        schedulers: JobSchedulers,
        pool: Executor,
        code: CodeStore,
        history: QueueHistory,
        clock: Callable[[], float],
    ) -> None:
        self._lock = threading.RLock()
        self._teams = teams
        self._store = store
        self._schedulers = schedulers
        self._pool = pool
        self._code = code
        self._history = history
        #: The shares that were noted last, and when.
        #: The code of jobs that have ended since the last commit.
        self._unneeded: set[str] = set()
        self._sampled: tuple[dict[str, float], float] = ({}, 0.0)
        self._clock = clock
        self._submitted = dict(kept.submitted)
        self._kept: KeptQueue | None = kept
        self._queue = Queue(teams.rules, teams.teams, clock())
        self._cluster: ClusterView | None = None
        self._specs: dict[str, ServiceSpec] = {}
        #: What was seen of jobs since the last turn, and those that are being looked at.
        self._looks: dict[str, JobLook] = {}
        self._busy: set[str] = set()
        self._failed_starts: dict[str, _FailedStart] = {}
        #: How many slots each sweep or batch was last told to have.
        self._asked_slots: dict[str, int] = {}
        self._stored_teams_at = 0.0
        #: Writes that the state store has not taken yet.
        self._unstored: list[Write] = []
        self._estimates = _Estimates(kept.starts)
        #: Names of bought machines that go.
        self._going: frozenset[str] = frozenset()
        #: Set where there is something for a turn to do.
        self.wake = threading.Event()

    @property
    def name(self) -> str:
        """Return what the queue is called."""
        return self._teams.name

    # ── what callers ask ────────────────────────────────────────────────────────────────────────

    def submit(self, asker: Asker, request: Request) -> str:
        """Take a job into the line and return its name. Raises Refused, OptionsError."""
        team = request.team or asker.team or self._only_team()
        if not asker.may_touch(team):
            raise Refused(f"{asker.name} may not submit jobs of team {team}", 403)
        if asker.team:
            # A team's paths are on its own machine, and this process may read more than a team may.
            request = replace(request, folder=str(self._code.folder))
        options, spec = self._read(request)
        if asker.team and (reaches := "; ".join(_reaches_here(options, request))):
            raise Refused(f"{reaches}: a team's job brings its code, and its data lies elsewhere")
        with self._lock:
            if self._kept is not None:
                raise Refused("the queue is starting: the master has not told its machines", 503)
            now = self._clock()
            use = self._teams.uses.get(team)
            if use is not None and (refusal := use.refusal(spec, team)):
                raise Refused(refusal)
            known = self._submitted.get(spec.name)
            if known is not None and not self._queue.entries[spec.name].state.ended:
                raise Refused(f"{spec.name} is in the queue already", 409)
            job = QueuedJob(
                id=spec.name,
                team=team,
                gang=with_scheduler(gang_of(spec), spec, self._teams.scheduler),
                submitted_at=now,
                priority=request.priority,
                time_limit=request.time_limit,
                deadline=request.deadline,
                after=request.after,
                slots=slots_of(spec),
            )
            if refused := self._queue.submit(job, now):
                raise Refused(refused)
            found = Submitted(
                spec.name, asker.name, dict(request.options), request.folder, request.code
            )
            if request.hold:
                self._queue.hold(spec.name)
            self._submitted[spec.name] = found
            self._specs[spec.name] = spec
            code = self._code.writes(request.code) if request.code else ()
            self._commit([records.submission(found), *code])
        self.wake.set()
        return spec.name

    def cancel(self, asker: Asker, job: str) -> None:
        """Take a job out of the queue; one that runs is ended first. Raises Refused."""
        with self._lock:
            entry = self._touched(asker, job)
            found = replace(self._submitted[job], cancelled_by=asker.name)
            self._submitted[job] = found
            if not entry.holdings:
                self._queue.ended(job, JobState.CANCELLED, self._clock(), _by(found))
            self._commit([records.submission(found)])
        self.wake.set()

    def hold(self, asker: Asker, job: str) -> None:
        """Let a waiting job wait until it is released. Raises Refused."""
        with self._lock:
            entry = self._touched(asker, job)
            if entry.state is not JobState.WAITING:
                raise Refused(f"{job} is {entry.state}: one that waits can be held", 409)
            self._queue.hold(job)
            self._commit(())

    def release(self, asker: Asker, job: str) -> None:
        """Let a held job wait for its turn. Raises Refused."""
        with self._lock:
            self._touched(asker, job)
            self._queue.release(job, self._clock())
            self._commit(())
        self.wake.set()

    def lines(self, asker: Asker) -> list[dict[str, Any]]:
        """Return the asker's jobs: those that run, the line in its order, those that ended."""
        known = self._estimates.of(self._captured)
        with self._lock:
            entries = self._queue.entries
            running = sorted(self._queue.running(), key=lambda entry: entry.number)
            line = self._queue.waiting()
            places = {entry.job.id: place for place, entry in enumerate(line, 1)}
            seen = {entry.job.id for entry in (*running, *line)}
            rest = [entry for entry in entries.values() if entry.job.id not in seen]
            others = [entry for entry in rest if not entry.state.ended]
            ended = sorted(
                (entry for entry in rest if entry.state.ended),
                key=lambda entry: entry.ended_at or 0.0,
                reverse=True,
            )
            shown = [*running, *line, *others, *ended]
            return [
                self._shown(entry, places.get(entry.job.id), known)
                for entry in shown
                if asker.may_touch(entry.job.team)
            ]

    def line_of(self, asker: Asker, job: str) -> dict[str, Any]:
        """Return one job. Raises Refused."""
        for one in self.lines(asker):
            if one["job"] == job:
                return one
        raise _unknown(job)

    def teams(self) -> list[dict[str, Any]]:
        """Return the teams with what they are due, have and wait for. Parts of the cluster."""
        with self._lock:
            due = self._queue.shares_due()
            found = []
            for name, account in self._queue.accounts.items():
                of_team = [e for e in self._queue.entries.values() if e.job.team == name]
                team = account.team
                found.append(
                    {
                        "team": name,
                        "guarantee": team.guarantee,
                        "weight": team.weight,
                        "limit": team.limit,
                        "frozen": team.frozen,
                        "share": account.share,
                        "due": due.get(name, 0.0),
                        "borrowed": max(account.share - team.guarantee, 0.0),
                        "usage": account.usage,
                        "running": sum(bool(e.holdings) for e in of_team),
                        "waiting": sum(not e.holdings and not e.state.ended for e in of_team),
                    }
                )
            return found

    def history(self, asker: Asker, since: float) -> list[Mapping[str, Any]]:
        """Return what happened to the asker's jobs, and the shares of all teams."""
        with self._lock:
            events = self._history.since(since)
        return [one for one in events if "team" not in one or asker.may_touch(str(one["team"]))]

    def demands(self, now: float) -> list[GangDemand]:
        """Return what the first in the line need of machines that are bought.

        Teams that have machines of their own by their attributes get none of these.
        """
        with self._lock:
            if self._kept is not None or not self._queue.rules.grows:
                return []
            found = []
            for entry in self._queue.short_of_room(_DEMANDS):
                job, spec = entry.job, self._spec(entry.job.id)
                if spec is not None and not self._queue.accounts[job.team].team.where:
                    waited = max(now - (entry.gave_way_at or job.submitted_at), 0.0)
                    found.append(demand_of(job.id, spec, self._teams.scheduler, waited))
            return found

    def api_of(self, asker: Asker, folder: str) -> ApiAddress:
        """Return where the scheduler of a job is asked, by its folder's name. Raises Refused."""
        with self._lock:
            found = (
                e for e in self._queue.entries.values() if records.folder_of(e.job.id) == folder
            )
            entry = next(found, None)
            if entry is None or not asker.may_touch(entry.job.team):
                raise _unknown(folder)
            job, team = entry.job.id, entry.job.team
        try:
            return self._schedulers.api_of(job, team)
        except CliError as error:
            raise Refused(str(error).rstrip("."), 503) from error

    # ── what the schedulers of jobs ask ─────────────────────────────────────────────────────────

    def attended(self, job: str) -> dict[str, Any]:
        """Return what the scheduler of a job is to run. Raises Refused where it is to run none."""
        with self._lock:
            return self._told_to_run(self._admitted(job))

    def team_of(self, job: str) -> str | None:
        """Return the team of a job that has not ended; None of another one."""
        with self._lock:
            entry = self._queue.entries.get(job)
            return None if entry is None or entry.state.ended else entry.job.team

    def code_of(self, job: str) -> Path:
        """Return where the code of a job lies. Raises Refused."""
        with self._lock:
            self._admitted(job)
            return self._code.place(self._submitted[job].code)

    def cannot_run(self, job: str, why: str) -> None:
        """Take that a job cannot begin as it is, and that nothing of it runs. Raises Refused."""
        with self._lock:
            self._admitted(job)
            self._queue.ended(job, JobState.FAILED, self._clock(), why)
            self._commit(())
        self.wake.set()

    def _admitted(self, job: str) -> Entry:
        """Return a job that is to run. Raises Refused."""
        if self._kept is not None:
            raise Refused("the queue is starting: the master has not told its machines", 503)
        entry = self._queue.entries.get(job)
        if entry is None or not entry.holdings or entry.state is JobState.PROMISED:
            raise Refused(f"{job} is not to run now", 404)
        return entry

    # ── what is brought ─────────────────────────────────────────────────────────────────────────

    def teams_are(self, teams: Teams) -> None:
        """Take the file of teams as it is now."""
        with self._lock:
            self._teams = teams
            self._queue.rules = teams.rules
            self._queue.teams_are(teams.teams, self._clock())
        self.wake.set()

    def cluster_is(self, cluster: ClusterView) -> None:
        """Take the machines that there are, and where tasks of the queue's jobs are."""
        with self._lock:
            now = self._clock()
            self._going |= self._schedulers.machines_that_go(now)
            hosts = [replace(host, goes=_is_named(host, self._going)) for host in cluster.hosts]
            self._cluster = cluster = replace(cluster, hosts=tuple(hosts))
            self._queue.hosts_are(cluster.hosts, now)
            if self._kept is not None:
                kept, self._kept = self._kept, None
                self._queue = restore(self._queue, kept.jobs, kept.teams, now)
                self._queue.hosts_are(cluster.hosts, now)
                self._queue.take_changed()
            for job, tasks in cluster.tasks.items():
                self._placed(job, tasks, now)

    def services(self) -> list[str]:
        """Return the names of the services of jobs that have not ended."""
        with self._lock:
            kept = self._kept
            if kept is not None:
                return [one.job.id for one in kept.jobs if not one.state.ended]
            return [name for name, e in self._queue.entries.items() if not e.state.ended]

    def turn(self) -> None:
        """Make one round. Raises StateError where nothing could be stored: nothing is done then."""
        with self._lock:
            if self._kept is not None:
                return
            now = self._clock()
            looks, self._looks = self._looks, {}
            for job, look in looks.items():
                self._take(job, look, now)
            for why in self._decided(now):
                log.info("%s", why)
            self._sample(now)
            self._commit(self._forget(), teams_too=now - self._stored_teams_at >= _TEAMS_SECONDS)
            running = [(entry.job.id, entry.job.team) for entry in self._queue.running()]
        for job, team in running:
            self._attend(job, team)

    def is_emptied(self) -> bool:
        """Cancel all jobs that there are; say whether none is left that has not ended."""
        with self._lock:
            if self._kept is not None:
                return False
            left = [job for job, e in self._queue.entries.items() if not e.state.ended]
            for job in left:
                if not self._submitted[job].cancelled_by:
                    self.cancel(Asker("the uninstall"), job)
            return not left and not self._busy

    def erase_jobs(self) -> None:
        """Erase what the jobs have stored, which have all ended."""
        with self._lock:
            ended = [(job, entry.job.team) for job, entry in self._queue.entries.items()]
        for done in [self._pool.submit(self._schedulers.forget, *one) for one in ended]:
            done.result()

    # ── one job ─────────────────────────────────────────────────────────────────────────────────

    def _take(self, job: str, look: JobLook, now: float) -> None:
        """Tell the queue what was seen of a job."""
        entry = self._queue.entries.get(job)
        if entry is None or not entry.holdings or entry.began_at is None:
            return
        if look.progress is not None:
            self._queue.told(job, look.progress)
        if self._specs_units(job) and look.serves and look.slots <= entry.slots_wanted:
            self._queue.resized(job, entry.slots_wanted, now)
        end = look.end
        if look.serves or end is None or float(end.get("finished_at") or 0.0) < entry.began_at:
            return
        outcome, why = end.get("outcome"), str(end.get("summary") or "")
        found = self._submitted[job]
        if outcome == Outcome.SUCCEEDED:
            self._queue.ended(job, JobState.SUCCEEDED, now, why)
        elif found.cancelled_by:
            self._queue.ended(job, JobState.CANCELLED, now, _by(found))
        elif outcome != Outcome.STOPPED:
            self._queue.ended(job, JobState.FAILED, now, why)
        elif entry.state is JobState.GIVING_WAY:
            self._note(job, "gave way", now, entry.why)
            self._queue.gave_way(job, now)
            log.info("%s has given way; it waits in its place in the line", job)
        elif _is_over_its_limit(entry, now):
            self._queue.ended(job, JobState.FAILED, now, entry.why)
        else:
            self._queue.ended(job, JobState.CANCELLED, now, why)

    def _attend(self, job: str, team: str) -> None:
        """Have a job that has its place looked at, and brought to where it should be."""
        if job not in self._busy:
            self._busy.add(job)
            self._pool.submit(self._bring, job, team)

    def _bring(self, job: str, team: str) -> None:
        """Start the scheduler of a job, or ask it to end; note what is seen. On the pool."""
        try:
            look = self._schedulers.look(job, team, self._clock())
            with self._lock:
                entry = self._queue.entries.get(job)
                if entry is None or not entry.holdings or entry.state is JobState.PROMISED:
                    return
                self._looks[job] = look
                now, began = self._clock(), entry.began_at or 0.0
                ending = self._ending(entry, now)
                hostname = self._host_of_scheduler(entry, now)
                slots = entry.slots_wanted
            if look.answers:
                self._failed_starts.pop(job, None)
            ended = look.end is not None and float(look.end.get("finished_at") or 0.0) >= began
            if ended and not look.serves:
                self.wake.set()
            elif not look.serves:
                # Also one that is to end: only a scheduler can end the tasks.
                self._start(job, team, hostname)
            elif not look.answers:
                # It may wait for a machine that is gone.
                self._schedulers.start(job, team, hostname)
            elif ending and not ended:
                self._schedulers.stop(job, team, ending)
            elif not ending and self._specs_units(job) and look.slots:
                self._resize(job, team, slots)
        except Exception:
            log.exception("%s could not be attended to", job)
        finally:
            self._busy.discard(job)

    def _host_of_scheduler(self, entry: Entry, now: float) -> str:
        """Return the machine that the queue has for a job's scheduler; empty where any will do.

        That which is not to be had soon is not waited for.
        """
        if self._cluster is None or now - (entry.began_at or now) > _PLACE_SECONDS:
            return ""
        need = self._teams.scheduler.need
        (agent, *_) = (
            *(host for held in entry.holdings for host, one, _ in held.placement if one == need),
            "",
        )
        names = {host.name: host.attributes.get(HOSTNAME, "") for host in self._cluster.hosts}
        return names.get(agent, "")

    def _start(self, job: str, team: str, hostname: str) -> None:
        before = self._failed_starts.get(job)
        if before is not None and self._clock() < before.again_at:
            return
        try:
            self._schedulers.start(job, team, hostname)
        except CliError as error:
            # Its tasks may run: they are never left alone.
            times = before.times + 1 if before is not None else 1
            wait = _START_AGAIN[min(times, len(_START_AGAIN)) - 1]
            self._failed_starts[job] = _FailedStart(times, self._clock() + wait, str(error))
            log.warning("the scheduler of %s did not start (%d): %s", job, times, error)
            return
        log.info("the scheduler of %s is started", job)
        self.wake.set()

    def _resize(self, job: str, team: str, slots: int) -> None:
        if self._asked_slots.get(job) != slots:
            section = "sweep" if self._specs_units(job) is UnitKind.TRIAL else "batch"
            if self._schedulers.resize(job, team, section, slots):
                self._asked_slots[job] = slots

    def _ending(self, entry: Entry, now: float) -> str:
        """Return why a job is to end; empty where it is not."""
        found = self._submitted[entry.job.id]
        if found.cancelled_by:
            return _by(found)
        if entry.state is JobState.GIVING_WAY:
            return f"the queue: {entry.why}"
        return entry.why if _is_over_its_limit(entry, now) else ""

    def _told_to_run(self, entry: Entry) -> dict[str, Any]:
        """Return what the scheduler of a job is told to run."""
        found = self._submitted[entry.job.id]
        use = self._teams.uses.get(entry.job.team)
        overrides = []
        if use is not None and use.mesos_role:
            overrides.append(f"service.mesos_role={use.mesos_role}")
        if kind := self._specs_units(entry.job.id):
            section = "sweep" if kind is UnitKind.TRIAL else "batch"
            overrides.append(f"{section}.parallelism={max(entry.slots_wanted, 1)}")
        return {
            "options": dict(found.options),
            "code": found.code,
            "folder": found.folder,
            "overrides": overrides,
            # Whether a sweep or a batch goes on with what is not done.
            "again": entry.times_given_way > 0 and bool(kind),
            "began_at": entry.began_at,
        }

    def _with_code(self, found: Submitted) -> Mapping[str, Any]:
        if not found.code:
            return found.options
        service = {**found.options.get("service", {}), "job_url": str(self._code.place(found.code))}
        return {**found.options, "service": service}

    def _read(self, request: Request) -> tuple[Options, ServiceSpec]:
        """Return the options, and what they become. Raises OptionsError, Refused."""
        asked = Submitted("", "", request.options, request.folder, request.code)
        if request.code and not self._code.place(request.code).is_file():
            raise Refused("the queue does not have the code of this job", 409)
        options = load(self._with_code(asked), folder=Path(request.folder))
        return options, service_spec(options)

    def _specs_units(self, job: str) -> UnitKind | None:
        """Return what the units of a job are; None of a training."""
        spec = self._spec(job)
        return spec.units.kind if spec is not None and spec.units is not None else None

    def _spec(self, job: str) -> ServiceSpec | None:
        if job not in self._specs:
            found = self._submitted[job]
            try:
                self._specs[job] = service_spec(
                    load(self._with_code(found), folder=Path(found.folder))
                )
            except OptionsError as error:
                # Another release may refuse what an older one took; its start will tell.
                log.warning("the options of %s cannot be read: %s", job, error)
                return None
        return self._specs[job]

    def _placed(self, job: str, tasks: Mapping[str, str], now: float) -> None:
        """Tell the queue where the tasks of a training are, once all have their place."""
        entry = self._queue.entries.get(job)
        spec = self._spec(job) if job in self._submitted else None
        if entry is None or spec is None or spec.units is not None or len(entry.holdings) != 1:
            return
        found: dict[tuple[str, TaskNeed], int] = {}
        for task, agent in tasks.items():
            need = need_of_task(spec, task)
            if need is not None:
                found[agent, need] = found.get((agent, need), 0) + 1
        scheduler = self._teams.scheduler.need
        if agent := self._schedulers.agent_of(job):
            found[agent, scheduler] = found.get((agent, scheduler), 0) + 1
        placement: Placement = tuple((agent, need, n) for (agent, need), n in found.items())
        if sum(found.values()) == sum(count for _, count in entry.job.gang):
            known = {host.name for host in self._cluster.hosts} if self._cluster else set()
            if all(agent in known for agent, _ in found):
                self._queue.placed(job, tuple(sorted(placement, key=_by_host)), now)

    # ── the round ───────────────────────────────────────────────────────────────────────────────

    def _decided(self, now: float) -> Iterator[str]:
        """Have the queue decide; yield a sentence for each order. The records are the orders."""
        decision = self._queue.decide(now)
        for asked in decision.give_way:
            self._note(asked.job, "gives way", now, asked.why)
            yield f"{asked.job} is to end: {asked.why}"
        for admitted in decision.admit:
            self._note(admitted.job, "begins", now, admitted.why)
            self._estimates.began(admitted.job, now)
            yield f"{admitted.job} may run: {admitted.why}"
        for resized in decision.resize:
            yield f"{resized.job} has {counted(resized.slots, 'slot')}: {resized.why}"

    def _sample(self, now: float) -> None:
        """Note the shares that have changed; as they are, too, where nothing has for long."""
        accounts = self._queue.accounts.items()
        shares = {name: round(account.share, 4) for name, account in accounts}
        before, at = self._sampled
        if shares != before or now - at >= SAMPLE_SECONDS:
            self._sampled = shares, now
            self._history.note(now, "shares", shares=shares)

    def _note(self, job: str, what: str, now: float, why: str) -> None:
        entry = self._queue.entries[job]
        hosts = sorted({name for held in entry.holdings for name, _, _ in held.placement})
        self._history.note(now, what, job=job, team=entry.job.team, why=why, machines=hosts)

    def _note_ends(self) -> None:
        """Note the jobs that have ended, those too that were to run after one that failed."""
        for job in self._queue.take_ended():
            entry = self._queue.entries[job]
            self._note(job, str(entry.state), entry.ended_at or 0.0, entry.why)
            self._estimates.left(job)
            self._unneeded.add(self._submitted[job].code)

    def _commit(self, more: Iterable[Write], *, teams_too: bool = False) -> None:
        self._note_ends()
        # What could not be stored before goes first: nothing is done that no record tells.
        self._unstored += [*more, *records.changes(self._queue), *self._without_code()]
        if self._unstored or teams_too:
            often = (*records.teams(self._queue), records.starts(self._estimates.kept()))
            self._store.commit([*self._unstored, *often])
            self._stored_teams_at = self._clock()
            self._unstored.clear()

    def _without_code(self) -> Iterator[Write]:
        """Drop the code of jobs that have ended, but what another one needs."""
        gone, self._unneeded = self._unneeded - {""}, set()
        if gone:
            for name in gone - needed_code(self._submitted.values(), self._queue.entries):
                yield from self._code.drop(name)

    def _forget(self) -> list[Write]:
        """Forget the oldest of the jobs that have ended."""
        self._note_ends()
        ended = [e for e in self._queue.entries.values() if e.state.ended]
        if len(ended) <= _ENDED_KEPT:
            return []
        ended.sort(key=lambda entry: entry.ended_at or 0.0)
        gone: list[Write] = []
        for entry in ended[: len(ended) - _ENDED_KEPT]:
            job = entry.job.id
            self._queue.forget(job)
            if job not in self._queue.entries:
                self._pool.submit(self._schedulers.forget, job, entry.job.team)
                del self._submitted[job]
                self._specs.pop(job, None)
                gone.extend(records.forgotten(job))
        return gone

    def _touched(self, asker: Asker, job: str) -> Entry:
        """Return a job that has not ended and is the asker's. Raises Refused."""
        if self._kept is not None:
            raise Refused("the queue is starting: the master has not told its machines", 503)
        entry = self._queue.entries.get(job)
        if entry is None or not asker.may_touch(entry.job.team):
            raise _unknown(job)
        if entry.state.ended:
            raise Refused(f"{job} has ended: it {entry.state}", 409)
        return entry

    def _captured(self) -> Captured:
        with self._lock:
            return capture(self._queue, self._clock())

    def team_names(self) -> list[str]:
        """Return the names of all teams."""
        return [team.name for team in self._teams.teams]

    def _only_team(self) -> str:
        names = self.team_names()
        if len(names) == 1:
            return names[0]
        raise Refused(f"which team is it for? There are {', '.join(names)}")

    def _shown(self, entry: Entry, place: int | None, known: Forecast) -> dict[str, Any]:
        job = entry.job
        waiting = self._queue.why(job.id)
        found, trouble = self._submitted[job.id], self._failed_starts.get(job.id)
        start = None if entry.holdings else known.starts.get(job.id)
        end = known.ends.get(job.id) if entry.holdings else None
        why = waiting.why if trouble is None else trouble.told
        if not entry.holdings and (no_machine := self._schedulers.why_no_machine(job.id)):
            why = f"{why}; no machine is bought: {no_machine}"
        return {
            "job": job.id,
            "team": job.team,
            "author": found.author,
            "state": "held" if entry.held else str(entry.state),
            # It has a scheduler, or will at once.
            "runs": entry.began_at is not None and not entry.state.ended,
            "place": place,
            "wants": _wanted(job),
            "slots": len(entry.holdings) if job.slots > 1 else None,
            "why": why,
            "kind": waiting.kind,
            "priority": job.priority,
            "submitted_at": job.submitted_at,
            "began_at": entry.first_began_at,
            "ended_at": entry.ended_at,
            "ran_seconds": entry.ran(self._clock()),
            "time_limit": job.time_limit,
            "deadline": job.deadline,
            "after": job.after,
            "times_given_way": entry.times_given_way,
            "starts_in": _interval(start),
            "ends_in": _interval(end),
        }


@dataclass(frozen=True)
class _FailedStart:
    """A scheduler that did not start."""

    #: So often in a row.
    times: int
    again_at: float
    why: str

    @property
    def told(self) -> str:
        """Return what a person is told."""
        return f"its scheduler did not start {counted(self.times, 'time')}: {self.why}"


class _Estimates:
    """The newest forecast; it is made again when it is old, the later the longer that takes.

    What it said of a start first is held against the start, and the next ones are told by that.
    """

    def __init__(self, kept: Iterable[float]) -> None:
        #: One forecast is made at a time; a turn, which holds the queue's lock, never waits for it.
        self._making = threading.Lock()
        self._known = Forecast({}, {})
        self._good_until = 0.0
        self._lock = threading.Lock()
        self._calibration = Calibration(kept)

    def of(self, captured: Callable[[], Captured]) -> Forecast:
        """Return one that is not too old."""
        with self._making:
            began = time.monotonic()
            if began >= self._good_until:
                state = captured()
                found = forecast(state)
                with self._lock:
                    starts = self._calibration.told(found.starts, state.now)
                    self._calibration.foretold(found.starts, state.now)
                self._known = Forecast(starts, found.ends)
                took = time.monotonic() - began
                self._good_until = began + max(_FRESH_SECONDS, _PER_COST * took)
            return self._known

    def began(self, job: str, now: float) -> None:
        """Take that a job has begun."""
        with self._lock:
            self._calibration.began(job, now)

    def left(self, job: str) -> None:
        """Take that a job has ended, and may not have begun."""
        with self._lock:
            self._calibration.left(job)

    def kept(self) -> tuple[float, ...]:
        """Return what a restart of the queue has to know."""
        with self._lock:
            return self._calibration.kept()


def _reaches_here(options: Options, request: Request) -> Iterator[str]:
    """Yield what options name of the machine that their scheduler runs on."""
    url, listing = options.service.job_url, ""
    if url and not request.code and ("://" not in url or url.startswith("file:")):
        yield f"service.job_url: {url} is a place of the queue's machine"
    for link in linked_data(options):
        if not link.source.startswith("/"):
            yield f"data: {link.source} is a place of the queue's machine"
    spec = service_spec(options)
    if isinstance(spec.workload, BatchSpec):
        listing = spec.workload.listing
    if listing and "://" not in listing:
        yield f"batch.inputs: {listing} is a place of the queue's machine"


def needed_code(found: Iterable[Submitted], entries: Mapping[str, Entry]) -> set[str]:
    """Return the code of the jobs that have not ended."""
    return {one.code for one in found if not entries[one.job].state.ended} - {""}


def _is_named(host: Host, names: Collection[str]) -> bool:
    return host.attributes.get(HOSTNAME, "").lower() in names


def _unknown(job: str) -> Refused:
    return Refused(f"there is no job {job} in the queue", 404)


def _by(found: Submitted) -> str:
    return f"cancelled by {found.cancelled_by}"


def _by_host(part: tuple[str, TaskNeed, int]) -> tuple[str, int, int]:
    host, need, count = part
    return host, need.cpu_milli, count


def _is_over_its_limit(entry: Entry, now: float) -> bool:
    limit = entry.job.time_limit
    return limit is not None and entry.ran(now) >= limit - 1e-6


def _interval(found: Interval | None) -> dict[str, float] | None:
    return asdict(found) if found is not None else None


def _wanted(job: QueuedJob) -> dict[str, float]:
    """Return what a gang takes of the cluster: CPUs, MiB, GPUs."""
    return {
        "tasks": sum(count for _, count in job.gang),
        "cpus": sum(need.cpu_milli * count for need, count in job.gang) / 1000,
        "mem": sum(need.mem_mib * count for need, count in job.gang),
        "gpus": sum(need.gpu_milli * count for need, count in job.gang) / 1000,
    }
