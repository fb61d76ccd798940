"""One service's scheduler: the rooms below it wired together, and their order of start and stop.

Called by the command line. ``start`` opens the state store, becomes the leader, restores or creates
the service's state, starts the API, the event loop and the Mesos subscription. ``stop`` ends the
process's part and leaves every task alone; only ``teardown`` removes the framework.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.kept.configuration import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable
from dcos_tensorflow.core.model.actions import (
    Accept,
    Action,
    CapacityKept,
    CollectEvidence,
    Exit,
    ReleaseIdleMachines,
    Resubscribe,
    Teardown,
    UnitEnded,
    UnitsWanted,
    Write,
)
from dcos_tensorflow.core.model.agents import KnownAgent
from dcos_tensorflow.core.model.events import (
    CapacityNoted,
    Event,
    FrameworkRefused,
    RunnerReported,
)
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.mesos.agent_files import AgentFiles, AgentFilesError, AgentUnreachable
from dcos_tensorflow.mesos.convert import framework_info
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.network.zookeeper_address import is_open
from dcos_tensorflow.options.errors import OptionsError
from dcos_tensorflow.scheduler import artifacts, batch_inputs, former_life
from dcos_tensorflow.scheduler.artifacts import Runners
from dcos_tensorflow.scheduler.beginning import Beginning, UninstallGoesOn, begin
from dcos_tensorflow.scheduler.clock import steady_time
from dcos_tensorflow.scheduler.configuration import ArtifactDelivery, SchedulerConfig
from dcos_tensorflow.scheduler.event_loop import EXIT_STATE, EventLoop
from dcos_tensorflow.scheduler.evidence import EvidenceReader
from dcos_tensorflow.scheduler.gate import Gate
from dcos_tensorflow.scheduler.launch_secrets import LaunchSecrets
from dcos_tensorflow.scheduler.lease import Lease
from dcos_tensorflow.scheduler.master_watch import AGENTS, QUOTA, MasterWatch, agents_in
from dcos_tensorflow.scheduler.options_documents import OptionsDocuments
from dcos_tensorflow.scheduler.overheard import Overheard
from dcos_tensorflow.scheduler.runner_client import RunnerClient
from dcos_tensorflow.scheduler.subscription import Subscription
from dcos_tensorflow.scheduler.turn import Turn
from dcos_tensorflow.scheduler.units import Units
from dcos_tensorflow.state.errors import LeadershipTaken, StateError
from dcos_tensorflow.state.leadership import Holder, Leadership
from dcos_tensorflow.state.store import StateStore, open_store
from dcos_tensorflow.task.bundle import BundleError

if TYPE_CHECKING:
    from dcos_tensorflow.options import Options
    from dcos_tensorflow.scheduler.capacity import Capacity
    from dcos_tensorflow.task.storage.object_store import ObjectStore

log = logging.getLogger(__name__)

#: The DC/OS SDK's exit codes for the same events (reference: SDK scheduler, ProcessExit).
EXIT_INITIALIZATION = 1
EXIT_LOCKED = 8
EXIT_API = 9
EXIT_UNINSTALLING = 11

#: Questions to the master and to agents at once: many agents may be lost together and not answer.
_QUESTIONS_AT_ONCE = 16
#: So long a client of the API waits for its order to show; a store that is away holds it up longer.
_CARRIED_OUT_SECONDS = 3.0

#: What Mesos tells a scheduler whose framework another one has subscribed (master.cpp).
_REPLACED = "failed over"


class SchedulerError(Exception):
    """The scheduler cannot start. ``exit_code`` is for the process."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Api(Protocol):
    """An HTTP API. ``address`` is its ``host:port`` once it has been started."""

    address: str

    def start(self) -> str:
        """Begin to serve, and return the address."""

    def stop(self) -> None:
        """Stop serving."""


