"""Histories with one failure of a healthy gang: exactly those restart who must, and it costs right.

Messages are lost and late and the scheduler is killed as in any history, but nothing else fails.
Who must restart is written out here from what was measured, not taken from
``core.restarts.restart_table``.

``python tests/simulation/single_incident.py SEED`` prints one of them.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import History, tell
from history_faults import CONTAINER_ENDS, PROCESS_ENDS
from history_rules import RuleBroken

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, split_task_name
from simulated.mesos import Cluster

IT, IT_AND_CHIEF, ALL_BUT_PS, ALL = "it", "it and chief", "all but ps", "all"

#: strategy -> (worker, ps, chief) -> who starts again.
PROCESS_DEATH = {
    Strategy.PARAMETER_SERVER: (IT, IT_AND_CHIEF, IT),
    Strategy.MULTI_WORKER: (ALL, ALL, ALL),
    Strategy.BETWEEN_GRAPH: (IT, IT, IT),
    Strategy.INDEPENDENT: (IT, IT, IT),
}
MOVED = {
    Strategy.PARAMETER_SERVER: (IT_AND_CHIEF, IT_AND_CHIEF, IT),
    Strategy.MULTI_WORKER: (ALL, ALL, ALL),
    Strategy.BETWEEN_GRAPH: (ALL, ALL_BUT_PS, ALL),
    Strategy.INDEPENDENT: (IT, IT, IT),
}
VANISHED = {
    Strategy.PARAMETER_SERVER: (IT_AND_CHIEF, ALL_BUT_PS, IT),
    Strategy.MULTI_WORKER: (ALL, ALL, ALL),
    Strategy.BETWEEN_GRAPH: (ALL, ALL_BUT_PS, ALL),
    Strategy.INDEPENDENT: (IT, IT, IT),
}
STALLED = {
    Strategy.PARAMETER_SERVER: (ALL, ALL, ALL),
    Strategy.MULTI_WORKER: (ALL, ALL, ALL),
    Strategy.BETWEEN_GRAPH: (ALL, ALL, ALL),
    Strategy.INDEPENDENT: (IT, IT, IT),
}

STEPS = 400
QUIET_STEPS = 8


class SingleIncident(History):
    """A seed, played: one failure, by one of three ways, of one task."""

    #: Runners are asked twice a second, silent ones every two seconds (``runner_client``).
    pauses = (0.2, 1.0, 1.0, 2.0)

    @staticmethod
    def _healed() -> bool:
        return True

    def make_cluster(self) -> Cluster:
        """Return machines with room for one task each, and more of them than tasks."""
        tasks = sum(role.count for role in self.job.spec.roles)
        return Cluster(tasks + 3, Resources(cpus=1.5, mem=1500, disk=200))

    def play(self) -> None:
        """Play it to its end. Raises RuleBroken."""
        # A runner that is not heard of for long would lose its container: a second incident.
        self.network.delays = (0.0, 0.0, 0.2, 0.5)
        self.cluster.subscribe()
        self._run_until_quiet("the gang did not come up")
        victim = self.dice.choice(sorted(self.scheduler.state.tasks))
        before = self._situation()
        how = self._fail(victim)
        self._healed = lambda: self._situation()[victim][:2] != before[victim][:2]
        self._run_until_quiet(f"{victim} was not healed")
        self._check_who_restarted(victim, how, before)
        if self.rules.charged != self.rules.errors:
            raise RuleBroken(f"{self.rules.errors} errors cost {self.rules.charged} retries")
        self.come_to_the_end()

    def _situation(self) -> dict[str, tuple[str, int, str]]:
        """Return each task's attempt, how often its process has started, and its address."""
        return {
            name: (r.task_id, len(self.cluster.tasks[r.task_id].runner.starts), _address(r))
            for name, r in self.scheduler.state.tasks.items()
        }

    def _is_quiet(self) -> bool:
        state = self.scheduler.state
        if self.away_until or state.job.phase is not JobPhase.RUNNING:
            return False
        if set(state.tasks) != set(state.spec.task_names()):
            return False
        tasks = [self.cluster.tasks.get(r.task_id) for r in state.tasks.values()]
        trains = all(t and t.alive and t.runner.state == "running" for t in tasks)
        return trains and self._healed()

    def _containers_start(self) -> None:
        for task_id, task in list(self.cluster.tasks.items()):
            if task.state is TaskState.LAUNCHING and self.dice.random() < 0.5:
                self.cluster.report(task_id, TaskState.RUNNING)

    def _run_until_quiet(self, what: str) -> None:
        quiet = 0
        for _ in range(STEPS):
            self.step()
            self._containers_start()
            quiet = quiet + 1 if self._is_quiet() else 0
            if quiet == QUIET_STEPS:
                return
        raise RuleBroken(f"{what}: {self.scheduler.state.job.why}")

    def _fail(self, victim: str) -> dict[Strategy, tuple[str, str, str]]:
        """Let the victim fail; return the table that says who restarts where it is not moved."""
        task_id = self.scheduler.state.tasks[victim].task_id
        task = self.cluster.tasks[task_id]
        gang = split_task_name(victim)[0] is not TaskRole.EVALUATOR
        kind = self.dice.choice(["process", "process", "container", "machine"])
        if kind == "machine":
            self.note(f"fault: the machine of {victim} vanishes")
            self.cluster.lose(task.launch.agent_id)
            return VANISHED
        if kind == "container":
            message, reason, charged = self.dice.choice(CONTAINER_ENDS)
            self.note(f"fault: the container of {victim} ends: {message} {reason}")
            if charged and gang:
                self.rules.note_error(task_id)
            self.cluster.report(task_id, TaskState.FAILED, message, reason)
            self._peers_die_of(victim)
            return PROCESS_DEATH
        exit_class, code, charged = self.dice.choice(PROCESS_ENDS)
        self.note(f"fault: the process of {victim} fails: {exit_class}")
        if charged and gang:
            self.rules.note_error(task_id)
        task.runner.fail(exit_class, code, exit_class)
        self._peers_die_of(victim)
        return STALLED if exit_class == "stalled" and gang else PROCESS_DEATH

    def _peers_die_of(self, victim: str) -> None:
        """TensorFlow ends processes whose peer is lost: as ``_who`` would have it restart."""
        role = split_task_name(victim)[0]
        strategy = self.job.strategy
        if role is TaskRole.EVALUATOR:
            return
        for name, record in self.scheduler.state.tasks.items():
            peer = split_task_name(name)[0] is not TaskRole.EVALUATOR and name != victim
            dies = strategy is Strategy.MULTI_WORKER or (
                strategy is Strategy.PARAMETER_SERVER
                and role is TaskRole.PS
                and name == self.job.spec.decider
            )
            if peer and dies and self.dice.random() < 0.8:
                self.note(f"the process of {name} dies of it")
                self.cluster.tasks[record.task_id].runner.fail("peer_lost", 1, "UnavailableError")

    def _check_who_restarted(
        self,
        victim: str,
        table: dict[Strategy, tuple[str, str, str]],
        before: dict[str, tuple[str, int, str]],
    ) -> None:
        after = self._situation()
        restarted = {name for name in after if after[name][:2] != before[name][:2]}
        expected = self._who(victim, table)
        if after[victim][2] != before[victim][2]:
            expected |= self._who(victim, MOVED)
        if restarted != expected:
            raise RuleBroken(f"{victim} failed: {restarted} restarted instead of {expected}")
        new = {name for name in after if after[name][0] != before[name][0]}
        if not new <= {victim}:
            raise RuleBroken(f"{victim} failed: {new} have new containers")

    def _who(self, victim: str, table: dict[Strategy, tuple[str, str, str]]) -> set[str]:
        role = split_task_name(victim)[0]
        if role is TaskRole.EVALUATOR:
            return {victim}
        chief = self.job.spec.decider
        part = 2 if victim == chief else 1 if role is TaskRole.PS else 0
        row = table[self.job.strategy][part]
        everybody = {n for n in self.job.spec.task_names() if not n.startswith("evaluator")}
        servers = {n for n in everybody if n.startswith("ps")}
        return {
            IT: {victim},
            IT_AND_CHIEF: {victim, chief},
            ALL_BUT_PS: (everybody - servers) | {victim},
            ALL: everybody,
        }[row]


def _address(record: TaskRecord) -> str:
    return f"{record.address}:{record.ports[0]}"


if __name__ == "__main__":
    sys.exit(tell(SingleIncident, sys.argv[1:]))
