"""Mesos as the scheduler sees it: events come out, actions go in.

Used by the scheduler's event loop, and only there. It subscribes, turns the messages of Mesos into
events of the core (``callbacks``), and performs the core's actions that are calls of Mesos. It
keeps one thing: the raw offers that are outstanding, because an ACCEPT has to repeat parts of them.

It decides nothing, repeats no ACCEPT, and tears nothing down unless the action says so. Trouble
with a call comes back as an event, never as an exception.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from dcos_tensorflow.core.model.actions import (
    Accept,
    AcceptInverse,
    Acknowledge,
    Action,
    Decline,
    Kill,
    Reconcile,
    Release,
    Revive,
    Suppress,
    Teardown,
)
from dcos_tensorflow.core.model.events import CallFailed, Event
from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.agent_files import HttpAccess
from dcos_tensorflow.mesos.callbacks import Callbacks, as_ids, hand_back
from dcos_tensorflow.mesos.calls import CallError, CallRefused, NotConnected
from dcos_tensorflow.mesos.connection import Authentication, tls_context
from dcos_tensorflow.mesos.credentials import Credentials
from dcos_tensorflow.mesos.hardened import HardenedSchedulerDriver
from dcos_tensorflow.mesos.outstanding import OutstandingOffers
from dcos_tensorflow.mesos.service_account import ServiceAccount, TokenLogin
from dcos_tensorflow.mesos.wire.convert import ConversionError, duration, launch_operations
from dcos_tensorflow.mesos.wire.reservation_calls import release_operations
from dcos_tensorflow.records import dataclass

logger = logging.getLogger(__name__)

#: Tasks asked for in one RECONCILE: bounds the size of a call and of the burst it causes.
RECONCILE_CHUNK = 1000
#: An inverse offer that was accepted need not come every five seconds (Mesos' default), but again
#: some day: the answer may have been lost. Mesos drops the filter when the schedule changes.
ACCEPTED_INVERSE_REFUSE_SECONDS = 600.0


@dataclass(frozen=True)
class MesosConfig:
    """How to reach Mesos.

    ``masters`` is ``host:port``, a comma list, or ``zk://user:password@h1,h2/mesos``; ``scheme``
    is for those that carry none. ``principal`` and ``secret`` are for HTTP basic authentication,
    unless there is a ``service_account`` to log in to DC/OS with.
    ``ca_file`` empty means the system's authorities. ``timeout_seconds`` bounds each call.
    """

    masters: str = field(repr=False)
    principal: str = ""
    secret: str = field(default="", repr=False)
    service_account: ServiceAccount | None = None
    ca_file: str = ""
    verify: bool = True
    client_cert: str = ""
    client_key: str = ""
    timeout_seconds: float = 10.0
    scheme: str = "http"

    def __post_init__(self) -> None:
        """Refuse masters and schemes that cannot be understood. Raises ValueError."""
        if self.scheme not in ("http", "https"):
            raise ValueError(f"scheme {self.scheme!r}: expected http or https")
        parse_masters(self.masters)

    def tls(self) -> ssl.SSLContext | None:
        """Return what https is made with; None for what it is made with where nothing is said.

        Raises OSError and ssl.SSLError as ``tls_context``.
        """
        if self.verify and not (self.ca_file or self.client_cert):
            return None
        return tls_context(self.ca_file, self.verify, self.client_cert, self.client_key)

    def authentication(self, tls: ssl.SSLContext | None) -> Authentication:
        """Return how calls say who makes them."""
        if self.service_account is not None:
            return TokenLogin(self.service_account, tls, self.timeout_seconds)
        return Credentials(self.principal, self.secret)


class MesosGateway:
    """The scheduler's door to Mesos. ``emit`` takes events, from any thread, and must not block.

    ``clock`` gives the unix seconds that offers are stamped with. Raises OSError when a file of
    the TLS settings cannot be read.
    """

    def __init__(
        self,
        config: MesosConfig,
        emit: Callable[[Event], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.tls = config.tls()
        self._authentication = config.authentication(self.tls)
        self._emit = emit
        self._clock = clock
        self._driver: HardenedSchedulerDriver | None = None
        self._outstanding = OutstandingOffers()

    def start(self, framework_info: Mapping[str, Any]) -> None:
        """Subscribe, and keep subscribed for ever. Raises RuntimeError when started already."""
        if self._driver is not None:
            raise RuntimeError("the gateway is started already")
        self._driver = HardenedSchedulerDriver(
            Callbacks(self._outstanding, self._emit, self._clock),
            framework_info,
            self.config.masters,
            authentication=self._authentication,
            timeout=self.config.timeout_seconds,
            tls=self.tls,
            https=self.config.scheme == "https",
        )
        self._driver.start()

    def change_framework(self, framework_info: Mapping[str, Any]) -> None:
        """Subscribe anew with this FrameworkInfo, under the same id. Raises CallError."""
        self._required().change_framework(framework_info)

    def stop(self) -> None:
        """Close the connections; the framework stays registered and its tasks run on."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.stop()
            driver.join(self.config.timeout_seconds)
        self._outstanding.forget()

    @property
    def connected(self) -> bool:
        """Say whether a subscription is in force."""
        return self._driver is not None and self._driver.connected

    @property
    def master(self) -> Address | None:
        """The master last dialled; None before the first."""
        return None if self._driver is None else self._driver.master_address

    @property
    def access(self) -> HttpAccess:
        """How to read from masters and agents, for AgentFiles."""
        return HttpAccess(self._authentication, self.tls, self.config.timeout_seconds)

    def agent_url(self, agent_id: str) -> str | None:
        """Return an agent's base URL as its last offer told; None when it made none yet."""
        return self._outstanding.agent_url(agent_id)

    def perform(self, action: Action) -> None:
        """Carry out one action of Mesos' business. Call it from one thread, in order.

        A failure is emitted as CallFailed. Raises TypeError for actions that are not Mesos'.
        """
        perform = _PERFORM.get(type(action))
        if perform is None:
            raise TypeError(f"{type(action).__name__} is not an action for Mesos")
        try:
            perform(self, action)
        except CallError as error:
            self._failed(error.message, error.ambiguous, action)
        except ConversionError as error:
            self._failed(str(error), False, action)

    def _failed(self, message: str, ambiguous: bool, action: Action) -> None:
        call = _CALL_NAMES.get(type(action), type(action).__name__.upper())
        logger.warning("%s failed: %s%s", call, message, " (ambiguous)" if ambiguous else "")
        self._emit(
            CallFailed(
                call=call,
                message=message,
                ambiguous=ambiguous,
                offer_ids=getattr(action, "offer_ids", ()),
                task_ids=_task_ids(action),
                resource_ids=getattr(action, "resource_ids", ()),
            )
        )

    def _accept(self, action: Accept) -> None:
        self._use(action, partial(launch_operations, action.launches))

    def _release(self, action: Release) -> None:
        self._use(action, partial(release_operations, action))

    def _use(
        self,
        action: Accept | Release,
        operations_on: Callable[[list[Mapping[str, Any]]], list[dict[str, Any]]],
    ) -> None:
        offers, gone = self._outstanding.take(action.offer_ids)
        if gone:
            hand_back(self._required(), offers, action.refuse_seconds)
            raise CallError("ACCEPT", f"offers are gone: {', '.join(gone)}")
        try:
            self._required().acceptOffers(
                as_ids(offers),
                operations_on(list(offers.values())),
                {"refuse_seconds": action.refuse_seconds},
            )
        except (ConversionError, CallRefused) as error:
            if not getattr(error, "ambiguous", False):
                hand_back(self._required(), offers, action.refuse_seconds)
            raise

    def _decline(self, action: Decline) -> None:
        offers, _ = self._outstanding.take(action.offer_ids)
        if offers:
            self._required().declineOffer(as_ids(offers), {"refuse_seconds": action.refuse_seconds})

    def _accept_inverse(self, action: AcceptInverse) -> None:
        self._required().acceptInverseOffers(
            as_ids(action.inverse_offer_ids), {"refuse_seconds": ACCEPTED_INVERSE_REFUSE_SECONDS}
        )

    def _suppress(self, action: Suppress) -> None:
        self._required().suppressOffers(action.mesos_roles)

    def _revive(self, action: Revive) -> None:
        self._required().reviveOffers(action.mesos_roles)

    def _kill(self, action: Kill) -> None:
        self._required().killTask(
            {"value": action.task_id},
            {"value": action.agent_id} if action.agent_id else None,
            {"grace_period": duration(action.grace_seconds)},
        )

    def _reconcile(self, action: Reconcile) -> None:
        tasks = [
            {"task_id": {"value": task}, "agent_id": {"value": agent} if agent else None}
            for task, agent in action.tasks
        ]
        for start in range(0, max(len(tasks), 1), RECONCILE_CHUNK):
            self._required().reconcileTasks(tasks[start : start + RECONCILE_CHUNK])

    def _acknowledge(self, action: Acknowledge) -> None:
        self._required().acknowledgeStatusUpdate(
            {
                "agent_id": {"value": action.agent_id},
                "task_id": {"value": action.task_id},
                "uuid": action.uuid,
            }
        )

    def _teardown(self, _action: Teardown) -> None:
        self._required().teardown()
        self._outstanding.forget()

    def _required(self) -> HardenedSchedulerDriver:
        if self._driver is None:
            raise NotConnected("", "the gateway is not started")
        return self._driver


_PERFORM: dict[type, Callable[[MesosGateway, Any], None]] = {
    Accept: MesosGateway._accept,
    Release: MesosGateway._release,
    Decline: MesosGateway._decline,
    AcceptInverse: MesosGateway._accept_inverse,
    Suppress: MesosGateway._suppress,
    Revive: MesosGateway._revive,
    Kill: MesosGateway._kill,
    Reconcile: MesosGateway._reconcile,
    Acknowledge: MesosGateway._acknowledge,
    Teardown: MesosGateway._teardown,
}


#: The names of calls that are not those of their actions.
_CALL_NAMES: dict[type, str] = {AcceptInverse: "ACCEPT_INVERSE_OFFERS", Release: "ACCEPT"}


def _task_ids(action: Action) -> tuple[str, ...]:
    if isinstance(action, Accept):
        return tuple(launch.task_id for launch in action.launches)
    if isinstance(action, Kill | Acknowledge):
        return (action.task_id,)
    if isinstance(action, Reconcile):
        return tuple(task for task, _ in action.tasks)
    return ()
