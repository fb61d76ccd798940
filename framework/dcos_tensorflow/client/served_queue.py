"""How the queue of teams that this machine serves is found, and by it the services of its jobs.

A small file in the work directory tells of the queue. It passes on requests to the schedulers
of its jobs, wherever these are.

The queue's process writes it once its API answers (``queue_service.process``). The commands, the
Python API and the window read it. A file that outlived its process is harmless: that is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dcos_tensorflow.client import registry as registration
from dcos_tensorflow.client.api_address import ApiAddress, registered
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.registry import service_names
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.records import dataclass
from untrusted_input.process_table import start_time


@dataclass(frozen=True)
class ServedQueue:
    """Where a queue of this user listens; its file is readable by this user alone."""

    pid: int
    #: When the process began, in clock ticks since boot.
    started: int
    #: ``host:port``.
    api: str
    #: The operator's token.
    token: str = field(repr=False)
    name: str

    def lives(self) -> bool:
        """Say whether this process runs."""
        return start_time(self.pid) == self.started

    @property
    def address(self) -> ApiAddress:
        """Return where it is asked, with the operator's token."""
        return registered(self.api, self.token)

    def api_of(self, job: str) -> ApiAddress:
        """Return where the scheduler of a job is asked, through the queue."""
        return replace(self.address, prefix=f"/v1/services/{quote(job.replace('/', '__'))}")

    def job(self, name: str) -> Mapping[str, Any] | None:
        """Return a job; None where the queue does not know it, or does not answer."""
        return next((job for job in self._asked(f"/v1/jobs/{quote(name)}")), None)

    def running(self, work: WorkDirectory) -> list[Mapping[str, Any]]:
        """Return the jobs that run and whose schedulers are not this machine's."""
        here = {name for name in service_names(work) if _is_served_here(work, name)}
        found = (job for jobs in self._asked("/v1/jobs") for job in jobs)
        folders = ((job, work.service(job["job"]).path.name) for job in found if job["runs"])
        return [job for job, folder in folders if folder not in here]

    def _asked(self, path: str) -> list[Any]:
        from dcos_tensorflow.client.api_client import SchedulerClient

        try:
            return [SchedulerClient("", self.address).get(path)]
        except CliError:
            return []


def _is_served_here(work: WorkDirectory, name: str) -> bool:
    known = registration.read(work.service(name))
    return known is not None and known.process_lives()


def served_queue(work: WorkDirectory) -> ServedQueue | None:
    """Return the queue that a process of this machine serves; None where none does."""
    found = registration.record_in(registration_of(work), ServedQueue)
    return found if found is not None and found.lives() else None


def registration_of(work: WorkDirectory) -> Path:
    """Return the file by which a queue is found."""
    return work.path / "queue.json"
