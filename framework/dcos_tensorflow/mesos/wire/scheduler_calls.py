"""The calls that this scheduler makes: pymesos' builders, and those that it gets wrong.

Base class of the driver, which brings the transport. Every call needs a subscription and raises
NotConnected without one, where pymesos' builders silently do nothing; other failures are CallError
too (:mod:`~dcos_tensorflow.mesos.calls`). Calls without a use are not here.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from dcos_tensorflow.mesos.dispatch import CallbackDispatch, Json


class SchedulerCalls(CallbackDispatch, metaclass=ABCMeta):
    """Every call that this scheduler makes, but SUBSCRIBE and TEARDOWN."""

    _suppressed: frozenset[str] = frozenset()
    #: The FrameworkInfo as it is sent; pymesos' constructor sets it.
    _framework: dict[str, Any]

    @abstractmethod
    def _subscribed(self, call: str) -> AbstractContextManager[None]:
        """Pin the subscription for one call. Raises NotConnected."""

    @property
    def suppressed_roles(self) -> frozenset[str]:
        """The roles that get no offers; a new subscription keeps it so."""
        return self._suppressed

    def acceptOffers(
        self, offer_ids: Any, operations: Sequence[Json], filters: Json | None = None
    ) -> None:
        """Accept offers. Raises CallError; ambiguous when the master may have acted."""
        with self._subscribed("ACCEPT"):
            super().acceptOffers(offer_ids, operations, filters)

    def acceptInverseOffers(self, offer_ids: Any, filters: Json | None = None) -> None:
        """Accept inverse offers. Raises CallError."""
        with self._subscribed("ACCEPT_INVERSE_OFFERS"):
            super().acceptInverseOffers(offer_ids, filters)

    def declineOffer(self, offer_ids: Any, filters: Json | None = None) -> None:
        """Decline offers. Raises CallError."""
        with self._subscribed("DECLINE"):
            super().declineOffer(offer_ids, filters)

    def reviveOffers(self, roles: Sequence[str] = ()) -> None:
        """Ask for offers again, for all roles or these. Raises CallError."""
        with self._subscribed("REVIVE"):
            self._suppressed = self._suppressed.difference(roles or self._suppressed)
            super().reviveOffers(roles)

    def suppressOffers(self, roles: Sequence[str] = ()) -> None:
        """Ask for no more offers, for all roles or these. Raises CallError.

        A new subscription tells the master again: it would forget otherwise.
        """
        with self._subscribed("SUPPRESS"):
            super().suppressOffers(roles)
            self._suppressed = self._suppressed.union(roles or self._roles())

    def killTask(
        self, task_id: Json, agent_id: Json | None = None, kill_policy: Json | None = None
    ) -> None:
        """Ask for a task's end. ``kill_policy`` overrides the task's own. Raises CallError."""
        kill: dict[str, Any] = {"task_id": task_id}
        if agent_id is not None:
            kill["agent_id"] = agent_id
        if kill_policy is not None:
            kill["kill_policy"] = kill_policy
        with self._subscribed("KILL"):
            self._send({**self._body("KILL"), "kill": kill})

    def acknowledgeStatusUpdate(self, status: Json) -> None:
        """Acknowledge an update; those without a uuid need none. Raises CallError."""
        if "uuid" in status:
            with self._subscribed("ACKNOWLEDGE"):
                super().acknowledgeStatusUpdate(status)

    def reconcileTasks(self, tasks: Sequence[Json]) -> None:
        """Ask for the state of tasks, of all when there are none. Raises CallError.

        The agent's id is sent too: without it the master cannot tell GONE from UNKNOWN, and does
        not answer at all while any agent is recovering.
        """
        wanted = [
            {name: task[name] for name in ("task_id", "agent_id") if task.get(name)}
            for task in tasks
        ]
        with self._subscribed("RECONCILE"):
            self._send({**self._body("RECONCILE"), "reconcile": {"tasks": wanted}})

    def _body(self, call: str) -> dict[str, Any]:
        return {"type": call, "framework_id": {"value": self.framework_id}}

    def _roles(self) -> Sequence[str]:
        return self._framework.get("roles") or [self._framework.get("role", "*")]
