"""The schedulers of a queue's jobs as tasks of the cluster: a service of its own, in this process.

Each job that may run has a unit of that service (``UnitKind.SCHEDULER``), so the one core places
its scheduler, starts it elsewhere when its machine is lost, and finds it again after a restart. The
task runs ``queue attend`` (``attending``), which fetches its job from the queue. Tasks have
a file with the rights of their team (``rights``), as a secret. Decides nothing about jobs.
"""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import dcos_tensorflow
from dcos_tensorflow.capacity.reconcile import why_spent
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.cluster.addresses import reached_at
from dcos_tensorflow.core.contract import CONTRACT_COMMAND
from dcos_tensorflow.core.model.events import Event, UninstallRequested, UnitsGiven
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.model.units import Unit, UnitPage, UnitState
from dcos_tensorflow.core.spec.service_spec import (
    HOSTNAME_FIELD,
    SECRET_FIELD,
    TaskRole,
    UnitKind,
    UnitsSpec,
)
from dcos_tensorflow.deploy.embedded.cluster import EmbeddedCluster, running
from dcos_tensorflow.deploy.job.deployment import PreparedJob, SeenCode
from dcos_tensorflow.deploy.job.preparation import prepare, with_principal
from dcos_tensorflow.deploy.scheduler_settings import scheduler_config, with_guarded_api
from dcos_tensorflow.deploy.served_job import ServedJob
from dcos_tensorflow.deploy.service_login import service_account, with_clusters_authority
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.options import as_given, effective, load
from dcos_tensorflow.queue_service.rights import NO_RIGHTS, Rights
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.machines.ledger_records import ledger_of
from dcos_tensorflow.scheduler.machines.observing import rules_of_service
from dcos_tensorflow.scheduler.scheduler import Scheduler

#: What a task of a scheduler finds: its job, where the queue answers, and the file of settings.
JOB_VARIABLE = "QUEUED_JOB"
QUEUE_VARIABLE = "QUEUE_URL"
SETTINGS_FILE = "scheduler.json"


@dataclass(frozen=True)
class SchedulerPlace:
    """Where the scheduler of a job stands."""

    #: It waits for a machine, or runs.
    is_wanted: bool
    #: ``host:port`` of its API, and the agent; empty while it has no place.
    api: str = ""
    agent: str = ""
    #: Why it has failed; empty where it has not.
    why: str = ""


class ServedState(Protocol):
    """What is needed of a scheduler (``scheduler.scheduler``)."""

    def state(self) -> ServiceState | None:
        """Return the newest state; None while it does not lead."""

    def carry_out(self, event: Event) -> None:
        """Hand an event to the loop, and wait a moment until the state shows it."""


class SchedulerTasks:
    """The tasks of one queue. Thread-safe."""

    def __init__(self, scheduler: ServedState) -> None:
        self._scheduler = scheduler
        #: Where a task asks the queue; known before the first one is wanted.
        self.url = ""
        self._giving = threading.Lock()
        #: The unit of each job, and the pages that this was read from.
        self._known: tuple[Sequence[UnitPage], Mapping[str, int]] = ((), {})

    def want(self, job: str, rights: str, hostname: str = "") -> None:
        """Have a scheduler of a job started, unless one runs. Raises CliError.

        ``rights`` is the file with those of its team. While it waits it is for the machine of that
        name, empty for any.
        """
        shape = [[TaskRole.WORKER, SECRET_FIELD, rights]]
        if hostname:
            shape.append([TaskRole.WORKER, HOSTNAME_FIELD, hostname])
        payload = {"env": {JOB_VARIABLE: job, QUEUE_VARIABLE: self.url}, "shape": shape}
        with self._giving:
            state = self._state()
            number = self._number_of(job, state)
            if number is None:
                number = _free(state)
            waits = number < len(state.units) and not state.units[number].is_decided
            is_known = waits and state.units.payload(number) == payload
            if is_known or number in state.units.running:
                return
            self._scheduler.carry_out(UnitsGiven(number, (payload,)))

    def place_of(self, job: str) -> SchedulerPlace:
        """Return where the scheduler of a job stands. Raises CliError."""
        state = self._state()
        number = self._number_of(job, state)
        if number is None:
            return SchedulerPlace(False)
        unit = state.units[number]
        if unit.is_decided:
            return SchedulerPlace(False, why=unit.why if unit.state is UnitState.FAILED else "")
        for slot in state.units.running.get(number, ()):
            for record in state.gangs[slot].tasks.values():
                if record.state is TaskState.RUNNING:
                    return SchedulerPlace(True, reached_at(record), record.agent_id)
        return SchedulerPlace(True)

    def why_no_machine(self, job: str) -> str:
        """Return why no machine is bought for a job that waits; empty where nothing is known."""
        state = self._scheduler.state()
        return state.told.capacity.get(job, "") if state is not None else ""

    def machines_that_go(self, now: float) -> frozenset[str]:
        """Return the names of all bought machines, once what is left pays for no more than an end.

        Lower case; empty before.
        """
        state = self._scheduler.state()
        spec = state.spec.capacity if state is not None else None
        if state is None or spec is None:
            return frozenset()
        ledger = ledger_of(state.capacity)
        if not why_spent(ledger, now, rules_of_service(spec, state, 0.0)):
            return frozenset()
        return frozenset(name for _, machine in ledger.machines() for name in machine.names)

    def _state(self) -> ServiceState:
        state = self._scheduler.state()
        if state is None:
            raise CliError("The service of the jobs' schedulers is not ready.")
        return state

    def _number_of(self, job: str, state: ServiceState) -> int | None:
        """Return the unit of a job: one that is not decided, where there is one."""
        pages, numbers = self._known
        if state.units.pages is not pages:
            by_decided = sorted(state.units, key=lambda unit: not unit.is_decided)
            numbers = {_job_of(state, unit): unit.number for unit in by_decided}
            self._known = state.units.pages, numbers
        return numbers.get(job)


