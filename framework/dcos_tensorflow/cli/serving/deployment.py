"""``run``, its second part: what is to run is made ready, and handed to whoever serves it.

That is a scheduler in the background (``background``), or one in this process (``foreground``). A
job that is begun in Python is made ready here, too. One that is refused is refused here, and
nothing of one that runs has changed then.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import click

from dcos_tensorflow.cli.embedded.cluster import Cluster, lasting_cluster
from dcos_tensorflow.cli.errors import EXIT_LOCKED, CliError, UsageError
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.services import registry, stored
from dcos_tensorflow.cli.services.registry import Registration
from dcos_tensorflow.cli.serving.background import start_scheduler
from dcos_tensorflow.cli.serving.given_options import GivenOptions
from dcos_tensorflow.cli.serving.preparation import PreparedJob, prepare, with_principal
from dcos_tensorflow.cli.serving.run_request import RunRequest
from dcos_tensorflow.cli.serving.scheduler_settings import state_of
from dcos_tensorflow.cli.serving.service_login import service_account
from dcos_tensorflow.cli.serving.unasked_tasks import (
    kept_note,
    runs_as_published,
    told_with_refusals,
)
from dcos_tensorflow.cli.work_directory import ServiceDirectory
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.workload_spec import BatchSpec
from dcos_tensorflow.local.background_process import StartedProcess
from dcos_tensorflow.local.daemon import PRINCIPAL
from dcos_tensorflow.mesos.service_account import ServiceAccount
from dcos_tensorflow.options import Options
from dcos_tensorflow.records import dataclass

#: How long the scheduler of a job that has ended has to leave before the next one is begun.
_LEAVING_SECONDS = 5.0


@dataclass(frozen=True)
class Deployment:
    """What a run comes to before anything of it is served."""

    #: What was asked for, with the options as they are read.
    request: RunRequest
    options: Options
    directory: ServiceDirectory
    #: What was stored of the service before; None for a new one.
    known: ServiceState | None
    #: Where that is stored.
    url: str
    prepared: PreparedJob
    #: Whom the scheduler logs in as, if anybody.
    account: ServiceAccount | None


def run(
    request: RunRequest,
    options: Options,
    directory: ServiceDirectory,
    begun: StartedProcess | None,
) -> int:
    """Deploy the job and return the exit code. Raises CliError and OptionsError.

    ``options`` are those of the request, ``directory`` is their service's. ``begun`` is the process
    of the embedded cluster, if one was started for this run.
    """
    with made_ready(request, options, directory) as deployed:
        if request.detach:
            return _detach(deployed, begun)
        # Here begins what needs the scheduler in this process, and all that comes with it.
        from dcos_tensorflow.cli.serving import foreground

        return foreground.run(deployed, begun)


def in_background(deployed: Deployment, begun: StartedProcess | None = None) -> Registration:
    """Start the job's scheduler in the background and return where it is.

    A job of this machine goes to the embedded cluster that lasts, which is started where none runs.
    Raises CliError with what the scheduler said when it ends at once.
    """
    request, service = deployed.request, deployed.prepared.spec.name
    if request.local:
        cluster = lasting_cluster(
            request.work,
            deployed.directory,
            deployed.prepared.spec,
            request.wishes,
            strict=request.strict,
            begun=begun,
        )
        tell(cluster, request.stream)
    return start_scheduler(
        request.given,
        request.settings,
        deployed.directory,
        request.work,
        local=request.local,
        service=service,
    )


def _detach(deployed: Deployment, begun: StartedProcess | None) -> int:
    """Start the job's scheduler in the background, and say how to follow and stop the job."""
    service, directory = deployed.prepared.spec.name, deployed.directory
    registration = in_background(deployed, begun)
    if deployed.request.json:
        show_json(
            {
                "service": service,
                "pid": registration.pid,
                "api": registration.api,
                "log": str(directory.log),
            }
        )
    else:
        say(f"{service} runs in the background (scheduler pid {registration.pid}).")
        say(f"  follow it  dcos-tensorflow status {service} --follow")
        say(f"  stop it    dcos-tensorflow stop {service}")
        say(f"  its log    {directory.log}")
    return 0


@contextmanager
def made_ready(
    request: RunRequest, options: Options, directory: ServiceDirectory
) -> Iterator[Deployment]:
    """Hand over the job once it may be started. Raises CliError and OptionsError.

    ``options`` are those of the request, ``directory`` is their service's. What is refused until
    the end of it, too, is told with the tasks that nobody has asked for. Until then nobody else
    begins a job of the service in the background; ``foreground`` sees to that for its own.
    """
    with ExitStack() as stack:
        if request.detach:
            stack.enter_context(registry.only_run(directory, options.service.name))
        yield from _made_ready(request, options, directory)


