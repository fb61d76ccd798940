"""Asks the master about the quota of the service's Mesos role, while a gang waits for offers.

Used by ``scheduler.Scheduler``. What is found becomes QuotaSeen; that is all that is done about it
(``core.model.quota``). A master that does not let us look, or does not answer, is asked again
later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dcos_tensorflow.core.model.events import QuotaSeen
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentFilesError

log = logging.getLogger(__name__)

#: How often it is looked whether the gang waits, and how often the master is asked while it does.
LOOK_SECONDS = 2.0
ASK_SECONDS = 15.0


class Access(Protocol):
    """The part of ``mesos.agent_files.HttpAccess`` that is needed here."""

    def get(self, address: Address, path: str) -> Any:
        """Return the JSON at ``path``. Raises AgentFilesError."""


def quota_in(answer: Any, mesos_role: str) -> Quota | None:
    """Return the quota in the body of ``/roles`` that holds for a role; None when there is none.

    It is set on the role itself or on one above it: ``team`` for ``team/tensorflow``.
    """
    found = {str(one["name"]): one.get("quota") or {} for one in answer["roles"]}
    parts = mesos_role.split("/")
    for end in range(len(parts), 0, -1):
        name = "/".join(parts[:end])
        limits = _amounts(found.get(name, {}).get("limit"))
        if limits:
            return Quota(name, limits, _amounts(found[name].get("consumed")))
    return None


def _amounts(given: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the scalars of an object such as {"cpus": 1.0, "ports": "[31000-31001]"}."""
    return {
        name: float(amount)
        for name, amount in (given or {}).items()
        if isinstance(amount, int | float)
    }


class QuotaWatch:
    """A thread that asks while it is worth it."""

    def __init__(
        self,
        master: Callable[[], Address | None],
        access: Access,
        state: Callable[[], ServiceState],
        emit: Callable[[QuotaSeen], None],
    ) -> None:
        self._master = master
        self._access = access
        self._state = state
        self._emit = emit
        self._asked_at = float("-inf")
        self._trouble = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="quota", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End it; an answer that is still to come is of no use to anybody."""
        self._stopping.set()

    def look(self) -> None:
        """Ask when the gang waits and it is time; forget the quota when nothing waits."""
        state = self._state()
        if not (state.registered and state.job.phase is JobPhase.PLACING):
            self._tell(state, None)
            return
        master = self._master()
        if master is None or time.monotonic() < self._asked_at + ASK_SECONDS:
            return
        self._asked_at = time.monotonic()
        try:
            found = quota_in(self._access.get(master, "/roles"), state.spec.mesos_role)
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            if str(error) != self._trouble:
                log.info("the quota of %s is not known: %s", state.spec.mesos_role, error)
            self._trouble = str(error)
            return
        self._tell(state, found)

    def _tell(self, state: ServiceState, found: Quota | None) -> None:
        if found != state.told.quota and not self._stopping.is_set():
            self._emit(QuotaSeen(found))

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            self.look()