class Installed:
    """The service of the schedulers as the package manager of DC/OS asks for it."""

    def __init__(self, scheduler: Scheduler, ends: bool) -> None:
        self._scheduler = scheduler
        #: It is to be uninstalled, with the queue.
        self.ends = ends
        #: Nothing is left of it, nor of the queue.
        self.is_gone = False

    def is_removed(self, seconds: float) -> bool:
        """Have it uninstalled; say whether nothing is left of it within that time."""
        self._scheduler.submit(UninstallRequested("the queue is uninstalled"))
        return self._scheduler.wait_until(lambda state: state.removal.erased, seconds)

    @property
    def framework_id(self) -> str:
        """Return its framework's id; empty where it has none."""
        state = self._scheduler.state()
        return state.framework_id if state is not None else ""


def _job_of(state: ServiceState, unit: Unit) -> str:
    return str(state.units.payload(unit.number)["env"][JOB_VARIABLE])


def _free(state: ServiceState) -> int:
    """Return the number of a unit that has ended well, else of the next one."""
    done = (unit.number for unit in state.units if unit.state is UnitState.SUCCEEDED)
    return next(done, len(state.units))


def service_name(queue: str) -> str:
    """Return the name of the service whose tasks are the schedulers of a queue's jobs."""
    return f"{queue}-schedulers"


def served(
    teams: Teams,
    settings: Settings,
    work: WorkDirectory,
    rights: Rights,
    *,
    environ: Mapping[str, str],
    local: bool,
) -> ServedJob:
    """Return the service of the schedulers of a queue, to be entered. Raises CliError.

    ``settings`` are the queue's.
    """
    options = load(_options(teams, rights.folder, local=local))
    directory = work.service(options.service.name)
    account = service_account(options, settings, environ, local=local)
    settings = with_clusters_authority(settings, account, environ)
    prepared = prepare(options, directory, {}, local=local)
    prepared = with_principal(prepared, "" if local else settings["principal"], account)
    spec = replace(prepared.spec, units=UnitsSpec(UnitKind.SCHEDULER, max_attempts=1))
    settings = settings.without("api_port", "api_token", "api_token_file", "api_cert", "api_key")
    settings = with_guarded_api(settings, local=local)
    config = scheduler_config(settings, directory, local=local)
    allowed = replace(config.allowed, directory=rights.folder, everything=local)
    config = replace(config, service_account=account, allowed=allowed)
    if local:
        config = _cluster(work).entered_by(config)
    return ServedJob(
        PreparedJob(spec, None, SeenCode(CONTRACT_COMMAND), ()),
        config,
        directory,
        effective(options),
        local=local,
        as_given=as_given(options),
    )


def _cluster(work: WorkDirectory) -> EmbeddedCluster:
    status = running(work.local)
    if status is None:
        raise CliError(f"No embedded cluster runs in {work.local}.")
    return EmbeddedCluster.at(work.local, status, own=False)


def _options(teams: Teams, secrets: Path, *, local: bool) -> dict[str, Any]:
    """Return the options of the service: those of a user whose one worker is a scheduler."""
    wanted = teams.scheduler
    command = shlex.join(("python", "-m", "dcos_tensorflow", "queue", "attend"))
    worker: dict[str, Any] = {
        "count": 1,
        "cpus": wanted.cpus,
        "mem": wanted.mem,
        "disk": wanted.disk,
    }
    service: dict[str, Any] = {
        "name": service_name(teams.name),
        "secrets": [{"source": f"file:{secrets / NO_RIGHTS}", "file": SETTINGS_FILE}],
        "stall_seconds": 0,
        "idle_seconds": 0,
        "kill_grace_seconds": 5,
    }
    if wanted.archive:
        command = 'exec "$MESOS_SANDBOX"/dcos-tensorflow/bin/dcos-tensorflow queue attend'
        service["job_uris"] = [wanted.archive]
        service["python"] = wanted.python
    else:
        # What this process runs with lies at the same place everywhere.
        service["python"] = sys.prefix
        worker["env"] = {"PYTHONPATH": str(Path(dcos_tensorflow.__file__).parents[1])}
    if wanted.image and not local:
        service["tf_image"] = wanted.image
    if wanted.mesos_role:
        service["mesos_role"] = wanted.mesos_role
    return {
        "service": {**service, "job_cmd": command},
        "worker": worker,
        # The limits are the queue's: it starts again what has failed.
        **({"capacity": dict(teams.capacity)} if teams.capacity else {}),
        "retry": {"fruitless_limit": 10_000, "max_backoff_seconds": 10.0},
    }