class Scheduler:
    """The scheduler of one service.

    ``refused`` says why the options cannot be had, whatever is stored; ``spec`` may then have the
    service's name alone. ``job`` is a packed local job, or None when the options name a URL;
    ``data`` is input data that lay beside the options, packed. ``archives`` is told whether the
    options are in force once that is known, and returns both as they are in force.
    ``serve_api`` starts the HTTP API for this scheduler (``api.server``); it is given, not
    imported, because imports point downwards only. ``spec_of`` makes a ServiceSpec of changed
    options as that was made which is in force, and is given this one, and whether a scheduler is
    started with the options; it raises OptionsError.
    ``given`` are the options that ``spec`` was made of, to be shown: secrets are hidden in it.
    With ``published_defaults`` changed options mean what they mean to the published package.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        config: SchedulerConfig,
        *,
        refused: str = "",
        job: Path | None = None,
        data: Path | None = None,
        archives: Callable[[bool], tuple[Path | None, Path | None]] | None = None,
        serve_api: Callable[[Scheduler], Api] | None = None,
        spec_of: Callable[[Options, ServiceSpec, bool], ServiceSpec] | None = None,
        given: Mapping[str, Any] | None = None,
        published_defaults: bool = False,
    ) -> None:
        self.spec = spec
        self.config = config
        self._refused = refused
        self._job = job
        self._data = data
        self._archives = archives
        self._serve_api = serve_api
        self._gate = gate = Gate(config.allowed)
        self._spec_of = spec_of or (lambda options, *_: gate.task_environment(options))
        self._secrets = LaunchSecrets(gate, config.secrets_dir, store=config.secret_store)
        self._overheard = Overheard(self._secrets.texts)
        self._leader = ""
        self._configurations: Mapping[str, ServiceSpec] = {}
        self._options = OptionsDocuments()
        self._given = given or {}
        self._published_defaults = published_defaults
        self._artifacts: dict[str, Path] = {}
        self._measurers: list[Callable[[Turn], None]] = []
        self._lookers: list[Callable[[ServiceState], None]] = []
        self._store: StateStore | None = None
        self._leadership: Leadership | None = None
        self._api: Api | None = None
        self._task_runners: Runners | None = None
        self._loop: EventLoop | None = None
        #: What the state says nothing of before the loop has carried it out.
        self._first: tuple[Event, ...] = ()
        self._gateway: MesosGateway | None = None
        self._subscription: Subscription | None = None
        self._lease: Lease | None = None
        self._runners: RunnerClient | None = None
        self._evidence: EvidenceReader | None = None
        self._units: Units | None = None
        self._capacity: Capacity | None = None
        self._questions = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "question")
        self._stopping = threading.Event()
        #: Reads our tasks' sandboxes with this scheduler's credentials; None before ``start``.
        self.files: AgentFiles | None = None

    # What others ask for.

    def state(self) -> ServiceState | None:
        """Return the newest state; None while the scheduler is not the leader yet."""
        if self._loop is None:
            return None
        # What this scheduler was started for is part of what it shows. Before an update has begun
        # the plan of the job is complete; before an uninstall has, Cosmos would take it for that of
        # the uninstall, and delete the app.
        if any(map(self._loop.owes, self._first)):
            return None
        return self._loop.state

    def submit(self, event: Event) -> None:
        """Hand an event to the loop. Raises SchedulerError before ``start``."""
        self._running_loop().submit(event)

    def carry_out(self, event: Event) -> None:
        """Do the same, and wait a moment until the state shows it. Not for the loop's thread."""
        self._running_loop().carry_out(event, _CARRIED_OUT_SECONDS)

    def change_configuration(
        self, options: Path | Mapping[str, Any] | str, *, restarted: bool = False
    ) -> ServiceSpec:
        """Return what the service would be with these options. Nothing changes yet.

        The caller submits ``ConfigurationChanged`` with it; whether a job that runs can go over
        to it is the core's to say (``refused_configuration``). With ``restarted`` another scheduler
        is started with these options instead, as the package manager of DC/OS does. Raises
        OptionsError, also where the options would end tasks by not naming them.
        """
        # Whoever has started this scheduler has read its options, and few are ever changed.
        from dcos_tensorflow.options import effective, load
        from dcos_tensorflow.options.asked import lost

        wanted = load(
            options, published_defaults=self._published_defaults, folder=self._gate.folder()
        )
        state = self.state()
        if state is not None and state.job.phase is not JobPhase.DONE:
            unsaid = lost(wanted, state.spec)
            if unsaid:
                raise OptionsError(unsaid)
        spec = self._spec_of(wanted, self.spec if state is None else state.spec, restarted)
        problems = [*self._secrets.problems(spec), *self._gate.problems(spec)]
        if problems:
            raise OptionsError(problems)
        if not restarted:
            self._options.note(spec, effective(wanted))
        return spec

    def options(self) -> Mapping[str, Any]:
        """Return the options in force, secrets hidden; empty while they are not known."""
        state = self.state()
        return self._given if state is None else self._options.of(state.spec)

    def refused_options(self) -> Mapping[str, Any]:
        """Return those that this scheduler was started with and that are not in force."""
        state = self.state()
        return self._given if state is not None and state.told.refused_configuration else {}

    def secret_texts(self) -> frozenset[str]:
        """Return the secrets of tasks that this process has read, each whole and by its lines."""
        return self._secrets.texts()

    def object_store(self, spec: ServiceSpec, place: str) -> ObjectStore:
        """Return the bucket of ``s3://bucket/prefix`` as the tasks of a service reach it.

        Raises StorageError.
        """
        return self._gate.objects(spec.storage.s3, self._s3_credentials(spec), place)

    def configurations(self) -> Mapping[str, ServiceSpec]:
        """Return every configuration that the state store holds, by id."""
        return self._configurations

    def leader(self) -> str:
        """Return who leads the service while this scheduler waits; empty when it leads itself."""
        return self._leader

    def measure(self, callback: Callable[[Turn], None]) -> None:
        """Call back in the loop's thread after every turn. To be asked for before ``start``."""
        self._measurers.append(callback)

    def load(self) -> tuple[int, float]:
        """Return how many events wait, and for how many seconds the loop is at those before."""
        loop = self._loop
        return (0, 0.0) if loop is None else (loop.waiting, loop.busy_seconds)

    def look(self, callback: Callable[[ServiceState], None]) -> None:
        """Call back in the loop's thread after every step. To be asked for before ``start``."""
        self._lookers.append(callback)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is done or the scheduler has ended by itself; False on time out."""
        return self.wait_until(lambda state: state.job.phase is JobPhase.DONE, timeout)

    def wait_until(
        self, condition: Callable[[ServiceState], bool], timeout: float | None = None
    ) -> bool:
        """Wait until the state fits or the scheduler has ended by itself; False on time out."""
        return self._running_loop().wait_for(condition, timeout)

    @property
    def exit(self) -> Exit | None:
        """Return why the scheduler ended by itself; None while it has not."""
        return self._loop.exit if self._loop is not None else None

    @property
    def api_address(self) -> str:
        """Return the API's ``host:port``; empty when there is none."""
        return self._api.address if self._api is not None else ""

    @property
    def api_url(self) -> str:
        """Return where the API listens; without an address when there is none."""
        return f"{self._scheme}://{self.api_address}"

    @property
    def _scheme(self) -> str:
        return "https" if self.config.api_cert else "http"

    def artifact(self, name: str) -> Path | None:
        """Return the file that tasks fetch under this name; None where there is none yet."""
        found = self._artifacts.get(name)
        return found if found is not None and found.exists() else None

    # Start and stop.

    def start(self) -> None:
        """Start everything. Raises SchedulerError; what had been started is stopped again.

        Raises NothingInForce where the options cannot be had and none are stored.
        """
        try:
            self._start()
        except BaseException as error:
            self.stop()
            if isinstance(error, LeadershipTaken):
                raise SchedulerError(EXIT_LOCKED, str(error)) from error
            if isinstance(error, UninstallGoesOn):
                raise SchedulerError(EXIT_UNINSTALLING, str(error)) from error
            if isinstance(error, StateUnreadable):
                raise SchedulerError(
                    EXIT_STATE,
                    f"the state store: {error}. Nothing there was overwritten: look at it with"
                    " dcos-tensorflow state check, put back what state export has written, choose"
                    " another service.name, or remove all of it with --uninstall",
                ) from error
            if isinstance(error, StateError):
                raise SchedulerError(EXIT_STATE, f"the state store: {error}") from error
            raise

    def _start(self) -> None:
        config = self.config
        if any(map(is_open, (config.state, config.master))):
            log.warning(
                "ZooKeeper is asked without a login: whoever reaches it can read and change what"
                " this service keeps there, the key of its tasks too, or say that another machine"
                " is the master; see --zookeeper-login-file"
            )
        self._store = open_store(
            config.state, self.spec.name, zookeeper_session_seconds=config.session_seconds
        )
        if config.standby and self._start_api():
            log.info("a standby, whose API listens on %s", self.api_url)
        self._leadership = self._store.lead(
            f"{socket.gethostname()} pid {os.getpid()}",
            None if config.standby else config.leadership_timeout_seconds,
            self._leadership_lost,
            self._waiting,
        )
        self._leader = ""
        log.info("leading the service %s", self.spec.name)
        if self._leadership.after_erase and not config.uninstall:
            # Whoever waited for the service must not bring it back to life.
            self._store.erase()
            raise UninstallGoesOn(
                f"the service {self.spec.name} was uninstalled while this scheduler stood by; start"
                " it again for a new service"
            )
        self._start_api()
        self._gateway = gateway = MesosGateway(self._mesos_config(), self._from_mesos, steady_time)
        beginning = begin(
            self._store,
            self.spec,
            self._settings(self._job, self._data),
            refused=self._refused or self._not_to_be_had(self.spec),
            fresh=config.fresh,
            uninstall=config.uninstall,
            finish_uninstall=config.finish_uninstall,
            first_run=config.first_run,
        )
        beginning = self._with_archives(beginning)
        self._configurations, self._options = beginning.configurations, beginning.options
        if self._given and not self._refused:
            self._options.note(self.spec, self._given)
        if not (config.uninstall or beginning.state.uninstall.asked):
            self._check_secrets(beginning.state)
        self._first = beginning.events
        self._loop = EventLoop(
            beginning.state,
            self._store,
            self._perform,
            tick_seconds=config.tick_seconds,
            first=beginning.events,
        )
        for measurer in self._measurers:
            self._loop.measure(measurer)
        for looker in self._lookers:
            self._loop.look(looker)
        self.files = AgentFiles(gateway)
        self._evidence = evidence = EvidenceReader(
            self.files, self._framework_id, self._from_task, self._questions
        )
        self._loop.look(lambda state: evidence.expire())
        self._loop.look(self._follow_capacity)
        self._loop.when_refused(self._not_kept)
        for question in (QUOTA, AGENTS):
            watch = MasterWatch[Any](
                question,
                lambda: gateway.master,
                gateway.access,
                self._loop.submit,
                self._questions,
            )
            self._loop.look(watch.look)
        self._lease = lease = Lease(self._store.confirm, config.session_seconds)
        self._units = units = Units(
            lambda: self._running_loop().state, self._loop.submit, self._look_at_inputs
        )
        self._runners = runners = RunnerClient(
            lambda: self._running_loop().state,
            self._from_runner,
            lease.holds,
            self._overheard.value,
        )
        self._loop.watch(lambda decision: runners.wake())
        self._loop.watch(self._note_configuration)
        self._subscription = Subscription(gateway, self._framework_info)
        self._loop.watch(self._subscription.follow)
        self._loop.start()
        self._lease.start()
        self._runners.start()
        units.begin()
        if beginning.subscribe and not beginning.state.seeks_former_life:
            self._subscription.begin(beginning.state.spec, beginning.state.framework_id)
        elif beginning.subscribe:
            self._loop.watch(self._subscribe_once_known)
            self._questions.submit(
                former_life.search,
                config.master,
                gateway.config.scheme == "https",
                gateway.access,
                self._labels(),
                tell=self.submit,
                goes_on=lambda seconds: not self._stopping.wait(seconds),
            )
        for event in beginning.events:
            self._loop.carry_out(event, _CARRIED_OUT_SECONDS)

    def stop(self) -> None:
        """End this process's part. Every task is left alone."""
        self._stopping.set()
        for part in (
            self._gateway,
            self._runners,
            self._lease,
            self._loop,
            self._units,
            self._capacity,
            self._api,
        ):
            if part is not None:
                part.stop()
        # After the loop, which asks the questions.
        self._questions.shutdown(wait=True, cancel_futures=True)
        if self._leadership is not None:
            self._leadership.release()
        if self._store is not None:
            self._store.close()
        self._leadership = self._store = None

    def teardown(self) -> None:
        """Remove the framework from Mesos, which ends whatever it still runs, and forget its id.

        An uninstall has done both by itself.
        """
        state = self.state()
        if state is not None and state.removal.erased:
            return
        if self._gateway is not None and self._store is not None:
            self._gateway.perform(Teardown())
            try:
                self._store.commit([Write(paths.FRAMEWORK_ID, None)])
            except StateError as error:
                # The job's end is stored. The next scheduler hears that the framework was removed.
                log.warning("the framework's id is still stored: %s", error)

    # Wiring.

    def _subscribe_once_known(self, decision: Decision) -> None:
        """Subscribe when it is known whether Mesos knows the service already."""
        state = decision.state
        if self._subscription is None or self._subscription.is_begun or state.seeks_former_life:
            return
        if state.framework_id or not state.uninstall.asked:
            self._subscription.begin(state.spec, state.framework_id)

    def _start_api(self) -> bool:
        """Serve the API, where there is one and it is not served yet; say whether there is one."""
        if self._api is None and self._serve_api is not None:
            self._api = self._serve_api(self)
            self._api.start()
        return self._api is not None

    def _running_loop(self) -> EventLoop:
        if self._loop is None:
            raise SchedulerError(EXIT_INITIALIZATION, "the scheduler has not been started")
        return self._loop

    def _not_to_be_had(self, spec: ServiceSpec) -> str:
        return "; ".join(
            filter(None, (self._secret_problems(spec), *map(str, self._gate.problems(spec))))
        )

    def _secret_problems(self, spec: ServiceSpec) -> str:
        return "; ".join(map(str, self._secrets.problems(spec)))

    def _check_secrets(self, state: ServiceState) -> None:
        """Say at once what the first task would fail of. A job that runs is looked after anyway."""
        problems = self._secret_problems(state.spec)
        if problems and not state.live_tasks:
            raise SchedulerError(EXIT_INITIALIZATION, problems)
        if problems:
            log.error("%s", problems)

    def _framework_info(self, spec: ServiceSpec, framework_id: str) -> dict[str, Any]:
        url, host = self._api_url() or "", socket.gethostname()
        return framework_info(spec, framework_id or None, host, url, self._labels())

    def _labels(self) -> Mapping[str, str]:
        return former_life.labels(self.spec.name, self.config.state)

    def _framework_id(self) -> str:
        return self._running_loop().state.framework_id

    def _perform(self, action: Action) -> None:
        if isinstance(action, CollectEvidence) and self._evidence is not None:
            self._evidence.collect(action)
        elif isinstance(action, UnitsWanted | UnitEnded) and self._units is not None:
            self._units.perform(action)
        elif isinstance(action, CapacityKept | ReleaseIdleMachines):
            if self._capacity is not None:
                self._capacity.perform(action)
        elif isinstance(action, Resubscribe) and self._gateway and self._subscription:
            self._gateway.stop()
            self._subscription.begin(self._running_loop().state.spec, "")
        elif self._gateway is not None:
            if isinstance(action, Accept):
                self._publish_before_launch()
            self._secrets.perform(action, self._gateway.perform, self.submit)

    def _follow_capacity(self, state: ServiceState) -> None:
        """Begin to buy machines once the options ask for it."""
        if state.spec.capacity is None or self._capacity is not None or self._lease is None:
            return
        from dcos_tensorflow.scheduler.capacity import Capacity

        self._capacity = Capacity(
            lambda: self._running_loop().state,
            self.submit,
            self._known_agents,
            self._lease.holds,
            self._gate.provider,
            offer=self._offer_agent,
            look_seconds=self.config.capacity_look_seconds,
        )
        self._capacity.start()

    def _not_kept(self, event: Event) -> None:
        if isinstance(event, CapacityNoted) and self._capacity is not None:
            self._capacity.not_kept(event.number)

    def _known_agents(self) -> Sequence[KnownAgent] | None:
        """Return the agents as the master lists them; None where it does not."""
        gateway = self._gateway
        if gateway is None or gateway.master is None:
            return None
        try:
            return tuple(agents_in(gateway.access.get(gateway.master, AGENTS.path)))
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            log.info("the agents are not known: %s", error)
            return None

    def _offer_agent(self, agent_id: str, is_offered: bool) -> None:
        """Tell the master whether an agent is to be offered. Raises AgentFilesError."""
        gateway = self._gateway
        if gateway is None or gateway.master is None:
            raise AgentUnreachable("no master leads")
        kind = "REACTIVATE_AGENT" if is_offered else "DEACTIVATE_AGENT"
        call = {"type": kind, kind.lower(): {"agent_id": {"value": agent_id}}}
        gateway.access.post(gateway.master, "/api/v1", call)

    def _publish_before_launch(self) -> None:
        if self._task_runners is None:
            return
        try:
            # The options in force may be others than those that this scheduler was started with.
            self._task_runners.publish(storage=self._running_loop().state.spec.storage.is_used)
        except (BundleError, OSError) as error:
            # The tasks' fetch fails then, which is told as what their failure was.
            log.error("the task runner cannot be packed: %s", error)

    def _from_mesos(self, event: Event) -> None:
        if isinstance(event, FrameworkRefused) and _REPLACED in event.message:
            # We were cut off or frozen, and a standby has taken over, as it should.
            self._running_loop().leave(
                EXIT_LOCKED, f"another scheduler has taken the framework over: {event.message}"
            )
        else:
            self._from_task(event)

    def _from_task(self, event: Event) -> None:
        self.submit(self._overheard.event(event))

    def _from_runner(self, event: RunnerReported) -> None:
        self.submit(event)
        if self._units is not None:
            self._units.reported(event)

    def _look_at_inputs(self, state: ServiceState) -> batch_inputs.Inputs:
        return batch_inputs.look(state.spec, self._s3_credentials(state.spec), self._gate)

    def _s3_credentials(self, spec: ServiceSpec) -> Mapping[str, str]:
        reference = spec.storage.s3.credentials
        return self._secrets.credentials(reference) if reference is not None else {}

    def _leadership_lost(self, why: str) -> None:
        if self._loop is not None:
            self._loop.leave(EXIT_LOCKED, f"no longer the leader of {self.spec.name}: {why}")

    def _note_configuration(self, decision: Decision) -> None:
        spec = decision.state.spec
        if not any(known is spec for known in self._configurations.values()):
            self._configurations = {**self._configurations, configuration_id(spec): spec}
        if self._store is None or decision.state.uninstall.asked:
            return
        try:
            self._options.keep(decision.state, self._store.commit)
        except StateError as error:
            log.warning("the options are not kept yet, trying again: %s", error)

    def _waiting(self, holder: Holder) -> None:
        self._leader = str(holder)
        log.info("waiting: the service %s is led by %s", self.spec.name, holder)

    def _mesos_config(self) -> MesosConfig:
        config = self.config
        return MesosConfig(
            masters=config.master,
            principal=config.principal,
            secret=config.secret,
            service_account=config.service_account,
            scheme="https" if config.service_account and config.service_account.https else "http",
            ca_file=config.ca_file,
            client_cert=config.client_cert,
            client_key=config.client_key,
            verify=config.verify,
        )

    def _with_archives(self, beginning: Beginning) -> Beginning:
        """Return what to begin with, with the code and data of the options that are in force.

        Only now are those of before replaced: this process leads, and knows what is refused.
        """
        if self._archives is None:
            return beginning
        refused = bool(beginning.state.told.refused_configuration)
        job, data = self._archives(not refused)
        if not refused:
            return beginning
        key = beginning.state.settings.token_key
        settings = replace(self._settings(job, data), token_key=key)
        return replace(beginning, state=replace(beginning.state, settings=settings))

    def _settings(self, job: Path | None, data: Path | None) -> LaunchSettings:
        directory = self.config.artifacts_dir
        try:
            self._task_runners = runners = Runners.of(directory)
            runners.publish(storage=self.spec.storage.is_used)
        except BundleError as error:
            raise SchedulerError(EXIT_INITIALIZATION, f"the task runner: {error}") from error
        # Both are known: an update of the options may ask for S3 at any time.
        self._artifacts |= {each.name: each for each in (runners.plain, runners.storage)}
        url = self._api_url() if self.config.artifacts == ArtifactDelivery.HTTP else None
        if self.config.artifacts == ArtifactDelivery.HTTP and url is None:
            raise SchedulerError(EXIT_API, "tasks fetch their runner from the API, which is off")
        archives = {}
        for stem, archive in (("job", job), ("data", data)):
            if archive is not None:
                file = artifacts.publish_archive(archive, directory, stem)
                self._artifacts[file.name] = file
                archives[stem] = artifacts.uri_of(file, url, extract=True)
        return LaunchSettings(
            runner=artifacts.uri_of(runners.plain, url, extract=False),
            storage_runner=artifacts.uri_of(runners.storage, url, extract=False),
            output_dir=self.config.output_dir,
            job=archives.get("job"),
            data=archives.get("data"),
        )

    def _api_url(self) -> str | None:
        if self._api is None:
            return None
        host, _, port = self._api.address.rpartition(":")
        if self.config.advertise:
            host = self.config.advertise
        elif host in ("0.0.0.0", "[::]", "::"):
            host = socket.getfqdn()
        return f"{self._scheme}://{host}:{port}"
