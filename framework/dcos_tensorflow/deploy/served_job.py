"""One scheduler in this process: set up, started, registered for other terminals, ended in order.

Used by ``run`` (which follows the job) and ``scheduler`` (the daemon). A scheduler that ends leaves
its tasks alone; only a job that is done is taken off the cluster.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.audit import AuditLog
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.callers.dcos_tokens import DcosTokens, KeyFile, KeyService
from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses
from dcos_tensorflow.api.counters import Metrics
from dcos_tensorflow.api.redaction import redact, secret_values
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.kept.last_page import keep_page, page_of
from dcos_tensorflow.client.kept.output import keep_output
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.snapshot import Snapshot, snapshot_of
from dcos_tensorflow.client.units import units_outcome
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.events import StopRequested, UninstallRequested
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.restarts import sidecars
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.deploy.job.deployment import PreparedJob
from dcos_tensorflow.deploy.scheduler_settings import without_password
from dcos_tensorflow.deploy.told_runs import tracking_of
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.keeper import Keeper, Sources
from dcos_tensorflow.options.errors import OptionsError, one_sentence
from dcos_tensorflow.scheduler.beginning import NothingInForce
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.loop.tracing import traces_of
from dcos_tensorflow.scheduler.runners.runner_request import RunnerCalls
from dcos_tensorflow.scheduler.runners.sandbox_files import TaskFiles
from dcos_tensorflow.scheduler.scheduler import (
    EXIT_API,
    EXIT_INITIALIZATION,
    Scheduler,
    SchedulerError,
)
from dcos_tensorflow.state.urls import from_anywhere
from untrusted_input.listening import ServerNotStarted
from untrusted_input.process_table import start_time
from untrusted_input.server_tls import CertificateUnusable, ServerTls

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState
    from dcos_tensorflow.history.bucket import RunBucket
    from dcos_tensorflow.options import Options

log = logging.getLogger(__name__)

_REGISTERED_SECONDS = 10.0
#: How a master answers whom it does not know, and what to do about it.
_UNKNOWN = "HTTP 401"
_SAY_WHO = " Give the credentials with --principal and --secret-file."
#: How long tasks that find their place at once have to be launched before anything is shown.
_LAUNCH_SECONDS = 0.5
#: How long the answer to a wish for other options is waited for: a step, and a commit.
_ANSWER_SECONDS = 10.0
#: How long agents have to offer what they have reserved for a job that has ended.
_GIVE_BACK_SECONDS = 60.0
#: How long a framework that no master has ever seen has for its first subscription.
_FIRST_SECONDS = 3.0


class SchedulerSource:
    """The scheduler as the API sees it (``api.source.StateSource``), with the options it runs."""

    def __init__(self, scheduler: Scheduler, as_given: Mapping[str, Any] | None = None) -> None:
        self.state = scheduler.state
        self.leader = scheduler.leader
        self.usages = scheduler.usages
        self.submit = scheduler.carry_out
        self.configuration = scheduler.options
        self.refused_options = scheduler.refused_options
        self.configurations = scheduler.configurations
        self.recording = scheduler.recording
        self.artifact = scheduler.artifact
        self.secret_texts = scheduler.secret_texts
        files = TaskFiles(lambda: scheduler.files, self._framework_id)
        self.read_file, self.browse, self.content = files.read, files.browse, files.content
        self.ask_runner = RunnerCalls(scheduler.state).ask
        self._scheduler = scheduler
        #: Options as they were given, secrets and all, by configuration id.
        self._as_given: dict[str, Mapping[str, Any]] = {}
        if as_given is not None:
            self._as_given[configuration_id(scheduler.spec)] = as_given

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        """Return what the service would be with these options. Raises OptionsError."""
        spec = self._scheduler.change_configuration(options, restarted=restarted)
        if not restarted:
            self._as_given[configuration_id(spec)] = options
        return spec

    def options_in_force(self) -> Mapping[str, Any] | None:
        """Return the target's options as they were given; None for a target of before us."""
        state = self.state()
        return self._as_given.get(configuration_id(state.spec)) if state is not None else None

    def _framework_id(self) -> str:
        state = self._scheduler.state()
        return state.framework_id if state is not None else ""


