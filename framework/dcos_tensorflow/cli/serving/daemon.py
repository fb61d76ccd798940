"""``scheduler``: the daemon alone, as Marathon or systemd start it.

It serves one job and answers questions until it is told to end. A signal ends the process and
nothing else: the tasks go on, and the next scheduler of the service takes them over. With
``--uninstall`` it ends the job, removes everything of the service, and goes on answering.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType

from dcos_tensorflow.cli.embedded import cluster as embedded
from dcos_tensorflow.cli.embedded.cluster import Cluster
from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.services import ending
from dcos_tensorflow.cli.serving.own_log import log_to_standard_error
from dcos_tensorflow.cli.serving.preparation import (
    prepare,
    prepare_uninstall,
    respecified,
    with_principal,
)
from dcos_tensorflow.cli.serving.served_job import ServedJob, scheduler_config, with_guarded_api
from dcos_tensorflow.cli.serving.service_login import service_account, with_clusters_authority
from dcos_tensorflow.cli.settings import Settings
from dcos_tensorflow.cli.work_directory import WorkDirectory, work_directory
from dcos_tensorflow.local.daemon import PRINCIPAL
from dcos_tensorflow.options import Options, effective, load
from dcos_tensorflow.options.images import with_images
from dcos_tensorflow.package import variables

log = logging.getLogger(__name__)

#: Cosmos sets it, to any value, in the app of a service that is to be uninstalled (DC/OS SDK).
UNINSTALL_VARIABLE = "SDK_UNINSTALL"

_LOOK_SECONDS = 0.5


class _Ended(BaseException):
    """A signal while the scheduler starts: it may be waiting for the leadership for days."""


def serve(options_file: Path | None, overrides: Sequence[str], settings: Settings) -> int:
    """Serve the job until a signal comes; return the exit code. Raises CliError, OptionsError."""
    options = read_options(options_file, overrides, settings, os.environ)
    given = Path(settings["work_dir"]) if settings["work_dir"] else None
    work = work_directory(given, os.environ)
    directory = work.service(options.service.name)
    local = bool(settings["local"])
    with ExitStack() as stack:
        stack.enter_context(log_to_standard_error(options.service.log_level))
        settings, cluster = _with_master(settings, work)
        if UNINSTALL_VARIABLE in os.environ:
            settings = settings.with_value("uninstall", True, f"the variable {UNINSTALL_VARIABLE}")
        account = service_account(options, settings, os.environ, local=local)
        settings = with_clusters_authority(settings, account, os.environ)
        prepared = with_principal(
            prepare_uninstall(options, directory)
            if settings["uninstall"]
            else prepare(options, directory, os.environ, local=local),
            PRINCIPAL if local else settings["principal"],
            account,
        )
        for note in prepared.notes:
            log.info("note: %s", note)
        settings = with_guarded_api(settings, local=local)
        config = replace(
            scheduler_config(settings, directory, local=local), service_account=account
        )
        if cluster is not None:
            config = cluster.entered_by(config)
        ended, folder = threading.Event(), cluster.directory if cluster is not None else None
        served = ServedJob(
            prepared,
            config,
            directory,
            effective(options),
            local=local,
            check_cluster=embedded.check_of(folder, settings["master"]),
            spec_of=lambda changed: respecified(
                _of_package(changed, os.environ), directory, os.environ, prepared.spec, local=local
            ),
        )
        try:
            with _signals_end(ended) as starting:
                stack.enter_context(served)
                starting.clear()
                log.info("the API listens on http://%s", served.scheduler.api_address)
                return _serve(served, settings, ended, folder)
        except _Ended:
            log.info("ended before it became the leader")
            return 0


def read_options(
    file: Path | None, overrides: Sequence[str], settings: Settings, environ: Mapping[str, str]
) -> Options:
    """Return the options of the file, or of the OPTION__* variables that a package's app has."""
    if file is None and settings["options"]:
        file = Path(settings["options"])
    if file is not None and variables.has_options(environ):
        raise UsageError(
            f"The options are in {file} and in {variables.PREFIX}* variables, and can be in one of"
            " them only."
        )
    if file is None and not variables.has_options(environ):
        raise UsageError(
            "Which options? Name the file as an argument, as options in the --config file, or"
            f" in DCOS_TENSORFLOW_OPTIONS, or give them in {variables.PREFIX}* variables."
        )
    options = load(variables.options_in(environ) if file is None else file, overrides=overrides)
    return _of_package(options, environ)


def _of_package(options: Options, environ: Mapping[str, str]) -> Options:
    """Return the options with what a package's app says beside them."""
    options = with_images(options, variables.images_in(environ))
    return variables.with_group_role(options, environ)


def _with_master(settings: Settings, work: WorkDirectory) -> tuple[Settings, Cluster | None]:
    if settings["local"]:
        status = embedded.running(work.local)
        if status is None:
            raise CliError(
                f"{settings.origin('local')}: no embedded cluster runs in {work.local}; start one"
                " with dcos-tensorflow local up."
            )
        cluster = Cluster.at(work.local, status, own=False)
        return settings.with_default("master", cluster.master), cluster
    if not settings["master"]:
        raise UsageError(
            "Which cluster? Name its masters with --master (DCOS_TENSORFLOW_MASTER, master in the"
            " --config file), or say --local."
        )
    return settings, None


class _signals_end:
    """While entered, SIGTERM and SIGINT set an event; while it starts, they end that at once."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._starting = threading.Event()
        self._before: dict[int, object] = {}

    def __enter__(self) -> threading.Event:
        self._starting.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._end)
        return self._starting

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _end(self, number: int, _frame: FrameType | None) -> None:
        log.info("%s: the scheduler ends, its tasks are left alone", signal.Signals(number).name)
        already = self._ended.is_set()
        self._ended.set()
        if self._starting.is_set() and not already:
            raise _Ended


def _serve(
    served: ServedJob,
    settings: Settings,
    ended: threading.Event,
    cluster: Path | None,
) -> int:
    code: int | None = None
    while not ended.wait(_LOOK_SECONDS):
        served.check()
        if not served.wait(0.0):
            continue
        served.check()
        if code is None:
            document = served.ended(cluster)
            code = int(document["exit_code"])
            for line in ending.lines(document):
                log.info("%s", line)
        if settings["exit_when_done"] and not served.staying():
            served.leave_cluster()
            return code
    return 0
