"""A scheduler that leads its service: its parts wired together, their order of start and stop.

Made by ``scheduler`` once it leads and knows its first state. Each part is there from the
beginning to the end; ``stop`` ends this process's part and leaves every task alone.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.core.model.actions import (
    Accept,
    Action,
    CapacityKept,
    CollectEvidence,
    ReleaseIdleMachines,
    Resubscribe,
    UnitEnded,
    UnitsWanted,
)
from dcos_tensorflow.core.model.events import CapacityNoted, Event, FrameworkRefused, RunnerReported
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.mesos.agent_files import AgentFiles, AgentFilesError, AgentUnreachable
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.mesos.wire.convert import framework_info
from dcos_tensorflow.scheduler import batch_inputs, former_life
from dcos_tensorflow.scheduler.artifacts import Runners
from dcos_tensorflow.scheduler.beginning import Beginning
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.gate import Gate
from dcos_tensorflow.scheduler.lease import Lease
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.loop.event_loop import EventLoop
from dcos_tensorflow.scheduler.master_watch import AGENTS, QUOTA, MasterWatch, agents_in
from dcos_tensorflow.scheduler.runners.evidence_reading import EvidenceReader
from dcos_tensorflow.scheduler.runners.runner_client import RunnerClient
from dcos_tensorflow.scheduler.secrets.launch_secrets import LaunchSecrets
from dcos_tensorflow.scheduler.secrets.masking import Masking
from dcos_tensorflow.scheduler.subscription import FrameworkSubscription
from dcos_tensorflow.scheduler.unit_producer import UnitLoop
from dcos_tensorflow.state.store import StateStore
from dcos_tensorflow.task.bundle import BundleError

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.planner import GangDemand
    from dcos_tensorflow.scheduler.machines.buying import BuyingLoop

log = logging.getLogger(__name__)

#: The DC/OS SDK's exit code for a service that is led by another scheduler (ProcessExit).
EXIT_LOCKED = 8
#: Questions to the master and to agents at once: many agents may be lost together and not answer.
_QUESTIONS_AT_ONCE = 16
#: So long a client of the API waits for its order to show; a store that is away holds it up longer.
CARRIED_OUT_SECONDS = 3.0
#: What Mesos tells a scheduler whose framework another one has subscribed (master.cpp).
_REPLACED = "failed over"


class Leading:
    """The parts of a scheduler that leads.

    ``api_url`` is where its own API listens, None where there is none. ``task_runners`` are packed
    before the first launch. ``s3_credentials`` are those that the tasks of a service get,
    ``also_waits`` says what else machines are bought for.
    """

    def __init__(
        self,
        beginning: Beginning,
        config: SchedulerConfig,
        store: StateStore,
        *,
        gate: Gate,
        secrets: LaunchSecrets,
        task_runners: Runners,
        api_url: str | None,
        s3_credentials: Callable[[ServiceSpec], Mapping[str, str]],
        also_waits: Callable[[float], Sequence[GangDemand]],
    ) -> None:
        self._also_waits = also_waits
        self._beginning = beginning
        self._config = config
        self._gate = gate
        self._secrets = secrets
        self._task_runners = task_runners
        self._api_url = api_url
        self._s3_credentials = s3_credentials
        self._masking = Masking(secrets.texts)
        self._stopping = threading.Event()
        self._questions = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "question")
        #: Begins with the first options that ask for machines.
        self._capacity: BuyingLoop | None = None
        self.loop = EventLoop(
            beginning.state,
            store,
            self._perform,
            tick_seconds=config.tick_seconds,
            first=beginning.events,
        )
        self.gateway = MesosGateway(mesos_config(config), self._from_mesos, steady_time)
        #: Reads our tasks' sandboxes with this scheduler's credentials.
        self.files = AgentFiles(self.gateway)
        self._evidence = EvidenceReader(
            self.files, self._framework_id, self._from_task, self._questions
        )
        self._lease = Lease(store.confirm, config.session_seconds)
        self._units = UnitLoop(self.state, self.submit, self._inputs)
        self._runners = RunnerClient(
            self.state, self._from_runner, self._lease.holds, self._masking.value
        )
        #: What each task uses now, by task id.
        self.usages = self._runners.usages
        self._subscription = FrameworkSubscription(self.gateway, self._framework_info)
        self._wire()

    def _wire(self) -> None:
        """Let the parts see each turn of the loop."""
        self.loop.after_step(lambda _: self._evidence.expire())
        self.loop.after_step(self._follow_capacity)
        self.loop.when_refused(self._not_kept)
        for question in (QUOTA, AGENTS):
            watch = MasterWatch[Any](
                question,
                lambda: self.gateway.master,
                self.gateway.access,
                self.submit,
                self._questions,
            )
            self.loop.after_step(watch.follow)
        self.loop.watch(lambda _: self._runners.wake())
        self.loop.watch(self._subscription.follow)

    def state(self) -> ServiceState:
        """Return the newest state."""
        return self.loop.state

    def shown_state(self) -> ServiceState | None:
        """Return the newest state once it shows what this scheduler was started for.

        Before an update has begun the plan of the job is complete; before an uninstall has, Cosmos
        would take it for that of the uninstall, and delete the app.
        """
        owes = any(map(self.loop.owes, self._beginning.events))
        return None if owes else self.loop.state

    def submit(self, event: Event) -> None:
        """Hand an event to the loop."""
        self.loop.submit(event)

    def start(self) -> None:
        """Start the parts, subscribe, and carry out what the scheduler was started for."""
        beginning = self._beginning
        self.loop.start()
        self._lease.start()
        self._runners.start()
        self._units.begin()
        if beginning.subscribe and not beginning.state.seeks_former_life:
            self._subscription.begin(beginning.state.spec, beginning.state.framework_id)
        elif beginning.subscribe:
            self.loop.watch(self._subscribe_once_known)
            self._questions.submit(
                former_life.search,
                self._config.master,
                self.gateway.config.scheme == "https",
                self.gateway.access,
                self._labels(),
                tell=self.submit,
                goes_on=lambda seconds: not self._stopping.wait(seconds),
            )
        for event in beginning.events:
            self.loop.carry_out(event, CARRIED_OUT_SECONDS)

    def stop(self) -> None:
        """End the parts. Every task is left alone."""
        self._stopping.set()
        parts: Iterable[Any] = (
            *(self.gateway, self._runners, self._lease, self.loop, self._units),
            *([self._capacity] if self._capacity is not None else []),
        )
        for part in parts:
            part.stop()
        # After the loop, which asks the questions.
        self._questions.shutdown(wait=True, cancel_futures=True)

    # What the loop orders.

    def _perform(self, action: Action) -> None:
        if isinstance(action, CollectEvidence):
            self._evidence.collect(action)
        elif isinstance(action, UnitsWanted | UnitEnded):
            self._units.perform(action)
        elif isinstance(action, CapacityKept | ReleaseIdleMachines):
            if self._capacity is not None:
                self._capacity.perform(action)
        elif isinstance(action, Resubscribe):
            self.gateway.stop()
            self._subscription.begin(self.state().spec, "")
        else:
            if isinstance(action, Accept):
                self._publish_before_launch()
            self._secrets.perform(action, self.gateway.perform, self.submit)

    def _publish_before_launch(self) -> None:
        try:
            # The options in force may be others than those that this scheduler was started with.
            self._task_runners.publish(storage=self.state().spec.storage.is_used)
        except (BundleError, OSError) as error:
            # The tasks' fetch fails then, which is told as what their failure was.
            log.error("the task runner cannot be packed: %s", error)

    # What the parts tell.

    def _from_mesos(self, event: Event) -> None:
        if isinstance(event, FrameworkRefused) and _REPLACED in event.message:
            # We were cut off or frozen, and a standby has taken over, as it should.
            self.loop.leave(
                EXIT_LOCKED, f"another scheduler has taken the framework over: {event.message}"
            )
        else:
            self._from_task(event)

    def _from_task(self, event: Event) -> None:
        self.submit(self._masking.event(event))

    def _from_runner(self, event: RunnerReported) -> None:
        self.submit(event)
        self._units.reported(event)

    # The subscription.

    def _subscribe_once_known(self, decision: Decision) -> None:
        """Subscribe when it is known whether Mesos knows the service already."""
        state = decision.state
        if self._subscription.is_begun or state.seeks_former_life:
            return
        if state.framework_id or not state.uninstall.asked:
            self._subscription.begin(state.spec, state.framework_id)

    def _framework_info(self, spec: ServiceSpec, framework_id: str) -> dict[str, Any]:
        url, host = self._api_url or "", socket.gethostname()
        return framework_info(spec, framework_id or None, host, url, self._labels())

    def _labels(self) -> Mapping[str, str]:
        return former_life.labels(self._beginning.state.spec.name, self._config.state)

    def _framework_id(self) -> str:
        return self.state().framework_id

    # Machines that are bought, and what a batch finds.

    def _follow_capacity(self, state: ServiceState) -> None:
        if state.spec.capacity is None or self._capacity is not None:
            return
        from dcos_tensorflow.scheduler.machines.buying import BuyingLoop

        self._capacity = BuyingLoop(
            self.state,
            self.submit,
            self._known_agents,
            self._lease.holds,
            self._gate.provider,
            offer=self._offer_agent,
            also_waits=self._also_waits,
            look_seconds=self._config.capacity_look_seconds,
        )
        self._capacity.start()

    def _not_kept(self, event: Event) -> None:
        if isinstance(event, CapacityNoted) and self._capacity is not None:
            self._capacity.not_kept(event.number)

    def _known_agents(self) -> Sequence[KnownAgent] | None:
        """Return the agents as the master lists them; None where it does not."""
        master = self.gateway.master
        if master is None:
            return None
        try:
            return tuple(agents_in(self.gateway.access.get(master, AGENTS.path)))
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            log.info("the agents are not known: %s", error)
            return None

    def _offer_agent(self, agent_id: str, is_offered: bool) -> None:
        """Tell the master whether an agent is to be offered. Raises AgentFilesError."""
        master = self.gateway.master
        if master is None:
            raise AgentUnreachable("no master leads")
        kind = "REACTIVATE_AGENT" if is_offered else "DEACTIVATE_AGENT"
        call = {"type": kind, kind.lower(): {"agent_id": {"value": agent_id}}}
        self.gateway.access.post(master, "/api/v1", call)

    def _inputs(self, state: ServiceState) -> batch_inputs.Inputs:
        return batch_inputs.list_inputs(state.spec, self._s3_credentials(state.spec), self._gate)


def mesos_config(config: SchedulerConfig) -> MesosConfig:
    """Return how the masters are reached."""
    account = config.service_account
    return MesosConfig(
        masters=config.master,
        principal=config.principal,
        secret=config.secret,
        service_account=account,
        scheme="https" if account and account.https else "http",
        ca_file=config.ca_file,
        client_cert=config.client_cert,
        client_key=config.client_key,
        verify=config.verify,
    )
