"""Finds where an installed service listens, and passes requests on to it (Admin Router).

``application`` passes ``/service/<name>/...`` here; ``uninstall`` asks services through it. A
service is an app with the labels ``DCOS_SERVICE_NAME`` and ``DCOS_SERVICE_PORT_INDEX``; its name
may hold slashes.
"""

from __future__ import annotations

from dataclasses import dataclass

from local_dcos.http_calls import (
    HTML,
    Answer,
    Call,
    text_answer,
)
from local_dcos.marathon.app_records import RUNNING, AppRecord
from local_dcos.marathon.marathon import Marathon
from local_dcos.upstream import Unreachable, ask, forward

_NAME = "DCOS_SERVICE_NAME"
_PORT_INDEX = "DCOS_SERVICE_PORT_INDEX"
_SCHEME = "DCOS_SERVICE_SCHEME"
_BASE = "/service/"
# The SDK's service CLI has its own words for this status.
_BAD_GATEWAY = text_answer("<html><h1>502 Bad Gateway</h1></html>", 502, HTML)
_UNKNOWN = text_answer("404 Not Found: service not found\n", 404)
_ASK_SECONDS = 10.0


@dataclass(frozen=True)
class Service:
    """A service by its name; ``address`` is None as long as nothing listens."""

    name: str
    address: str | None


class Services:
    """Knows the services. Thread-safe; keeps nothing."""

    def __init__(self, marathon: Marathon, token: str) -> None:
        """``token`` is what the APIs of our services ask for."""
        self._marathon = marathon
        self._authorization = {"authorization": f"token={token}"}

    def all(self) -> list[Service]:
        """Return the services of all apps."""
        found = [self._service(record) for record in self._marathon.apps()]
        return [one for one in found if one is not None]

    def _service(self, record: AppRecord) -> Service | None:
        labels = record.definition["labels"]
        name = labels.get(_NAME, "").strip("/")
        if not name or not labels.get(_PORT_INDEX, "").isdigit():
            return None
        return Service(name, self._address(record, int(labels[_PORT_INDEX])))

    def _address(self, record: AppRecord, index: int) -> str | None:
        running = [
            one
            for one in self._marathon.tasks(record.app_id)
            if one.state == RUNNING and index < len(one.ports)
        ]
        if not running or record.definition["labels"].get(_SCHEME, "http") != "http":
            return None
        return f"127.0.0.1:{running[-1].ports[index]}"

    def forward(self, call: Call) -> Answer:
        """Pass a request on to the service in its path."""
        rest = call.path.removeprefix(_BASE)
        fitting = [one for one in self.all() if (rest + "/").startswith(one.name + "/")]
        if not fitting:
            return _UNKNOWN
        # Of a service and one in a folder of its name the longer name is meant.
        service = max(fitting, key=lambda one: len(one.name))
        if service.address is None:
            return _BAD_GATEWAY
        prefix = _BASE + service.name
        target = call.target.removeprefix(prefix)
        if not target.startswith("/") and "text/html" in call.headers.get("accept", ""):
            # A page's relative addresses begin at the last slash of its own.
            return Answer(307, b"", None, [("location", f"{prefix}/{target}")])
        try:
            return forward(
                service.address,
                target if target.startswith("/") else "/" + target,
                method=call.method,
                body=call.body,
                headers=call.headers,
                authorization=self._authorization,
                prefix=prefix,
            )
        except Unreachable:
            return _BAD_GATEWAY

    def ask(self, app_id: str, path: str) -> tuple[int, bytes] | None:
        """Return status and body of a GET of an app; None when it does not answer."""
        service = self._service(self._marathon.app(app_id))
        if service is None or service.address is None:
            return None
        try:
            return ask(service.address, path, headers=self._authorization, timeout=_ASK_SECONDS)
        except Unreachable:
            return None
