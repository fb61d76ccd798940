"""The whole state of one service, as one immutable value.

The one thread that owns the service replaces it as a whole, so every other thread (API, CLI) may
read the current one without a lock. ``core.kept`` stores a part
of it and reads that back.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.evaluation import Evaluation
from dcos_tensorflow.core.model.gang import MAIN, Gang
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.known_agents import SilentAgents
from dcos_tensorflow.core.model.machine_records import CapacityRecords
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.report import SILENT, Report
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import UnitTable
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, Uri, gang_named
from dcos_tensorflow.core.spec.volume_spec import Reservation
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.core.placement.agent_table import AgentTable


@dataclass(frozen=True)
class LaunchSettings:
    """What every launch needs and no option says."""

    #: The task runner ...
    runner: Uri = field(default_factory=lambda: Uri("task-runner.pyz", extract=False))
    #: ... and the one that brings boto3 along, for jobs that keep things in S3.
    storage_runner: Uri = field(
        default_factory=lambda: Uri("task-runner-storage.pyz", extract=False)
    )
    job: Uri | None = None
    #: Input data that lay beside the options, packed.
    data: Uri | None = None
    #: Hexadecimal; a task's token is derived from it and from its task id.
    token_key: str = ""
    #: Where all tasks are on one machine: its folder for what the runs of the job make.
    output_dir: str = ""


@dataclass(frozen=True)
class Subscription:
    """What we know of the master, and since when we could be heard. Times are unix seconds."""

    registered: bool = False
    #: When the subscription began.
    registered_at: float = 0.0
    #: When this process first looked: what runners have told, they have told since then.
    began_at: float = 0.0
    #: When we last went on after a pause of our own (a store that was away) ...
    awake_since: float = 0.0
    #: ... and when we last looked: a task that could not be heard before is not late.
    stepped_at: float = 0.0
    master: str = ""
    #: The master's own region, empty where it has none.
    master_region: str = ""
    #: Why there is no subscription, as far as that is known.
    disconnected: str = ""


class OfferUse(StrEnum):
    """What became of an offer, in one word; a metric counts them (docs/metrics.md)."""

    LAUNCHED = "launched"
    #: What it held of our reservations was given back.
    RELEASED = "released"
    #: Nothing is wanted.
    UNWANTED = "unwanted"
    #: No waiting task fits into it.
    UNFIT = "unfit"
    #: All tasks have found a place in others.
    UNNEEDED = "unneeded"
    #: Its machine is to be taken down, or given back.
    LEAVING = "leaving"
    #: It was held in vain: the gang was not complete in time.
    INCOMPLETE = "incomplete"
    #: Something keeps every task from being placed, whatever is offered.
    BLOCKED = "blocked"


@dataclass(frozen=True)
class OfferVerdict:
    """What became of one offer, for /v2/debug/offers and ``why``."""

    offer_id: str
    agent_id: str
    hostname: str
    at: float
    passed: bool
    tasks: tuple[str, ...]
    explanation: str


@dataclass(frozen=True)
class OfferLog:
    """Counts since the start, and the newest verdicts (at most 100), newest last."""

    accepted: int = 0
    rejected: int = 0
    by_use: Mapping[OfferUse, int] = field(default_factory=dict)
    verdicts: tuple[OfferVerdict, ...] = ()


@dataclass(frozen=True)
class OfferDesk:
    """The offers in hand, and what the master was told about offers."""

    offers: Mapping[str, Offer] = field(default_factory=dict)
    #: Counts the changes of ``offers``.
    version: int = 0
    #: What we believe the master believes; None when that is unknown.
    suppressed: bool | None = None
    #: When the last REVIVE was sent, in unix seconds ...
    revived_at: float = 0.0
    #: ... and how often one was wanted too early after another.
    throttled: int = 0
    log: OfferLog = OfferLog()
    #: The offers as placement last looked at them: the next table is made of this one.
    table: AgentTable | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Reconciliation:
    """Which tasks still owe an answer to explicit reconciliation, and when to ask again."""

    waiting: frozenset[str] = frozenset()
    #: Those that have failed, as an answer says (task id -> since when): the update that says how
    #: is still to come.
    unexplained: Mapping[str, float] = field(default_factory=dict)
    next_at: float = 0.0
    round: int = 0
    implicit_at: float = 0.0


@dataclass(frozen=True)
class Evidence:
    """Why a task ended, as its sandbox tells."""

    summary: str
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """How much of the cluster there is for us, as far as offers have told."""

    #: Agent id -> what it offers, with what we have there, and when that was so (unix seconds).
    by_agent: Mapping[str, tuple[Resources, float]] = field(default_factory=dict)

    @functools.cached_property
    def total(self) -> Resources:
        """Return what all of them have together."""
        return sum((resources for resources, _ in self.by_agent.values()), Resources())


@dataclass(frozen=True)
class Told:
    """What others have told us beside Mesos' updates; never kept: they can be asked again."""

    #: Task id -> the newest report of its runner.
    reports: Mapping[str, Report] = field(default_factory=dict)
    #: Task id -> how long that evaluator needs for a checkpoint.
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    #: Task id -> what was read of its end.
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    #: Task id -> until when its evidence is waited for.
    evidence_wanted: Mapping[str, float] = field(default_factory=dict)
    #: What the master says of our Mesos role's quota; None when there is none, or nothing waits.
    quota: Quota | None = None
    #: How many slots are left by a quota that is used beyond its limit; None while none is.
    slots_left: int | None = None
    #: Which machines make no offers, as the master says; none while nothing waits.
    silent: tuple[SilentAgents, ...] = ()
    #: What there is for us; kept up where a share of it counts.
    room: Room = Room()
    #: Why no machines are bought, by the gang that waits for them.
    capacity: Mapping[str, str] = field(default_factory=dict)
    #: Why the newest wish for other options was refused; empty when it was not.
    refused_configuration: str = ""

    @property
    def why_not_updated(self) -> str:
        """Return the same as a sentence that says what is in force instead; empty for nothing."""
        if not self.refused_configuration:
            return ""
        return (
            "the newest options are refused, and those before stay in force:"
            f" {self.refused_configuration}"
        )