def _made_ready(
    request: RunRequest, options: Options, directory: ServiceDirectory
) -> Iterator[Deployment]:
    url = state_of(request.settings, directory)
    known = stored.stored_state(url, options.service.name)
    if request.resume:
        request = replace(request, given=_resumed(request.given, known))
        options = request.given.load()
    if request.given.is_script:
        _check_same_script(options, known)
    if runs_as_published(options, request.given.as_published().load, known):
        say(f"note: {kept_note(options)}", request.stream)
        request = replace(request, given=request.given.as_published())
        options = request.given.load()
    served_by = registry.read(directory)
    is_served = served_by is not None and served_by.process_lives()
    if known is None or known.job.phase is JobPhase.DONE:
        if served_by is not None:
            stored.wait_until_left(url, options.service.name, _LEAVING_SECONDS)
    elif served_by is not None and is_served and request.detach:
        # Before anything is packed: a task of it that starts again fetches what it was given.
        raise CliError(_under_way(request, known, served_by.pid), EXIT_LOCKED)
    with told_with_refusals(options):
        prepared = prepare(options, directory, os.environ, local=request.local)
        account = service_account(options, request.settings, os.environ, local=request.local)
        principal = PRINCIPAL if request.local else request.settings["principal"]
        prepared = with_principal(prepared, principal, account)
        notes = (*request.given.notes, *prepared.notes)
        say_lines((f"note: {note}" for note in notes), request.stream)
        if is_served or not request.update:
            stored.check_same(
                known,
                prepared.spec,
                served=is_served,
                update=_update_command(request, prepared.spec.name),
            )
        if request.fresh:
            _remove_checkpoints(request, prepared, directory, url)
        yield Deployment(request, options, directory, known, url, prepared, account)


def _resumed(given: GivenOptions, known: ServiceState | None) -> GivenOptions:
    """Return the options of a batch that leaves out what is there.

    One that has not ended does so whatever it began with: it is taken up again as it is.
    """
    under_way = known is not None and known.job.phase is not JobPhase.DONE
    work = known.spec.workload if known is not None and under_way else None
    wanted = work.resume if isinstance(work, BatchSpec) else True
    return given.with_override(f"batch.resume={json.dumps(wanted)}")


def _check_same_script(options: Options, known: ServiceState | None) -> None:
    """Raise UsageError where another script of the name was run: its checkpoints are not ours."""
    before, now = known.spec.job.uri if known is not None else "", options.service.job_url
    if before.startswith("/") and before != now:
        name = options.service.name
        raise UsageError(
            f"The service {name} runs what is in {before}, not in {now}: give this one a name of"
            f" its own with --name, or end that one (dcos-tensorflow uninstall {name})."
        )


def tell(cluster: Cluster, stream: TextIO) -> None:
    """Say what is to be said of the cluster that was found or started."""
    if cluster.note:
        say(f"note: {cluster.note}", stream)


def _under_way(request: RunRequest, known: ServiceState, pid: int) -> str:
    name = known.spec.name
    return (
        f"A job of the service {name} is under way (it is {known.job.phase}, its scheduler pid"
        f" {pid}). See it with dcos-tensorflow status {name}, take it over to other options"
        f" ({_update_command(request, name)}), end it first (dcos-tensorflow stop {name}), or give"
        " this one another service.name."
    )


def _update_command(request: RunRequest, service: str) -> str:
    """Return the command that takes a job that is served over to the options of this run."""
    given = request.given
    words = ["dcos-tensorflow", "update", "start", f"--name={service}"]
    if not isinstance(given.source, Path):
        return f"{shlex.join(words)} --set OPTION=VALUE"
    overrides = (f"--set={each}" for each in given.overrides)
    return shlex.join([*words, f"--options={given.source}", *overrides, "--replace"])


def _remove_checkpoints(
    request: RunRequest, prepared: PreparedJob, directory: ServiceDirectory, url: str
) -> None:
    checkpoints = directory.checkpoints
    if not request.local or prepared.spec.job.checkpoint_dir != str(checkpoints):
        other = checkpoints_place(prepared.spec)
        raise UsageError(
            "--fresh removes checkpoints in the service's own folder only; this job keeps them in"
            f" {other or 'the sandboxes of its tasks'}."
        )
    if not any(checkpoints.iterdir()):
        return
    if not request.yes:
        if not sys.stdin.isatty():
            raise CliError(f"--fresh would remove {checkpoints}; say --yes to do so unasked.")
        if not click.confirm(f"Remove the checkpoints in {checkpoints}?", err=True):
            raise CliError("Nothing was removed and nothing was started.")
    stored.remove_checkpoints(url, prepared.spec.name, checkpoints, request.work)
    say(f"Removed the checkpoints in {checkpoints}.", request.stream)
