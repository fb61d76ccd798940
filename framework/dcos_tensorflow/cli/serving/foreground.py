"""``run``: deploys one job, follows it to its end, and exits as the job did.

The steps: read the options, find or start a cluster, start a scheduler in this process, follow,
tell how it ended, hand everything back. Whatever happens in between, a cluster that was started
for this run is ended with it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import click

from dcos_tensorflow.cli.embedded.cluster import Cluster, check_of, cluster_for_run, lasting_cluster
from dcos_tensorflow.cli.embedded.machine import AgentWishes
from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.following.job import (
    Left,
    Manners,
    PlainView,
    Signals,
    caught_signals,
    follow,
    view_for,
    wait_for_the_end,
)
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.services import ending, registry, stored
from dcos_tensorflow.cli.services.registry import only_run
from dcos_tensorflow.cli.serving.background import detach
from dcos_tensorflow.cli.serving.given_options import GivenOptions
from dcos_tensorflow.cli.serving.own_log import log_to_file
from dcos_tensorflow.cli.serving.preparation import (
    PreparedJob,
    prepare,
    respecified,
    with_principal,
)
from dcos_tensorflow.cli.serving.served_job import (
    ServedJob,
    scheduler_config,
    state_of,
    with_guarded_api,
    without_password,
)
from dcos_tensorflow.cli.serving.service_login import service_account, with_clusters_authority
from dcos_tensorflow.cli.serving.unasked_tasks import (
    kept_note,
    runs_as_published,
    told_with_refusals,
)
from dcos_tensorflow.cli.settings import Settings
from dcos_tensorflow.cli.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.local.daemon import PRINCIPAL
from dcos_tensorflow.options import Options, as_given, effective


@dataclass(frozen=True)
class RunRequest:
    """What was asked of ``run``. ``settings`` are those that a scheduler has too.

    Without a master the job runs on the embedded cluster, which ``strict`` lets claim no more than
    this machine has. ``update`` takes a job that has not ended over to these options.
    """

    given: GivenOptions
    settings: Settings
    wishes: AgentWishes
    work: WorkDirectory
    detach: bool = False
    fresh: bool = False
    update: bool = False
    strict: bool = False
    yes: bool = False
    json: bool = False
    #: The words of the command line, as far as they are known.
    typed: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Say whether the job runs on the embedded cluster."""
        return not self.settings["master"]

    @property
    def stream(self) -> TextIO:
        """Return where progress goes: with --json the document has standard output for itself."""
        return sys.stderr if self.json else sys.stdout


def run(request: RunRequest) -> int:
    """Run the job and return the exit code. Raises CliError and OptionsError."""
    given = request.given
    options = given.load()
    directory = request.work.service(options.service.name)
    known = stored.stored_state(state_of(request.settings, directory), options.service.name)
    if given.is_script:
        _check_same_script(options, known)
    if runs_as_published(options, given.as_published().load, known):
        say(f"note: {kept_note(options)}", request.stream)
        request = replace(request, given=given.as_published())
        options = request.given.load()
    with told_with_refusals(options):
        return _run(request, options, directory, known)


def _run(
    request: RunRequest,
    options: Options,
    directory: ServiceDirectory,
    known: ServiceState | None,
) -> int:
    url = state_of(request.settings, directory)
    prepared = prepare(options, directory, os.environ, local=request.local)
    account = service_account(options, request.settings, os.environ, local=request.local)
    principal = PRINCIPAL if request.local else request.settings["principal"]
    prepared = with_principal(prepared, principal, account)
    notes = (*request.given.notes, *prepared.notes)
    say_lines((f"note: {note}" for note in notes), request.stream)
    served_by = registry.read(directory)
    is_served = served_by is not None and served_by.process_lives()
    if is_served or not request.update:
        stored.check_same(
            known,
            prepared.spec,
            served=is_served,
            update=_update_command(request, prepared.spec.name),
        )
    if request.fresh:
        _remove_checkpoints(request, prepared, directory, url)
    if request.detach:
        master = ""
        if request.local:
            lasting = lasting_cluster(
                request.work, directory, prepared.spec, request.wishes, strict=request.strict
            )
            master = lasting.master
            _tell(lasting, request.stream)
        return detach(
            request.given,
            request.settings,
            directory,
            request.work,
            master=master,
            service=prepared.spec.name,
            as_json=request.json,
        )
    with caught_signals() as signals, ExitStack() as stack:
        stack.enter_context(only_run(directory, prepared.spec.name))
        stack.enter_context(log_to_file(directory.log, options.service.log_level))
        cluster, ends = None, stack.enter_context(ExitStack())
        settings = with_clusters_authority(request.settings, account, os.environ)
        if request.local:
            cluster = cluster_for_run(
                request.work,
                directory,
                prepared.spec,
                request.wishes,
                ends,
                done=known is None or known.job.phase is JobPhase.DONE,
                strict=request.strict,
            )
            _tell(cluster, request.stream)
            settings = settings.with_default("master", cluster.master)
        settings = with_guarded_api(settings, local=request.local)
        where = f"the Mesos cluster of {without_password(settings['master'])}"
        if cluster is not None:
            where = cluster.words
        settings = settings.with_default("wait_for_leadership", False).with_default("rerun", True)
        config = scheduler_config(settings, directory, local=request.local)
        config = replace(config, state=url, service_account=account)
        if cluster is not None:
            config = cluster.entered_by(config)
        served = ServedJob(
            prepared,
            config,
            directory,
            effective(options),
            local=request.local,
            as_given=as_given(options),
            published_defaults=request.given.published_defaults,
            check_cluster=check_of(cluster.directory if cluster else None, settings["master"]),
            spec_of=lambda changed, running: respecified(
                changed, directory, os.environ, running, local=request.local
            ),
        )
        try:
            stack.enter_context(served)
        except CliError:
            if cluster is not None and cluster.taken_up:
                # A full disk or a locked database now: its tasks run on for the next try.
                ends.pop_all()
            raise
        _announce(prepared, directory, where, known, request.stream, run=served.snapshot().run)
        if request.update and (refused := served.refused_update()):
            say(f"The job goes on with the options it has: {refused}.", request.stream)
        return _follow(request, served, cluster, signals)