class ServedJob:
    """A scheduler of this process, with its API. A context manager: leaving it ends the scheduler.

    Entering may wait for the leadership; it raises CliError when the scheduler cannot start, and
    ``problem``, why the options cannot be had, where there are none of before to go on with.
    ``configuration`` are the options as they are shown, ``as_given`` the same with their secrets.
    ``spec_of`` makes a ServiceSpec of changed options (``preparation.changed_spec``).
    ``check_cluster`` raises CliError when the embedded cluster is gone. ``published_defaults`` says
    how changed options are read, ``folder`` where relative paths in them start.
    """

    def __init__(
        self,
        prepared: PreparedJob,
        config: SchedulerConfig,
        directory: ServiceDirectory,
        configuration: Mapping[str, Any],
        *,
        local: bool,
        as_given: Mapping[str, Any] | None = None,
        problem: OptionsError | CliError | None = None,
        check_cluster: Callable[[], None] = lambda: None,
        spec_of: Callable[[Options, ServiceSpec, bool], ServiceSpec] | None = None,
        published_defaults: bool = False,
        folder: Path | None = None,
    ) -> None:
        # What reads options comes with a scheduler, and with no other command.
        from dcos_tensorflow.deploy.job.preparation import archives_in_force

        self._local = local
        self._check_cluster = check_cluster
        self.directory = directory
        self.config = config
        self.spec = prepared.spec
        self._contract = prepared.code.contract
        self._as_given = as_given
        self._folder = folder
        self._problem = problem
        self.scheduler = Scheduler(
            prepared.spec,
            config,
            refused=one_sentence(problem) if problem is not None else "",
            job=prepared.archive,
            data=prepared.data,
            archives=partial(archives_in_force, prepared, directory),
            serve_api=self._serve_api,
            spec_of=spec_of,
            given=configuration,
            published_defaults=published_defaults,
        )
        self._metrics = Metrics(self.scheduler.load)
        self.scheduler.measure(self._metrics.observe)
        self._traces = traces_of(prepared.spec.name, os.environ)
        if self._traces is not None:
            self.scheduler.measure(self._traces.observe)
        self._curves = Curves()
        self.scheduler.after_step(self._curves.observe)
        sources = Sources(
            self.scheduler.state, self.scheduler.options, self._without_secrets, self._bucket
        )
        self._history = Keeper(directory.history, self._curves, sources)
        self.scheduler.after_step(self._history.observe)
        self._tracking = tracking_of(directory.history, self.scheduler, self._without_secrets)

    def __enter__(self) -> ServedJob:
        try:
            self.scheduler.start()
        except NothingInForce as error:
            wrong = self._problem or CliError(sentence(str(error)), EXIT_INITIALIZATION)
            raise wrong from error
        except SchedulerError as error:
            raise CliError(sentence(str(error)), error.exit_code) from error
        except ServerNotStarted as error:
            raise CliError(sentence(str(error)), EXIT_API) from error
        try:
            # There is no state to show while an uninstall has not begun yet.
            state = self.scheduler.state()
            done = state is not None and state.job.phase is JobPhase.DONE
            ending.forget(self.directory, but=state.job.finished_at if state and done else None)
            registry.register(self.directory, self._registration())
            self._history.start()
            self._tracking.start()
        except BaseException:
            self.scheduler.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        registry.unregister(self.directory)
        self._history.finish(leads=self.scheduler.exit is None)
        self._tracking.finish()
        self.scheduler.stop()
        if self._traces is not None:
            self._traces.stop()

    def wait_for_launch(self) -> None:
        """Return once tasks are launched, or that takes longer than a user would notice.

        What the caller does next, it does beside the tasks then, and not in their way.
        """
        self.scheduler.wait_until(
            lambda state: state.job.phase is not JobPhase.PLACING, _LAUNCH_SECONDS
        )

    def snapshot(self) -> Snapshot:
        """Return where the job stands."""
        state = self.scheduler.state()
        if state is None:
            raise CliError("The scheduler has no state.")
        return snapshot_of(state)

    def refused_update(self) -> str:
        """Return why the job cannot go over to this scheduler's options; empty when it does."""
        wanted = configuration_id(self.spec)
        self.scheduler.wait_until(
            lambda state: (
                bool(state.told.refused_configuration) or configuration_id(state.spec) == wanted
            ),
            _ANSWER_SECONDS,
        )
        state = self.scheduler.state()
        return state.told.refused_configuration if state is not None else ""

    def stop_job(self, why: str) -> None:
        """Ask for the job's end: its tasks are ended and its resources given back."""
        self.scheduler.submit(StopRequested(why))

    def staying(self) -> tuple[str, ...]:
        """Return what runs on though the job has ended, each task with its address."""
        state = self.scheduler.state()
        found = sidecars.staying(state.view()) if state is not None else ()
        return tuple(f"{r.name} at http://{r.address}:{r.ports[0]}" for r in found)

    def uninstalled(self) -> bool:
        """Say whether nothing is left of the service."""
        state = self.scheduler.state()
        return state is not None and state.removal.erased

    def when_over(self, callback: Callable[[], None]) -> None:
        """Call back after each step of a job that is done or of a service that is removed.

        And once the scheduler has ended by itself. Called in any thread; it must not block. To be
        asked for before the job is served.
        """

        def look(state: ServiceState) -> None:
            if state.job.phase is JobPhase.DONE or state.removal.erased:
                callback()

        self.scheduler.after_step(look)
        self.scheduler.when_left(callback)

    def wait(self, seconds: float) -> bool:
        """Wait until the job is done or the scheduler has ended by itself; False on time out."""
        return self.scheduler.wait(seconds)

    def check(self) -> None:
        """Raise CliError when the scheduler, or the embedded cluster below it, has ended."""
        left = self.scheduler.exit
        if left is not None:
            remedy = _SAY_WHO if _UNKNOWN in left.message else ""
            raise CliError(
                f"The scheduler has ended: {sentence(left.message)}{remedy} Its log is"
                f" {self.directory.log}.",
                left.code or 1,
            )
        self._check_cluster()

    def ended(self, cluster: Path | None, again: Sequence[str] = ()) -> dict[str, Any]:
        """Return how the job ended, and leave it in the service's folder.

        ``cluster`` is the folder of the embedded cluster, None for any other; ``again`` the command
        line that runs the job once more.
        """
        snapshot = self.snapshot()
        if (snapshot.verdict or {}).get("outcome") == Outcome.SUCCEEDED:
            snapshot = ending.with_last_output(snapshot, self._tail)
        if cluster is None:
            keep_output(self.directory, snapshot.job["tasks"], self._tail)
        state = self.scheduler.state()
        framework_id = state.framework_id if state is not None else ""
        units = units_outcome(state) if state is not None else {}
        spec = self._spec_in_force()
        places = ending.places(spec, self.directory, cluster, snapshot, framework_id)
        left = ending.left_in_sandboxes(snapshot, self._tail)
        steps = ending.steps(spec, self.directory, again, units)
        document = ending.document(snapshot, places, left, steps, self._contract, units=units)
        # The end is told last: a reader of it finds the curves whole.
        self._history.tell({"result": document["result"], **({"units": units} if units else {})})
        ending.keep(self.directory, document)
        self._keep_page()
        return document

    def _keep_page(self) -> None:
        """Leave what the dashboard shows now, for when no scheduler serves the service."""
        state, scheduler = self.scheduler.state(), self.scheduler
        if state is None:
            return
        options, refused = scheduler.options(), scheduler.refused_options()
        keep_page(self.directory, page_of(state, options, refused, scheduler.secret_texts()))

    def leave_cluster(self) -> None:
        """Take the framework of a job that is done off the cluster.

        A scheduler that found the job done already may not have registered yet; only a registered
        framework can be removed.
        """
        state = self.scheduler.state()
        known = state is not None and bool(state.framework_id)
        if state is not None and not state.registered:
            seconds = _REGISTERED_SECONDS if known else _FIRST_SECONDS
            self.scheduler.wait_until(lambda state: state.registered, seconds)
            state = self.scheduler.state()
        if known and state is not None and not state.registered:
            log.warning(
                "the master does not answer: the framework stays until its failover timeout"
            )
        if state is not None and state.registered and state.reservations:
            self._give_back()
        self.scheduler.teardown()

    def machines(self) -> int:
        """Return how many machines there are that were bought for the job."""
        state = self.scheduler.state()
        return machines_left(state.capacity) if state is not None else 0

    def bill(self) -> dict[str, Any] | None:
        """Return what the machines that were bought have cost; None where none may be."""
        state = self.scheduler.state()
        if state is None or state.spec.capacity is None:
            return None
        from dcos_tensorflow.api.views.machines import capacity

        return dict(capacity(state)["bill"])

    def _give_back(self) -> None:
        """Have everything that is reserved given back: without the framework that is impossible."""
        self.scheduler.submit(UninstallRequested("the job has ended"))
        if not self.scheduler.wait_until(lambda state: state.removal.erased, _GIVE_BACK_SECONDS):
            state = self.scheduler.state()
            kept = state.reservations.values() if state is not None else ()
            left = ", ".join(f"{r.task} on {r.hostname}" for r in kept)
            log.warning("volumes are left behind, for their agents do not answer: %s", left)

    def _spec_in_force(self) -> ServiceSpec:
        state = self.scheduler.state()
        return self.spec if state is None else state.spec

    def _tail(self, agent_id: str, task_id: str, file: str) -> list[str]:
        state, files = self.scheduler.state(), self.scheduler.files
        if state is None or files is None:
            return []
        return files.tail(agent_id, state.framework_id, task_id, file, lines=400)

    def _serve_api(self, scheduler: Scheduler) -> ApiServer:
        app = create_app(
            SchedulerSource(scheduler, self._as_given),
            access=access_of(self.config),
            metrics=self._metrics,
            audit=AuditLog(self.directory.audit_log),
            curves=self._curves,
            history=self._history,
        )
        certificate = certificate_of(self.config)
        return ApiServer(app, self.config.api_host, self.config.api_port, tls=certificate)

    def _without_secrets(self, state: ServiceState, told: Any) -> Any:
        return redact(told, secret_values(state, self.scheduler.secret_texts()))

    def _bucket(self, state: ServiceState) -> RunBucket | None:
        """Return where in S3 the runs are copied; None where nothing of the service is there."""
        from dcos_tensorflow.history.bucket import RunBucket, place_of

        place = place_of(state.spec)
        if place is None:
            return None
        return RunBucket(self.scheduler.object_store(state.spec, place.uri), place)

    def _registration(self) -> Registration:
        return Registration(
            service=self.spec.name,
            pid=os.getpid(),
            api=self.scheduler.api_address,
            token=self.config.api_token,
            certificate=self.config.api_cert,
            state=without_password(from_anywhere(self.config.state, Path.cwd())),
            master=without_password(self.config.master),
            started_at=time.time(),
            local=self._local,
            folder=str(self._folder or ""),
            started=start_time(os.getpid()) or 0,
        )


def access_of(config: SchedulerConfig) -> Access:
    """Return who is let in."""
    users = config.api_dcos
    if users is None:
        routers = TrustedAddresses(config.api_from) if config.api_from else None
        return Access(config.api_token, config.api_read_token, trusted=routers)
    keys: KeyFile | KeyService
    if users.keys.startswith("https://"):
        # Those who are trusted to be the masters are trusted to be their identity service.
        trusted = partial(ssl.create_default_context, cafile=config.ca_file or None)
        keys = KeyService(users.keys, trusted)
    else:
        keys = KeyFile(Path(users.keys))
    logins = DcosTokens(keys, users.operators, users.readers)
    return Access(config.api_token, config.api_read_token, logins)


def certificate_of(config: SchedulerConfig) -> ServerTls | None:
    """Return what the API encrypts with; None for plain HTTP. Raises ServerNotStarted."""
    if not config.api_cert:
        return None
    try:
        return ServerTls(Path(config.api_cert), Path(config.api_key))
    except CertificateUnusable as error:
        raise ServerNotStarted(f"the API speaks no TLS: {error}") from error
