"""What must hold after every event of a history (docs/architecture.md, "Rules")."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from history_jobs import Job

from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.model.actions import Accept, Acknowledge, Action, EraseState, Teardown
from dcos_tensorflow.core.model.events import Event, OfferRescinded, OffersReceived
from dcos_tensorflow.core.model.job import TRANSITIONS, JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import (
    GANG_ROLES,
    OutcomePolicy,
    Strategy,
    TaskRole,
    split_task_name,
)
from dcos_tensorflow.core.step import Decision
from simulated.mesos import Cluster, RunningTask


class RuleBroken(AssertionError):
    """A rule of docs/architecture.md does not hold in this history."""


def _is_new(before: ServiceState, record: TaskRecord) -> bool:
    old = before.tasks.get(record.name)
    return old is None or old.task_id != record.task_id


def watch_phases() -> None:
    """Hold every change of a job's phase against the table of transitions, from now on."""
    enter = GangDraft.enter

    def watched(gang: GangDraft, phase: JobPhase, why: str) -> None:
        edge = (gang.job.phase, phase)
        if edge[0] is not phase and edge not in TRANSITIONS:
            raise RuleBroken(f"{edge[0]} to {phase} is in no table: {why}")
        enter(gang, phase, why)

    if enter.__name__ != watched.__name__:
        GangDraft.enter = watched  # type: ignore[method-assign]


