"""Which service a command is about. Made by ``cli.flags`` of the names in a command line.

The same for every command: a service of this machine, by its name or because it is the only one, a
job of this machine's queue, or the one whose API is at an address. Commands need not know which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_address import API_VARIABLE, ApiAddress
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.served_queue import served_queue
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.client.api_client import SchedulerClient
    from dcos_tensorflow.client.snapshot import Snapshot


@dataclass(frozen=True)
class KnownService:
    """The service that is meant."""

    name: str
    #: What this machine keeps of it; None for one whose API was named: that may be anywhere.
    directory: ServiceDirectory | None
    #: Returns a client of the present scheduler. Raises SchedulerAway.
    connect: Callable[[], SchedulerClient]
    #: Returns how its job has ended, as the queue that it was in keeps that; None for another.
    end_in_queue: Callable[[], dict[str, Any] | None] = lambda: None

    def snapshot(self) -> Snapshot:
        """Return where its job stands. Raises SchedulerAway, and CliError for another service's."""
        found = self.connect().snapshot()
        if not _same(found.service, self.name):
            # A scheduler of another service has taken the port.
            raise UsageError(f"The API that was asked is that of {found.service} now.")
        return found

    def check_cluster(self) -> None:
        """Raise CliError once the embedded cluster that its job is on has ended.

        No scheduler comes back for such a job by itself. Of a service elsewhere nothing is known.
        """
        served = registry.read(self.directory) if self.directory is not None else None
        if self.directory is None or served is None or not served.local:
            return
        import embedded_mesos

        folders = (WorkDirectory(self.directory.work).local, self.directory.cluster)
        if served.master not in map(embedded_mesos.running_master, folders):
            raise CliError(
                f"The embedded cluster of {self.name} has ended, and its tasks with it. The job"
                " starts again from its checkpoints when it is run again: dcos-tensorflow resume"
                f" {self.name}."
            )

    def last_end(self) -> dict[str, Any] | None:
        """Return how its last job ended; None when nothing is known of that."""
        return ending.last(self.directory) if self.directory is not None else self.end_in_queue()


@dataclass(frozen=True)
class ServiceChoice:
    """Which service is meant, and how the answer is wanted."""

    #: Where services are looked for.
    work: WorkDirectory
    #: None: the only one there is.
    name: str | None
    as_json: bool = False
    #: Where to ask; None: the scheduler on this machine.
    api: ApiAddress | None = None

    def service(self) -> KnownService:
        """Return the service that is meant. Raises UsageError, and SchedulerAway of an address."""
        from dcos_tensorflow.client.api_client import SchedulerClient, connect

        if self.api is None:
            if self.name is not None and (queued := self._queued(self.name)) is not None:
                connected = partial(SchedulerClient, self.name, queued)
                return KnownService(self.name, None, connected, partial(_queued_end, self))
            name, directory = registry.choose(self.work, self.name)
            return KnownService(name, directory, partial(connect, directory, name))
        served = str(SchedulerClient(self.name or "", self.api).get("/v1/job")["service"])
        if self.name is not None and not _same(self.name, served):
            raise UsageError(
                f"The API at {self.api.url} (--api, {API_VARIABLE}) is that of {served}, not of"
                f" {self.name}."
            )
        return KnownService(served, None, partial(SchedulerClient, served, self.api))

    def service_in(self, words: Sequence[str]) -> tuple[KnownService, tuple[str, ...]]:
        """Return the service that is meant, and the words without its name where they begin so.

        Raises as ``service`` does.
        """
        choice = self
        if words and self.name is None and self.api is None and self._knows(words[0]):
            choice = replace(self, name=words[0])
        service = choice.service()
        named = bool(words) and _same(words[0], service.name)
        return service, tuple(words[1:] if named else words)

    def _knows(self, word: str) -> bool:
        if registry.knows(self.work, word):
            return True
        queue = served_queue(self.work)
        return queue is not None and queue.job(word) is not None

    def _queued(self, name: str) -> ApiAddress | None:
        """Return where a job of this machine's queue is asked whose scheduler is elsewhere.

        None for another service. Raises CliError of a job that has none now, of which nothing is
        here either.
        """
        known = registry.read(self.work.service(name))
        queue = served_queue(self.work)
        if queue is None or (known is not None and known.process_lives()):
            return None
        job = queue.job(name)
        if job is not None and job["runs"]:
            return queue.api_of(name)
        if job is not None and not registry.knows(self.work, name):
            verb = "has" if job["ended_at"] and job["state"] != "cancelled" else "is"
            raise CliError(f"{name} {verb} {job['state']} in the queue {queue.name}: {job['why']}.")
        return None

    def client(self) -> SchedulerClient:
        """Return a client of its scheduler. Raises SchedulerAway."""
        return self.service().connect()


def _queued_end(choice: ServiceChoice) -> dict[str, Any] | None:
    """Return how the job of this machine's queue has ended; None while it has not."""
    queue = served_queue(choice.work)
    job = queue.job(choice.name or "") if queue is not None else None
    return ending.in_queue(job) if job is not None and job["ended_at"] is not None else None


def _same(one: str, other: str) -> bool:
    return one.strip("/") == other.strip("/")
