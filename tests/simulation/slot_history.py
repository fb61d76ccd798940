"""Histories of a service whose slots take units of work, one after the other.

Everything goes wrong that does in any history, and what can with units: a result is lost with its
container, or is heard late or twice; the producer's answers are lost, late and doubled; a unit is
stopped early; a shard takes very long; an agent drains; a quota asks for places back. Each unit
must be decided once, by an attempt that was made, and be in one slot at a time; none is begun where
it must not be. ``python tests/simulation/slot_history.py SEED`` prints one of them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import History, tell
from history_faults import Faults
from history_jobs import PATIENT, SMALL, Job, other_options
from history_rules import RuleBroken, Rules

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, UnitEnded, UnitsWanted
from dcos_tensorflow.core.model.controls import DEPLOY
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.report import Report
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.model.units import PAGE, UnitState, UnitTable
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    GANG_ROLES,
    MAIN,
    GangSpec,
    RoleSpec,
    Shape,
    Strategy,
    TaskRole,
    UnitKind,
    UnitsSpec,
    gang_named,
    name_in_gang,
)
from dcos_tensorflow.core.step import Decision
from simulated.mesos import Cluster, RunningTask
from simulated.scheduler import Crash, small_job

#: A unit that has failed so often has failed.
MOST_ATTEMPTS = 3


class Producer:
    """Says which units come next; its answers are lost, late and doubled."""

    def __init__(self, history: SlotHistory, total: int, lag: int) -> None:
        self._history = history
        self.total = total
        #: It gives no unit before all but so many of those before it are decided.
        self._lag = lag
        self.given = 0

    def hear(self, action: Action) -> None:
        """Answer what the scheduler asks, and take note of what it tells."""
        if isinstance(action, UnitEnded):
            self._check_is_kept(action.number)
        elif isinstance(action, UnitsWanted):
            self._give(action)

    def _check_is_kept(self, number: int) -> None:
        place, index = divmod(number, PAGE)
        store = self._history.scheduler.store
        page = json.loads(store.get(paths.units_state(place), b"[]"))
        kept = page[index].get("state") if index < len(page) else None
        if store and kept is None:
            raise RuleBroken(f"the producer hears of unit {number} before its end was kept")

    def _give(self, wanted: UnitsWanted) -> None:
        dice, faulty = self._history.dice, self._history.scheduler.faulty
        table = self._history.scheduler.state.units
        decided = sum(table.count(s) for s in UnitState if s is not UnitState.WAITING)
        most = min(wanted.first + wanted.count, self.total, decided + self._lag)
        numbers = range(wanted.first, most)
        last = max(most, wanted.first) >= self.total
        payloads = tuple(self._history.payload(number) for number in numbers)
        answer = events.UnitsGiven(wanted.first, payloads, last)
        if faulty and dice.random() < 0.15:
            self._history.note(f"lost: units from {wanted.first} on")
            return
        self._history.cluster.outbox.append(answer)
        if faulty and dice.random() < 0.2:
            self._history.cluster.outbox.append(answer)


def _slots(state: ServiceState) -> Iterator[Gang]:
    return (gang for name, gang in state.gangs.items() if name != MAIN)


def _elsewhere(state: ServiceState, agents: Collection[str], shape: Shape) -> set[str]:
    """Return the tasks in slots of a shape that go on and have nothing on these agents."""
    found = set()
    for gang in _slots(state):
        if gang.job.shape != shape:
            continue
        there = [r for r in gang.tasks.values() if not r.terminal]
        lives = all(r.state is not TaskState.UNREACHABLE for r in there)
        if gang.job.verdict is None and lives and agents.isdisjoint(r.agent_id for r in there):
            found.update(record.task_id for record in there)
    return found


class SlotRules(Rules):
    """What must hold of units and slots."""

    def __init__(self, job: Job, cluster: Cluster) -> None:
        super().__init__(job, cluster)
        #: Attempts of units (task id, attempt) that were out of reach.
        self._were_away: set[tuple[str, int]] = set()

    def check_decision(
        self, before: ServiceState, together: Sequence[Event], decision: Decision
    ) -> None:
        """Look at a step's decision, when it is committed and nothing of it is carried out."""
        after = decision.state
        self._check_decided(before.units, after.units, decision.actions)
        self._check_runs(after)
        self._note_who_is_away(after)
        for name, gang in after.gangs.items():
            old = before.gangs.get(name)
            known = old.unit if old is not None else None
            run = gang.unit
            if run is not None and (known is None or known.attempt != run.attempt):
                self._check_is_alone(after, name, run.number)
                self._check_may_take(before, after, name, run.number)
                self._check_shape(after, name, run.number)
        self._check_stops(before, after)

    def _check_may_take(
        self, before: ServiceState, after: ServiceState, slot: str, number: int
    ) -> None:
        """Look whether a slot may begin a unit, as far as that was so all through the step."""
        mine = {r.agent_id for r in after.gangs[slot].tasks.values() if not r.terminal}
        if before.controls.holds(DEPLOY) and after.controls.holds(DEPLOY):
            raise RuleBroken(f"{slot} takes unit {number}, and the work is paused")
        lead = after.spec.maintenance_lead_seconds
        for agent_id, start in before.maintenance.starts.items():
            # When it was decided: a slow commit comes later.
            near = after.subscription.stepped_at >= start - lead
            if agent_id in mine and near and after.maintenance.starts.get(agent_id) == start:
                raise RuleBroken(f"{slot} takes unit {number} on {agent_id}, which is to go")
        left = after.told.slots_left
        going = [g for g in _slots(after) if g.job.verdict is None and g.tasks]
        if left is not None and before.told.slots_left == left and len(going) > left:
            raise RuleBroken(f"{slot} takes unit {number}, one of {len(going)} where {left} may")
        failed_on = [failure.agent_id for failure in after.units[number].failures]
        if len(failed_on) + 1 >= MOST_ATTEMPTS and mine.issuperset(failed_on):
            shape = after.gangs[slot].job.shape
            others = _elsewhere(before, mine, shape) & _elsewhere(after, mine, shape)
            if others:
                told = f"{slot} takes the last attempt of unit {number}, and {others} may"
                raise RuleBroken(f"{told}: it has failed on {failed_on}")

    def _check_shape(self, after: ServiceState, slot: str, number: int) -> None:
        """Look whether a slot is what a unit asks for that it takes, container by container."""
        gang, shape = after.gangs[slot], after.units.shape(number)
        roles = {r.role: r for r in after.spec.shaped(shape).roles if r.role in GANG_ROLES}
        wanted = sum(role.count for role in roles.values())
        if gang.job.shape != shape or len(gang.tasks.roster.every) != wanted:
            raise RuleBroken(f"{slot} is of {gang.job.shape} and takes unit {number}: {shape}")
        for record in gang.tasks.values():
            task = self._cluster.tasks.get(record.task_id)
            has = task.launch.resources if task is not None else roles[record.role].resources
            if not record.terminal and has != roles[record.role].resources:
                raise RuleBroken(f"{record.name} has {has} for unit {number}: {shape}")

    def _note_who_is_away(self, after: ServiceState) -> None:
        for gang in after.gangs.values():
            for record in gang.tasks.values():
                task = self._cluster.tasks.get(record.task_id)
                away = record.state is TaskState.UNREACHABLE
                if away and task is not None and task.runner.unit is not None:
                    self._were_away.add((record.task_id, task.runner.unit["attempt"]))

    def _check_decided(
        self, before: UnitTable, after: UnitTable, actions: Sequence[Action]
    ) -> None:
        told = [action.number for action in actions if isinstance(action, UnitEnded)]
        if before is after and not told:
            return
        decided = []
        for unit in after:
            old = before[unit.number] if unit.number < len(before) else None
            if old is not None and old.is_decided and old is not unit:
                raise RuleBroken(f"unit {unit.number} is decided twice: {old} and {unit}")
            if unit.is_decided and (old is None or not old.is_decided):
                decided.append(unit.number)
        if sorted(told) != decided:
            raise RuleBroken(f"the producer is told of {told}, and {decided} are decided")
        if after.waiting < 0 or len(after) < len(before):
            raise RuleBroken(f"units are lost: {len(after)}, {after.waiting} of them wait")

    def _check_runs(self, after: ServiceState) -> None:
        """Look whether the index says what the slots do, and no unit has too many of them."""
        slots: dict[int, list[str]] = {}
        for name, gang in after.gangs.items():
            if gang.unit is not None and not after.units[gang.unit.number].is_decided:
                slots.setdefault(gang.unit.number, []).append(name)
        if {k: set(v) for k, v in slots.items()} != {
            k: set(v) for k, v in after.units.running.items()
        }:
            raise RuleBroken(f"slots run {slots}, the table says {dict(after.units.running)}")
        units = after.spec.units
        assert units is not None
        most = 2 if units.kind is UnitKind.SHARD else 1
        if any(len(names) > most for names in slots.values()):
            raise RuleBroken(f"units in too many slots: {slots}")
        if units.parallelism and len(after.gangs) - 1 > units.parallelism:
            ending = [g for g in after.gangs.values() if g.job.verdict is not None]
            if len(after.gangs) - 1 - len(ending) > units.parallelism:
                raise RuleBroken(f"{len(after.gangs) - 1} slots, {units.parallelism} are allowed")

    def _check_is_alone(self, after: ServiceState, slot: str, number: int) -> None:
        """Look whether a process works on a unit that another slot takes."""
        declared = after.units.running.get(number, ())
        for task_id, task in self._cluster.tasks.items():
            gang = gang_named(task.launch.name)
            unit = task.runner.unit
            if gang in declared or unit is None or unit["number"] != number:
                continue
            if (task_id, unit["attempt"]) in self._were_away:
                # It could not be known as its unit was given to another slot.
                continue
            if self._is_known_to_train(after, task_id, task):
                raise RuleBroken(f"{slot} takes unit {number}, which {task_id} works on")

    def _is_known_to_train(self, state: ServiceState, task_id: str, task: RunningTask) -> bool:
        record = state.task_by_id(task_id)
        if record is None or not task.alive or not task.known_to_live or not task.runner.trains:
            return False
        return self._cluster.ask(record) is not None

    def _check_stops(self, before: ServiceState, after: ServiceState) -> None:
        """Look whether no task of a slot starts while an old process of it runs."""
        for name, gang in after.gangs.items():
            old = before.gangs.get(name)
            if old is None or gang is old or not gang.tasks.roster.is_of_slot:
                continue
            going = [
                r.name
                for r in gang.tasks.values()
                if (was := old.tasks.get(r.name)) is not None
                and was.task_id == r.task_id
                and not r.held
                and (was.held or was.start != r.start)
            ]
            scope = set(gang.job.restart.members) or set(going)
            for member in scope if going else ():
                record = gang.tasks.get(member)
                task = self._cluster.tasks.get(record.task_id) if record is not None else None
                if record is None or task is None:
                    continue
                if self._is_known_to_train(after, record.task_id, task):
                    raise RuleBroken(f"{going} start while the old process of {member} runs")

    def check_cluster(self, state: ServiceState) -> None:
        """Look at what runs and what is held."""
        if self._cluster.double_starts:
            raise RuleBroken(f"started twice at once: {self._cluster.double_starts}")
        for offer in state.desk.offers.values():
            held = self._cluster.now - offer.received_at
            if held > state.spec.gang.hold_seconds + 15.0 and state.registered:
                raise RuleBroken(f"offer {offer.offer_id} held for {held:.0f} s")


