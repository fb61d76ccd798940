"""One random history of one service: a seed decides every fault, and every rule is checked.

``python tests/simulation/history.py SEED`` prints the history of a seed in readable form;
``make simulate SEEDS=10000`` plays many.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from dcos_tensorflow.core import events
from dcos_tensorflow.core.actions import Accept, Acknowledge, Action, Exit
from dcos_tensorflow.core.job import JobPhase, Outcome
from dcos_tensorflow.core.spec import RetrySpec
from dcos_tensorflow.core.task import TERMINAL_STATES, TaskState
from simulated_mesos import Cluster, Crash, Scheduler, small_job

#: After this many steps no more faults are made, and the job must come to its end.
FAULTY_STEPS = 120
CALM_STEPS = 900


class RuleBroken(AssertionError):
    """A rule of docs/architecture.md does not hold in this history."""


class FaultyScheduler(Scheduler):
    """Crashes where the dice say so: before the commit, after it, between two actions."""

    def __init__(self, dice: random.Random, cluster: Cluster) -> None:
        self.dice = dice
        self.faulty = True
        self.crashes = 0
        super().__init__(small_job(retry=RetrySpec(limit=1000)), cluster)

    def before_commit(self) -> None:
        self._perhaps_crash()

    def before_action(self, action: Action) -> None:
        self._perhaps_crash()
        self._check_order(action)

    def _perhaps_crash(self) -> None:
        if self.faulty and self.dice.random() < 0.01:
            self.crashes += 1
            raise Crash

    def _check_order(self, action: Action) -> None:
        if isinstance(action, Accept):
            for launch in action.launches:
                info = self.store.get(f"Tasks/{launch.name}/TaskInfo", b"").decode()
                if launch.task_id not in info:
                    raise RuleBroken(f"ACCEPT of {launch.task_id} before its record was committed")
        if isinstance(action, Acknowledge):
            record = self.state.task_by_id(action.task_id)
            if record is not None and f'"{record.state}"' not in (
                self.store.get(f"Tasks/{record.name}/TaskStatus", b"").decode()
            ):
                raise RuleBroken(f"{action.task_id} acknowledged before its state was committed")


class History:
    """A seed, played."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.cluster = Cluster(agents=self.dice.randint(1, 5))
        self.scheduler = FaultyScheduler(self.dice, self.cluster)
        self.lines: list[str] = []
        self.launched_at_the_end: int | None = None

    def play(self) -> None:
        """Play it to its end. Raises RuleBroken."""
        self.cluster.subscribe()
        for _ in range(FAULTY_STEPS):
            self._fault()
            self._step()
            self._check()
        self._calm()
        for _ in range(CALM_STEPS):
            self._step()
            self._check()
            self._work()
            if self.scheduler.state.job.phase is JobPhase.DONE:
                break
        self._check_end()

    def _note(self, text: str) -> None:
        self.lines.append(f"{self.cluster.now - 1_000_000:8.1f}  {text}")

    def _step(self) -> None:
        """Time passes; the scheduler handles what has arrived, in order unless the dice say no."""
        try:
            self.cluster.advance(self.dice.choice([0.2, 1.0, 1.0, 5.0]))
            for event in self._arrived():
                self._handle(event)
            self._handle(events.Tick())
        except Crash:
            self._note("the scheduler is killed")
            self._restart()

    def _restart(self) -> None:
        try:
            self.scheduler.restart()
            self._note("the scheduler is back")
        except Crash:
            self._restart()

    def _handle(self, event: events.Event) -> None:
        if isinstance(event, events.TaskUpdate) and event.task_id in self.cluster.tasks:
            task = self.cluster.tasks[event.task_id]
            task.known_to_live = event.state is not TaskState.UNREACHABLE
        decision = self.scheduler.handle(event)
        if decision.why:
            self._note(decision.why)

    def _arrived(self) -> list[events.Event]:
        box, self.cluster.outbox = self.cluster.outbox, []
        if not self.scheduler.faulty:
            return box
        arrived: list[events.Event] = []
        for event in box:
            luck = self.dice.random()
            if luck < 0.05 and isinstance(event, events.TaskUpdate) and event.uuid:
                # Only what Mesos sends again may be lost; the rest is lost with its connection.
                self._note(f"lost: {event.task_id} {event.state}")
            elif luck < 0.10:
                arrived += [event, event]
            elif luck < 0.15:
                self.cluster.outbox.append(event)
            else:
                arrived.append(event)
        return arrived

    def _fault(self) -> None:
        """Perhaps one thing goes wrong, and perhaps some work gets done."""
        luck = self.dice.random()
        alive = self.cluster.alive()
        if luck < 0.5:
            self._work()
        elif luck < 0.56 and alive:
            task_id = self.dice.choice(alive)
            message = self.dice.choice(
                ["Command exited with status 1", "Command terminated with signal Killed"]
            )
            self._note(f"fault: {task_id} fails")
            self.cluster.report(task_id, TaskState.FAILED, message)
        elif luck < 0.60:
            self._note("fault: the subscription breaks")
            self._handle_or_crash(events.Disconnected("fault"))
            self.cluster.subscribe()
        elif luck < 0.64 and self.cluster.offers:
            self.cluster.rescind(self.dice.choice(list(self.cluster.offers)))
            self._note("fault: an offer is rescinded")
        elif luck < 0.68:
            self._toggle_agent()
        elif luck < 0.70 and self.cluster.offers:
            # The rescind is under way while the scheduler accepts.
            self.cluster.offers.pop(self.dice.choice(list(self.cluster.offers)))
            self._note("fault: an offer is void and nobody knows yet")

    def _handle_or_crash(self, event: events.Event) -> None:
        try:
            self._handle(event)
        except Crash:
            self._restart()

    def _toggle_agent(self) -> None:
        agent = self.dice.choice(list(self.cluster.agents.values()))
        agent.reachable = not agent.reachable
        self._note(f"fault: {agent.agent_id} is {'back' if agent.reachable else 'unreachable'}")
        for offer_id in [o for o, f in self.cluster.offers.items() if f.agent_id == agent.agent_id]:
            self.cluster.rescind(offer_id)
        for task_id, task in self.cluster.tasks.items():
            if task.launch.agent_id == agent.agent_id and task.alive:
                task.known_to_live = False
                state = task.state if agent.reachable else TaskState.UNREACHABLE
                if state is TaskState.LAUNCHING:
                    state = TaskState.STAGING
                self.cluster.outbox.append(
                    events.TaskUpdate(task_id, state, agent.agent_id, source="SOURCE_MASTER")
                )

    def _work(self) -> None:
        """Launched tasks run; at the end the decider finishes."""
        for task_id, task in list(self.cluster.tasks.items()):
            if not self.cluster.agents[task.launch.agent_id].reachable:
                continue
            if task.state is TaskState.LAUNCHING and self.dice.random() < 0.5:
                self.cluster.report(task_id, TaskState.RUNNING)
            elif (
                (not self.scheduler.faulty or self.dice.random() < 0.02)
                and task.state is TaskState.RUNNING
                and task_id.split("__")[1] == "worker-0"
                and self.scheduler.state.task_by_id(task_id) is not None
                and self.scheduler.state.job.phase is JobPhase.RUNNING
            ):
                self.cluster.report(task_id, TaskState.FINISHED)

    def _calm(self) -> None:
        self._note("no more faults")
        self.scheduler.faulty = False
        for agent in self.cluster.agents.values():
            if not agent.reachable:
                agent.reachable = True
                for task_id, task in self.cluster.tasks.items():
                    if task.launch.agent_id == agent.agent_id and task.alive:
                        self.cluster.outbox.append(
                            events.TaskUpdate(task_id, task.state, agent.agent_id)
                        )
        self.cluster.subscribe()

    def _check(self) -> None:
        launched = self.cluster.launch_history
        for task_id in self.cluster.finished:
            # An attempt that was given up while its agent was away decides nothing any more.
            record = self.scheduler.state.task_by_id(task_id)
            if self.launched_at_the_end is None and record and record.name == "worker-0":
                self.launched_at_the_end = len(launched)
        if self.launched_at_the_end not in (None, len(launched)):
            raise RuleBroken(f"a finished job is run again: {launched[-1]}")
        if self.cluster.double_starts:
            raise RuleBroken(f"started twice at once: {self.cluster.double_starts}")
        if isinstance(self.scheduler.exit, Exit):
            raise RuleBroken(f"the scheduler left: {self.scheduler.exit.message}")
        for offer in self.scheduler.state.offers.values():
            held = self.cluster.now - offer.received_at
            limit = self.scheduler.state.spec.gang.hold_seconds + 10.0
            if held > limit and self.scheduler.state.registered:
                raise RuleBroken(f"offer {offer.offer_id} held for {held:.0f} s")

    def _check_end(self) -> None:
        job = self.scheduler.state.job
        if job.phase is not JobPhase.DONE or job.verdict is None:
            raise RuleBroken(f"the job never ended: {job.phase}: {job.why}")
        if job.verdict.outcome is not Outcome.SUCCEEDED:
            raise RuleBroken(f"the job ended as {job.verdict}")
        for _ in range(60):
            self._step()
        if self.cluster.alive():
            raise RuleBroken(f"left over: {self.cluster.alive()}")
        if self.cluster.offers:
            raise RuleBroken(f"offers still held: {sorted(self.cluster.offers)}")
        states = {r.state for r in self.scheduler.state.tasks.values()}
        if not states <= TERMINAL_STATES:
            raise RuleBroken(f"records that never ended: {states}")


def main(arguments: list[str]) -> int:
    """Print one seed's history, or play ``--seeds N`` of them and name those that break a rule."""
    if arguments[0] != "--seeds":
        history = History(int(arguments[0]))
        try:
            history.play()
        except RuleBroken as broken:
            history.lines.append(f"RULE BROKEN: {broken}")
        print("\n".join(history.lines))
        return 0
    broken_seeds = []
    for seed in range(int(arguments[1])):
        try:
            History(seed).play()
        except RuleBroken as broken:
            broken_seeds.append(seed)
            print(f"seed {seed}: {broken}")
    print(f"{int(arguments[1])} histories, {len(broken_seeds)} with a broken rule")
    return 1 if broken_seeds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
