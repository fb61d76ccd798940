"""``run``: the options are read, the run is checked against the running service, and served.

Called by the command ``run`` and for a job that is begun in Python. A refusal comes
before anything is served, and changes nothing of a job that runs. ``foreground`` and
``background`` serve it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError, UsageError, explaining_refusals
from dcos_tensorflow.client.kept import stored
from dcos_tensorflow.client.output import say, say_lines
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.deploy import background, foreground
from dcos_tensorflow.deploy.embedded.cluster import PRINCIPAL
from dcos_tensorflow.deploy.job.deployment import Deployment, PreparedJob, RunRequest
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.listed_files import with_listed_files
from dcos_tensorflow.deploy.job.preparation import prepare, with_principal
from dcos_tensorflow.deploy.published_counts import kept_note, runs_as_published
from dcos_tensorflow.deploy.scheduler_settings import links_of, state_of
from dcos_tensorflow.deploy.service_login import service_account
from dcos_tensorflow.options import Options, as_given, effective
from dcos_tensorflow.options.default_tasks import came_by_default

#: How long the scheduler of a job that has ended has to leave before the next one is begun.
_LEAVING_SECONDS = 5.0


def run(request: RunRequest) -> int:
    """Run the job and return the exit code. Raises CliError and OptionsError."""
    if request.detach:
        with prepared_alone(request) as deployed:
            return background.detach(deployed)
    deployed = _prepared(request, request.given.load())
    with explaining_refusals(deployed.unasked):
        return foreground.run(deployed)


@contextmanager
def prepared_alone(request: RunRequest) -> Iterator[Deployment]:
    """Hand over a run that may begin in the background; no other begins one of the service then.

    A refusal, until the end of it, is told with the tasks that came by defaults.
    Raises CliError and OptionsError.
    """
    options = request.given.load()
    name = options.service.name
    with registry.only_run(request.work.service(name), name):
        deployed = _prepared(request, options)
        with explaining_refusals(deployed.unasked):
            yield deployed


def _prepared(request: RunRequest, options: Options) -> Deployment:
    directory = request.work.service(options.service.name)
    url = state_of(request.settings, directory)
    known = stored.stored_state(url, options.service.name)
    if request.resume:
        request = replace(request, given=_resumed(request.given, known))
        options = request.given.load()
    if options.batch.inputs.files:
        given = with_listed_files(request.given, options, directory, known, local=request.local)
        request = replace(request, given=given)
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
    unasked = came_by_default(options)
    with explaining_refusals(unasked):
        prepared = prepare(
            options, directory, os.environ, local=request.local, links=links_of(request.settings)
        )
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
    return Deployment(
        request=request,
        directory=directory,
        phase=known.job.phase if known is not None else None,
        url=url,
        prepared=prepared,
        account=account,
        log=(options.service.log_level, options.service.log_format),
        shown=effective(options),
        as_given=as_given(options),
        folder=options.base_directory,
        unasked=unasked,
    )


def _resumed(given: GivenOptions, known: ServiceState | None) -> GivenOptions:
    """Return the options of a batch or a sweep that leaves out what is done.

    One that has not ended does so whatever it began with: it is taken up again as it is.
    """
    under_way = known is not None and known.job.phase is not JobPhase.DONE
    units = known.spec.units if known is not None and under_way else None
    wanted = units is None or units.are_the_rest
    section = "sweep" if given.load().sweep.parameters else "batch"
    return given.with_override(f"{section}.resume={json.dumps(wanted)}")


def _check_same_script(options: Options, known: ServiceState | None) -> None:
    """Raise UsageError where another script of the name was run: its checkpoints are not ours."""
    before, now = known.spec.job.uri if known is not None else "", options.service.job_url
    if before.startswith("/") and before != now:
        name = options.service.name
        raise UsageError(
            f"The service {name} runs the code in {before}, not in {now}: give this one a name of"
            f" its own with --name, or end that one (dcos-tensorflow uninstall {name})."
        )


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
            raise CliError(f"--fresh would remove {checkpoints}; confirm with --yes.")
        if not click.confirm(f"Remove the checkpoints in {checkpoints}?", err=True):
            raise CliError("Nothing was removed and nothing was started.")
    stored.remove_checkpoints(url, prepared.spec.name, checkpoints, request.work)
    say(f"Removed the checkpoints in {checkpoints}.", request.stream)