def _check_same_script(options: Options, known: ServiceState | None) -> None:
    """Raise UsageError where another script of the name was run: its checkpoints are not ours."""
    before, now = known.spec.job.uri if known is not None else "", options.service.job_url
    if before.startswith("/") and before != now:
        name = options.service.name
        raise UsageError(
            f"The service {name} runs what is in {before}, not in {now}: give this one a name of"
            f" its own with --name, or end that one (dcos-tensorflow uninstall {name})."
        )


def _tell(cluster: Cluster, stream: TextIO) -> None:
    if cluster.note:
        say(f"note: {cluster.note}", stream)


def _announce(
    prepared: PreparedJob,
    directory: ServiceDirectory,
    where: str,
    known: ServiceState | None,
    stream: TextIO,
    *,
    run: int,
) -> None:
    spec = prepared.spec
    count = len(spec.task_names())
    say(f"{spec.name}: run {run}, {counted(count, 'task')} on {where}", stream)
    kept = directory.checkpoints
    if known is not None and known.job.phase is not JobPhase.DONE:
        say(f"The job of {spec.name} is still {known.job.phase}: it is taken up again.", stream)
    elif spec.job.checkpoint_dir == str(kept) and any(kept.iterdir()):
        say(f"Training goes on from the checkpoints in {kept}; --fresh removes them.", stream)


def _follow(
    request: RunRequest,
    served: ServedJob,
    cluster: Cluster | None,
    signals: Signals,
) -> int:
    own = cluster is not None and cluster.own
    manners = Manners(
        ask=not request.yes and sys.stdin.isatty() and request.stream.isatty(),
        # A cluster that ends with this command takes its tasks along: they are ended in order.
        stop_on_termination=own,
        kill_grace_seconds=served.spec.kill_grace_seconds,
    )
    view = PlainView(request.stream) if request.json else view_for(request.stream)
    try:
        follow(served, view, signals, manners)
    except Left as left:
        say(
            f"The job goes on; the same command takes it up again ({left}).",
            request.stream,
        )
        return 128 + left.signal
    folder = cluster.directory if cluster is not None else None
    ended = served.ended(folder, _again(request.typed))
    if not served.staying():
        served.leave_cluster()
    if request.json:
        show_json(ended)
    else:
        say_lines(ending.lines(ended))
    if served.staying():
        say(f"{', '.join(served.staying())} runs on; Ctrl-C ends it.", request.stream)
        wait_for_the_end(served, signals)
        served.leave_cluster()
    return int(ended["exit_code"])


def _update_command(request: RunRequest, service: str) -> str:
    """Return the command that takes a job that is served over to the options of this run."""
    given = request.given
    words = ["dcos-tensorflow", "update", "start", f"--name={service}"]
    if not isinstance(given.source, Path):
        return f"{shlex.join(words)} --set OPTION=VALUE"
    overrides = (f"--set={each}" for each in given.overrides)
    return shlex.join([*words, f"--options={given.source}", *overrides, "--replace"])


def _again(typed: Sequence[str]) -> list[str]:
    """Return the command line of this run as it is for the next one; empty for none that is known.

    What stands behind ``--`` are a script's own arguments.
    """
    end = typed.index("--") if "--" in typed else len(typed)
    once = ("--fresh", "--update", "--yes", "-y")
    kept = [each for number, each in enumerate(typed) if number > end or each not in once]
    return ["dcos-tensorflow", *kept] if kept else []


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
