"""``scheduler``: the daemon alone, as Marathon or systemd start it.

It serves one job and answers questions until it is told to end. A signal ends the process and
nothing else: the tasks go on, and the next scheduler of the service takes them over. With
``--uninstall`` it ends the job, removes everything of the service, and goes on answering. With
``--exit-when-uninstalled`` it ends then, however the uninstall was asked for, and so it does where
another scheduler has uninstalled the service for which it stood by.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.errors import EXIT_UNINSTALLED, CliError, UsageError
from dcos_tensorflow.client.kept.stored import stored_state
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory, work_directory
from dcos_tensorflow.deploy.embedded import cluster as embedded
from dcos_tensorflow.deploy.embedded.cluster import PRINCIPAL, EmbeddedCluster
from dcos_tensorflow.deploy.job.deployment import PreparedJob
from dcos_tensorflow.deploy.job.preparation import (
    changed_spec,
    prepare,
    prepare_name,
    with_principal,
)
from dcos_tensorflow.deploy.own_log import log_to_standard_error
from dcos_tensorflow.deploy.published_counts import kept_note, runs_as_published
from dcos_tensorflow.deploy.scheduler_settings import (
    links_of,
    scheduler_config,
    state_of,
    with_guarded_api,
)
from dcos_tensorflow.deploy.served_job import ServedJob
from dcos_tensorflow.deploy.service_login import service_account, with_clusters_authority
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.deploy.wanted_service import (
    WantedService,
    of_package,
    published_defaults,
    to_serve,
    to_uninstall,
)
from dcos_tensorflow.mesos.service_account import ServiceAccount
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.options.default_tasks import unnamed

log = logging.getLogger(__name__)

#: How often it is looked whether the embedded cluster still runs.
_LOOK_SECONDS = 2.0
#: How long it is answered that nothing is left: the client of the uninstall looks again soon.
_SEEN_SECONDS = 10.0


class _Ended(BaseException):
    """A signal while the scheduler starts: it may be waiting for the leadership for days."""


def serve(
    options_file: Path | None,
    overrides: Sequence[str],
    settings: Settings,
    folder: Path | None = None,
) -> int:
    """Serve the job until a signal comes; return the exit code. Raises CliError, OptionsError.

    ``folder`` is where relative paths in the options start, in place of the file's own.

    Options that cannot be used end nothing of a service that exists: it goes on with those of
    before, and says why in its plan ``deploy``. An uninstall does not read them.
    """

    def read(known: Settings) -> WantedService:
        return read_options(options_file, overrides, known, os.environ, folder)

    wanted = read(settings)
    given = Path(settings["work_dir"]) if settings["work_dir"] else None
    work = work_directory(given, os.environ)
    directory = work.service(wanted.options.service.name)
    local, said = bool(settings["local"]), wanted.options.service
    with ExitStack() as stack:
        stack.enter_context(log_to_standard_error(said.log_level, said.log_format))
        try:
            settings, cluster = _with_master(settings, work)
        except CliError as unknown:
            # What is wrong with the options is told first: it may be why nothing else was given.
            raise wanted.problem or unknown from None
        if not settings["uninstall"]:
            wanted = _as_it_runs(wanted, read, settings, state_of(settings, directory))
        wanted, account = _with_account(wanted, settings, local=local)
        settings = with_clusters_authority(settings, account, os.environ)
        prepared, problem = prepared_for(
            wanted, directory, settings, account, os.environ, local=local
        )
        for note in prepared.notes:
            log.info("note: %s", note)
        settings = with_guarded_api(settings, local=local)
        config = replace(
            scheduler_config(
                settings, directory, local=local, folder=wanted.options.base_directory
            ),
            service_account=account,
        )
        if cluster is not None:
            config = cluster.entered_by(config)
        folder = cluster.directory if cluster is not None else None
        served = ServedJob(
            prepared,
            config,
            directory,
            wanted.given,
            problem=problem,
            local=local,
            as_given=wanted.as_given,
            published_defaults=published_defaults(settings, os.environ),
            folder=wanted.options.base_directory,
            check_cluster=embedded.check_of(folder, settings["master"]),
            spec_of=lambda changed, running, restarted: changed_spec(
                of_package(changed, os.environ),
                directory,
                os.environ,
                running,
                local=local,
                restarted=restarted,
            ),
        )
        try:
            with _Signals() as signals:
                served.when_over(signals.wake)
                stack.enter_context(served)
                signals.is_starting = False
                log.info("the API listens on %s", served.scheduler.api_url)
                return _serve(served, settings, signals, folder)
        except _Ended:
            log.info("ended before it became the leader")
            return 0
        except CliError as error:
            if error.exit_code == EXIT_UNINSTALLED and settings["exit_when_uninstalled"]:
                directory.remove()
            raise


def read_options(
    file: Path | None,
    overrides: Sequence[str],
    settings: Settings,
    environ: Mapping[str, str],
    folder: Path | None = None,
) -> WantedService:
    """Return what to serve; for an uninstall by the name alone. Raises UsageError, OptionsError."""
    if settings["uninstall"]:
        return to_uninstall(file, overrides, settings, environ)
    return to_serve(file, overrides, settings, environ, folder)


def _as_it_runs(
    wanted: WantedService, read: Callable[[Settings], WantedService], settings: Settings, url: str
) -> WantedService:
    """Return what to serve of a service whose job may run with tasks that came unasked."""
    if wanted.problem is not None or not unnamed(wanted.options):
        return wanted
    known = stored_state(url, wanted.options.service.name)
    published = settings.with_value("published_defaults", True, "the job that runs")
    try:
        if runs_as_published(wanted.options, lambda: read(published).options, known):
            log.info("%s", kept_note(wanted.options))
            return read(published)
    except OptionsError as problem:
        return replace(wanted, problem=problem, as_given=None)
    return wanted


def prepared_for(
    wanted: WantedService,
    directory: ServiceDirectory,
    settings: Settings,
    account: ServiceAccount | None,
    environ: Mapping[str, str],
    *,
    local: bool,
) -> tuple[PreparedJob, OptionsError | CliError | None]:
    """Return what to run, and why the options cannot be had; None when they can."""
    named = prepare_name(wanted.options, directory)
    principal = PRINCIPAL if local else settings["principal"]
    if settings["uninstall"]:
        with contextlib.suppress(UsageError):
            named = with_principal(named, principal, account)
    if settings["uninstall"] or wanted.problem is not None:
        return named, wanted.problem
    try:
        found = prepare(wanted.options, directory, environ, local=local, links=links_of(settings))
        return with_principal(found, principal, account), None
    except (UsageError, OptionsError) as problem:
        return named, problem


def _with_account(
    wanted: WantedService, settings: Settings, *, local: bool
) -> tuple[WantedService, ServiceAccount | None]:
    """Return whom to log in as, and what to serve: the account may be wrong like any option."""
    try:
        return wanted, service_account(wanted.options, settings, os.environ, local=local)
    except UsageError as problem:
        return replace(wanted, problem=wanted.problem or problem), None


def _with_master(
    settings: Settings, work: WorkDirectory
) -> tuple[Settings, EmbeddedCluster | None]:
    if settings["local"]:
        status = embedded.running(work.local)
        if status is None:
            raise CliError(
                f"{settings.origin('local')}: no embedded cluster runs in {work.local}; start one"
                " with dcos-tensorflow local up."
            )
        cluster = EmbeddedCluster.at(work.local, status, own=False)
        return settings.with_default("master", cluster.master), cluster
    if not settings["master"]:
        raise UsageError(
            "Which cluster? Name its masters with --master (DCOS_TENSORFLOW_MASTER, master in the"
            " --config file), or use --local."
        )
    return settings, None


class _Signals:
    """While entered, SIGTERM and SIGINT end a wait; while it starts, they end that at once."""

    def __init__(self) -> None:
        self.is_starting = True
        self._have_come = False
        #: A signal's handler may put something here whatever it has interrupted.
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def wake(self) -> None:
        """End the present wait, or the next one. Any thread."""
        self._wakes.put(None)

    def wait(self, seconds: float | None) -> bool:
        """Wait until woken, or for so long; say whether a signal has come."""
        with contextlib.suppress(queue.Empty):
            self._wakes.get(timeout=seconds)
            while True:
                self._wakes.get_nowait()
        return self._have_come

    def _end(self, number: int, _frame: FrameType | None) -> None:
        log.info("%s: the scheduler ends, its tasks are left alone", signal.Signals(number).name)
        already, self._have_come = self._have_come, True
        self._wakes.put(None)
        if self.is_starting and not already:
            raise _Ended


def _serve(served: ServedJob, settings: Settings, signals: _Signals, cluster: Path | None) -> int:
    code: int | None = None
    while True:
        served.check()
        if settings["exit_when_uninstalled"] and served.uninstalled():
            log.info("nothing is left of the service: its scheduler ends, and is not needed again")
            until = time.monotonic() + _SEEN_SECONDS
            while (left := until - time.monotonic()) > 0 and not signals.wait(left):
                pass
            served.directory.remove()
            return EXIT_UNINSTALLED
        if served.wait(0.0):
            served.check()
            if code is None:
                document = served.ended(cluster)
                code = int(document["exit_code"])
                for line in ending.lines(document):
                    log.info("%s", line)
            if settings["exit_when_done"] and not served.staying():
                served.leave_cluster()
                return code
        if signals.wait(None if cluster is None else _LOOK_SECONDS):
            return 0
