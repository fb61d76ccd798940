"""One service's scheduler: the rooms below it wired together, and their order of start and stop.

Called by the command line. ``start`` opens the state store, becomes the leader, restores or creates
the service's state, starts the API, the event loop and the Mesos subscription. ``stop`` ends the
process's part and leaves every task alone; only ``teardown`` removes the framework.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dcos_tensorflow.core.actions import Action, CollectEvidence, Exit, Resubscribe, Teardown, Write
from dcos_tensorflow.core.events import Event
from dcos_tensorflow.core.job import JobPhase
from dcos_tensorflow.core.service import Decision
from dcos_tensorflow.core.service_state import (
    FRAMEWORK_ID_PATH,
    LaunchSettings,
    ServiceState,
    StateUnreadable,
    configuration_id,
    first_writes,
    restore,
)
from dcos_tensorflow.core.spec import ServiceSpec
from dcos_tensorflow.mesos.agent_files import AgentFiles
from dcos_tensorflow.mesos.convert import framework_info
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.scheduler import artifacts
from dcos_tensorflow.scheduler.configuration import ArtifactDelivery, SchedulerConfig
from dcos_tensorflow.scheduler.event_loop import EXIT_STATE, EventLoop
from dcos_tensorflow.scheduler.evidence import EvidenceReader
from dcos_tensorflow.scheduler.runner_client import RunnerClient
from dcos_tensorflow.state.errors import LeadershipTaken, StateError
from dcos_tensorflow.state.leadership import Leadership
from dcos_tensorflow.state.store import StateStore, open_store

log = logging.getLogger(__name__)

#: The DC/OS SDK's exit codes for the same events (reference: SDK scheduler, ProcessExit).
EXIT_INITIALIZATION = 1
EXIT_LOCKED = 8
EXIT_API = 9


class SchedulerError(Exception):
    """The scheduler cannot start. ``exit_code`` is for the process."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class RunningApi(Protocol):
    """An HTTP API that serves already."""

    address: str

    def stop(self) -> None:
        """Stop serving."""