class SlotFaults(Faults):
    """What goes wrong with slots and units besides."""

    _history: SlotHistory
    #: What a runner has told once.
    _kept: tuple[str, Report] | None = None

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (
            *super().table(),
            (30, lambda: self._history.work(0.5)),
            (4, self._result_is_lost),
            (3, self._unit_is_pruned),
            (2, self._unit_fails_everywhere),
            (2, self._machine_goes_bad),
            (2, self._report_comes_again),
            (1, self._agent_drains),
            (1, self._quota_changes),
        )

    def mend(self) -> None:
        """Take back what the quota has asked for, too."""
        super().mend()
        self._history.bad_machine = ""
        try:
            self._history.handle(events.QuotaSeen(None))
        except Crash:
            self._history.crashed()

    def _names(self) -> list[str]:
        return sorted(self._history.scheduler.state.tasks) or ["slot-0-worker-0"]

    def _result_is_lost(self) -> None:
        """A container is gone with a result that was not heard of."""
        for task_id, task in self._alive():
            if self._history.decides(task) and task.runner.state == "running":
                task.runner.finish({"by": task_id})
                self._note(f"{task_id} has done its unit, and its container ends")
                self._cluster.report(task_id, TaskState.FAILED, "", "REASON_CONTAINER_PREEMPTED")
                return

    def _unit_is_pruned(self) -> None:
        numbers = sorted(self._history.scheduler.state.units.running)
        if numbers:
            number = self._dice.choice(numbers)
            self._note(f"unit {number} is stopped")
            event = events.UnitPruned(number, "it would not be a good one", {"accuracy": 0.1})
            self._history.handle(event)
            if self._dice.random() < 0.3:
                self._history.handle(event)

    def _unit_fails_everywhere(self) -> None:
        running = sorted(self._history.scheduler.state.units.running)
        if running and len(self._history.cursed) < 3:
            number = self._dice.choice(running)
            self._note(f"unit {number} fails from now on wherever it is run")
            self._history.cursed.add(number)

    def _machine_goes_bad(self) -> None:
        """Every unit fails on one machine, and on no other."""
        self._history.bad_machine = self._dice.choice(sorted(self._cluster.agents))
        self._note(f"units fail on {self._history.bad_machine} from now on")

    def _report_comes_again(self) -> None:
        """What a runner has told before is heard late, or twice."""
        told = self._history.scheduler.state.told.reports
        if self._kept is not None:
            task_id, report = self._kept
            self._note(f"an old report of {task_id} comes again")
            self._history.handle(events.RunnerReported(task_id, report))
        self._kept = self._dice.choice(sorted(told.items(), key=str)) if told else None

    def _agent_drains(self) -> None:
        """The agent kills what runs on it, as it was asked to, and takes nothing more for now."""
        agent = self._dice.choice(list(self._cluster.agents.values()))
        if not agent.reachable or agent.frozen:
            return
        self._note(f"{agent.agent_id} drains")
        for task_id, task in self._alive():
            if task.launch.agent_id == agent.agent_id:
                self._cluster.report(task_id, TaskState.KILLED, "", "REASON_SLAVE_DRAINING")
        agent.filtered_until = self._cluster.now + 60.0
        agent.filtered = agent.free

    def _quota_changes(self) -> None:
        """Our role may use less than it does, or as much as it likes."""
        used = float(sum(1 for task in self._cluster.tasks.values() if task.alive))
        limit = float(self._dice.randint(0, 4))
        free = self._dice.random() < 0.4
        quota = None if free else Quota("*", {"cpus": limit}, {"cpus": used})
        self._note(f"the quota is {quota}")
        self._history.handle(events.QuotaSeen(quota))

    def _options_change(self) -> None:
        state = self._history.scheduler.state
        changed = other_options(self._dice, state.spec)
        same = [r.count for r in changed.roles] == [r.count for r in state.spec.roles]
        if state.job.phase is not JobPhase.DONE and same:
            self._note("other options")
            self._history.handle(events.ConfigurationChanged(changed))


