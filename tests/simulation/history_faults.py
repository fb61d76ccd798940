"""What goes wrong in a history, and what people ask for meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from history_jobs import other_options

from dcos_tensorflow.core.contract import NOTICE_INTERRUPTION, NOTICE_SECONDS
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.controls import DEPLOY, RECOVERY, UPDATE
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from simulated.mesos import Agent, RunningTask
from simulated.scheduler import Crash

if TYPE_CHECKING:
    from history import History

#: Ends of a process in a container that stays: (class, exit code, does it cost a retry).
PROCESS_ENDS = (
    ("user_error", 1, True),
    ("stalled", 137, True),
    ("out_of_memory", 137, True),
    ("peer_lost", 1, False),
    ("interrupted", 137, False),
    ("interrupted", 143, False),
    ("checkpointed", 42, False),
    ("frozen", 137, False),
)
#: Ends of a container: (message, Mesos reason, does it cost a retry).
CONTAINER_ENDS = (
    ("Command exited with status 1", "", True),
    ("Command exited with status 137", "REASON_CONTAINER_LIMITATION_MEMORY", True),
    ("Command exited with status 75", "", False),
    ("Command terminated with signal Killed", "", False),
    ("Command exited with status 1", "REASON_AGENT_RESTARTED", False),
    ("Command exited with status 1", "REASON_CONTAINER_PREEMPTED", False),
)

#: So long after it froze, the master takes an agent for unreachable.
NOTICED_SECONDS = 30.0


class Faults:
    """Makes one fault at a time, as the dice of its history say."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._dice = history.dice
        self._cluster = history.cluster
        self._uninstalls = self._dice.random() < 0.07
        self._disobedient = 0
        self._frozen: dict[str, float] = {}
        self._maintenance = 0
        self._table = self.table()

    def table(self) -> tuple[tuple[int, Callable[[], None]], ...]:
        """Return the faults with their weights."""
        return (
            (50, lambda: self._history.work(0.5)),
            (6, self._process_fails),
            (4, self._container_dies),
            (3, self._subscription_breaks),
            (2, self._offer_is_rescinded),
            (2, self._offer_is_void),
            (4, self._agent_goes_or_comes),
            (1, self._agent_freezes),
            (1, self._runner_disobeys),
            (3, self._process_becomes_slow),
            (3, self._pod_command),
            (2, self._plan_command),
            (3, self._unreachable_is_replaced),
            (2, self._options_change),
            (1, self._maintenance_is_announced),
            (1, self._machine_is_taken_back),
            (1, self._accept_has_no_answer),
            (10, lambda: None),
        )

    def perhaps(self) -> None:
        """Perhaps one thing goes wrong, and perhaps some work gets done."""
        self._master_notices()
        weights = [weight for weight, _ in self._table]
        fault = self._dice.choices([fault for _, fault in self._table], weights)[0]
        try:
            fault()
            if self._uninstalls and self._dice.random() < 0.02:
                self._note("an operator asks for the uninstall")
                self._uninstalls = False
                self._history.handle(events.UninstallRequested("asked for"))
        except Crash:
            self._history.crashed()

    def mend(self) -> None:
        """Everything that is away comes back; people let go on what they held back."""
        try:
            for agent in self._cluster.agents.values():
                agent.unavailable_from = None
                if not agent.reachable or agent.frozen:
                    self._cluster.bring_back(agent.agent_id)
            self._history.step()
            if not self._history.away_until:
                self._cluster.subscribe()
            self._history.step()
            for number in range(self._maintenance):
                self._history.handle(events.InverseOfferRescinded(f"i{number}"))
            controls = self._history.scheduler.state.controls
            self._pod(events.PodVerb.RESUME, *controls.paused_tasks)
            for key in controls.paused:
                plan, _, phase = key.partition("/")
                self._plan(plan, events.PlanVerb.RESUME, phase)
        except Crash:
            self._history.crashed()

    def _note(self, text: str) -> None:
        self._history.note(f"fault: {text}")

    def _alive(self) -> list[tuple[str, RunningTask]]:
        return [
            (task_id, task)
            for task_id, task in self._cluster.tasks.items()
            if task.alive and self._agent(task).reachable and not self._agent(task).frozen
        ]

    def _agent(self, task: RunningTask) -> Agent:
        return self._cluster.agents[task.launch.agent_id]

    def _process_fails(self) -> None:
        running = [(i, t) for i, t in self._alive() if t.runner.state == "running"]
        running = [(i, t) for i, t in running if t.state is TaskState.RUNNING]
        if not running:
            return
        task_id, task = self._dice.choice(running)
        exit_class, code, charged = self._dice.choice(PROCESS_ENDS)
        if charged:
            self._history.rules.note_error(task_id)
        self._note(f"the process of {task_id} fails: {exit_class}")
        error = self._own_error(task_id) if exit_class == "user_error" else None
        task.runner.fail(exit_class, code, exit_class, error)
        for other_id, other in running if error is not None and self._dice.random() < 0.3 else ():
            if other is not task and other.launch.name.split("-")[0] != TaskRole.EVALUATOR:
                self._history.rules.note_error(other_id)
                self._history.rules.note_own_error(other_id, error)
                self._note(f"the process of {other_id} fails alike")
                other.runner.fail(exit_class, code, exit_class, error)
        if self._history.job.strategy == "multi_worker":
            for other_id, other in running:
                gang = other.launch.name.split("-")[0] != TaskRole.EVALUATOR
                lives = other.runner.state == "running"
                if gang and lives and other is not task and self._dice.random() < 0.5:
                    self._note(f"the process of {other_id} dies of it")
                    other.runner.fail("peer_lost", 1, "UnavailableError")

    def _container_dies(self) -> None:
        alive = self._alive()
        if not alive:
            return
        task_id, _ = self._dice.choice(alive)
        message, reason, charged = self._dice.choice(CONTAINER_ENDS)
        if charged:
            self._history.rules.note_error(task_id)
        error = self._own_error(task_id) if charged else None
        if error is not None:
            self._cluster.errors[task_id] = OwnError(error[0], "train.py", error[1])
        self._note(f"the container of {task_id} ends: {message} {reason}")
        self._cluster.report(task_id, TaskState.FAILED, message, reason)

    def _own_error(self, task_id: str) -> tuple[str, int] | None:
        """Return an exception of the user's code, at one of a few lines; None for none."""
        line = self._dice.randrange(5)
        if not line:
            return None
        self._history.rules.note_own_error(task_id, ("ValueError", line))
        return "ValueError", line

    def _subscription_breaks(self) -> None:
        if self._history.away_until:
            return
        self._note("the subscription breaks")
        self._history.handle(events.Disconnected("fault"))
        if self._dice.random() < 0.5:
            # A new master knows nothing of offers; what it was told of agents comes again.
            self._cluster.advance(self._dice.choice([1.0, 10.0]))
        self._cluster.subscribe()

    def _offer_is_rescinded(self) -> None:
        if self._cluster.offers:
            self._note("an offer is rescinded")
            self._cluster.rescind(self._dice.choice(list(self._cluster.offers)))

    def _offer_is_void(self) -> None:
        """The rescind is under way while the scheduler accepts."""
        if self._cluster.offers:
            self._note("an offer is void and not known to be yet")
            self._cluster.offers.pop(self._dice.choice(list(self._cluster.offers)))

    def _agent_goes_or_comes(self) -> None:
        agent = self._dice.choice(list(self._cluster.agents.values()))
        if agent.reachable and not agent.frozen:
            self._note(f"{agent.agent_id} is unreachable")
            self._cluster.lose(agent.agent_id)
        else:
            self._note(f"{agent.agent_id} is back")
            self._cluster.bring_back(agent.agent_id)

    def _agent_freezes(self) -> None:
        """Nothing moves on it; the master does not know yet."""
        agent = self._dice.choice(list(self._cluster.agents.values()))
        if agent.reachable and not agent.frozen:
            self._note(f"{agent.agent_id} freezes")
            agent.frozen = True
            self._frozen[agent.agent_id] = self._cluster.now + NOTICED_SECONDS

    def _master_notices(self) -> None:
        """An agent that does not answer the master's pings becomes unreachable."""
        for agent_id, noticed_at in list(self._frozen.items()):
            agent = self._cluster.agents[agent_id]
            if not agent.frozen or self._cluster.now >= noticed_at:
                del self._frozen[agent_id]
            if agent.frozen and agent.reachable and self._cluster.now >= noticed_at:
                self._note(f"{agent_id} is unreachable")
                self._cluster.lose(agent_id, frozen=True)

    def _runner_disobeys(self) -> None:
        alive = self._alive()
        if alive and self._disobedient < 2:
            self._disobedient += 1
            task_id, task = self._dice.choice(alive)
            self._note(f"the runner of {task_id} obeys no more")
            task.runner.obeys = False
            # It can also not be told to start: then its start times out, and that is charged.
            self._history.rules.note_error(task_id)

    def _process_becomes_slow(self) -> None:
        for _, task in self._alive():
            task.runner.stop_seconds = self._dice.choice([0.0, 1.0, 8.0])

    def _names(self) -> list[str]:
        return list(self._history.scheduler.state.spec.task_names())

    def _pod(self, verb: events.PodVerb, *names: str) -> None:
        if names:
            self._note(f"pod {verb} {', '.join(names)}")
            self._history.handle(events.PodCommand(verb, names))

    def _plan(self, plan: str, verb: events.PlanVerb, phase: str = "") -> None:
        self._note(f"plan {verb} {plan} {phase}")
        self._history.handle(events.PlanCommand(plan, verb, phase))

    def _pod_command(self) -> None:
        names = self._dice.sample(
            self._names(), k=self._dice.choice([1, 1, 2]) % len(self._names())
        )
        self._pod(self._dice.choice(list(events.PodVerb)), *names)

    def _unreachable_is_replaced(self) -> None:
        """An operator does not wait for an agent, and the agent comes back at that moment."""
        records = self._history.scheduler.state.live_tasks
        away = [r for r in records if r.state is TaskState.UNREACHABLE]
        if away:
            record = self._dice.choice(away)
            self._pod(events.PodVerb.REPLACE, record.name)
            if self._dice.random() < 0.5:
                self._note(f"{record.agent_id} is back")
                self._cluster.bring_back(record.agent_id)

    def _plan_command(self) -> None:
        verbs = [v for v in events.PlanVerb if v is not events.PlanVerb.FORCE_COMPLETE]
        self._plan(self._dice.choice([DEPLOY, RECOVERY, UPDATE]), self._dice.choice(verbs))

    def _options_change(self) -> None:
        spec = self._history.scheduler.state.spec
        changed = other_options(self._dice, spec)
        if self._history.scheduler.state.job.phase is JobPhase.DONE:
            return
        counts = ", ".join(f"{r.count} {r.role} {dict(r.env)}" for r in changed.roles)
        self._note(f"other options: {counts}")
        self._history.handle(events.ConfigurationChanged(changed))

    def _maintenance_is_announced(self) -> None:
        agent = self._dice.choice(list(self._cluster.agents.values()))
        start = self._cluster.now + self._dice.choice([10.0, 100.0])
        agent.unavailable_from = start
        self._note(f"{agent.agent_id} is to be taken down")
        offer = events.InverseOffer(f"i{self._maintenance}", agent.agent_id, start, None)
        self._maintenance += 1
        self._history.handle(events.InverseOffersReceived((offer,)))

    def _machine_is_taken_back(self) -> None:
        """Its runners say so, and another machine comes; what becomes of this one is another's."""
        alive = self._alive()
        if not alive:
            return
        agent = self._agent(self._dice.choice(alive)[1])
        at = self._cluster.now + self._dice.choice([20.0, NOTICE_SECONDS])
        self._note(f"the machine of {agent.agent_id} is to be taken back")
        for _, task in alive:
            if task.launch.agent_id == agent.agent_id:
                task.runner.notice = {"kind": NOTICE_INTERRUPTION, "at": at}
        self._cluster.add_agent()

    def _accept_has_no_answer(self) -> None:
        launching = [
            r.task_id
            for r in self._history.scheduler.state.live_tasks
            if r.state is TaskState.LAUNCHING
        ]
        if launching:
            self._note("the ACCEPT has no answer")
            failed = events.CallFailed("ACCEPT", "timed out", True, (), tuple(launching))
            self._history.handle(failed)
