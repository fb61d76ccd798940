"""The window's questions to the services that it shows, wherever they are found.

``window.app`` is given one of ``window.of_this_machine`` and ``window.of_state``. The answers of a
service that no scheduler serves have the form of the API's own (docs/api.md). All methods may wait
for a disk or a store, and are called from any thread. They raise CliError where a store is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.served_queue import ServedQueue


class NotKept(LookupError):
    """Nothing of this is kept; the text says so to a person."""


class Refused(Exception):
    """An order that is not carried out; the text says why, ``status`` is HTTP's."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class Services(Protocol):
    """The services that a window shows."""

    def has(self, name: str) -> bool:
        """Say whether there is such a service."""

    def found(self) -> list[dict[str, Any]]:
        """Return all of them for the list, those that are served first, then the newest first."""

    def api(self, name: str, *, now: bool = False) -> ApiAddress | None:
        """Return where its scheduler is asked; None where none is known to serve it.

        ``now``: whatever was found a moment ago. An order must not reach another's scheduler.
        """

    def watched(self, name: str) -> dict[str, Any]:
        """Return what ``/v1/events`` would tell, with ``kept``. Raises NotKept.

        ``kept`` is true of what the service showed last, or says in words what this is.
        """

    def answer(self, name: str, path: str, query: Mapping[str, str]) -> Any:
        """Return the body of a GET of the API. Raises NotKept."""

    def ordered(self, name: str, path: str, body: bytes) -> Any:
        """Return the answer to an order. Raises Refused, NotKept."""

    def board(self, name: str) -> str:
        """Return where the service's TensorBoard is, started if needed. Raises NoBoard."""

    def queue(self) -> ServedQueue | None:
        """Return the queue of teams beside them; None where there is none."""

    def stop(self) -> None:
        """End what was started for them."""