class SlotHistory(History):
    """A seed, played: slots that take units."""

    faults_kind = SlotFaults
    #: There may be one slot for all units.
    calm_steps = 3000
    #: How many units there may be.
    totals: Sequence[int] = (0, 1, 5, 30, 60, PAGE + 10)

    def __init__(self, seed: int) -> None:
        #: Units that fail wherever they are run; where any does; what each attempt has left.
        self.cursed: set[int] = set()
        self.bad_machine = ""
        self.slow = -1
        self.results: set[tuple[int, int, str]] = set()
        super().__init__(seed)
        spec = self.job.spec.units
        assert spec is not None
        total = self.dice.choice(self.totals)
        withholds = spec.kind is UnitKind.TRIAL
        lag = 2 * (spec.parallelism or 8) if withholds else total + 1
        #: A shard whose first attempt takes very long.
        self.slow = total - 1 if not withholds and total > 20 and self.dice.random() < 0.6 else -1
        self.producer = Producer(self, total, lag)
        self.cluster.producer = self.producer.hear
        self.note(f"{total} units, {spec}")

    def make_job(self) -> Job:
        """Return slots of one task or of a few."""
        dice = self.dice
        strategy = dice.choice([Strategy.INDEPENDENT] * 3 + [Strategy.PARAMETER_SERVER])
        strategy = dice.choice([strategy, strategy, Strategy.MULTI_WORKER])
        together = strategy is Strategy.PARAMETER_SERVER
        workers = 1 if strategy is Strategy.INDEPENDENT else dice.randint(1, 2)
        roles = (
            RoleSpec(TaskRole.PS, int(together), SMALL),
            RoleSpec(TaskRole.CHIEF, int(together), SMALL),
            RoleSpec(TaskRole.WORKER, workers, SMALL),
            RoleSpec(TaskRole.TENSORBOARD, dice.choice([0, 0, 1]), SMALL),
        )
        kind, slots = dice.choice([UnitKind.TRIAL, UnitKind.SHARD]), dice.choice([0, 1, 2, 4])
        units = UnitsSpec(kind, slots, MOST_ATTEMPTS, dice.choice([1.0, 1.0, 0.5]))
        spec = small_job(
            roles=roles,
            strategy=strategy,
            units=units,
            retry=PATIENT,
            gang=GangSpec(wait_seconds=40.0, grow_seconds=30.0, start_seconds=120.0),
            kill_grace_seconds=dice.choice([1.0, 5.0]),
            replace_after_seconds=dice.choice([0.0, 0.0, 20.0]),
            maintenance_lead_seconds=30.0,
            uninstall_give_up_seconds=60.0,
        )
        return Job(spec, strategy)

    def payload(self, number: int) -> dict[str, Any]:
        """Return what a unit is."""
        return {"what": number}

    def make_cluster(self) -> Cluster:
        """Return machines with room for a slot at least, and for a few more perhaps."""
        tasks = sum(role.count for role in self.job.spec.roles)
        slots = self.dice.randint(1, 4)
        agents = self.dice.randint(1, max(tasks, 2))
        room = -(-tasks * slots // agents)
        size = Resources(cpus=room + 0.5, mem=1024 * room + 500, disk=100 * room + 100)
        return Cluster(agents, size)

    def make_rules(self) -> Rules:
        """Return what must hold in this history."""
        return SlotRules(self.job, self.cluster)

    def decides(self, task: RunningTask) -> bool:
        """Say whether a task's end is that of its unit."""
        return (
            task.state is TaskState.RUNNING
            and name_in_gang(task.launch.name) == self.job.spec.decider
            and task.runner.unit is not None
        )

    def _perhaps_finish(self, task_id: str) -> None:
        task = self.cluster.tasks[task_id]
        runner = task.runner
        if not self.decides(task) or runner.state != "running":
            return
        assert runner.unit is not None
        number, attempt = runner.unit["number"], runner.unit["attempt"]
        if number == self.slow and attempt == 1 and self.dice.random() < 0.98:
            return
        if task.launch.agent_id == self.bad_machine and self.dice.random() < 0.5:
            self.note(f"{task_id} fails of its machine")
            runner.fail("user_error", 1, "it fails here", ("OSError", self.dice.randrange(50)))
            return
        if number in self.cursed:
            self.note(f"{task_id} fails of unit {number}")
            runner.fail("user_error", 1, "it fails everywhere", ("ValueError", 77))
            return
        self.note(f"{task_id} has done unit {number} (attempt {attempt})")
        runner.finish({"by": task_id})
        self.results.add((number, attempt, task_id))

    def work(self, speed: float) -> None:
        """Launched tasks run; units are done."""
        super().work(speed)
        if self.scheduler.faulty:
            for task_id, task in list(self.cluster.tasks.items()):
                agent = self.cluster.agents[task.launch.agent_id]
                if agent.reachable and not agent.frozen and self.dice.random() < 0.3:
                    self._perhaps_finish(task_id)

    def _train(self) -> None:
        for task in self.cluster.tasks.values():
            if task.alive and task.runner.state == "running":
                task.runner.step = (task.runner.step or 0) + 1

    def _is_over(self) -> bool:
        if self.scheduler.state.uninstall.asked:
            return not self.scheduler.store
        return self.scheduler.state.gangs[MAIN].job.phase is JobPhase.DONE

    def _check_outcome(self) -> None:
        state = self.scheduler.state
        if state.uninstall.asked:
            return
        if len(state.gangs) != 1:
            raise RuleBroken(f"slots are left: {sorted(state.gangs)}")
        table = state.units
        assert state.job.verdict is not None
        if self._shards_failed_alike() and not table.is_complete:
            if state.job.verdict.outcome is not Outcome.FAILED:
                raise RuleBroken(f"all shards that ended have failed, and {state.job.verdict}")
            return
        if len(table) != self.producer.total or not table.is_complete:
            raise RuleBroken(f"of {self.producer.total} units {len(table)} are known")
        for unit in table:
            by = unit.result.get("by")
            if unit.state is UnitState.SUCCEEDED and not any(
                (unit.number, by) == (number, task_id) for number, _, task_id in self.results
            ):
                raise RuleBroken(f"unit {unit.number} has a result that no task left: {unit}")
            if unit.state is UnitState.FAILED and not unit.failures:
                raise RuleBroken(f"unit {unit.number} failed of nothing: {unit}")
            if len(unit.failures) > MOST_ATTEMPTS + 1:
                raise RuleBroken(f"unit {unit.number} was tried too often: {unit}")
            if unit.number in self.cursed and unit.state is UnitState.SUCCEEDED and not unit.tries:
                raise RuleBroken(f"unit {unit.number} cannot have succeeded: {unit}")
        good, bad = table.count(UnitState.SUCCEEDED), table.count(UnitState.FAILED)
        shards = state.spec.units is not None and state.spec.units.kind is UnitKind.SHARD
        failed = bad > 0 if shards else not good and len(table) > 0
        if state.job.verdict.outcome is not (Outcome.FAILED if failed else Outcome.SUCCEEDED):
            raise RuleBroken(f"{good} succeeded, {bad} failed, and {state.job.verdict}")

    def _shards_failed_alike(self) -> bool:
        """Say whether a batch may have ended early: none has succeeded, and enough failed alike."""
        spec, table = self.scheduler.state.spec, self.scheduler.state.units
        if spec.units is None or spec.units.kind is not UnitKind.SHARD:
            return False
        errors = Counter(
            (failure.error.exception, failure.error.line)
            for unit in table
            for failure in unit.failures[-1:]
            if failure.error is not None
        )
        enough = max(errors.values(), default=0) > spec.retry.same_failure_limit
        return enough and not table.count(UnitState.SUCCEEDED)


class ShapedHistory(SlotHistory):
    """The same with trials that differ in how many workers they have, and how large these are."""

    #: Nearly each takes places of its own, which takes ten times as long as one process more.
    totals = (0, 1, 5, 12, 24)

    def make_job(self) -> Job:
        """Return slots of trials; the largest is as large as any slot."""
        job = super().make_job()
        assert job.spec.units is not None
        units = replace(job.spec.units, kind=UnitKind.TRIAL)
        return Job(replace(job.spec, units=units), job.strategy)

    def payload(self, number: int) -> dict[str, Any]:
        """Return a trial: its size is the same whenever it is asked for."""
        worker = self.job.spec.role(TaskRole.WORKER)
        assert worker is not None
        count = 1 + number // 3 % worker.count
        shape = [["worker", "count", count], ["worker", "cpus", (0.25, 0.5, 1.0)[number % 3]]]
        return {"what": number, "shape": shape}


if __name__ == "__main__":
    sys.exit(tell(SlotHistory, sys.argv[1:]))
