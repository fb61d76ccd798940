"""The way between scheduler and task runners: orders and reports are lost, late and doubled.

One request is under way to each runner at a time, as in ``scheduler.runners.runner_client``; so
orders to one runner never overtake each other. What a killed scheduler has sent may still arrive.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.core.cluster.orders import order
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.report import needs_order
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import gang_named
from simulated.mesos import Cluster
from simulated.runner import Runner


@dataclass
class _Message:
    due: float
    task_id: str
    body: Mapping[str, Any]
    #: The scheduler that sent it is there to hear the answer.
    is_awaited: bool = True


class RunnerNetwork:
    """Messages under way. ``faulty`` false: everything arrives at once."""

    def __init__(self, dice: random.Random, cluster: Cluster, note: Callable[[str], None]) -> None:
        self._dice = dice
        self._cluster = cluster
        self._note = note
        self._orders: list[_Message] = []
        self._reports: list[_Message] = []
        self.faulty = True
        #: Seconds that a message takes, one as often as the other.
        self.delays = (0.0, 0.0, 0.5, 4.0)

    def poll(self, state: ServiceState) -> None:
        """Ask every runner, and send its order to each that is not under it."""
        now = self._cluster.now
        asked = {m.task_id for m in (*self._orders, *self._reports)}
        for record in state.live_tasks:
            runner = self._cluster.ask(record)
            if runner is None or record.task_id in asked or self._is_lost():
                continue
            body = order(state.view(gang_named(record.name)), record)
            if body is None or not needs_order(record, runner.report()):
                if state.told.reports.get(record.task_id) != runner.report():
                    self._reports.append(_Message(now + self._delay(), record.task_id, {}))
                    self._reports[-1].body = runner.report()
                continue
            message = {**body, "round": record.ordered_at}
            due = now + self._delay()
            self._orders.append(_Message(due, record.task_id, message))
            if self.faulty and self._dice.random() < 0.1:
                self._orders.append(_Message(due, record.task_id, message))

    def arrive(self) -> list[events.RunnerReported]:
        """Let what is due arrive; return what it is for the scheduler.

        What answers an order is a report, of a runner that does not obey, too.
        """
        answers = []
        for message in self._due(self._orders):
            runner = self._runner(message.task_id)
            if runner is None:
                continue
            before = len(runner.starts)
            runner.take(message.body)
            if self.faulty or len(runner.starts) != before:
                run = "run" if message.body["run"] else "hold"
                self._note(f"{message.task_id} is told: start {message.body['start']}, {run}")
            if message.is_awaited:
                answers.append(events.RunnerReported(message.task_id, runner.report()))
        reports = [events.RunnerReported(m.task_id, m.body) for m in self._due(self._reports)]
        return [*reports, *answers]

    def scheduler_is_gone(self) -> None:
        """Forget what was on its way to a scheduler; half of what it has sent arrives."""
        self._reports.clear()
        self._orders = [m for m in self._orders if self._dice.random() < 0.5]
        for message in self._orders:
            message.is_awaited = False

    def _due(self, messages: list[_Message]) -> list[_Message]:
        due = [m for m in messages if m.due <= self._cluster.now]
        messages[:] = [m for m in messages if m.due > self._cluster.now]
        return due

    def _runner(self, task_id: str) -> Runner | None:
        task = self._cluster.tasks.get(task_id)
        if task is None or not task.alive:
            return None
        agent = self._cluster.agents[task.launch.agent_id]
        return task.runner if agent.reachable and not agent.frozen else None

    def _is_lost(self) -> bool:
        return self.faulty and self._dice.random() < 0.15

    def _delay(self) -> float:
        return self._dice.choice(self.delays) if self.faulty else 0.0
