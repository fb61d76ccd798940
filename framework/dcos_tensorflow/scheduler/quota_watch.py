"""Asks the master about the quota of the service's Mesos role, while a gang waits for offers.

Used by ``scheduler.Scheduler``. What is found becomes QuotaSeen; that is all that is done about it
(``core.model.quota``). A master that does not let us look, or does not answer, is asked again
later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from dcos_tensorflow.core.model.events import QuotaSeen
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentFilesError, HttpAccess

log = logging.getLogger(__name__)

#: How long a gang has waited when the master is asked first, and how often it is asked then.
LOOK_SECONDS = 2.0
ASK_SECONDS = 15.0


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
    """Asks while it is worth it, on ``pool``: the event loop, which calls ``look``, never waits."""

    def __init__(
        self,
        master: Callable[[], Address | None],
        access: HttpAccess,
        emit: Callable[[QuotaSeen], None],
        pool: Executor,
    ) -> None:
        self._master = master
        self._access = access
        self._emit = emit
        self._pool = pool
        self._ask_at: float | None = None
        self._known: Quota | None = None
        self._trouble = ""

    def look(self, state: ServiceState) -> None:
        """Ask when the gang waits and it is time; forget the quota when nothing waits."""
        self._known = state.told.quota
        if not (state.registered and state.job.phase is JobPhase.PLACING):
            self._ask_at = None
            self._tell(None)
            return
        now = time.monotonic()
        if self._ask_at is None:
            self._ask_at = now + LOOK_SECONDS
        master = self._master()
        if master is not None and now >= self._ask_at:
            self._ask_at = now + ASK_SECONDS
            self._pool.submit(self._ask, master, state.spec.mesos_role)

    def _ask(self, master: Address, mesos_role: str) -> None:
        try:
            found = quota_in(self._access.get(master, "/roles"), mesos_role)
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            if str(error) != self._trouble:
                log.info("the quota of %s is not known: %s", mesos_role, error)
            self._trouble = str(error)
        else:
            self._tell(found)

    def _tell(self, found: Quota | None) -> None:
        if found != self._known:
            self._emit(QuotaSeen(found))
