"""The input of one round of the loop that buys: the present, and the rules of the options.

Made by ``scheduler.machines.buying``; read by ``reconcile`` and ``leavers``. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from dcos_tensorflow.capacity.billing.usage import Tariff, tariff_of
from dcos_tensorflow.capacity.deadline import Fleet
from dcos_tensorflow.capacity.losses import Pause
from dcos_tensorflow.capacity.market import Pool
from dcos_tensorflow.capacity.mirror import Agents, PurchaseAnswer
from dcos_tensorflow.capacity.planner import GangDemand
from dcos_tensorflow.capacity.provider import Machine
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Rules:
    """What the loop goes by: the options, and for whom it buys. Times are seconds."""

    spec: CapacitySpec
    owner: str
    #: What the ids of purchases begin with.
    prefix: str
    #: Tasks of a job that is over have so long to end before their machine goes.
    ending_seconds: float = 120.0
    #: Offers may come for so long before a machine is bought in their place.
    patience_seconds: float = 10.0

    @property
    def tariff(self) -> Tariff:
        """Return how seconds become what is paid."""
        return tariff_of(self.spec.billing)


@dataclass(frozen=True)
class Observation:
    """How things stand. What could not be asked is None: nothing follows from it."""

    #: Our clock, unix seconds.
    now: float
    #: The gangs that wait, the longest first.
    demands: tuple[GangDemand, ...] = ()
    #: What is free on agents that are there.
    offers: tuple[Offer, ...] = ()
    agents: Agents | None = None
    #: By gang: when it last did not train.
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    machines: tuple[Machine, ...] | None = None
    pools: tuple[Pool, ...] | None = None
    answers: tuple[PurchaseAnswer, ...] = ()
    #: What came of asking for the list, the pools, or an end; empty when it went well.
    trouble: str = ""
    #: Machines that were to be ended, and the provider did not hear of it.
    not_given_back: tuple[str, ...] = ()
    #: Since when the job is over: everything goes. 0 while it is not.
    over_since: float = 0.0
    #: It is over because the budget is spent, and others may use the machines while that pays.
    is_spent: bool = False
    #: With a deadline the whole fleet that the first gang is to have; None where it says nothing.
    fleet: Fleet | None = None
    #: The operator of the service wants idle machines to go now.
    release: bool = False