class Scheduler:
    """The scheduler of one service.

    ``job`` is a packed local job, or None when the options name a URL. ``serve_api`` starts the
    HTTP API for this scheduler (``api.serve``); it is given, not imported, because imports point
    downwards only.
    """

    def __init__(
        self,
        spec: ServiceSpec,
        config: SchedulerConfig,
        *,
        job: Path | None = None,
        serve_api: Callable[[Scheduler], RunningApi] | None = None,
    ) -> None:
        self.spec = spec
        self.config = config
        self._job = job
        self._serve_api = serve_api
        self._artifacts: dict[str, Path] = {}
        self._watchers: list[Callable[[Decision], None]] = []
        self._store: StateStore | None = None
        self._leadership: Leadership | None = None
        self._api: RunningApi | None = None
        self._loop: EventLoop | None = None
        self._gateway: MesosGateway | None = None
        self._runners: RunnerClient | None = None
        self._evidence: EvidenceReader | None = None
        #: Reads our tasks' sandboxes with this scheduler's credentials; None before ``start``.
        self.files: AgentFiles | None = None

    # What others ask for.

    def state(self) -> ServiceState | None:
        """Return the newest state; None while the scheduler is not the leader yet."""
        return self._loop.state if self._loop is not None else None

    def submit(self, event: Event) -> None:
        """Hand an event to the loop. Raises SchedulerError before ``start``."""
        self._running_loop().submit(event)

    def watch(self, callback: Callable[[Decision], None]) -> None:
        """Call back in the loop's thread after every step that changed or said something.

        A watcher that is there before ``start`` misses nothing.
        """
        self._watchers.append(callback)
        if self._loop is not None:
            self._loop.watch(callback)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is done or the scheduler has ended by itself; False on time out."""
        return self._running_loop().wait_for(lambda s: s.job.phase is JobPhase.DONE, timeout)

    @property
    def exit(self) -> Exit | None:
        """Return why the scheduler ended by itself; None while it has not."""
        return self._loop.exit if self._loop is not None else None

    @property
    def api_address(self) -> str:
        """Return the API's ``host:port``; empty when there is none."""
        return self._api.address if self._api is not None else ""

    def artifact(self, name: str) -> Path | None:
        """Return the file that tasks fetch under this name."""
        return self._artifacts.get(name)

    # Start and stop.

    def start(self) -> None:
        """Start everything. Raises SchedulerError; what had been started is stopped again."""
        try:
            self._start()
        except BaseException as error:
            self.stop()
            if isinstance(error, LeadershipTaken):
                raise SchedulerError(EXIT_LOCKED, str(error)) from error
            if isinstance(error, StateError | StateUnreadable):
                raise SchedulerError(EXIT_STATE, f"state store: {error}") from error
            raise

    def _start(self) -> None:
        self._store = open_store(self.config.state, self.spec.name)
        self._leadership = self._store.lead(
            f"{socket.gethostname()} pid {os.getpid()}",
            self.config.leadership_timeout_seconds,
            self._leadership_lost,
        )
        log.info("leading the service %s", self.spec.name)
        if self._serve_api is not None:
            self._api = self._serve_api(self)
        state = self._load(self._store)
        self._loop = EventLoop(
            state, self._store, self._perform, tick_seconds=self.config.tick_seconds
        )
        for watcher in self._watchers:
            self._loop.watch(watcher)
        self._gateway = MesosGateway(self._mesos_config(), self._loop.submit)
        self.files = AgentFiles(self._gateway)
        self._evidence = EvidenceReader(self.files, self._framework_id, self._loop.submit)
        self._runners = runners = RunnerClient(
            lambda: self._running_loop().state, self._loop.submit
        )
        self._loop.watch(lambda decision: runners.wake())
        self._loop.start()
        self._runners.start()
        self._subscribe(self._gateway, state.spec, state.framework_id)

    def stop(self) -> None:
        """End this process's part. Every task is left alone."""
        for part in (self._gateway, self._runners, self._evidence, self._loop, self._api):
            if part is not None:
                part.stop()
        if self._leadership is not None:
            self._leadership.release()
        if self._store is not None:
            self._store.close()
        self._leadership = self._store = None

    def teardown(self) -> None:
        """Remove the framework from Mesos, which ends whatever it still runs, and forget its id."""
        if self._gateway is not None and self._store is not None:
            self._gateway.perform(Teardown())
            self._store.commit([Write(FRAMEWORK_ID_PATH, None)])

    # Wiring.

    def _running_loop(self) -> EventLoop:
        if self._loop is None:
            raise SchedulerError(EXIT_INITIALIZATION, "the scheduler has not been started")
        return self._loop

    def _subscribe(self, gateway: MesosGateway, spec: ServiceSpec, framework_id: str) -> None:
        url = self._api_url() or ""
        gateway.start(framework_info(spec, framework_id or None, socket.gethostname(), url))

    def _framework_id(self) -> str:
        return self._running_loop().state.framework_id

    def _perform(self, action: Action) -> None:
        if isinstance(action, CollectEvidence) and self._evidence is not None:
            self._evidence.collect(action)
        elif isinstance(action, Resubscribe) and self._gateway is not None:
            self._gateway.stop()
            self._subscribe(self._gateway, self.spec, "")
        elif self._gateway is not None:
            self._gateway.perform(action)

    def _leadership_lost(self, why: str) -> None:
        if self._loop is not None:
            self._loop.leave(EXIT_LOCKED, f"no longer the leader of {self.spec.name}: {why}")

    def _mesos_config(self) -> MesosConfig:
        config = self.config
        return MesosConfig(
            masters=config.master,
            principal=config.principal,
            secret=config.secret,
            ca_file=config.ca_file,
            client_cert=config.client_cert,
            client_key=config.client_key,
            verify=config.verify,
        )

    def _load(self, store: StateStore) -> ServiceState:
        """Return the state to work with: the stored one, or that of a new service."""
        settings = self._settings()
        values = store.load()
        stored = restore(values, settings)
        if stored is None:
            return self._create(store, settings)
        done = stored.job.phase is JobPhase.DONE
        same = configuration_id(stored.spec) == configuration_id(self.spec)
        if done and (self.config.fresh or not same):
            return self._renew(store, stored, values)
        if not same:
            raise SchedulerError(
                EXIT_INITIALIZATION,
                f"a job of the service {self.spec.name} is {stored.job.phase} with other options;"
                " stop it first, or run this one under another service.name",
            )
        log.info("carrying on: the job is %s, %d tasks live", stored.job.phase, _live(stored))
        return stored

    def _create(self, store: StateStore, settings: LaunchSettings) -> ServiceState:
        state = ServiceState(
            spec=self.spec,
            instance=str(uuid.uuid4()),
            settings=replace(settings, token_key=secrets.token_hex(32)),
        )
        store.commit(first_writes(state))
        return state

    def _renew(
        self, store: StateStore, stored: ServiceState, values: Mapping[str, bytes]
    ) -> ServiceState:
        """Replace a job that is done by a new one; the framework id is kept."""
        state = ServiceState(
            spec=self.spec,
            instance=str(uuid.uuid4()),
            settings=stored.settings,
            framework_id=stored.framework_id,
        )
        old = [p for p in values if p.startswith(("Tasks/", "Configurations/")) or p == "Epoch"]
        kept = {w.path for w in first_writes(state)}
        store.commit([*(Write(p, None) for p in old if p not in kept), *first_writes(state)])
        log.info("the job before is done (%s); a new one begins", stored.job.why)
        return state

    def _settings(self) -> LaunchSettings:
        directory = self.config.artifacts_dir
        runner = artifacts.publish_runner(directory)
        self._artifacts[runner.name] = runner
        url = self._api_url() if self.config.artifacts == ArtifactDelivery.HTTP else None
        if self.config.artifacts == ArtifactDelivery.HTTP and url is None:
            raise SchedulerError(EXIT_API, "tasks fetch their runner from the API, which is off")
        job = None
        if self._job is not None:
            file = artifacts.publish_job(self._job, directory)
            self._artifacts[file.name] = file
            job = artifacts.uri_of(file, url, extract=True)
        return LaunchSettings(runner=artifacts.uri_of(runner, url, extract=False), job=job)

    def _api_url(self) -> str | None:
        if self._api is None:
            return None
        host, _, port = self._api.address.rpartition(":")
        if self.config.advertise:
            host = self.config.advertise
        elif host in ("0.0.0.0", "[::]", "::"):
            host = socket.getfqdn()
        return f"http://{host}:{port}"


def _live(state: ServiceState) -> int:
    return len(state.live_tasks)
