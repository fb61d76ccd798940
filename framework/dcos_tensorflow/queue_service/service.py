"""The service of a queue, and its rounds: requests and looks in, records written, jobs begun.

``turn`` is one round, as of a Kubernetes controller: it reads the present, tells the queue, has it
decide, stores the changes (``jobs``), and only then has each job brought nearer to its wanted
standing (``bringing``). Requests come from the API's threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.options import Options
from dcos_tensorflow.options.sections.storage import linked_data
from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.forecast import Forecast
from dcos_tensorflow.queue.model import Host, Interval, JobState, QueuedJob
from dcos_tensorflow.queue_service import records
from dcos_tensorflow.queue_service.bringing import Bringing
from dcos_tensorflow.queue_service.cluster_view import ClusterView
from dcos_tensorflow.queue_service.code_store import CodeStore
from dcos_tensorflow.queue_service.history import QueueHistory
from dcos_tensorflow.queue_service.job_schedulers import JobSchedulers
from dcos_tensorflow.queue_service.jobs import Asker, Jobs, Refused, Request, unknown
from dcos_tensorflow.queue_service.needs import (
    HOSTNAME,
    demand_of,
    gang_of,
    slots_of,
    with_scheduler,
)
from dcos_tensorflow.queue_service.records import KeptQueue, Submitted
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.state.store import StateStore

log = logging.getLogger(__name__)

#: Machines are bought for so many jobs at a time: the next look sees the others.
_DEMANDS = 20


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
        self._jobs = Jobs(teams, kept, store=store, code=code, history=history, clock=clock)
        self._bringing = Bringing(self._jobs, schedulers, pool)
        self._schedulers = schedulers
        self._pool = pool
        #: Names of bought machines that go.
        self._going: frozenset[str] = frozenset()
        #: Set where there is something for a turn to do.
        self.wake = self._jobs.wake

    @property
    def name(self) -> str:
        """Return what the queue is called."""
        return self._jobs.teams.name

    # ── what callers ask ────────────────────────────────────────────────────────────────────────

    def submit(self, asker: Asker, request: Request) -> str:
        """Take a job into the line and return its name. Raises Refused, OptionsError."""
        team = request.team or asker.team or self._only_team()
        if not asker.may_touch(team):
            raise Refused(f"{asker.name} may not submit jobs of team {team}", 403)
        if asker.team:
            # A team's paths are on its own machine, and this process may read more than a team may.
            request = request.model_copy(update={"folder": str(self._jobs.code.folder)})
        options, spec = self._jobs.read(request)
        if asker.team and (reaches := "; ".join(_reaches_here(options, spec, request))):
            raise Refused(f"{reaches}: a team's job brings its code, and its data lies elsewhere")
        with self._jobs.lock:
            self._jobs.check_started()
            now = self._jobs.clock()
            use = self._jobs.teams.uses.get(team)
            if use is not None and (refusal := use.refusal(spec, team)):
                raise Refused(refusal)
            known = self._jobs.submitted.get(spec.name)
            if known is not None and not self._jobs.queue.entries[spec.name].state.ended:
                raise Refused(f"{spec.name} is in the queue already", 409)
            job = QueuedJob(
                id=spec.name,
                team=team,
                gang=with_scheduler(gang_of(spec), spec, self._jobs.teams.scheduler),
                submitted_at=now,
                priority=request.priority,
                time_limit=request.time_limit,
                deadline=request.deadline,
                after=request.after,
                slots=slots_of(spec),
            )
            if refused := self._jobs.queue.submit(job, now):
                raise Refused(refused)
            found = Submitted(spec.name, asker.name, request.options, request.folder, request.code)
            if request.hold:
                self._jobs.queue.hold(spec.name)
            self._jobs.add(found, spec)
        self.wake.set()
        return spec.name

    def cancel(self, asker: Asker, job: str) -> None:
        """Take a job out of the queue; one that runs is ended first. Raises Refused."""
        with self._jobs.lock:
            entry = self._jobs.touched(asker, job)
            found = replace(self._jobs.submitted[job], cancelled_by=asker.name)
            if not entry.holdings:
                self._jobs.queue.ended(
                    job, JobState.CANCELLED, self._jobs.clock(), found.cancellation
                )
            self._jobs.change(found)
        self.wake.set()

    def hold(self, asker: Asker, job: str) -> None:
        """Let a waiting job wait until it is released. Raises Refused."""
        with self._jobs.lock:
            entry = self._jobs.touched(asker, job)
            if entry.state is not JobState.WAITING:
                raise Refused(f"{job} is {entry.state}: one that waits can be held", 409)
            self._jobs.queue.hold(job)
            self._jobs.commit()

    def release(self, asker: Asker, job: str) -> None:
        """Let a held job wait for its turn. Raises Refused."""
        with self._jobs.lock:
            self._jobs.touched(asker, job)
            self._jobs.queue.release(job, self._jobs.clock())
            self._jobs.commit()
        self.wake.set()

    def lines(self, asker: Asker) -> list[dict[str, Any]]:
        """Return the asker's jobs: those that run, the line in its order, those that ended."""
        known = self._jobs.estimates.of(self._jobs.captured)
        with self._jobs.lock:
            entries = self._jobs.queue.entries
            running = sorted(self._jobs.queue.running(), key=lambda entry: entry.number)
            line = self._jobs.queue.waiting()
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
        raise unknown(job)

    def teams(self) -> list[dict[str, Any]]:
        """Return the teams with what they are due, have and wait for. Parts of the cluster."""
        with self._jobs.lock:
            due = self._jobs.queue.shares_due()
            found = []
            for name, account in self._jobs.queue.accounts.items():
                of_team = [e for e in self._jobs.queue.entries.values() if e.job.team == name]
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
        with self._jobs.lock:
            events = self._jobs.history.since(since)
        return [one for one in events if "team" not in one or asker.may_touch(str(one["team"]))]

    def demands(self, now: float) -> list[GangDemand]:
        """Return what the first in the line need of machines that are bought.

        Teams that have machines of their own by their attributes get none of these.
        """
        with self._jobs.lock:
            if self._jobs.is_starting or not self._jobs.queue.rules.grows:
                return []
            found = []
            for entry in self._jobs.queue.short_of_room(_DEMANDS):
                job, spec = entry.job, self._jobs.spec(entry.job.id)
                if spec is not None and not self._jobs.queue.accounts[job.team].team.where:
                    waited = max(now - (entry.gave_way_at or job.submitted_at), 0.0)
                    found.append(demand_of(job.id, spec, self._jobs.teams.scheduler, waited))
            return found

    def api_of(self, asker: Asker, folder: str) -> ApiAddress:
        """Return where the scheduler of a job is asked, by its folder's name. Raises Refused."""
        with self._jobs.lock:
            found = (
                e
                for e in self._jobs.queue.entries.values()
                if records.folder_of(e.job.id) == folder
            )
            entry = next(found, None)
            if entry is None or not asker.may_touch(entry.job.team):
                raise unknown(folder)
            job, team = entry.job.id, entry.job.team
        try:
            return self._schedulers.api_of(job, team)
        except CliError as error:
            raise Refused(str(error).rstrip("."), 503) from error

    # ── what the schedulers of jobs ask ─────────────────────────────────────────────────────────

    def attended(self, job: str) -> dict[str, Any]:
        """Return what the scheduler of a job is to run. Raises Refused where it is to run none."""
        with self._jobs.lock:
            return self._told_to_run(self._jobs.admitted(job))

    def team_of(self, job: str) -> str | None:
        """Return the team of a job that has not ended; None of another one."""
        with self._jobs.lock:
            entry = self._jobs.queue.entries.get(job)
            return None if entry is None or entry.state.ended else entry.job.team

    def team_names(self) -> list[str]:
        """Return the names of all teams."""
        return [team.name for team in self._jobs.teams.teams]

    def code_of(self, job: str) -> Path:
        """Return where the code of a job lies. Raises Refused."""
        with self._jobs.lock:
            self._jobs.admitted(job)
            return self._jobs.code.place(self._jobs.submitted[job].code)

    def cannot_run(self, job: str, why: str) -> None:
        """Take that a job cannot begin as it is, and that nothing of it runs. Raises Refused."""
        # A team's scheduler says it, and may not fill the store with it.
        why = bounds.cut(why, bounds.TEXT_BYTES)
        with self._jobs.lock:
            self._jobs.admitted(job)
            self._jobs.queue.ended(job, JobState.FAILED, self._jobs.clock(), why)
            self._jobs.commit()
        self.wake.set()

    # ── the round ───────────────────────────────────────────────────────────────────────────────

    def teams_are(self, teams: Teams) -> None:
        """Take the file of teams as it is now."""
        with self._jobs.lock:
            self._jobs.teams = teams
            self._jobs.queue.rules = teams.rules
            self._jobs.queue.teams_are(teams.teams, self._jobs.clock())
        self.wake.set()

    def cluster_is(self, cluster: ClusterView) -> None:
        """Take the machines that there are, and where tasks of the queue's jobs are."""
        with self._jobs.lock:
            now = self._jobs.clock()
            self._going |= self._schedulers.machines_that_go(now)
            hosts = [
                replace(host, goes=_hostname(host).lower() in self._going) for host in cluster.hosts
            ]
            self._bringing.hostnames = {host.name: _hostname(host) for host in hosts}
            self._jobs.hosts_are(hosts, now)
            for job, tasks in cluster.tasks.items():
                self._bringing.placed(job, tasks, now)

    def services(self) -> list[str]:
        """Return the names of the services of jobs that have not ended."""
        with self._jobs.lock:
            return self._jobs.going()

    def turn(self) -> None:
        """Make one round. Raises StateError where nothing could be stored: nothing is done then."""
        with self._jobs.lock:
            if self._jobs.is_starting:
                return
            now = self._jobs.clock()
            self._bringing.take_looks(now)
            for why in self._decided(now):
                log.info("%s", why)
            self._jobs.sample(now)
            for one in self._jobs.forget_oldest():
                self._pool.submit(self._schedulers.forget, *one)
            self._jobs.commit()
            running = [(entry.job.id, entry.job.team) for entry in self._jobs.queue.running()]
        for job, team in running:
            self._bringing.attend(job, team)

    def _decided(self, now: float) -> Iterator[str]:
        """Have the queue decide; yield a sentence for each order. The records are the orders."""
        decision = self._jobs.queue.decide(now)
        for asked in decision.give_way:
            self._jobs.note(asked.job, "gives way", now, asked.why)
            yield f"{asked.job} is to end: {asked.why}"
        for admitted in decision.admit:
            self._jobs.note(admitted.job, "begins", now, admitted.why)
            self._jobs.estimates.began(admitted.job, now)
            yield f"{admitted.job} may run: {admitted.why}"
        for resized in decision.resize:
            yield f"{resized.job} has {counted(resized.slots, 'slot')}: {resized.why}"

    def is_emptied(self) -> bool:
        """Cancel all jobs that there are; say whether none is left that has not ended."""
        with self._jobs.lock:
            if self._jobs.is_starting:
                return False
            left = self._jobs.going()
            for job in left:
                if not self._jobs.submitted[job].cancelled_by:
                    self.cancel(Asker("the uninstall"), job)
            return not left and not self._bringing.is_busy

    def erase_jobs(self) -> None:
        """Erase what the jobs have stored, which have all ended."""
        with self._jobs.lock:
            ended = [(job, entry.job.team) for job, entry in self._jobs.queue.entries.items()]
        for done in [self._pool.submit(self._schedulers.forget, *one) for one in ended]:
            done.result()

    def _told_to_run(self, entry: Entry) -> dict[str, Any]:
        found = self._jobs.submitted[entry.job.id]
        use = self._jobs.teams.uses.get(entry.job.team)
        overrides = []
        if use is not None and use.mesos_role:
            overrides.append(f"service.mesos_role={use.mesos_role}")
        if section := self._jobs.section_of(entry.job.id):
            overrides.append(f"{section}.parallelism={max(entry.slots_wanted, 1)}")
        return {
            "options": dict(found.options),
            "code": found.code,
            "folder": found.folder,
            "overrides": overrides,
            # Whether a sweep or a batch goes on with what is not done.
            "again": entry.times_given_way > 0 and bool(section),
            "began_at": entry.began_at,
        }

    def _only_team(self) -> str:
        names = self.team_names()
        if len(names) == 1:
            return names[0]
        raise Refused(f"which team is it for? There are {', '.join(names)}")

    def _shown(self, entry: Entry, place: int | None, known: Forecast) -> dict[str, Any]:
        job = entry.job
        waiting = self._jobs.queue.why(job.id)
        found, trouble = self._jobs.submitted[job.id], self._bringing.trouble(job.id)
        start = None if entry.holdings else known.starts.get(job.id)
        end = known.ends.get(job.id) if entry.holdings else None
        why = trouble or waiting.why
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
            "ran_seconds": entry.ran(self._jobs.clock()),
            "time_limit": job.time_limit,
            "deadline": job.deadline,
            "after": job.after,
            "times_given_way": entry.times_given_way,
            "starts_in": _interval(start),
            "ends_in": _interval(end),
        }


def _reaches_here(options: Options, spec: ServiceSpec, request: Request) -> Iterator[str]:
    """Yield what options name of the machine that their scheduler runs on."""
    url, listing = options.service.job_url, ""
    if url and not request.code and ("://" not in url or url.startswith("file:")):
        yield f"service.job_url: {url} is a place of the queue's machine"
    for link in linked_data(options):
        if not link.source.startswith("/"):
            yield f"data: {link.source} is a place of the queue's machine"
    if isinstance(spec.workload, BatchSpec):
        listing = spec.workload.listing
    if listing and "://" not in listing:
        yield f"batch.inputs: {listing} is a place of the queue's machine"


def _hostname(host: Host) -> str:
    return host.attributes.get(HOSTNAME, "")


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
