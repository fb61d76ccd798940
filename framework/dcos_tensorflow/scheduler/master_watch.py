"""Asks the master about a quota and about silent machines, which no offer shows.

Used by ``scheduler.scheduler``. The answers become QuotaSeen and AgentsSeen, and have no
other effect (``core.model.quota``, ``core.agents.silence``). A master that does not let us
look, does not answer, or answers with more than we read at once is asked again later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

from dcos_tensorflow.core.agents.silence import silent_agents
from dcos_tensorflow.core.model.events import AgentsSeen, Event, QuotaSeen
from dcos_tensorflow.core.model.job import ENDED_PHASES, JobPhase
from dcos_tensorflow.core.model.known_agents import KnownAgent, SilentAgents
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentFilesError, HttpAccess
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How long it has been worth it when the master is asked first.
LOOK_SECONDS = 2.0
#: It is asked again after so many times what the last answer took, at the soonest: 50,000 agents
#: are 60 MB, of which many services may wait.
RARELY = 100.0


@dataclass(frozen=True)
class Question(Generic[T]):
    """Something that a master can be asked."""

    #: What it is about, for the log.
    what: str
    path: str
    #: How often it is asked while it is worth it ...
    every_seconds: float
    #: ... and when that is so.
    is_worth_it: Callable[[ServiceState], bool]
    #: The answer out of the master's, as far as it concerns a service.
    read: Callable[[Any, ServiceState], T]
    #: What the state holds of it, and what it holds when that is not worth it.
    known: Callable[[ServiceState], T]
    nothing: T
    event: Callable[[T], Event]


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


def agents_in(answer: Any) -> Iterator[KnownAgent]:
    """Yield the agents in the body of ``/slaves``."""
    for one in answer["slaves"]:
        yield _agent(one, recovered=False)
    for one in answer.get("recovered_slaves", ()):
        yield _agent(one, recovered=True)


def _agent(one: Mapping[str, Any], *, recovered: bool) -> KnownAgent:
    fault_domain = (one.get("domain") or {}).get("fault_domain") or {}
    region, zone = fault_domain.get("region") or {}, fault_domain.get("zone") or {}
    # slave(1)@10.0.0.1:5051
    address, _, _ = str(one.get("pid") or "").rpartition("@")[2].rpartition(":")
    attributes = {k: v for k, v in (one.get("attributes") or {}).items() if _is_attribute(v)}
    return KnownAgent(
        agent_id=str(one["id"]),
        hostname=str(one["hostname"]),
        recovered=recovered,
        active=bool(one.get("active", True)),
        deactivated=bool(one.get("deactivated", False)),
        draining=str((one.get("drain_info") or {}).get("state", "")),
        region=str(region.get("name", "")),
        zone=str(zone.get("name", "")),
        address=address,
        attributes=attributes,
        total=_amounts(one.get("resources")),
        used=_amounts(one.get("used_resources")),
        reserved={
            str(role): _amounts(amounts)
            for role, amounts in (one.get("reserved_resources") or {}).items()
        },
    )


def _is_attribute(value: object) -> bool:
    return isinstance(value, str | float | int) and not isinstance(value, bool)


def _waits(state: ServiceState) -> bool:
    """Say whether a place is wanted: by a gang, or by one of it that fits nowhere."""
    return state.job.phase is JobPhase.PLACING or any(
        gang.placing.misfits for gang in state.gangs.values()
    )


def _shares(state: ServiceState) -> bool:
    """Say whether a quota may ask for places back: slots take as many as there are."""
    return state.spec.units is not None and state.job.phase not in ENDED_PHASES


QUOTA: Question[Quota | None] = Question(
    what="the quota of our Mesos role",
    path="/roles",
    every_seconds=15.0,
    is_worth_it=lambda state: _waits(state) or _shares(state),
    read=lambda answer, state: quota_in(answer, state.spec.mesos_role),
    known=lambda state: state.told.quota,
    nothing=None,
    event=QuotaSeen,
)
AGENTS: Question[tuple[SilentAgents, ...]] = Question(
    what="which machines make no offers",
    path="/slaves",
    # On a large cluster the master has more to write here than for anything else.
    every_seconds=60.0,
    is_worth_it=_waits,
    read=lambda answer, state: silent_agents(tuple(agents_in(answer)), state),
    known=lambda state: state.told.silent,
    nothing=(),
    event=AgentsSeen,
)


class MasterWatch(Generic[T]):
    """Asks while it is worth it, on ``pool``: the event loop, which calls ``look``, never waits."""

    def __init__(
        self,
        question: Question[T],
        master: Callable[[], Address | None],
        access: HttpAccess,
        emit: Callable[[Event], None],
        pool: Executor,
    ) -> None:
        self._question = question
        self._master = master
        self._access = access
        self._emit = emit
        self._pool = pool
        self._ask_at: float | None = None
        self._known: T = question.nothing
        self._trouble = ""
        #: How long the last answer took, and to read it (seconds).
        self._took = 0.0

    def follow(self, state: ServiceState) -> None:
        """Ask when it is worth it and it is time; forget the answer when it is not."""
        self._known = self._question.known(state)
        if not (state.registered and self._question.is_worth_it(state)):
            self._ask_at = None
            self._tell(self._question.nothing)
            return
        now = time.monotonic()
        if self._ask_at is None:
            self._ask_at = now + LOOK_SECONDS
        master = self._master()
        if master is not None and now >= self._ask_at:
            self._ask_at = now + max(self._question.every_seconds, RARELY * self._took)
            self._pool.submit(self._ask, master, state)

    def _ask(self, master: Address, state: ServiceState) -> None:
        began = time.monotonic()
        try:
            found = self._question.read(self._access.get(master, self._question.path), state)
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            if str(error) != self._trouble:
                log.info("%s is not known: %s", self._question.what, error)
            self._trouble = str(error)
        else:
            self._tell(found)
        self._took = time.monotonic() - began

    def _tell(self, found: T) -> None:
        if found != self._known:
            self._emit(self._question.event(found))
