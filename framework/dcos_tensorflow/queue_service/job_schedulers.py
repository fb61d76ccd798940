"""The schedulers of the queue's jobs: started, looked at, asked to end their jobs.

Each is a task of the cluster (``scheduler_tasks``), so that a queue that dies ends none. Called on
threads of ``service``'s pool: each call may block.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.client.api_address import ApiAddress, registered
from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.kept.stored import forget, stored_state
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import MAIN, gang_named
from dcos_tensorflow.deploy.scheduler_settings import state_of
from dcos_tensorflow.queue.model import Interval, JobProgress
from dcos_tensorflow.queue_service.rights import Rights
from dcos_tensorflow.queue_service.scheduler_tasks import SchedulerPlace, SchedulerTasks
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

#: The error of a rest that is worked out from what is done so far.
_LOW, _HIGH = 0.8, 1.5


@dataclass(frozen=True)
class JobLook:
    """What is seen of a job's scheduler at one moment."""

    #: There is one, or there will be.
    serves: bool
    #: How its last job ended (``_stored_end``); None while that is not known.
    end: Mapping[str, Any] | None = None
    progress: JobProgress | None = None
    #: How many slots of a sweep or a batch have a task.
    slots: int = 0
    #: Whether its API did: what kept it from starting is over.
    answers: bool = False


class JobSchedulers:
    """All of them, by job and team. ``work`` is the queue's own work directory."""

    def __init__(self, tasks: SchedulerTasks, rights: Rights, work: WorkDirectory) -> None:
        self._tasks = tasks
        self._rights = rights
        self._work = work
        #: Failures that were told, by job.
        self._told: dict[str, str] = {}

    def start(self, job: str, team: str, hostname: str) -> None:
        """Have the scheduler of a job started, or of the job that its service has begun.

        ``hostname`` is the machine where the queue has a place for it; empty for any. Raises
        CliError once for each one that has failed, with why.
        """
        failed = self._tasks.place_of(job).why
        if failed and self._told.get(job) != failed:
            self._told[job] = failed
            raise CliError(failed)
        self._told.pop(job, None)
        self._tasks.want(job, self._rights.file(team), hostname)

    def agent_of(self, job: str) -> str:
        """Return the agent that the scheduler of a job runs on; empty where it has none."""
        return self._tasks.place_of(job).agent

    def why_no_machine(self, job: str) -> str:
        """Return why no machine is bought for a job that waits; empty where nothing is known."""
        return self._tasks.why_no_machine(job)

    def machines_that_go(self, now: float) -> frozenset[str]:
        """Return the names of bought machines that are to be given back: the budget is spent."""
        return self._tasks.machines_that_go(now)

    def _stored_end(self, service: str, team: str) -> Mapping[str, Any] | None:
        """Return how a job ended, by what is stored. Raises CliError."""
        url = state_of(self._rights.settings(team), self._work.service(service))
        state = stored_state(url, service)
        if state is None or state.job.phase is not JobPhase.DONE or state.job.verdict is None:
            return None
        verdict = state.job.verdict
        return {
            "outcome": verdict.outcome,
            "summary": verdict.summary,
            "exit_code": verdict.exit_code,
            "finished_at": state.job.finished_at,
        }

    def forget(self, job: str, team: str) -> None:
        """Erase what a job that has ended has stored; one that still holds something keeps it.

        In this user's own folder it stays, as ``run`` leaves it.
        """
        directory = self._work.service(job)
        url = state_of(self._rights.settings(team), directory)
        if url == directory.state_url:
            return
        try:
            if forget(url, job) is not None:
                log.warning("%s still holds something: uninstall it", job)
        except CliError as error:
            log.warning("what %s has stored stays: %s", job, error)

    def look(self, service: str, team: str, now: float) -> JobLook:
        """Return where the job of a service stands. Raises nothing for a scheduler that is away."""
        place = self._tasks.place_of(service)
        if not place.is_wanted:
            return JobLook(False, self._stored_end(service, team))
        try:
            snapshot = self._client(service, team, place).snapshot()
        except CliError:
            # It starts, or it ends.
            return JobLook(True)
        return JobLook(True, None, _progress(snapshot, now), _slots(snapshot), answers=True)

    def stop(self, service: str, team: str, why: str) -> bool:
        """Ask a scheduler to end its job; say whether it was asked."""
        try:
            self._client(service, team, self._tasks.place_of(service)).stop(why)
        except CliError as error:
            log.info("%s could not be asked to end: %s", service, error)
            return False
        return True

    def resize(self, service: str, team: str, section: str, slots: int) -> bool:
        """Let a sweep or a batch have so many slots; say whether its scheduler took it."""
        try:
            client = self._client(service, team, self._tasks.place_of(service))
            change = json.dumps({section: {"parallelism": slots}})
            client.ask("POST", "/v1/job/update?merge=true", change).expected()
        except CliError as error:
            log.info("%s does not take %d slots: %s", service, slots, error)
            return False
        return True

    def api_of(self, service: str, team: str) -> ApiAddress:
        """Return where the scheduler of a job is asked. Raises CliError while it has no place."""
        return self._client(service, team, self._tasks.place_of(service)).api

    def _client(self, service: str, team: str, place: SchedulerPlace) -> SchedulerClient:
        """Return a client of a job's scheduler. Raises SchedulerAway while it has no place."""
        if not place.api:
            raise SchedulerAway(f"The scheduler of {service} has no place now.")
        return SchedulerClient(
            service, registered(place.api, self._rights.api_token(team, service))
        )


def _progress(snapshot: Snapshot, now: float) -> JobProgress | None:
    """Return how far a job is, by its own numbers: epochs of the deciding task, or its units."""
    job = snapshot.job
    started = job.get("started_at")
    if not started:
        return None
    done, total = _amount(snapshot)
    elapsed = now - float(started)
    rest = None
    if 0 < done <= total and elapsed > 0:
        likely = elapsed / done * (total - done)
        rest = Interval(_LOW * likely, likely, _HIGH * likely)
    saved, can_save = _saved(job)
    unsaved = None if saved is None else max(now - saved, 0.0)
    return JobProgress(now, rest, unsaved, can_save)


def _amount(snapshot: Snapshot) -> tuple[float, float]:
    units = snapshot.units
    if units is not None:
        done = sum(units["counts"].get(state, 0) for state in ("succeeded", "failed", "pruned"))
        return done, float(units["total"] or 0)
    for name in snapshot.job.get("deciding_tasks", ()):
        report = (snapshot.job["tasks"].get(name) or {}).get("report") or {}
        progress = report.get("progress") or {}
        if progress.get("epochs") and progress.get("epoch"):
            return float(progress["epoch"]), float(progress["epochs"])
    return 0.0, 0.0


def _saved(job: Mapping[str, Any]) -> tuple[float | None, bool]:
    """Return when a checkpoint was last published, and whether one is published at the end."""
    published = [
        ((task.get("report") or {}).get("storage") or {}).get("checkpoints") or {}
        for task in job["tasks"].values()
    ]
    times = [float(one["published_at"]) for one in published if one.get("published_at")]
    return (max(times) if times else None), any(published)


def _slots(snapshot: Snapshot) -> int:
    names = [name for name, task in snapshot.job["tasks"].items() if task.get("state")]
    return len({gang_named(name) for name in names} - {MAIN})
