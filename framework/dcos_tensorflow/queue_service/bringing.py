"""Brings one job along that has its place: its scheduler started, looked at, resized, ended.

``service`` calls ``attend`` for each in each turn; the work is done on a pool, and the next turn
tells the queue the results. The wanted state is in the records alone, so work that was cut short is
made good by the next turn, of this process or another.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Executor

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.queue.books import Entry
from dcos_tensorflow.queue.model import JobState, Placement, TaskNeed
from dcos_tensorflow.queue_service.job_schedulers import JobLook, JobSchedulers
from dcos_tensorflow.queue_service.jobs import Jobs
from dcos_tensorflow.queue_service.needs import need_of_task
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

#: So long the scheduler of a job that begins is for the machine that the queue has for it; seconds.
_PLACE_SECONDS = 60.0
#: How long after a start that failed the next one is tried, the longest one last; seconds.
_START_AGAIN = (2.0, 5.0, 15.0, 30.0)


@dataclass(frozen=True)
class _FailedStart:
    #: So often in a row.
    times: int
    again_at: float
    why: str


class Bringing:
    """Each of the jobs, one at a time; many at once on ``pool``."""

    def __init__(self, jobs: Jobs, schedulers: JobSchedulers, pool: Executor) -> None:
        self._jobs = jobs
        self._schedulers = schedulers
        self._pool = pool
        #: What was seen of jobs since the last turn, and those that are being looked at.
        self._looks: dict[str, JobLook] = {}
        self._busy: set[str] = set()
        self._failed_starts: dict[str, _FailedStart] = {}
        #: How many slots each sweep or batch was last told to have.
        self._asked_slots: dict[str, int] = {}
        #: What each machine is called, by its agent.
        self.hostnames: Mapping[str, str] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a job is being looked at."""
        return bool(self._busy)

    def trouble(self, job: str) -> str:
        """Return why the scheduler of a job has not started; empty where it has, or was not to."""
        failed = self._failed_starts.get(job)
        if failed is None:
            return ""
        return f"its scheduler did not start {counted(failed.times, 'time')}: {failed.why}"

    def take_looks(self, now: float) -> None:
        """Tell the queue what was seen of all jobs since this was last called."""
        looks, self._looks = self._looks, {}
        for job, look in looks.items():
            self._take(job, look, now)

    def placed(self, job: str, tasks: Mapping[str, str], now: float) -> None:
        """Tell the queue where the tasks of a training are, once all have their place."""
        entry = self._jobs.queue.entries.get(job)
        spec = self._jobs.spec(job) if job in self._jobs.submitted else None
        if entry is None or spec is None or spec.units is not None or len(entry.holdings) != 1:
            return
        found: dict[tuple[str, TaskNeed], int] = {}
        for task, agent in tasks.items():
            need = need_of_task(spec, task)
            if need is not None:
                found[agent, need] = found.get((agent, need), 0) + 1
        scheduler = self._jobs.teams.scheduler.need
        if agent := self._schedulers.agent_of(job):
            found[agent, scheduler] = found.get((agent, scheduler), 0) + 1
        placement: Placement = tuple((agent, need, n) for (agent, need), n in found.items())
        is_whole = sum(found.values()) == sum(count for _, count in entry.job.gang)
        if is_whole and all(agent in self.hostnames for agent, _ in found):
            self._jobs.queue.placed(job, tuple(sorted(placement, key=_by_host)), now)

    def _take(self, job: str, look: JobLook, now: float) -> None:
        """Tell the queue what was seen of a job."""
        entry = self._jobs.queue.entries.get(job)
        if entry is None or not entry.holdings or entry.began_at is None:
            return
        if look.progress is not None:
            self._jobs.queue.told(job, look.progress)
        if self._jobs.section_of(job) and look.serves and look.slots <= entry.slots_wanted:
            self._jobs.queue.resized(job, entry.slots_wanted, now)
        end = look.end
        if look.serves or end is None or float(end.get("finished_at") or 0.0) < entry.began_at:
            return
        outcome = end.get("outcome")
        why = bounds.cut(str(end.get("summary") or ""), bounds.TEXT_BYTES)
        found = self._jobs.submitted[job]
        if outcome == Outcome.SUCCEEDED:
            self._jobs.queue.ended(job, JobState.SUCCEEDED, now, why)
        elif found.cancelled_by:
            self._jobs.queue.ended(job, JobState.CANCELLED, now, found.cancellation)
        elif outcome != Outcome.STOPPED:
            self._jobs.queue.ended(job, JobState.FAILED, now, why)
        elif entry.state is JobState.GIVING_WAY:
            self._jobs.note(job, "gave way", now, entry.why)
            self._jobs.queue.gave_way(job, now)
            log.info("%s has given way; it waits in its place in the line", job)
        elif _is_over_its_limit(entry, now):
            self._jobs.queue.ended(job, JobState.FAILED, now, entry.why)
        else:
            self._jobs.queue.ended(job, JobState.CANCELLED, now, why)

    def attend(self, job: str, team: str) -> None:
        """Have a job that has its place looked at, and brought to where it should be."""
        if job not in self._busy:
            self._busy.add(job)
            self._pool.submit(self._bring, job, team)

    def _bring(self, job: str, team: str) -> None:
        """Start the scheduler of a job, or ask it to end; note what is seen. On the pool."""
        try:
            look = self._schedulers.look(job, team, self._jobs.clock())
            with self._jobs.lock:
                entry = self._jobs.queue.entries.get(job)
                if entry is None or not entry.holdings or entry.state is JobState.PROMISED:
                    return
                self._looks[job] = look
                now, began = self._jobs.clock(), entry.began_at or 0.0
                ending = self._ending(entry, now)
                hostname = self._host_of_scheduler(entry, now)
                slots = entry.slots_wanted
            if look.answers:
                self._failed_starts.pop(job, None)
            ended = look.end is not None and float(look.end.get("finished_at") or 0.0) >= began
            if ended and not look.serves:
                self._jobs.wake.set()
            elif not look.serves:
                # Also one that is to end: only a scheduler can end the tasks.
                self._start(job, team, hostname)
            elif not look.answers:
                # It may wait for a machine that is gone.
                self._schedulers.start(job, team, hostname)
            elif ending and not ended:
                self._schedulers.stop(job, team, ending)
            elif not ending and self._jobs.section_of(job) and look.slots:
                self._resize(job, team, slots)
        except Exception:
            log.exception("%s could not be attended to", job)
        finally:
            self._busy.discard(job)

    def _host_of_scheduler(self, entry: Entry, now: float) -> str:
        """Return the machine that the queue has for a job's scheduler; empty where any will do.

        That which is not to be had soon is not waited for.
        """
        if now - (entry.began_at or now) > _PLACE_SECONDS:
            return ""
        need = self._jobs.teams.scheduler.need
        (agent, *_) = (
            *(host for held in entry.holdings for host, one, _ in held.placement if one == need),
            "",
        )
        return self.hostnames.get(agent, "")

    def _start(self, job: str, team: str, hostname: str) -> None:
        before = self._failed_starts.get(job)
        if before is not None and self._jobs.clock() < before.again_at:
            return
        try:
            self._schedulers.start(job, team, hostname)
        except CliError as error:
            # Its tasks may run: they are never left alone.
            times = before.times + 1 if before is not None else 1
            wait = _START_AGAIN[min(times, len(_START_AGAIN)) - 1]
            self._failed_starts[job] = _FailedStart(times, self._jobs.clock() + wait, str(error))
            log.warning("the scheduler of %s did not start (%d): %s", job, times, error)
            return
        log.info("the scheduler of %s is started", job)
        self._jobs.wake.set()

    def _resize(self, job: str, team: str, slots: int) -> None:
        section = self._jobs.section_of(job)
        if self._asked_slots.get(job) != slots and self._schedulers.resize(
            job, team, section, slots
        ):
            self._asked_slots[job] = slots

    def _ending(self, entry: Entry, now: float) -> str:
        """Return why a job is to end; empty where it is not."""
        found = self._jobs.submitted[entry.job.id]
        if found.cancelled_by:
            return found.cancellation
        if entry.state is JobState.GIVING_WAY:
            return f"the queue: {entry.why}"
        return entry.why if _is_over_its_limit(entry, now) else ""


def _by_host(part: tuple[str, TaskNeed, int]) -> tuple[str, int, int]:
    host, need, count = part
    return host, need.cpu_milli, count


def _is_over_its_limit(entry: Entry, now: float) -> bool:
    limit = entry.job.time_limit
    return limit is not None and entry.ran(now) >= limit - 1e-6