@dataclass(frozen=True)
class Maintenance:
    """Which agents are announced to be taken down. Unix seconds."""

    #: Agent id -> when its maintenance begins ...
    starts: Mapping[str, float] = field(default_factory=dict)
    #: ... and when that was last said.
    told_at: Mapping[str, float] = field(default_factory=dict)
    #: Agent id -> when its machine is taken back, as the machine itself has said.
    noticed: Mapping[str, float] = field(default_factory=dict)
    #: Agent id -> when its machine has said that it may be taken back, where that is to be used.
    advised: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Uninstall:
    """That everything is to go."""

    #: It was asked for, which cannot be taken back.
    asked: bool = False
    #: What it could not reach.
    given_up: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removal:
    """How far the framework and its state are removed; never kept: a crash begins it again."""

    #: When TEARDOWN was sent, in unix seconds; it is not sent again before ``not_before``.
    torn_down_at: float = 0.0
    not_before: float = 0.0
    #: Everything was let go of.
    erased: bool = False


@dataclass(frozen=True)
class Stray:
    """A task of ours that should not exist. Unix seconds."""

    agent_id: str
    #: When its end was last asked for; 0 when it was not.
    killed_at: float = 0.0


@dataclass(frozen=True)
class ServiceState:
    """Everything. The first block is kept in the state store, the second is a cache."""

    spec: ServiceSpec
    instance: str
    settings: LaunchSettings = LaunchSettings()
    framework_id: str = ""
    gangs: Mapping[str, Gang] = field(default_factory=dict)
    #: Counts the jobs of the service, one after the other.
    run: int = 1
    #: Numbers the launches of any task of the service, upwards only, so that no Mesos task id is
    #: ever used twice.
    attempt: int = 0
    #: Attempts (task id -> agent id) that were unreachable when they were given up: should their
    #: agent come back, they are killed before anything else is launched.
    abandoned: Mapping[str, str] = field(default_factory=dict)
    controls: Controls = Controls()
    #: What is reserved on agents, by resource id.
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    #: Configurations of before, by id, with which tasks may have been launched.
    former_options: Mapping[str, ServiceSpec] = field(default_factory=dict)
    #: The ids of all configurations that are stored, the newest last.
    configurations: tuple[str, ...] = ()
    maintenance: Maintenance = Maintenance()
    #: Agent id -> the times of recent failures of our tasks on it.
    agent_failures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    uninstall: Uninstall = Uninstall()
    #: Nothing was stored when the service began, and it is not known yet whether Mesos knows it:
    #: until that is known it is not registered.
    seeks_former_life: bool = False
    #: Units of work, of a service that has some.
    units: UnitTable = UnitTable()
    #: The ledger of machines that are bought for the service.
    capacity: CapacityRecords = field(default_factory=dict)

    subscription: Subscription = Subscription()
    desk: OfferDesk = OfferDesk()
    reconciliation: Reconciliation = Reconciliation()
    told: Told = Told()
    removal: Removal = Removal()
    #: Agent id -> the newest inverse offer that asked us to leave it.
    inverse_offers: Mapping[str, str] = field(default_factory=dict)
    #: Task id -> a task of ours that should not exist.
    strays: Mapping[str, Stray] = field(default_factory=dict)
    #: Reservations whose offers are asked for, to give them back.
    awaited_back: frozenset[str] = frozenset()
    #: Gangs in which time alone changes nothing: a step does not look at them before they change.
    at_rest: AbstractSet[str] = frozenset()

    @classmethod
    def of_one_gang(
        cls, spec: ServiceSpec, instance: str, settings: LaunchSettings = LaunchSettings()
    ) -> ServiceState:
        """Return the state of a new service that runs one job."""
        gang = Gang(MAIN, TaskTable(Roster.of(spec)))
        if spec.units is not None:
            # Slots are made as units come; this one has no members, and its job is that of all.
            job = JobState(JobPhase.RUNNING, "no unit of work is known yet", deployed=True)
            gang = replace(gang, epoch=ClusterSpec(1), job=job)
        return cls(spec, instance, settings, gangs={MAIN: gang})

    @property
    def registered(self) -> bool:
        """Say whether there is a subscription."""
        return self.subscription.registered

    def gang_with(self, task: str) -> Gang | None:
        """Return the gang that has a task of this name; None when no gang has."""
        gang = self.gangs.get(gang_named(task))
        return gang if gang is not None and task in gang.tasks else None

    def gang_wanting(self, task: str) -> Gang | None:
        """Return the gang that has a task, or would have it once it is launched; None for none."""
        gang = self.gangs.get(gang_named(task))
        mine = gang is not None and (task in gang.tasks or task in gang.tasks.roster.wanted)
        return gang if mine else None

    def task_by_id(self, task_id: str) -> TaskRecord | None:
        """Return the record whose current attempt has this Mesos task id."""
        parts = task_id.rsplit("__", 2)
        gang = self.gang_with(parts[1]) if len(parts) == 3 else None
        record = gang.tasks[parts[1]] if gang is not None else None
        return record if record is not None and record.task_id == task_id else None

    def reservation_of(self, task: str) -> Reservation | None:
        """Return the reservation that a task runs on, or comes back to; None when it has none."""
        if not self.reservations:
            return None
        gang = self.gang_with(task)
        if gang is None:
            # It was not launched yet in this run of the service.
            adopted = (r for r in self.reservations.values() if r.task == task)
            return next((r for r in adopted if not r.given_up), None)
        found = self.reservations.get(gang.tasks[task].resource_id)
        return found if found is not None and not found.given_up else None

    @property
    def live_tasks(self) -> tuple[TaskRecord, ...]:
        """Records of all gangs whose attempt may still run."""
        return tuple(record for gang in self.gangs.values() for record in gang.tasks.live)

    # What people see of a service that runs one job: for views of it, and for no decision.

    @property
    def only_gang(self) -> Gang:
        """Return the gang of a service that has one."""
        return self.gangs[MAIN]

    @property
    def job(self) -> JobState:
        """Return the job of a service that has one."""
        return self.only_gang.job

    @property
    def epoch(self) -> ClusterSpec | None:
        """Return the newest ClusterSpec of a service that has one gang."""
        return self.only_gang.epoch

    @property
    def tasks(self) -> Mapping[str, TaskRecord]:
        """Return all tasks: where there are several gangs, put together to be shown."""
        if len(self.gangs) == 1:
            return self.only_gang.tasks
        return {name: record for g in self.gangs.values() for name, record in g.tasks.items()}

    def held_up(self, why: str) -> ServiceState:
        """Return the state to be shown while something outside the core holds every gang up."""
        gangs = {
            name: replace(gang, placing=replace(gang.placing, blocked=why))
            for name, gang in self.gangs.items()
        }
        return replace(self, gangs=gangs)

    def view(self, gang: str = MAIN) -> GangView:
        """Return one gang, with what surrounds it."""
        return GangView(self, self.gangs[gang])

    def views(self) -> Iterator[GangView]:
        """Return every gang, with what surrounds it."""
        return (GangView(self, gang) for gang in self.gangs.values())


@dataclass(frozen=True)
class GangView:
    """One gang and the service around it: what every question about a gang is asked of."""

    service: ServiceState
    gang: Gang

    @property
    def spec(self) -> ServiceSpec:
        """Return the options that the gang is to run with."""
        return self.service.spec.shaped(self.gang.job.shape)

    @property
    def controls(self) -> Controls:
        """Return what an operator holds back or forces."""
        return self.service.controls

    @property
    def job(self) -> JobState:
        """Return where the gang's job stands."""
        return self.gang.job

    @property
    def tasks(self) -> TaskTable:
        """Return the gang's tasks."""
        return self.gang.tasks

    @property
    def roster(self) -> Roster:
        """Return the names of the gang."""
        return self.gang.tasks.roster

    @property
    def epoch(self) -> ClusterSpec | None:
        """Return the newest ClusterSpec; None before the first placement."""
        return self.gang.epoch

    def report_of(self, record: TaskRecord) -> Mapping[str, Any]:
        """Return what the runner of an attempt has said last; empty when it was never heard."""
        return self.service.told.reports.get(record.task_id, SILENT)
