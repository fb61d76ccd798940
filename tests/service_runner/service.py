"""A service whose scheduler begins as the real one does and runs against a model of Mesos.

``Service`` is what ticks act upon and look at; it lives as long as one scheduler process. What
outlives it, the stored values and the cluster, is carried over to the next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept, Action, EraseState, Kill, LaunchTask, Write
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.plans.elements import Plan
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import Uri
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.options.errors import one_sentence
from dcos_tensorflow.scheduler.beginning import NothingInForce, begin
from dcos_tensorflow.task.spec import RunnerSpec, parse_spec
from service_runner.package_app import SchedulerStart
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler

#: How the ports of a DC/OS agent are offered.
DCOS_PORTS = PortRanges(((1025, 2180), (2182, 3887), (3889, 5049), (5052, 8079), (8082, 8180)))
LARGE = Resources(cpus=16, mem=65536, disk=100_000)
_STEP_SECONDS = 0.25


def agents(count: int = 4, size: Resources = LARGE, **more: Any) -> Cluster:
    """Return a cluster of equal agents S0, S1, ...; ``more`` changes their size, ``gpus=4``."""
    cluster = Cluster(count, dataclasses.replace(size, **more))
    for agent in cluster.agents.values():
        agent.ports = DCOS_PORTS
    return cluster


class _Values:
    """The part of a state store that a beginning needs, over a plain mapping."""

    service = "in memory"

    def __init__(self, values: dict[str, bytes]) -> None:
        self._values = values

    def load(self) -> dict[str, bytes]:
        return dict(self._values)

    def commit(self, writes: Iterable[Write]) -> None:
        for write in writes:
            if write.value is None:
                self._values.pop(write.path, None)
            else:
                self._values[write.path] = write.value


class BegunScheduler(Scheduler):
    """The event loop without threads, over what ``scheduler.beginning`` begins with."""

    def __init__(self, start: SchedulerStart, cluster: Cluster, store: dict[str, bytes]) -> None:
        self.cluster, self.store = cluster, store
        self.decisions = []
        self.exit = None
        self.erased = False
        self.performed: list[Action] = []
        runner = Uri(f"http://{start.settings['advertise']}/runner.pyz", extract=False)
        try:
            self.beginning = begin(
                _Values(store),  # type: ignore[arg-type]
                start.spec,
                LaunchSettings(runner=runner),
                refused=one_sentence(start.problem) if start.problem is not None else "",
                uninstall=bool(start.settings["uninstall"]),
            )
        except NothingInForce as error:
            raise start.problem or error from error
        self.state = self.beginning.state
        self.options = self.beginning.options
        if start.problem is None:
            self.options.note(start.spec, start.given)
        if self.state.seeks_former_life:
            # Of what was never stored here the model of Mesos knows nothing either.
            self.handle(events.FormerLifeKnown())
        for event in self.beginning.events:
            self.handle(event)
        self._keep_options()

    def handle(self, *together: events.Event) -> Decision:
        decision = super().handle(*together)
        self._keep_options()
        return decision

    def _keep_options(self) -> None:
        # As the real scheduler does after each step.
        if not self.state.uninstall.asked:
            self.options.keep(self.state, lambda writes: self.commit(tuple(writes)))

    def commit(self, writes: tuple[Write, ...]) -> None:
        # As the real loop: after the erase nothing makes a service of what was uninstalled.
        if not self.erased:
            super().commit(writes)

    def before_action(self, action: Action) -> None:
        self.erased = self.erased or isinstance(action, EraseState)
        self.performed.append(action)


@dataclass
class Service:
    """One scheduler process of a service.

    ``sent`` are the offers of the last ``Send`` (offer id -> agent id), ``actions`` what the
    scheduler has done since; ``expected`` are the names of tasks whose launch or end some
    ``Expect`` has named. ``before`` are the task ids that the scheduler has begun with.
    """

    start: SchedulerStart
    scheduler: BegunScheduler
    cluster: Cluster
    before: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    expected: set[str] = field(default_factory=set)

    @staticmethod
    def of(start: SchedulerStart, cluster: Cluster, store: dict[str, bytes]) -> Service:
        """Return the service of a process that starts now."""
        before = {}
        scheduler = BegunScheduler(start, cluster, store)
        for name, record in scheduler.state.tasks.items():
            before[name] = record.task_id
        return Service(start, scheduler, cluster, before)

    def begin_tick(self) -> None:
        """Forget what was done for earlier ticks."""
        self.scheduler.performed.clear()
        self.sent, self.actions, self.expected = {}, [], set()

    def settle(self, seconds: float = _STEP_SECONDS) -> None:
        """Let the scheduler handle all there is, and time pass; no offers are made."""
        end = self.cluster.now + seconds
        self.scheduler.drain()
        while self.cluster.now < end:
            self._pass_time(min(1.0, end - self.cluster.now))
            self.scheduler.drain()
            self.scheduler.poll()
            self.scheduler.drain()
            self.scheduler.handle(events.Tick())
            self.scheduler.drain()
        self.actions = list(self.scheduler.performed)
        for launch in self.launches():
            # What a task's runner cannot read would only be found out on an agent.
            self.runner_spec(launch)

    @staticmethod
    def runner_spec(launch: LaunchTask) -> RunnerSpec:
        """Return what a task's runner reads out of its launch."""
        spec = launch.env[contract.RUNNER_SPEC_VARIABLE]
        return parse_spec(spec, launch.env.get(contract.RUNNER_ADDRESSES_VARIABLE, ""))

    def _pass_time(self, seconds: float) -> None:
        wanted, self.cluster.suppressed = self.cluster.suppressed, True
        self.cluster.advance(seconds)
        self.cluster.suppressed = wanted

    def launches(self) -> list[LaunchTask]:
        """Return what was launched since the last ``Send``."""
        accepts = [action for action in self.actions if isinstance(action, Accept)]
        return [launch for accept in accepts for launch in accept.launches]

    def kills(self) -> list[str]:
        """Return the task ids that were killed since the last ``Send``."""
        return list(dict.fromkeys(a.task_id for a in self.actions if isinstance(a, Kill)))

    def plan(self, name: str) -> Plan | None:
        """Return a plan, None when there is none of this name now."""
        return plans(self.scheduler.state.view()).get(name)

    def unexpected(self) -> list[str]:
        """Return what was done since the last ``Send`` and named by no ``Expect``."""
        names = [f"launched {launch.name}" for launch in self.launches()]
        names += [f"killed {name_of(task_id)}" for task_id in self.kills()]
        return [name for name in dict.fromkeys(names) if name not in self.expected]


def name_of(task_id: str) -> str:
    """Return the name of the task that a Mesos task id is an attempt of."""
    return task_id.rsplit("__", 2)[1]
