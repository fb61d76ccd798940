"""Asking a running scheduler: the HTTP API, found through the registration in the service's folder.

Used by the commands that ask or steer a service.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.services import registry
from dcos_tensorflow.cli.services.registry import Registration
from dcos_tensorflow.cli.work_directory import ServiceDirectory

if TYPE_CHECKING:
    from dcos_tensorflow.cli.services.snapshot import Snapshot

_TIMEOUT_SECONDS = 5.0
_ELEMENT_NOT_FOUND = "Element not found"


class SchedulerAway(CliError):
    """Nobody answers for the service on this machine."""


@dataclass(frozen=True)
class Answer:
    """What a scheduler answered: the status, the text, and whose it is."""

    service: str
    status: int
    text: str

    @property
    def document(self) -> Any:
        """Return the body's JSON; None when it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    @property
    def message(self) -> str:
        """Return what was said, without the full stop."""
        document = self.document
        told = document.get("message", self.text) if isinstance(document, dict) else self.text
        return str(told).strip().rstrip(".")

    @property
    def is_missing(self) -> bool:
        """Say whether there is no such thing, in the SDK's words."""
        return self.text.strip() == _ELEMENT_NOT_FOUND

    def found(self, what: str) -> Any:
        """Return the body of a success. Raises CliError when there is no ``what``."""
        if self.is_missing:
            raise CliError(f"There is no {what}.")
        return self.expected()

    def expected(self) -> Any:
        """Return the body of a success. Raises CliError with what was answered otherwise."""
        if self.status >= 300:
            raise CliError(
                f"The scheduler of {self.service} answered {self.status}: {self.message}."
            )
        return json.loads(self.text) if self.text else None


class SchedulerClient:
    """The API of one scheduler."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration

    def get(self, path: str) -> Any:
        """Return the JSON at ``path``. Raises SchedulerAway, or CliError with what was answered."""
        return self.ask("GET", path).expected()

    def snapshot(self) -> Snapshot:
        """Return where the job stands."""
        from dcos_tensorflow.cli.services.snapshot import Snapshot

        return Snapshot(self.get("/v1/job"), self.get("/v1/why"))

    def snapshot_if_there(self) -> Snapshot | None:
        """Return where the job stands; None when the scheduler has gone."""
        try:
            return self.snapshot()
        except SchedulerAway:
            return None

    def stop(self, why: str) -> None:
        """Ask for the job's end."""
        self.ask("POST", "/v1/job/stop", json.dumps({"why": why})).expected()

    def ask(
        self, method: str, path: str, body: str | None = None, seconds: float = _TIMEOUT_SECONDS
    ) -> Answer:
        """Return whatever is answered. Raises SchedulerAway when nobody answers."""
        # It brings TLS along, and the help of the commands that ask does not wait for that.
        import http.client

        host, _, port = self.registration.api.rpartition(":")
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=seconds)
        headers = {"Accept": "application/json"}
        if self.registration.token:
            headers["Authorization"] = f"Bearer {self.registration.token}"
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise SchedulerAway(
                f"The scheduler of {self.registration.service} does not answer at"
                f" {self.registration.api}: {error}."
            ) from error
        finally:
            connection.close()
        return Answer(self.registration.service, answer.status, text)


def connect(directory: ServiceDirectory, service: str) -> SchedulerClient:
    """Return a client of the service's running scheduler. Raises SchedulerAway."""
    found = registry.read(directory)
    if found is None or not found.process_lives():
        raise SchedulerAway(f"No scheduler of {service} runs on this machine.")
    return SchedulerClient(found)
