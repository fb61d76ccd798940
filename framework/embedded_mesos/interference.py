"""The one hook between the parts of an embedded cluster, for tests of faults.

A real cluster loses messages, connections, machines and masters. This one lies on one machine and
loses nothing, so a test that wants to see a loss brings it: ``cluster`` and the HTTP servers ask an
``Interference`` wherever something could go wrong. The one here lets everything pass, and the
product knows no other; the orders of faults that tests give are ``tests/cluster_faults``.

Agents are named by their *link*, their place in the cluster's configuration.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from embedded_mesos.master.calls.replies import Reply

T = TypeVar("T")


class Interference:
    """Lets everything pass. See the module; a subclass overrides what it wants to disturb.

    Unless a method says otherwise it is called under the cluster's lock and must not wait. Who
    holds a message back by answering False may deliver it later, in ``tick``.
    """

    def on_machine(self, link: int, action: Callable[[], T]) -> T:
        """Return what an action on an agent's machine returns: to listen, to start a process."""
        return action()

    # -- messages ------------------------------------------------------------------------------

    def reaches_agent(self, link: int, message: object) -> bool:
        """Say whether a message of the master is delivered to an agent now."""
        return True

    def reaches_master(self, link: int, message: object) -> bool:
        """Say whether a message of an agent is delivered to the master now."""
        return True

    def executor_reaches_agent(self, link: int, container_id: str, message: object) -> bool:
        """Say whether what a container's process says is delivered to its agent now."""
        return True

    # -- time ----------------------------------------------------------------------------------

    def agent_runs(self, link: int) -> bool:
        """Say whether time passes for an agent."""
        return True

    def deadline(self) -> float:
        """Return when ``tick`` has something to do next, in unix seconds."""
        return float("inf")

    def tick(self, now: float) -> None:
        """Do what is due, before the master and the agents do."""

    # -- HTTP ----------------------------------------------------------------------------------
    # ConnectionAbortedError, raised by any of these, breaks the connection of the request.

    def master_asked(self, path: str, body: bytes) -> Reply | None:
        """Answer a request in the master's place; None leaves it to the master.

        Called in the connection's own thread, without the lock: it may wait.
        """
        return None

    def call_begins(self, body: bytes) -> None:
        """Note that the master looks at a call of a scheduler or an operator next."""

    def call_ends(self, body: bytes) -> None:
        """Note that a scheduler's call was carried out; its answer has not been written yet."""

    def records_out(self, connection: socket.socket, out: BinaryIO) -> BinaryIO:
        """Return what the records of a new subscription are written to, one ``write`` for each.

        Called without the lock; so is the ``write`` of what it returns, which may raise OSError to
        end the subscription.
        """
        return out

    def agent_asked(self, link: int, connection: socket.socket) -> None:
        """Note a request to an agent's own server. Called without the lock: it may wait."""
