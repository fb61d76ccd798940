"""``Queue``: jobs that Python hands to the queue of teams in place of beginning them.

``TensorFlow.fit``, ``sweep`` and ``batch`` take one. The job is then that of ``submit``; it is
followed through the line, and through each of its runs where it gives way.
"""

from __future__ import annotations

from dataclasses import field

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_address import ApiAddress, named
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.estimator.job import Job, JobFailed
from dcos_tensorflow.queue_service.client import QueueClient, Wishes, queue_of
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Queue:
    """The queue of teams, and what is said of a job in it."""

    #: Its address; empty for the queue of this machine.
    url: str = ""
    #: The file with the team's token.
    token_file: str = field(default="", repr=False)
    #: The team that the job is for; empty for the one whose token it is.
    team: str = ""
    #: Higher goes first within the team.
    priority: int = 0
    #: It is ended when it has run so long, in seconds.
    time_limit: float | None = None
    #: When its result is needed, in unix seconds.
    deadline: float | None = None
    #: The job that has to succeed before.
    after: str | None = None

    def client(self, work: WorkDirectory) -> QueueClient:
        """Return what asks it. Raises CliError."""
        address: ApiAddress | None = None
        if self.url:
            address = named(self.url, self.token_file or None, in_clear=False)
        return queue_of(work, address)

    def submit(self, given: GivenOptions, work: WorkDirectory) -> str:
        """Put a job into the line and return its name. Raises CliError, OptionsError."""
        wishes = Wishes(self.team, self.priority, self.time_limit, self.deadline, self.after)
        return self.client(work).submit(given, wishes)

    def wait(self, job: Job, work: WorkDirectory, *, logs: bool) -> None:
        """Follow a job to its end. Raises JobFailed, or CliError where it never began."""

        def watch() -> None:
            # On another machine only the queue knows of it.
            if registry.read(work.service(job.name)) is None:
                return
            try:
                job.wait(logs=logs)
            except JobFailed as failed:
                if failed.outcome != "stopped":
                    raise

        ended = self.client(work).follow(job.name, say, watch)
        if ended["state"] != "succeeded":
            raise CliError(f"{job.name} {ended['state']}: {ended['why']}.")
