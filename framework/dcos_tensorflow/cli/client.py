"""Asking a running scheduler: the HTTP API, found through the registration in the service's folder.

Used by ``status``, ``why``, ``cluster`` and ``stop``.
"""

from __future__ import annotations

import http.client
import json
from typing import Any

from dcos_tensorflow.cli import registry
from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.registry import Registration
from dcos_tensorflow.cli.snapshot import Snapshot
from dcos_tensorflow.cli.work_directory import ServiceDirectory

_TIMEOUT_SECONDS = 5.0


class SchedulerAway(CliError):
    """Nobody answers for the service on this machine."""


class SchedulerClient:
    """The API of one scheduler."""

    def __init__(self, registration: Registration) -> None:
        self.registration = registration

    def get(self, path: str) -> Any:
        """Return the JSON at ``path``. Raises SchedulerAway, or CliError with what was answered."""
        return self._call("GET", path)

    def snapshot(self) -> Snapshot:
        """Return where the job stands."""
        return Snapshot(self.get("/v1/job"), self.get("/v1/why"))

    def stop(self, why: str) -> None:
        """Ask for the job's end."""
        self._call("POST", "/v1/job/stop", json.dumps({"why": why}))

    def _call(self, method: str, path: str, body: str | None = None) -> Any:
        host, _, port = self.registration.api.rpartition(":")
        connection = http.client.HTTPConnection(
            host.strip("[]"), int(port), timeout=_TIMEOUT_SECONDS
        )
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
        if answer.status >= 300:
            raise CliError(
                f"The scheduler of {self.registration.service} answered {answer.status}:"
                f" {_message(text)}."
            )
        return json.loads(text) if text else None


def connect(directory: ServiceDirectory, service: str) -> SchedulerClient:
    """Return a client of the service's running scheduler. Raises SchedulerAway."""
    found = registry.read(directory)
    if found is None or not found.process_lives():
        raise SchedulerAway(f"No scheduler of {service} runs on this machine.")
    return SchedulerClient(found)


def _message(text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        return text.strip().rstrip(".")
    message = document.get("message", text) if isinstance(document, dict) else text
    return str(message).strip().rstrip(".")
