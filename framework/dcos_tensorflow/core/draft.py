"""The working copy of one step: the state so far, the actions so far, and the reasons.

Private to the modules behind ``core.step``. A draft lives for one step and never leaves it; from
outside the step is a pure function. ``Draft`` is the service's; :class:`GangDraft` is one gang of
it, and a function that works on a gang is given that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace

from dcos_tensorflow.core.model import evaluation
from dcos_tensorflow.core.model.actions import Accept, Acknowledge, Action
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.gang import Gang, Placing
from dcos_tensorflow.core.model.job import (
    RESTARTING_PHASES,
    JobPhase,
    JobState,
    Membership,
    Restart,
)
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.report import SILENT, Report
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import GangView, OfferDesk, ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import UnitRun
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.records import dataclass


@dataclass
class Draft:
    """One step in the making. ``now`` is the only clock there is; it began with ``before``."""

    state: ServiceState
    now: float
    before: ServiceState
    actions: list[Action] = field(default_factory=list)
    acknowledgements: list[Acknowledge] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    #: Tasks that the master has spoken of in this step.
    spoken_of: set[str] = field(default_factory=set)
    #: What is to be launched, by the offers that it takes: they are accepted once, for all gangs.
    accepts: dict[tuple[str, ...], Accept] = field(default_factory=dict)
    #: Gangs that this step has changed, or made.
    touched: set[str] = field(default_factory=set)
    _reports: dict[str, Report] | None = None
    #: The gangs as this step has them, to be changed in place until it is over.
    _gangs: dict[str, Gang] | None = None
    #: So for those at rest.
    _at_rest: set[str] | None = None

    def waited(self, since: float) -> float:
        """Return the seconds since then in which the cluster could have answered us.

        Without a subscription no answer is late: no update can come, and nothing can be killed.
        """
        known = self.state.subscription
        if not known.registered:
            return 0.0
        return self.now - max(since, known.registered_at, known.awake_since)

    def act(self, action: Action, why: str) -> None:
        """Ask for an action, and say why in one sentence."""
        self.actions.append(action)
        self.reasons.append(why)

    # Gangs and their tasks.

    def gang(self, name: str) -> GangDraft:
        """Return one gang to work on."""
        return GangDraft(self, name)

    def gangs(self) -> Iterator[GangDraft]:
        """Return every gang to work on."""
        return (GangDraft(self, name) for name in tuple(self.state.gangs))

    def awake(self) -> Iterator[GangDraft]:
        """Return the gangs of which something may move: those that are not at rest."""
        resting = self.state.at_rest
        return (GangDraft(self, name) for name in tuple(self.state.gangs) if name not in resting)

    def set_gang(self, gang: Gang) -> None:
        """Take a gang in place of what it was before, or as a new one."""
        if self._gangs is None or self._gangs is not self.state.gangs:
            # One copy a step: there may be a thousand gangs.
            self._gangs = dict(self.state.gangs)
            self.state = replace(self.state, gangs=self._gangs)
        self._gangs[gang.name] = gang
        self.touched.add(gang.name)
        if gang.name in self.state.at_rest:
            self._resting().discard(gang.name)

    def let_rest(self, name: str) -> None:
        """Look at a gang no more before it changes."""
        if name not in self.state.at_rest:
            self._resting().add(name)

    def wake_all(self) -> None:
        """Look at every gang."""
        self.state = replace(self.state, at_rest=frozenset())

    def _resting(self) -> set[str]:
        if self._at_rest is None or self._at_rest is not self.state.at_rest:
            self._at_rest = set(self.state.at_rest)
            self.state = replace(self.state, at_rest=self._at_rest)
        return self._at_rest

    def drop_gang(self, name: str) -> None:
        """Forget a gang, and the tasks that it had."""
        left = {key: gang for key, gang in self.state.gangs.items() if key != name}
        self.state = replace(self.state, gangs=left)
        self.touched.discard(name)
        if name in self.state.at_rest:
            self._resting().discard(name)

    def gang_with(self, task: str) -> GangDraft | None:
        """Return the gang that has a task of this name; None when no gang has."""
        found = self.state.gang_with(task)
        return GangDraft(self, found.name) if found is not None else None

    def put(self, record: TaskRecord) -> None:
        """Store a task's record in place of its earlier one."""
        gang = self.gang_with(record.name)
        if gang is None:
            raise AssertionError(f"{record.name} is of no gang")
        gang.put(record)

    def note_report(self, task_id: str, report: Report) -> None:
        """Take what a task's runner says, and work out what follows for the task."""
        if self._reports is None:
            self._reports = dict(self.state.told.reports)
            self.state = replace(self.state, told=replace(self.state.told, reports=self._reports))
        self._reports[task_id] = report
        record = self.state.task_by_id(task_id)
        gang = self.gang_with(record.name) if record is not None else None
        if record is not None and record.role is TaskRole.EVALUATOR:
            told = self.state.told
            followed = evaluation.follow(told.evaluations.get(task_id), report, self.now)
            evaluations = {**told.evaluations, task_id: followed}
            self.state = replace(self.state, told=replace(told, evaluations=evaluations))
        # Most reports tell of steps alone: then no record and no fact has changed.
        if record is not None and gang is not None and gang.tasks.is_news(record, report):
            gang.put(record)

    def keep_what_was_said_of(self, task_ids: Collection[str]) -> None:
        """Forget what the runners and sandboxes of all other attempts have said."""
        told = self.state.told
        self._reports = {key: told.reports[key] for key in task_ids if key in told.reports}
        evidence = {key: found for key, found in told.evidence.items() if key in task_ids}
        evaluations = {key: known for key, known in told.evaluations.items() if key in task_ids}
        left = replace(told, reports=self._reports, evidence=evidence, evaluations=evaluations)
        self.state = replace(self.state, told=left)

    # Offers.

    def take_offers(self, offers: Mapping[str, Offer]) -> None:
        """Take offers in hand: new ones, or what is left of some where a part is spoken for."""
        desk = self.state.desk
        self._set_desk(replace(desk, offers={**desk.offers, **offers}, version=desk.version + 1))

    def drop_offers(self, offer_ids: Iterable[str]) -> None:
        """Let go of offers: they were used, handed back, or are void."""
        desk, gone = self.state.desk, set(offer_ids)
        left = {key: offer for key, offer in desk.offers.items() if key not in gone}
        self._set_desk(replace(desk, offers=left, version=desk.version + 1))

    def drop_all_offers(self) -> None:
        """Let go of every offer: there is no subscription that they belong to."""
        self._set_desk(replace(self.state.desk, offers={}))
        for gang in self.gangs():
            if gang.placing.held_since:
                gang.placing = replace(gang.placing, held_since=0.0)

    def ask_anew(self) -> None:
        """Ask for offers as soon as may be: long filters of earlier declines hide what is needed.

        What the master believes of us is unknown from here on.
        """
        self._set_desk(replace(self.state.desk, suppressed=None))

    def _set_desk(self, desk: OfferDesk) -> None:
        self.state = replace(self.state, desk=desk)

    # The step's end.

    def close(self) -> None:
        """Allow no more changes of what this draft has opened: the state leaves the step."""
        for name in self.touched:
            self.state.gangs[name].tasks.close(self)


