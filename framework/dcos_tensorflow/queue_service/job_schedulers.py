"""The schedulers of the queue's jobs: started, looked at, asked to end their jobs.

Each is the command ``scheduler`` in a process of its own beside the queue (``deploy.background``),
so that a queue that dies ends none. All that is known of one is in its service's folder: a queue
that starts again finds it there. Called on threads of ``service``'s pool: each call may block.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway, connect
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.stored import stored_state
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.deploy.background import in_background
from dcos_tensorflow.deploy.embedded.machine import AgentWishes
from dcos_tensorflow.deploy.job.deployment import RunRequest
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.run import prepared_alone
from dcos_tensorflow.deploy.scheduler_settings import state_of
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.queue.model import Interval, JobProgress
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

#: The error of a rest that is worked out from what is done so far.
_LOW, _HIGH = 0.8, 1.5


class JobRefused(Exception):
    """A job cannot begin as it is, and nothing of it runs; the text says why."""


@dataclass(frozen=True)
class JobLook:
    """What is seen of a job's scheduler at one moment."""

    serves: bool
    #: How its last job ended (``client.ending.document``); None while that is not known.
    end: Mapping[str, Any] | None = None
    progress: JobProgress | None = None
    #: How many slots of a sweep or a batch have a task.
    slots: int = 0


@dataclass(frozen=True)
class JobOptions:
    """The options that a job runs with."""

    given: Mapping[str, Any]
    #: Where relative paths in them start.
    folder: str
    overrides: tuple[str, ...] = ()
    #: Whether a sweep or a batch goes on with what is not done.
    again: bool = False

    @property
    def options(self) -> GivenOptions:
        """Return them as commands take them."""
        return GivenOptions(self.given, self.overrides, Path(self.folder))


class JobSchedulers:
    """All of them, in the queue's own work directory."""

    def __init__(self, work: WorkDirectory, settings: Settings) -> None:
        self._work = work
        self._settings = settings

    def start(self, job: JobOptions) -> None:
        """Start the scheduler of a job, or of the job that its service has begun.

        Raises JobRefused where its options are wrong here, and CliError for what may pass: a state
        store that is away, a full disk.
        """
        request = RunRequest(
            given=job.options,
            settings=self._settings,
            wishes=AgentWishes(),
            work=self._work,
            detach=True,
            resume=job.again,
            # A sweep that is under way may have another number of slots by now.
            update=True,
            json=True,
        )
        try:
            with prepared_alone(request) as deployed:
                in_background(deployed)
        except (UsageError, OptionsError) as error:
            if self._is_under_way(str(job.given["service"]["name"])):
                raise CliError(str(error)) from error
            raise JobRefused(str(error)) from error

    def _is_under_way(self, service: str) -> bool:
        state = self._stored(service)
        return state is not None and state.job.phase is not JobPhase.DONE

    def _stored_end(self, service: str) -> Mapping[str, Any] | None:
        """Return how a job ended by what is stored: its folder may be gone with its machine."""
        state = self._stored(service)
        if state is None or state.job.phase is not JobPhase.DONE or state.job.verdict is None:
            return None
        verdict = state.job.verdict
        return {
            "outcome": verdict.outcome,
            "summary": verdict.summary,
            "exit_code": verdict.exit_code,
            "finished_at": state.job.finished_at,
        }

    def _stored(self, service: str) -> ServiceState | None:
        """Return what the state store has of a service. Raises CliError."""
        return stored_state(state_of(self._settings, self._work.service(service)), service)

    def look(self, service: str, now: float) -> JobLook:
        """Return where the job of a service stands. Raises nothing for a scheduler that is away."""
        directory = self._work.service(service)
        registered = registry.read(directory)
        serves = registered is not None and registered.process_lives()
        if not serves:
            return JobLook(False, ending.last(directory) or self._stored_end(service))
        try:
            snapshot = connect(directory, service).snapshot()
        except (SchedulerAway, CliError):
            # It starts, or it ends.
            return JobLook(True)
        end = ending.last(directory) if snapshot.done else None
        return JobLook(True, end, _progress(snapshot, now), _slots(snapshot))

    def stop(self, service: str, why: str) -> bool:
        """Ask a scheduler to end its job; say whether it was asked."""
        try:
            connect(self._work.service(service), service).stop(why)
        except NoScheduler:
            return False
        except CliError as error:
            log.info("%s could not be asked to end: %s", service, error)
            return False
        return True

    def resize(self, service: str, section: str, slots: int) -> bool:
        """Let a sweep or a batch have so many slots; say whether its scheduler took it."""
        try:
            client = connect(self._work.service(service), service)
            change = json.dumps({section: {"parallelism": slots}})
            client.ask("POST", "/v1/job/update?merge=true", change).expected()
        except CliError as error:
            log.info("%s does not take %d slots: %s", service, slots, error)
            return False
        return True


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
    return len({"-".join(name.split("-")[:2]) for name in names if name.startswith("slot-")})
