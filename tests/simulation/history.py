"""One random history of one service: a seed decides every fault, and every rule is checked.

``python tests/simulation/history.py SEED`` prints the history of a seed in readable form;
``make simulate SEEDS=10000`` plays many (``simulate``). ``history_faults`` are what goes wrong,
``history_rules`` what must hold all the same, ``history_jobs`` what is run.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history_faults import Faults
from history_jobs import Job, random_job, room_for
from history_rules import RuleBroken, Rules
from runner_network import RunnerNetwork

from dcos_tensorflow.core.advance import KILL_RETRY_SECONDS
from dcos_tensorflow.core.cluster.launch import KILL_MARGIN_SECONDS
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, EraseState, Exit
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TERMINAL_STATES, TaskState
from dcos_tensorflow.core.restarts.outcome import deciding_tasks
from dcos_tensorflow.core.spec.service_spec import Strategy
from dcos_tensorflow.core.step import Decision
from simulated.mesos import Cluster
from simulated.scheduler import Crash, Scheduler

#: After this many steps no more faults are made, and the job must come to its end.
FAULTY_STEPS = 120
CALM_STEPS = 600


class FaultyScheduler(Scheduler):
    """Crashes where the dice say so: before the commit, after it, between two actions.

    At times its store is away: then it waits, and what it has decided is old when it acts.
    """

    def __init__(self, dice: random.Random, job: Job, cluster: Cluster, rules: Rules) -> None:
        self.dice = dice
        self.rules = rules
        self.faulty = True
        self.crash_chance = 0.0
        self.crashes = 0
        self.waits = 0
        self._events: tuple[events.Event, ...] = ()
        #: The state that was erased held a framework id.
        self.knew_framework = False
        super().__init__(job.spec, cluster)

    def handle(self, *together: events.Event) -> Decision:
        """Handle what came in together; the end of a task is where a crash costs most."""
        finished = any(
            isinstance(event, events.TaskUpdate) and event.state is TaskState.FINISHED
            for event in together
        )
        self.crash_chance = 0.1 if finished else 0.005
        self._events = together
        return super().handle(*together)

    def before_commit(self) -> None:
        self._perhaps_crash()
        while self.faulty and self.dice.random() < 0.01:
            self.waits += 1
            self.cluster.advance(self.dice.choice([0.2, 1.0, 5.0]))
            self._perhaps_crash()

    def after_commit(self, before: ServiceState, decision: Decision) -> None:
        self.rules.check_decision(before, self._events, decision)
        if any(isinstance(action, EraseState) for action in decision.actions):
            self.knew_framework = bool(before.framework_id)
        self._perhaps_crash()

    def before_action(self, action: Action) -> None:
        self._perhaps_crash()
        self.rules.check_action(self.state, self.store, action)

    def _perhaps_crash(self) -> None:
        if self.faulty and self.dice.random() < self.crash_chance:
            self.crashes += 1
            raise Crash


class History:
    """A seed, played."""

    #: Seconds between two looks of the scheduler, one as often as the other.
    pauses = (0.2, 1.0, 1.0, 5.0)
    #: Of so many messages one is overtaken by those that come after it.
    late_chance = 0.05
    #: After so many steps without a fault the job is over.
    calm_steps = CALM_STEPS
    faults_kind = Faults

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []
        self.job = self.make_job()
        self.cluster = self.make_cluster()
        self.rules = self.make_rules()
        self.scheduler = FaultyScheduler(self.dice, self.job, self.cluster, self.rules)
        self.network = RunnerNetwork(self.dice, self.cluster, self.note)
        self.faults = self.faults_kind(self)
        self.away_until = 0.0
        self.checkpoint: int | None = None
        roles = ", ".join(f"{r.count} {r.role}" for r in self.job.spec.roles if r.count)
        self.note(f"{self.job.strategy}: {roles} on {len(self.cluster.agents)} agents")

    def make_job(self) -> Job:
        """Return the job of this history."""
        return random_job(self.dice)

    def make_cluster(self) -> Cluster:
        """Return the machines of this history."""
        return room_for(self.dice, self.job)

    def make_rules(self) -> Rules:
        """Return what must hold in this history."""
        return Rules(self.job, self.cluster)

    def play(self) -> None:
        """Play it to its end. Raises RuleBroken."""
        self.cluster.kill_seconds = self.dice.choice([0.0, 0.0, 2.0, 8.0])
        self.cluster.subscribe()
        for _ in range(FAULTY_STEPS):
            self.faults.perhaps()
            self.step()
        self.come_to_the_end()

    def come_to_the_end(self) -> None:
        """Make no more faults; the job must end well, and leave nothing behind."""
        self._calm()
        for _ in range(self.calm_steps):
            self.step()
            self.work(1.0)
            if self._is_over():
                break
        # The end waits for ten evaluations at most, each as long as one took that faults held up.
        evaluations = self.scheduler.state.told.evaluations.values()
        until = self.cluster.now + 10 * max((one.seconds for one in evaluations), default=0.0)
        while not self._is_over() and self.cluster.now < until:
            self.step()
            self.work(1.0)
        self._check_end()

    def note(self, text: str) -> None:
        """Add a line to the readable history."""
        self.lines.append(f"{self.cluster.now - 1_000_000:8.1f}  {text}")

    def step(self) -> None:
        """Time passes; the scheduler handles what has arrived, in order unless the dice say no."""
        self.cluster.advance(self.dice.choice(self.pauses))
        self._train()
        if self.cluster.now < self.away_until:
            return
        try:
            if self.away_until:
                self._restart()
            self._handle_all(self._arrived())
            self.network.poll(self.scheduler.state)
            self._handle_all(self.network.arrive())
            self.handle(events.Tick())
        except Crash:
            self.crashed()

    def crashed(self) -> None:
        """The scheduler process is gone; it is started again."""
        self.note("the scheduler is killed")
        self.away_until = self.cluster.now + self.dice.choice([0.0, 0.0, 3.0, 30.0])
        self.cluster.disconnect()
        self.network.scheduler_is_gone()

    def _handle_all(self, waiting: Sequence[events.Event]) -> None:
        """Let the scheduler take what waits: in one step, or in as many as the dice say."""
        left = list(waiting)
        while left:
            number = self.dice.choice([1, 2, len(left)])
            self.handle(*left[:number])
            del left[:number]

    def handle(self, *together: events.Event) -> None:
        """Let the scheduler handle in one step what came in together, and check every rule."""
        if self.away_until:
            return
        for event in together:
            if isinstance(event, events.TaskUpdate) and event.task_id in self.cluster.tasks:
                task = self.cluster.tasks[event.task_id]
                task.known_to_live = event.state is not TaskState.UNREACHABLE
        decision = self.scheduler.handle(*together)
        if decision.why:
            self.note(decision.why)
        self.rules.check_cluster(self.scheduler.state)
        if isinstance(self.scheduler.exit, Exit):
            raise RuleBroken(f"the scheduler left: {self.scheduler.exit.message}")

    def work(self, speed: float) -> None:
        """Launched tasks run; at the end the deciders finish."""
        for task_id, task in list(self.cluster.tasks.items()):
            agent = self.cluster.agents[task.launch.agent_id]
            if not agent.reachable or agent.frozen:
                continue
            if task.state is TaskState.LAUNCHING and self.dice.random() < 0.5:
                self.cluster.report(task_id, TaskState.RUNNING)
            elif self.dice.random() < (0.01 if self.scheduler.faulty else speed):
                self._perhaps_finish(task_id)

    def _perhaps_finish(self, task_id: str) -> None:
        state, task = self.scheduler.state, self.cluster.tasks[task_id]
        trains = task.state is TaskState.RUNNING and task.runner.state == "running"
        if (
            not trains
            or state.task_by_id(task_id) is None
            or state.job.phase is not JobPhase.RUNNING
        ):
            return
        if task_id.split("__")[1] in deciding_tasks(state.spec):
            self.note(f"{task_id} finishes")
            self.cluster.report(task_id, TaskState.FINISHED)

    def _train(self) -> None:
        """Each task that trains makes steps; the decider leaves checkpoints that all can read."""
        self._show_checkpoint()
        chief = self.job.spec.decider
        step = None
        if self.job.strategy is Strategy.MULTI_WORKER and not self._all_train():
            # They make each step together.
            return
        for task in self.cluster.tasks.values():
            if task.alive and task.runner.state == "running":
                task.runner.step = (task.runner.step or 0) + 1
                if task.launch.name == chief and self.scheduler.state.task_by_id(
                    task.launch.task_id
                ):
                    step = task.runner.step
        if step is not None and self.dice.random() < 0.2:
            self.checkpoint = step
            self._show_checkpoint()

    def _show_checkpoint(self) -> None:
        """Let all runners find the newest checkpoint; one that stops its process looks after."""
        for task in self.cluster.tasks.values():
            task.runner.checkpoint = self.checkpoint

    def _all_train(self) -> bool:
        state = self.scheduler.state
        ids = [state.tasks[n].task_id for n in state.view().roster.names if n in state.tasks]
        gang = [self.cluster.tasks.get(task_id) for task_id in ids]
        return all(task is not None and task.runner.state == "running" for task in gang)

    def _restart(self) -> None:
        self.away_until = 0.0
        if not self.scheduler.store:
            # What was uninstalled is not started again.
            self.away_until = float("inf")
            return
        self.note("the scheduler is back")
        self.scheduler.restart()

    def _arrived(self) -> list[events.Event]:
        box, self.cluster.outbox = self.cluster.outbox, []
        if not self.scheduler.faulty:
            return box
        arrived: list[events.Event] = []
        for event in box:
            luck = self.dice.random()
            if luck < 0.05 and isinstance(event, events.TaskUpdate) and event.uuid:
                # Only what Mesos sends again may be lost; the rest is lost with its connection.
                self.note(f"lost: {event.task_id} {event.state}")
            elif luck < 0.10:
                arrived += [event, event]
            elif luck < 0.10 + self.late_chance and not isinstance(event, events.Registered):
                # SUBSCRIBED is the first record of a stream: nothing overtakes it.
                self.cluster.outbox.append(event)
            else:
                arrived.append(event)
        return arrived

    def _calm(self) -> None:
        self.note("no more faults")
        self.scheduler.faulty = self.network.faulty = False
        self.away_until = min(self.away_until, self.cluster.now)
        self.faults.mend()

    def _is_over(self) -> bool:
        if self.scheduler.state.uninstall.asked:
            return not self.scheduler.store
        return self.scheduler.state.job.phase is JobPhase.DONE

    def _check_end(self) -> None:
        job, uninstall = self.scheduler.state.job, self.scheduler.state.uninstall
        if not self._is_over() or job.verdict is None:
            raise RuleBroken(f"the job never ended: {job.phase}: {job.why}")
        self._check_outcome()
        for _ in range(20):
            self.step()
        # A task that comes back after the end is killed when the KILL that found none is due again.
        spec = self.scheduler.state.spec
        again = spec.kill_grace_seconds + KILL_MARGIN_SECONDS + KILL_RETRY_SECONDS
        until = self.cluster.now + again
        while self.cluster.alive() and self.cluster.now < until:
            self.step()
        if self.cluster.alive():
            raise RuleBroken(f"left over: {self.cluster.alive()}")
        if self.cluster.offers:
            raise RuleBroken(f"offers still held: {sorted(self.cluster.offers)}")
        states = {r.state for r in self.scheduler.state.tasks.values()}
        if not states <= TERMINAL_STATES and not uninstall.given_up:
            raise RuleBroken(f"records that never ended: {states}")
        if uninstall.asked and not self.cluster.torn_down and self.scheduler.knew_framework:
            # Of one whose id is not known yet only the master knows: without a subscription
            # for its failover timeout, it removes it.
            raise RuleBroken("the framework was not removed")

    def _check_outcome(self) -> None:
        job, uninstall = self.scheduler.state.job, self.scheduler.state.uninstall
        if job.verdict is None or uninstall.asked or job.verdict.outcome is Outcome.SUCCEEDED:
            return
        limit = self.scheduler.state.spec.retry.limit
        used_up = self.rules.charged > limit and "used up" in job.verdict.summary
        own = self.rules.explains(self.scheduler.state)
        if job.verdict.outcome is not Outcome.FAILED or not (used_up or own):
            raise RuleBroken(f"the job ended as {job.verdict}")


def story(kind: type[History], seed: int) -> str:
    """Play a seed; return its history in readable form, with the rule it breaks at the end."""
    history = kind(seed)
    try:
        history.play()
    except (RuleBroken, AssertionError) as broken:
        history.lines.append(f"RULE BROKEN: {broken}")
    return "\n".join(history.lines)


def tell(kind: type[History], arguments: list[str]) -> int:
    """Print the history of the seed that is given."""
    print(story(kind, int(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(tell(History, sys.argv[1:]))
