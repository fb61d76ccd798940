"""The embedded cluster as commands use it: one that is left running, or one for a single run.

``embedded_mesos`` does the work; this decides which cluster a job goes to. A cluster that was
started for one run lies in the service's folder and is ended with the run. Should the run be killed
before it could do that, the next run of the service finds the cluster there and carries on with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import embedded_mesos
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory, make_folder
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.deploy.embedded.fitting import check_fits, check_places, fits, overcommitted
from dcos_tensorflow.deploy.embedded.machine import FIRST_OWN_PORT, AgentWishes, agents
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from embedded_mesos import AgentConfig, BackgroundProcessError, ClusterStatus, Credential, Page
from untrusted_input import trees
from untrusted_input.json_text import read_json

#: The name of all that call the clusters of this command: schedulers, operators, the page.
PRINCIPAL = "dcos-tensorflow"
#: It shares most of its files with the dashboard of a service.
PAGE = Page(Path(__file__).parents[2] / "api" / "dashboard", "embedded.html")
#: In the folder of a cluster that was started for a job: its process id.
_FOR_JOBS = "for-jobs"
#: How long the scheduler of a job that has ended has to leave the cluster.
_LEAVING_SECONDS = 5.0
_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class EmbeddedCluster:
    """The embedded cluster of a job. ``own`` says that it ends with the run."""

    master: str
    directory: Path
    own: bool
    #: What it asks of its caller.
    credential: Credential
    #: It was there, with the tasks of a run that was killed.
    taken_up: bool = False
    #: What was overcommitted; empty for nothing.
    note: str = ""

    @classmethod
    def at(
        cls, directory: Path, status: ClusterStatus, *, own: bool, note: str = ""
    ) -> EmbeddedCluster:
        """Return the cluster that runs from a folder."""
        return cls(status.master, directory, own, status.credential, note=note)

    def entered_by(self, config: SchedulerConfig) -> SchedulerConfig:
        """Return the configuration of a scheduler that this cluster lets in."""
        who = self.credential
        return replace(config, master=self.master, principal=who.principal, secret=who.secret)

    @property
    def words(self) -> str:
        """Return how a person calls it."""
        if self.own:
            return f"an embedded cluster of its own (master {self.master})"
        return f"the embedded cluster in {self.directory} (master {self.master})"


@contextmanager
def told_in_a_sentence() -> Iterator[None]:
    """Tell of a process that cannot be started or ended as the command line does: CliError."""
    try:
        yield
    except BackgroundProcessError as error:
        raise CliError(sentence(str(error))) from error


def running(directory: Path) -> ClusterStatus | None:
    """Return the cluster that runs from this folder, None when none does. Raises CliError."""
    if not directory.is_dir():
        return None
    with told_in_a_sentence():
        found = embedded_mesos.status(directory)
    if found is not None and not found.answering:
        raise CliError(
            f"The embedded cluster in {directory} (pid {found.pid}) does not answer; end it with"
            " dcos-tensorflow local down."
        )
    return found


def up(directory: Path, configs: Sequence[AgentConfig], port: int = 0) -> ClusterStatus:
    """Start a cluster. Raises CliError."""
    make_folder(directory)
    with told_in_a_sentence():
        return embedded_mesos.up(directory, configs, port=port, page=PAGE, principal=PRINCIPAL)


def down(directory: Path) -> bool:
    """End the cluster and all its tasks; False when none ran. Raises CliError."""
    with told_in_a_sentence():
        return embedded_mesos.down(directory)


def check_of(directory: Path | None, master: str) -> Callable[[], None]:
    """Return what raises CliError once the cluster in this folder runs no more.

    Without it a job on a dead cluster would wait for ever. Without a folder it checks nothing.
    """
    return partial(_check_lives, directory, master) if directory is not None else lambda: None


def _check_lives(directory: Path, master: str) -> None:
    if embedded_mesos.running_master(directory) != master:
        raise CliError(
            f"The embedded cluster in {directory} has ended, and the tasks with it; its log is"
            f" {directory / 'cluster.log'}. The same command starts the job again, from its"
            " checkpoints."
        )


def cluster_for_run(
    work: WorkDirectory,
    directory: ServiceDirectory,
    spec: ServiceSpec,
    wishes: AgentWishes,
    stack: ExitStack,
    *,
    done: bool,
    strict: bool,
) -> EmbeddedCluster:
    """Return the cluster for a run; one of its own is ended by ``stack``.

    First the one that an earlier run of the service left when it was killed, then the one that
    ``local up`` started, then a new one. ``done`` says that no job is to be taken up again: the
    sandboxes of the last one are set aside, those of the one before are removed. A new one claims
    to be as large as the job needs, unless ``strict``. Raises CliError, UsageError when the job
    cannot fit.
    """
    left = running(directory.cluster)
    if left is not None:
        stack.callback(down, directory.cluster)
        return replace(EmbeddedCluster.at(directory.cluster, left, own=True), taken_up=True)
    lasting = running(work.local)
    if lasting is not None:
        if wishes.given:
            raise UsageError(
                f"An embedded cluster runs already, in {work.local}: its size was said at local up."
                " End it with local down, or leave --agents, --cpus, --mem, --disk, --gpus and"
                " --attributes away."
            )
        return EmbeddedCluster.at(work.local, lasting, own=False)
    configs = agents(wishes, directory.path, FIRST_OWN_PORT)
    configs, note = _sized(spec, configs, wishes, strict=strict)
    make_folder(directory.cluster)
    if done:
        _set_aside(directory.cluster)
    stack.callback(down, directory.cluster)
    status = up(directory.cluster, configs)
    return EmbeddedCluster.at(directory.cluster, status, own=True, note=note)


def _sized(
    spec: ServiceSpec, configs: tuple[AgentConfig, ...], wishes: AgentWishes, *, strict: bool
) -> tuple[tuple[AgentConfig, ...], str]:
    """Return the agents, large enough for the job, and what to say of it. Raises UsageError."""
    note = ""
    if not strict:
        configs, note = overcommitted(spec, configs, wishes.sized)
    check_fits(spec, configs)
    check_places(spec, configs)
    return configs, note


def _set_aside(cluster: Path) -> None:
    """Keep the sandboxes of the last run, and no older ones: they would fill the disk."""
    current, previous = cluster / "work", cluster / "previous"
    if current.is_dir():
        trees.remove(previous)
        current.rename(previous)


def lasting_cluster(
    work: WorkDirectory,
    directory: ServiceDirectory,
    spec: ServiceSpec,
    wishes: AgentWishes,
    *,
    strict: bool,
) -> EmbeddedCluster:
    """Return a cluster that lives on, started for the job when there is none. Raises CliError."""
    if running(directory.cluster) is not None:
        raise UsageError(
            "An earlier run of this service was killed, and its job still runs on a cluster of its"
            " own: take it up again without --detach."
        )
    found = running(work.local)
    if found is not None and not _makes_room(work.local, found, spec):
        return EmbeddedCluster.at(work.local, found, own=False)
    configs, note = _sized(spec, agents(wishes, work.local), wishes, strict=strict)
    # What a user has started by hand is as large as that user said.
    started = up(work.local, configs)
    (work.local / _FOR_JOBS).write_text(str(started.pid))
    return EmbeddedCluster.at(work.local, started, own=False, note=note)


def keep_as_it_is(directory: Path) -> None:
    """Let the cluster be that of a person, who has asked for it, and of no job any more."""
    (directory / _FOR_JOBS).unlink(missing_ok=True)


def _makes_room(directory: Path, found: ClusterStatus, spec: ServiceSpec) -> bool:
    """End a cluster that is too small for a job, where it was started for jobs and has none.

    It is as large as the first of them needed. Says whether it has been ended.
    """
    if fits(spec, found.agents) or not _is_for_jobs(directory, found):
        return False
    until = time.monotonic() + _LEAVING_SECONDS
    # One without tasks may wait for room.
    while frameworks_of(found) != []:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_SECONDS)
    return down(directory)


def tell(cluster: EmbeddedCluster, stream: TextIO) -> None:
    """Say what is to be said of the cluster that was found or started."""
    if cluster.note:
        say(f"note: {cluster.note}", stream)


def _is_for_jobs(directory: Path, found: ClusterStatus) -> bool:
    try:
        return (directory / _FOR_JOBS).read_text() == str(found.pid)
    except OSError:
        return False


def frameworks_of(found: ClusterStatus) -> list[Any] | None:
    """Return the frameworks that are registered; None when the master is silent."""
    # A cluster of the run's own is not asked: it has just said that it serves.
    import urllib.request

    try:
        url, header = f"http://{found.master}/state", found.credential.header()
        request = urllib.request.Request(url, headers=header)
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return list(read_json(answer.read())["frameworks"])
    except (OSError, ValueError, KeyError):
        return None