class GangDraft:
    """One gang of a step in the making."""

    __slots__ = ("name", "service")

    def __init__(self, service: Draft, name: str) -> None:
        self.service = service
        self.name = name

    @property
    def now(self) -> float:
        """Return the step's clock."""
        return self.service.now

    @property
    def view(self) -> GangView:
        """Return the gang as it stands in this step, with what surrounds it."""
        state = self.service.state
        return GangView(state, state.gangs[self.name])

    @property
    def gang(self) -> Gang:
        """Return the gang as it stands in this step."""
        return self.service.state.gangs[self.name]

    @gang.setter
    def gang(self, gang: Gang) -> None:
        self.service.set_gang(gang)

    @property
    def spec(self) -> ServiceSpec:
        """Return the options that the gang is to run with."""
        return self.service.state.spec.shaped(self.job.shape)

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

    @epoch.setter
    def epoch(self, epoch: ClusterSpec) -> None:
        self.gang = replace(self.gang, epoch=epoch)

    @property
    def job(self) -> JobState:
        """Return where the gang's job stands."""
        return self.gang.job

    @job.setter
    def job(self, job: JobState) -> None:
        self.gang = replace(self.gang, job=job)

    @property
    def unit(self) -> UnitRun | None:
        """Return the unit of work that the slot runs; None for none."""
        return self.gang.unit

    @unit.setter
    def unit(self, unit: UnitRun | None) -> None:
        self.gang = replace(self.gang, unit=unit, former_unit=self.gang.unit)

    @property
    def restart(self) -> Restart:
        """Return the restart under way."""
        return self.gang.job.restart

    @restart.setter
    def restart(self, restart: Restart) -> None:
        self.job = replace(self.job, restart=restart)

    @property
    def placing(self) -> Placing:
        """Return what is known of the gang's search for places."""
        return self.gang.placing

    @placing.setter
    def placing(self, placing: Placing) -> None:
        self.gang = replace(self.gang, placing=placing)

    def look_again(self) -> None:
        """Let placement look at the offers in hand as if it had not: what is wanted has changed."""
        self.placing = replace(self.placing, considered=(-1, ()))

    def enter(self, phase: JobPhase, why: str) -> None:
        """Move the job to ``phase``, and say why in one sentence."""
        job = self.job
        since = self.now if phase is not job.phase else job.phase_since
        stops = job.phase is JobPhase.RUNNING and phase in RESTARTING_PHASES
        until = self.now if stops else job.trained_until
        self.job = replace(job, phase=phase, why=why, phase_since=since, trained_until=until)
        self.service.reasons.append(why)

    def say(self, why: str) -> None:
        """Say in one sentence what has happened."""
        self.service.reasons.append(why)

    def explain(self, why: str) -> None:
        """Say why the job is where it is, if that is news."""
        if why != self.job.why:
            self.job = replace(self.job, why=why)

    def block(self, why: str) -> None:
        """Note what keeps every task from being placed or started in this step."""
        self.placing = replace(self.placing, blocked=why)
        known = self.service.before.gangs.get(self.name)
        if known is None or known.placing.blocked != why:
            self.say(why)

    def put(self, record: TaskRecord) -> None:
        """Store a task's record in place of its earlier one."""
        report = self.service.state.told.reports.get(record.task_id, SILENT)
        self._opened().put(self.service, record, report)

    def advance(self, record: TaskRecord, state: TaskState, **fields: str) -> TaskRecord:
        """Store and return the record in ``state``, where the table allows the step."""
        after = record.advance(state, self.now, **fields)
        self.put(after)
        return after

    def drop(self, names: Iterable[str]) -> None:
        """Forget tasks."""
        for name in names:
            self._opened().drop(self.service, name)

    def set_membership(self, membership: Membership) -> None:
        """Change which members are done without."""
        if membership != self.job.membership:
            self.job = replace(self.job, membership=membership)
            self.follow(self.roster.without(membership.absent))

    def follow(self, roster: Roster) -> None:
        """Take another roster: the options or the membership have changed."""
        self._opened().follow(self.service, roster, self.service.state.told.reports)

    def _opened(self) -> TaskTable:
        """Return the gang's tasks to be changed in this step."""
        tasks = self.gang.tasks
        opened = tasks.opened(self.service)
        if opened is not tasks:
            self.gang = replace(self.gang, tasks=opened)
        return opened
