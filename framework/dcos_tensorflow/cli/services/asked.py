"""Of which service something is asked. Made by ``flags`` of what a command line names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dcos_tensorflow.cli.services import registry
from dcos_tensorflow.cli.work_directory import ServiceDirectory, WorkDirectory

if TYPE_CHECKING:
    from dcos_tensorflow.cli.services.client import SchedulerClient


@dataclass(frozen=True)
class Asked:
    """Of which service something is asked, and how the answer is wanted."""

    #: Where services are looked for.
    work: WorkDirectory
    #: None: the only one there is.
    name: str | None
    as_json: bool = False

    def service(self) -> tuple[str, ServiceDirectory]:
        """Return the service that is meant. Raises UsageError."""
        return registry.choose(self.work, self.name)

    def client(self) -> SchedulerClient:
        """Return a client of its scheduler. Raises SchedulerAway."""
        from dcos_tensorflow.cli.services.client import connect

        service, directory = self.service()
        return connect(directory, service)
