"""One service's scheduler: the rooms below it wired together, and their order of start and stop.

Called by the command line. ``start`` opens the state store, becomes the leader, restores or creates
the service's state, starts the API, the event loop and the Mesos subscription. ``stop`` ends the
process's part and leaves every task alone; only ``teardown`` removes the framework.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.restore import StateUnreadable
from dcos_tensorflow.core.model.actions import Exit, Teardown, Write
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.mesos.agent_files import AgentFiles
from dcos_tensorflow.options.errors import OptionsError
from dcos_tensorflow.scheduler import artifacts
from dcos_tensorflow.scheduler.artifacts import Runners
from dcos_tensorflow.scheduler.beginning import Beginning, UninstallGoesOn, begin
from dcos_tensorflow.scheduler.configuration import ArtifactDelivery, SchedulerConfig
from dcos_tensorflow.scheduler.gate import Gate
from dcos_tensorflow.scheduler.leading import CARRIED_OUT_SECONDS, EXIT_LOCKED, Leading
from dcos_tensorflow.scheduler.loop.event_loop import EXIT_STATE, EventLoop
from dcos_tensorflow.scheduler.loop.turn import Turn
from dcos_tensorflow.scheduler.options_documents import OptionsDocuments
from dcos_tensorflow.scheduler.secrets.launch_secrets import LaunchSecrets
from dcos_tensorflow.scheduler.told_address import ToldAddress, url_from
from dcos_tensorflow.state.errors import LeadershipTaken, StateError
from dcos_tensorflow.state.leadership import Holder, Leadership
from dcos_tensorflow.state.store import StateStore, open_store
from dcos_tensorflow.task.bundle import BundleError
from dcos_tensorflow.zookeeper_address import is_open

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.planner import GangDemand
    from dcos_tensorflow.core.kept.recording import Recording
    from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
    from dcos_tensorflow.history.mlflow import MlflowServer
    from dcos_tensorflow.options import Options
    from dcos_tensorflow.task.storage.s3.object_store import ObjectStore


log = logging.getLogger(__name__)

#: The DC/OS SDK's exit codes for the same events (reference: SDK scheduler, ProcessExit).
EXIT_INITIALIZATION = 1
EXIT_API = 9
EXIT_UNINSTALLING = 11


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
        self._leader = ""
        self._configurations: Mapping[str, ServiceSpec] = {}
        self._options = OptionsDocuments()
        self._given = given or {}
        self._published_defaults = published_defaults
        self._artifacts: dict[str, Path] = {}
        self._measurers: list[Callable[[Turn], None]] = []
        self._after_step: list[Callable[[ServiceState], None]] = []
        self._when_left: list[Callable[[], None]] = []
        self._store: StateStore | None = None
        self._leadership: Leadership | None = None
        self._api: Api | None = None
        #: What else waits for machines beside the service's own gangs; from any thread.
        self.also_waits: Callable[[float], Sequence[GangDemand]] = lambda now: ()
        #: The parts of a scheduler that leads.
        self._leading: Leading | None = None

    # What others ask for.

    def state(self) -> ServiceState | None:
        """Return the newest state; None while the scheduler is not the leader yet."""
        return None if self._leading is None else self._leading.shown_state()

    @property
    def files(self) -> AgentFiles | None:
        """Return what reads our tasks' sandboxes; None before the scheduler leads."""
        return None if self._leading is None else self._leading.files

    def usages(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what each live task uses now, by task id, where that is known."""
        return {} if self._leading is None else self._leading.usages()

    def submit(self, event: Event) -> None:
        """Hand an event to the loop. Raises SchedulerError before ``start``."""
        self._running_loop().submit(event)

    def carry_out(self, event: Event) -> None:
        """Do the same, and wait a moment until the state shows it. Not for the loop's thread."""
        self._running_loop().carry_out(event, CARRIED_OUT_SECONDS)

    def change_configuration(
        self, options: Path | Mapping[str, Any] | str, *, restarted: bool = False
    ) -> ServiceSpec:
        """Return what the service would be with these options. Nothing changes yet.

        The caller submits ``ConfigurationChanged`` with it; whether a job that runs can go over
        to it is the core's to say (``refused_configuration``). With ``restarted`` another scheduler
        is started with these options instead, as the package manager of DC/OS does. Raises
        OptionsError, also where the options would end tasks by not naming them.
        """
        # The command that started this scheduler has read its options, and few are ever changed.
        from dcos_tensorflow.options import effective, load
        from dcos_tensorflow.options.default_tasks import lost

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

    def tracking_server(self, spec: TrackingSpec) -> MlflowServer:
        """Return the server that is told of runs, with its secret. Raises GateError."""
        return self._gate.tracking_server(spec, self._secrets.tracking(spec))

    def configurations(self) -> Mapping[str, ServiceSpec]:
        """Return every configuration that the state store holds, by id."""
        return self._configurations

    def recording(self) -> Recording | None:
        """Return the last turns, with their secrets; None before the first one."""
        return None if self._leading is None else self._leading.loop.recorder.recording()

    def leader(self) -> str:
        """Return who leads the service while this scheduler waits; empty when it leads itself."""
        return self._leader

    def measure(self, callback: Callable[[Turn], None]) -> None:
        """Call back in the loop's thread after every turn. To be asked for before ``start``."""
        self._measurers.append(callback)

    def load(self) -> tuple[int, float]:
        """Return how many events wait, and for how many seconds the loop is at those before."""
        if self._leading is None:
            return 0, 0.0
        return self._leading.loop.waiting, self._leading.loop.busy_seconds

    def after_step(self, callback: Callable[[ServiceState], None]) -> None:
        """Call back in the loop's thread after every step. To be asked for before ``start``."""
        self._after_step.append(callback)

    def when_left(self, callback: Callable[[], None]) -> None:
        """Call back once the scheduler has ended by itself. To be asked for before ``start``."""
        self._when_left.append(callback)

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
        return self._leading.loop.exit if self._leading is not None else None

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
                    " dcos-tensorflow state check, put an export (state export) back, choose"
                    " another service.name, or remove all of it with --uninstall",
                ) from error
            if isinstance(error, StateError):
                raise SchedulerError(EXIT_STATE, f"the state store: {error}") from error
            raise

    def _start(self) -> None:
        config = self.config
        if any(map(is_open, (config.state, config.master))):
            log.warning(
                "ZooKeeper is used without a login: every client that reaches it can read and"
                " change this service's state, with the key of its tasks, or name another machine"
                " as the master; see --zookeeper-login-file"
            )
        self._store = open_store(
            config.state, self.spec.name, zookeeper_session_seconds=config.session_seconds
        )
        if config.standby and self._start_api():
            log.info("waiting as a standby; the API listens on %s", self.api_url)
        self._leadership = self._store.lead(
            f"{socket.gethostname()} pid {os.getpid()}",
            None if config.standby else config.leadership_timeout_seconds,
            self._leadership_lost,
            self._waiting,
        )
        self._leader = ""
        log.info("leading the service %s", self.spec.name)
        if self._leadership.after_erase and not config.uninstall:
            # A scheduler that waited for the service must not bring it back to life.
            self._store.erase()
            raise UninstallGoesOn(
                f"the service {self.spec.name} was uninstalled while this scheduler stood by; start"
                " it again for a new service"
            )
        self._start_api()
        runners = self._runners()
        beginning = begin(
            self._store,
            self.spec,
            self._settings(runners, self._job, self._data),
            refused=self._refused or self._not_to_be_had(self.spec),
            fresh=config.fresh,
            uninstall=config.uninstall,
            finish_uninstall=config.finish_uninstall,
            first_run=config.first_run,
        )
        self._tell_address(beginning)
        beginning = self._with_archives(beginning, runners)
        self._configurations, self._options = beginning.configurations, beginning.options
        if self._given and not self._refused:
            self._options.note(self.spec, self._given)
        if not (config.uninstall or beginning.state.uninstall.asked):
            self._check_secrets(beginning.state)
        self._leading = leading = Leading(
            beginning,
            config,
            self._store,
            gate=self._gate,
            secrets=self._secrets,
            task_runners=runners,
            api_url=self._api_url(),
            s3_credentials=self._s3_credentials,
            also_waits=self._what_also_waits,
        )
        for measurer in self._measurers:
            leading.loop.measure(measurer)
        for callback in self._after_step:
            leading.loop.after_step(callback)
        for told in self._when_left:
            leading.loop.when_left(told)
        leading.loop.watch(self._note_configuration)
        leading.start()

    def stop(self) -> None:
        """End this process's part. Every task is left alone."""
        for part in (self._leading, self._api):
            if part is not None:
                part.stop()
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
        if self._leading is not None and self._store is not None:
            self._leading.gateway.perform(Teardown())
            try:
                self._store.commit([Write(paths.FRAMEWORK_ID, None)])
            except StateError as error:
                # The job's end is stored. The next scheduler hears that the framework was removed.
                log.warning("the framework's id is still stored: %s", error)

    # Wiring.

    def _start_api(self) -> bool:
        """Serve the API, where there is one and it is not served yet; say whether there is one."""
        if self._api is None and self._serve_api is not None:
            self._api = self._serve_api(self)
            self._api.start()
        return self._api is not None

    def _tell_address(self, beginning: Beginning) -> None:
        """Keep in the store where this leader is asked; an uninstall leaves nothing new there."""
        url, leading, store = self._api_url(), self._leadership, self._store
        is_ending = self.config.uninstall or beginning.state.uninstall.asked
        if url is None or leading is None or store is None or is_ending:
            return
        store.commit([ToldAddress(url, leading.holder).write()])

    def _running_loop(self) -> EventLoop:
        if self._leading is None:
            raise SchedulerError(EXIT_INITIALIZATION, "the scheduler has not been started")
        return self._leading.loop

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

    def _s3_credentials(self, spec: ServiceSpec) -> Mapping[str, str]:
        reference = spec.storage.s3.credentials
        return self._secrets.credentials(reference) if reference is not None else {}

    def _leadership_lost(self, why: str) -> None:
        if self._leading is not None:
            told = f"no longer the leader of {self.spec.name}: {why}"
            self._leading.loop.leave(EXIT_LOCKED, told)

    def _what_also_waits(self, now: float) -> Sequence[GangDemand]:
        # As it is then: it is told after the start.
        return self.also_waits(now)

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

    def _with_archives(self, beginning: Beginning, runners: Runners) -> Beginning:
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
        settings = replace(self._settings(runners, job, data), token_key=key)
        return replace(beginning, state=replace(beginning.state, settings=settings))

    def _runners(self) -> Runners:
        """Return the task runners, that of the options packed. Raises SchedulerError."""
        try:
            runners = Runners.of(self.config.artifacts_dir)
            runners.publish(storage=self.spec.storage.is_used)
        except BundleError as error:
            raise SchedulerError(EXIT_INITIALIZATION, f"the task runner: {error}") from error
        return runners

    def _settings(self, runners: Runners, job: Path | None, data: Path | None) -> LaunchSettings:
        directory = self.config.artifacts_dir
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
        return url_from(self._api.address, self.config.advertise, self._scheme)
