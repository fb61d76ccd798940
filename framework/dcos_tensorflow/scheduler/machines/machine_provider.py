"""The provider of machines that options name, and the questions to it, round after round.

``provider_for`` is used by the gate, which says whether the operator allows it, and by the command
line for machines that no scheduler looks after: there the options are the operator's own. Each
provider is imported when it is asked for. A :class:`Desk` stands between ``capacity.reconcile`` and
a provider in both loops that buy (``buying``, ``standing_machines``); it decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.capacity.mirror import PurchaseAnswer
from dcos_tensorflow.capacity.provider import ProviderError
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.market import Pool
    from dcos_tensorflow.capacity.provider import Machine, Provider, PurchaseOrder
    from dcos_tensorflow.capacity.reconcile import Round

log = logging.getLogger(__name__)

#: What machines cost is asked for so often at most (seconds).
PRICES_SECONDS = 60.0


def provider_for(spec: CapacitySpec, owner: str) -> Provider:
    """Return the provider, for machines of this owner. Raises ProviderError."""
    given = spec.provider
    if isinstance(given, CommandSpec):
        from dcos_tensorflow.capacity.providers.command import CommandProvider

        return CommandProvider(given.cmd, owner, timeout_seconds=given.timeout_seconds)
    from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider

    return Ec2Provider(given, owner, spec.instance_types)


class Desk:
    """Asks a provider what one round needs, does what follows, and tells the next round of it.

    ``may_act`` says whether the provider may still be asked for something: each call may last.
    """

    def __init__(
        self,
        open_provider: Callable[[CapacitySpec, str], Provider],
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._open_provider = open_provider
        self._may_act = may_act
        #: Of which options and for which owner the provider is, and the provider once it is opened.
        self._wanted: tuple[CapacitySpec, str] | None = None
        self._provider: Provider | None = None
        self._answers: tuple[PurchaseAnswer, ...] = ()
        self._trouble = ""
        self._not_given_back: tuple[str, ...] = ()
        self._pools: tuple[Pool, ...] | None = None
        self._pools_at = float("-inf")

    def follow(self, spec: CapacitySpec, owner: str) -> None:
        """Ask the provider of these options from now on."""
        if self._wanted != (spec, owner):
            self._wanted, self._provider = (spec, owner), None
            self._pools, self._pools_at = None, float("-inf")

    def machines(self) -> tuple[Machine, ...] | None:
        """Return the machines that there are; None where the provider does not say."""
        try:
            return tuple(self._opened().machines())
        except ProviderError as error:
            self._fail("the machines cannot be listed", error)
            return None

    def pools(self, now: float, *, may_ask: bool) -> tuple[Pool, ...] | None:
        """Return what machines there are for sale, as asked lately; None while that is unknown."""
        if may_ask and now - self._pools_at >= PRICES_SECONDS:
            try:
                self._pools, self._pools_at = tuple(self._opened().pools()), now
            except ProviderError as error:
                self._fail("the machines for sale are not known", error)
        return self._pools

    def outcome(self) -> dict[str, Any]:
        """Return what came of all that was asked since the last time, as fields of ``Sight``."""
        answers, trouble, kept = self._answers, self._trouble, self._not_given_back
        self._answers, self._trouble, self._not_given_back = (), "", ()
        return {"answers": answers, "trouble": trouble, "not_given_back": kept}

    def do(self, found: Round) -> bool:
        """Send the orders, and end machines; say whether there was anything to do."""
        if not (found.orders or found.give_back) or not self._may_act():
            return False
        self._answers = tuple(self._bought(order) for order in found.orders if self._may_act())
        if found.give_back and self._may_act():
            try:
                self._opened().give_back(found.give_back)
            except ProviderError as error:
                self._not_given_back = found.give_back
                self._fail("machines cannot be given back", error)
        # The next prices say what is left to be had.
        self._pools_at = float("-inf") if found.orders else self._pools_at
        return True

    def _opened(self) -> Provider:
        if self._provider is None:
            assert self._wanted is not None
            self._provider = self._open_provider(*self._wanted)
        return self._provider

    def _bought(self, order: PurchaseOrder) -> PurchaseAnswer:
        try:
            return PurchaseAnswer(order.purchase_id, self._opened().buy(order))
        except ProviderError as error:
            log.warning("%s is not bought: %s", order.purchase_id, error)
            return PurchaseAnswer(order.purchase_id, trouble=str(error), is_final=error.is_final)

    def _fail(self, what: str, error: ProviderError) -> None:
        self._trouble = f"{what}: {error}"
        log.warning("%s", self._trouble)
