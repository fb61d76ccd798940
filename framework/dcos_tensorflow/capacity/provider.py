"""The questions to a provider of machines, and its errors: the seam to EC2 and to scripts.

Called by the loop that buys (``scheduler.machines.buying``); implemented in ``capacity.providers``.
A provider decides nothing and keeps nothing: a purchase is written down before it is asked,
and its machines are found by tag, so that it may be made anew at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Protocol

from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.records import dataclass


class MachineState(StrEnum):
    """Where a machine is in its life, as its provider says."""

    #: Ordered; it costs money, and nothing runs on it yet.
    STARTING = "starting"
    RUNNING = "running"
    #: It is on its way out; it may still cost.
    ENDING = "ending"
    #: It costs nothing any more.
    ENDED = "ended"


@dataclass(frozen=True)
class Machine:
    """One machine that carries our tags, by any buyer."""

    #: The provider's: ``i-0abc``.
    machine_id: str
    #: Which purchase it belongs to, as its tag says.
    purchase_id: str
    #: For whom it was bought, as its tag says: the service's name, or the cluster's.
    owner: str
    instance_type: str
    zone: str
    market: Market
    state: MachineState
    #: Unix seconds, by the provider's clock.
    started_at: float
    #: Names and addresses by which its Mesos agent may be known; empty until the provider knows.
    hostnames: tuple[str, ...] = ()
    #: Why it ended, where the provider says (``Server.SpotInstanceTermination``).
    reason: str = ""
    #: When it ended, by the provider's clock; 0 where that does not say.
    ended_at: float = 0.0
    #: What the provider's clock showed when it said all this; 0 where that does not say.
    told_at: float = 0.0
    #: Whether the provider took it back unasked, and says so.
    taken_back: bool = False


@dataclass(frozen=True)
class PurchaseOrder:
    """Machines to buy, all of one market."""

    #: Ours, also the idempotency token: the same order asked twice buys once.
    purchase_id: str
    owner: str
    #: Where they may come from, the one that we like best first: one market, one price rank each.
    pools: tuple[Pool, ...]
    count: int
    #: Of one machine an hour: more is not paid; None where only the market's own limit holds.
    max_price: float | None = None


@dataclass(frozen=True)
class Bought:
    """What came of an order: all of it, some, or none, and why not all."""

    machines: tuple[Machine, ...] = ()
    #: One sentence, where there are fewer than were asked for.
    missing: str = ""


class ProviderError(Exception):
    """The provider could not be asked, or refused; the text says why, for people."""

    #: Whether to ask again later makes sense at all.
    is_final = False


class Throttled(ProviderError):
    """We ask too often: later, and less."""


class Denied(ProviderError):
    """We may not do that: a person has to change something."""

    is_final = True


def is_of(owner: str, asked: str) -> bool:
    """Say whether machines of ``owner`` are asked for.

    An owner that ends in a dot means all whose names begin so: every instance that a service ever
    had.
    """
    return owner.startswith(asked) if asked.endswith(".") else owner == asked


class Provider(Protocol):
    """Where machines come from. Each call may block, and raises ProviderError.

    It is one owner's, by ``is_of``.
    """

    def pools(self) -> Sequence[Pool]:
        """Return what can be bought from, with the prices of now."""

    def buy(self, order: PurchaseOrder) -> Bought:
        """Buy machines; the same order again returns what it bought the first time."""

    def machines(self) -> Sequence[Machine]:
        """Return all machines with our tags that may still cost something, or ended lately.

        A machine that was just bought may be missing for a while.
        """

    def give_back(self, machine_ids: Collection[str]) -> None:
        """End these machines. One that has ended already is no error."""
