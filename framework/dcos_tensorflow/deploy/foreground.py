"""``run``, its last part: serves one job, follows it to its end, and exits as the job did.

The steps: find or start a cluster, start a scheduler in this process, follow, tell how it ended,
hand everything back. Whatever happens in between, a cluster that was started for this run is ended
with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.api_client import connect
from dcos_tensorflow.client.bill_lines import savings
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job import (
    FollowingEnded,
    PlainView,
    Signals,
    StopPolicy,
    caught_signals,
    follow,
    view_for,
    wait_for_machines,
    wait_for_the_end,
)
from dcos_tensorflow.client.following.line_printer import printed_beside
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.registry import only_run
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.core.counted import agreeing, counted
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.deploy.embedded.cluster import EmbeddedCluster, check_of, cluster_for_run, tell
from dcos_tensorflow.deploy.job.deployment import Deployment, RunRequest
from dcos_tensorflow.deploy.job.describing import told_count, told_pace, units_of
from dcos_tensorflow.deploy.own_log import log_to_file
from dcos_tensorflow.deploy.scheduler_settings import (
    scheduler_config,
    with_guarded_api,
    without_password,
)
from dcos_tensorflow.deploy.served_job import ServedJob
from dcos_tensorflow.deploy.service_login import with_clusters_authority
from untrusted_input.shield import keep_memory_private

if TYPE_CHECKING:
    from dcos_tensorflow.options import Options


def run(deployed: Deployment) -> int:
    """Serve and follow the job, and return the exit code. Raises CliError."""
    keep_memory_private()
    request, prepared = deployed.request, deployed.prepared
    directory, account = deployed.directory, deployed.account
    with caught_signals() as signals, ExitStack() as stack:
        stack.enter_context(only_run(directory, prepared.spec.name))
        stack.enter_context(log_to_file(directory.log, *deployed.log))
        cluster, ends = None, stack.enter_context(ExitStack())
        settings = with_clusters_authority(request.settings, account, os.environ)
        if request.local:
            cluster = cluster_for_run(
                request.work,
                directory,
                prepared.spec,
                request.wishes,
                ends,
                done=deployed.is_done,
                strict=request.strict,
            )
            tell(cluster, request.stream)
            settings = settings.with_default("master", cluster.master)
        settings = with_guarded_api(settings, local=request.local)
        where = f"the Mesos cluster of {without_password(settings['master'])}"
        if cluster is not None:
            where = cluster.words
        settings = settings.with_default("wait_for_leadership", False).with_default("rerun", True)
        config = scheduler_config(settings, directory, local=request.local, folder=deployed.folder)
        config = replace(config, state=deployed.url, service_account=account)
        if cluster is not None:
            config = cluster.entered_by(config)
        served = ServedJob(
            prepared,
            config,
            directory,
            deployed.shown,
            local=request.local,
            as_given=deployed.as_given,
            published_defaults=request.given.published_defaults,
            folder=deployed.folder,
            check_cluster=check_of(cluster.directory if cluster else None, settings["master"]),
            spec_of=partial(_respecified, deployed),
        )
        try:
            stack.enter_context(served)
        except CliError:
            if cluster is not None and cluster.taken_up:
                # A full disk or a locked database now: its tasks run on for the next try.
                ends.pop_all()
            raise
        served.wait_for_launch()
        _announce(deployed, where, run=served.snapshot().run)
        if deployed.is_done and (refused := served.refused_update()):
            raise CliError(f"No run with these options can follow the one before: {refused}.")
        if request.update and (refused := served.refused_update()):
            say(f"The job goes on with the options it has: {refused}.", request.stream)
        return _follow(request, served, cluster, signals)


def _respecified(
    deployed: Deployment, changed: Options, running: ServiceSpec, restarted: bool
) -> ServiceSpec:
    from dcos_tensorflow.deploy.job.preparation import changed_spec

    local = deployed.request.local
    return changed_spec(
        changed, deployed.directory, os.environ, running, local=local, restarted=restarted
    )


def _announce(deployed: Deployment, where: str, *, run: int) -> None:
    spec, stream = deployed.prepared.spec, deployed.request.stream
    tasks = counted(len(spec.task_names()), "task")
    units = units_of(spec)
    what = f"{told_count(units)}, {told_pace(units)} at a time, {tasks} each," if units else tasks
    say(f"{spec.name}: run {run}, {what} on {where}", stream)
    kept = deployed.directory.checkpoints
    if not deployed.is_done:
        say(f"The job of {spec.name} is still {deployed.phase}: this run takes it over.", stream)
    elif spec.job.checkpoint_dir == str(kept) and any(kept.iterdir()):
        say(f"Training goes on from the checkpoints in {kept}; --fresh removes them.", stream)


def _follow(
    request: RunRequest, served: ServedJob, cluster: EmbeddedCluster | None, signals: Signals
) -> int:
    own = cluster is not None and cluster.own
    policy = StopPolicy(
        ask=not request.yes and sys.stdin.isatty() and request.stream.isatty(),
        # A cluster that ends with this command takes its tasks along: they are ended in order.
        stop_on_termination=own,
        kill_grace_seconds=served.spec.kill_grace_seconds,
    )
    # A live view would be drawn over what the tasks print.
    plain = request.json or request.logs
    view = PlainView(request.stream) if plain else view_for(request.stream)
    try:
        with _printed(request, served):
            follow(served, view, signals, policy)
    except FollowingEnded as left:
        say(f"The job goes on; the same command takes it over ({left}).", request.stream)
        return 128 + left.signal
    folder = cluster.directory if cluster is not None else None
    ended = served.ended(folder, _again(request.typed))
    if not served.staying():
        _leave(request, served, signals)
    bill = served.bill()
    if bill is not None:
        ended = {**ended, "machines": bill}
    if request.json:
        show_json(ended)
    else:
        say_lines(ending.lines(ended))
        if bill is not None and bill["total"]["machines"]:
            say(savings(bill["total"]), request.stream)
    if served.staying():
        say(f"{', '.join(served.staying())} runs on; Ctrl-C ends it.", request.stream)
        wait_for_the_end(served, signals)
        _leave(request, served, signals)
    return int(ended["exit_code"])


def _printed(request: RunRequest, served: ServedJob) -> AbstractContextManager[None]:
    """Print what the tasks print, where that is wanted."""
    if not request.logs:
        return nullcontext()
    spec, directory = served.spec, request.work.service(served.spec.name)
    service = KnownService(spec.name, directory, partial(connect, directory, spec.name))
    return printed_beside(service, spec.task_names(), request.stream)


def _leave(request: RunRequest, served: ServedJob, signals: Signals) -> None:
    """Take the framework off the cluster once the machines that were bought have gone."""
    if left := served.machines():
        told = f"{counted(left, 'machine')} {agreeing(left, 'were')} bought"
        say(f"{told}, and {agreeing(left, 'are')} being given back.", request.stream)
        left = wait_for_machines(served, signals)
    if left:
        what = f"{counted(left, 'machine')} may still cost money"
        say(f"{what}: 'capacity release --all OPTIONS.json' ends them.", request.stream)
    served.leave_cluster()


def _again(typed: Sequence[str]) -> list[str]:
    """Return the command line of this run as it is for the next one; empty for none that is known.

    What stands behind ``--`` are a script's own arguments.
    """
    end = typed.index("--") if "--" in typed else len(typed)
    once = ("--fresh", "--update", "--yes", "-y")
    kept = [each for number, each in enumerate(typed) if number > end or each not in once]
    return ["dcos-tensorflow", *kept] if kept else []