class Rules:
    """Looks at every decision, every action and at the cluster; raises RuleBroken.

    ``errors`` counts the faults that may cost a retry, as they are made (``note_error``).
    """

    def __init__(self, job: Job, cluster: Cluster) -> None:
        watch_phases()
        self._job = job
        self._cluster = cluster
        self._launched_at_the_end: int | None = None
        self.errors = 0
        self.charged = 0
        self._errors_of: Counter[str] = Counter()
        self._own_errors: defaultdict[tuple[str, int], list[str]] = defaultdict(list)

    def note_error(self, task_id: str) -> None:
        """Note a fault of this attempt that may cost a retry, but only this attempt's."""
        self.errors += 1
        self._errors_of[task_id] += 1

    def note_own_error(self, task_id: str, error: tuple[str, int]) -> None:
        """Note an exception of the user's code, and whose it was."""
        self._own_errors[error].append(task_id.rsplit("__", 2)[1])

    def explains(self, state: ServiceState) -> bool:
        """Say whether the job's end as one of the code's own errors is what was made of it."""
        summary = state.job.verdict.summary if state.job.verdict is not None else ""
        if "times the same error" in summary:
            limit = state.spec.retry.same_failure_limit
            return any(len(names) >= limit for names in self._own_errors.values())
        members = {n for n in state.view().roster.names if split_task_name(n)[0] is not TaskRole.PS}
        alike = any(members <= set(names) for names in self._own_errors.values())
        return "all tasks that run the code" in summary and alike

    # What a step has decided.

    def check_decision(
        self, before: ServiceState, together: Sequence[Event], decision: Decision
    ) -> None:
        """Look at a step's decision, when it is committed and nothing of it is carried out."""
        self._check_restarts(before, decision.state)
        self._check_charges(before, decision.state)
        for action in decision.actions:
            if isinstance(action, Accept):
                self._check_pauses(before, decision.state, action)
                self._check_old_attempts(before, together, action)
            if isinstance(action, Teardown | EraseState) and not decision.state.uninstall.asked:
                raise RuleBroken(f"{action} without an uninstall")

    def _check_restarts(self, before: ServiceState, after: ServiceState) -> None:
        going = []
        for name, record in after.tasks.items():
            old = before.tasks.get(name)
            if old is None or old.task_id != record.task_id or record.role not in GANG_ROLES:
                continue
            if record.start > old.start and name not in after.job.restart.members:
                raise RuleBroken(f"{name} is stopped and not in {after.job.restart.members}")
            if old.held and not record.held:
                going.append(record)
        going += [
            record
            for name, record in after.tasks.items()
            if record.role in GANG_ROLES and not record.held and _is_new(before, record)
        ]
        if not going:
            return
        for record in going:
            if record.name in after.controls.paused_tasks:
                raise RuleBroken(f"{record.name} is started while it is paused")
        self._check_all_have_stopped(after, going)

    def _check_all_have_stopped(self, after: ServiceState, going: list[TaskRecord]) -> None:
        wanted = set(after.view().roster.names)
        stopped = {*after.job.restart.members, *(r.name for r in going)} & wanted
        if {r.name for r in going} >= wanted:
            # Those who leave a gang that starts as a whole leave before.
            stopped |= {n for n, r in after.tasks.items() if r.role in GANG_ROLES} - wanted
        for name in stopped:
            task = self._known(after, name)
            if task is not None and task.runner.trains:
                names = ", ".join(r.name for r in going)
                raise RuleBroken(f"{names} start while the old process of {name} runs")

    def _check_charges(self, before: ServiceState, after: ServiceState) -> None:
        new = [i for i in after.job.incidents if i not in before.job.incidents and i.charged]
        told = {(i.task_id, i.at) for i in before.job.incidents}
        for incident in new:
            if (incident.task_id, incident.at) in told:
                continue
            self.charged += 1
            self._errors_of[incident.task_id] -= 1
            if self._errors_of[incident.task_id] < 0:
                raise RuleBroken(f"a retry was charged for no error of its own: {incident}")

    def _check_pauses(self, before: ServiceState, after: ServiceState, action: Accept) -> None:
        job = before.job
        if after.job.restart.planned or job.phase is JobPhase.RUNNING:
            return
        plan = "recovery" if job.deployed else "deploy"
        for launch in action.launches:
            role, _ = split_task_name(launch.name)
            if role in GANG_ROLES and after.controls.holds(plan, str(role)):
                raise RuleBroken(f"{launch.name} is launched while {plan} is paused")

    def _check_old_attempts(
        self, before: ServiceState, together: Sequence[Event], action: Accept
    ) -> None:
        """Look whether an old attempt lives on an agent that makes us offers: it can be asked."""
        offers = dict(before.desk.offers)
        for event in together:
            if isinstance(event, OffersReceived):
                offers |= {offer.offer_id: offer for offer in event.offers}
            elif isinstance(event, OfferRescinded):
                # It was made before the agent went, and says nothing of one that is back.
                offers.pop(event.offer_id, None)
        agents = {offer.agent_id for offer in offers.values()}
        answering = {agent for agent in agents if self._cluster.agents[agent].reachable}
        launched = {launch.name for launch in action.launches}
        for task_id, task in self._cluster.tasks.items():
            if task.alive and task.launch.name in launched and task.launch.agent_id in answering:
                raise RuleBroken(f"{task.launch.name} is launched while {task_id} may run")

    # What is carried out.

    def check_action(self, state: ServiceState, store: dict[str, bytes], action: Action) -> None:
        """Look at an action before it is carried out: what it rests on is committed."""
        if isinstance(action, Accept):
            for launch in action.launches:
                info = store.get(f"Tasks/{launch.name}/TaskInfo", b"").decode()
                if launch.task_id not in info:
                    raise RuleBroken(f"ACCEPT of {launch.task_id} before its record was committed")
        if isinstance(action, Acknowledge) and store:
            record = state.task_by_id(action.task_id)
            status = store.get(f"Tasks/{record.name}/TaskStatus", b"") if record else b""
            if record is not None and f'"{record.state}"' not in status.decode():
                raise RuleBroken(f"{action.task_id} acknowledged before its state was committed")

    # What the cluster looks like.

    def check_cluster(self, state: ServiceState) -> None:
        """Look at what runs and what is held."""
        self._check_the_end_is_final(state)
        if self._cluster.double_starts:
            raise RuleBroken(f"started twice at once: {self._cluster.double_starts}")
        for offer in state.desk.offers.values():
            held = self._cluster.now - offer.received_at
            if held > state.spec.gang.hold_seconds + 15.0 and state.registered:
                raise RuleBroken(f"offer {offer.offer_id} held for {held:.0f} s")
        if self._job.strategy is Strategy.MULTI_WORKER:
            self._check_one_round(state)

    def _check_one_round(self, state: ServiceState) -> None:
        """Look whether members train together that started from different states."""
        rounds: dict[tuple[object, object, int], list[str]] = {}
        for name in state.view().roster.names:
            record, task = state.tasks.get(name), self._known(state, name)
            if record is None or task is None or task.runner.state != "running":
                continue
            runner = task.runner
            began = (runner.order_taken or {}).get("round", record.launched_at)
            key = (began, runner.starts[-1][2], runner.epoch)
            rounds.setdefault(key, []).append(record.name)
        if len(rounds) > 1:
            raise RuleBroken(f"members of different rounds train at once: {rounds}")

    def _known(self, state: ServiceState, name: str) -> RunningTask | None:
        """Return the container of a member's attempt, if the scheduler can know what it does."""
        record = state.tasks.get(name)
        task = self._cluster.tasks.get(record.task_id) if record is not None else None
        if record is None or task is None or not task.alive or not task.known_to_live:
            return None
        return task if self._cluster.ask(record) is not None else None

    def _check_the_end_is_final(self, state: ServiceState) -> None:
        launched = self._cluster.launch_history
        if state.spec.outcome is not OutcomePolicy.CHIEF:
            return
        for task_id in self._cluster.finished:
            # An attempt that was given up while its agent was away decides nothing any more.
            record = state.task_by_id(task_id)
            decided = record is not None and record.name == state.spec.decider
            if self._launched_at_the_end is None and decided:
                self._launched_at_the_end = len(launched)
        if self._launched_at_the_end not in (None, len(launched)):
            raise RuleBroken(f"a finished job is run again: {launched[-1]}")
