"""How many of a gang's machines are spot ones, so that it ends in time and costs little.

Called by ``planner`` for a job with a deadline, and by ``benchmarks/spot_market.py`` on
recorded markets. The rule is in ``docs/capacity.md``: it begins with Uniform Progress (Wu et al.,
"Can't Be Late", NSDI 2024), and differs in its use of slack. Pure: the caller passes the returned
:class:`Memory` with the next call.

*Slack* is the time that is left when all the work that is left has been done without a pause. Only
training keeps it; waiting and changing machines use it up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from dcos_tensorflow.capacity.experience import HOUR, Experience
from dcos_tensorflow.records import dataclass

#: A second of all machines' time is paid while machines change, and its slack is missing later: it
#: is worth itself, and this share of the work that would be left for each second of slack. (Half of
#: it or twice as much changes the results by a hundredth.)
_SLACK_WORTH = 0.2
#: The market as a whole, in ``Memory.experiences``: no zone has this name.
_ANY_ZONE = ""


@dataclass(frozen=True)
class RestartCost:
    """What a change of machines costs; seconds."""

    #: From the order of a machine until its agent takes tasks.
    boot: float
    #: From the order to start again until the next step.
    restart: float
    #: Work since the last checkpoint, at most: it is done again when machines go unasked.
    lost: float
    #: For how long a spot machine that has to go says so before: time for a checkpoint, and for
    #: others to boot. No deadline depends on it, because no provider promises that it comes.
    notice: float = 0.0

    @property
    def cold(self) -> float:
        """Return how long no task trains when machines are bought and none trains meanwhile."""
        return self.boot + self.restart

    @property
    def loss(self) -> float:
        """Return how much slack it takes that a spot machine goes without a notice."""
        return self.cold + self.lost

    @property
    def replacement(self) -> float:
        """Return for how long no task gets on for a loss with its notice, and for the way back."""
        return self.cold - self.warned + max(0.0, self.lost - self.notice) + self.restart

    @property
    def warned(self) -> float:
        """Return for how long others boot before a machine goes."""
        return min(self.notice, self.boot)


@dataclass(frozen=True)
class Quote:
    """What a zone has for this gang now."""

    zone: str
    #: Spot machines that the gang could have, those that it has included.
    available: int
    #: Of one machine, per hour.
    spot_price: float
    on_demand_price: float


@dataclass(frozen=True)
class Fleet:
    """A gang's machines: all in one zone."""

    zone: str = ""
    spot: int = 0
    on_demand: int = 0

    @property
    def machines(self) -> int:
        """Return how many there are."""
        return self.spot + self.on_demand


#: No machine at all: the gang waits.
NOTHING = Fleet()


@dataclass(frozen=True)
class DeadlineJob:
    """What is to be done, and by when; seconds."""

    #: A gang trains with all of its machines or not at all.
    machines: int
    #: Of training, when it began.
    work: float
    #: When it began, on the clock of ``Sight.now``.
    began: float
    deadline: float
    cost: RestartCost


@dataclass(frozen=True)
class JobObservation:
    """How things stand."""

    now: float
    #: Seconds of training with all machines.
    work_left: float
    fleet: Fleet
    #: Seconds until the gang trains on that fleet: 0 while it does; None where it is not whole.
    ready_in: float | None
    #: One for each zone that may be used, and for that of the fleet; at least one.
    quotes: tuple[Quote, ...]
    #: Seconds until the next look, unless a machine goes before.
    next_look: float


@dataclass(frozen=True)
class Memory:
    """What the rule knows of the markets, zone by zone, and of all zones together."""

    experiences: Mapping[str, Experience] = field(default_factory=dict)


def decide(job: DeadlineJob, sight: JobObservation, memory: Memory) -> tuple[Fleet, Memory]:
    """Return the fleet that the gang should have from now on, and what to remember.

    The fleet is whole or :data:`NOTHING`. A job that on-demand machines alone would end in time
    ends in time, if a look is taken every ``next_look`` seconds and when a machine goes.
    """
    memory = _looked(job, sight, memory)
    if sight.ready_in is not None and sight.fleet.machines == job.machines:
        return _trained_on(job, sight, sight.ready_in, memory), memory
    return _begun_with(job, sight, memory), memory


def _looked(job: DeadlineJob, sight: JobObservation, memory: Memory) -> Memory:
    found = {quote.zone: _useful(quote, job) for quote in sight.quotes}
    found[_ANY_ZONE] = max(found.values())
    experiences = {
        zone: memory.experiences[zone].seen(sight.now, available)
        if zone in memory.experiences
        else Experience.first(sight.now, available, job.machines)
        for zone, available in found.items()
    }
    return replace(memory, experiences=experiences)


def _useful(quote: Quote, job: DeadlineJob) -> int:
    """Return how many spot machines there are that cost less than on-demand ones."""
    return min(quote.available, job.machines) if quote.spot_price < quote.on_demand_price else 0


def _trained_on(job: DeadlineJob, sight: JobObservation, ready_in: float, memory: Memory) -> Fleet:
    """Return the fleet to go on with: another one where that is worth the change."""
    cost, fleet = job.cost, sight.fleet
    slack = job.deadline - sight.now - sight.work_left - ready_in
    if fleet.spot and slack < cost.loss:
        return Fleet(fleet.zone, 0, job.machines)
    if slack < cost.restart + cost.loss:
        return fleet
    market = _Market(job, sight, memory, slack)
    here = next(quote for quote in sight.quotes if quote.zone == fleet.zone)
    now, best, most = market.rate(here, fleet.spot), fleet, 0.0
    for quote, spot in _choices(job, sight):
        if quote is here and spot == fleet.spot:
            continue
        lasts = max(1.0, min(market.life(quote, spot), sight.work_left))
        gain = now - market.rate(quote, spot) - market.change(here, quote, spot) / lasts
        if gain > most:
            best, most = Fleet(quote.zone, spot, job.machines - spot), gain
    return best


def _begun_with(job: DeadlineJob, sight: JobObservation, memory: Memory) -> Fleet:
    """Return the fleet to begin with, or none where it is better to wait."""
    cost = job.cost
    slack = job.deadline - sight.now - sight.work_left
    market = _Market(job, sight, memory, slack)
    safe = slack >= cost.cold + cost.loss
    choices = [(quote, spot) for quote, spot in _choices(job, sight) if safe or not spot]
    quote, spot = min(choices, key=lambda choice: (market.rate(*choice), choice[0].zone))
    kept = _reserve(job, sight)
    if slack - sight.next_look >= kept and _better_comes(job, sight, memory, spot, kept):
        return NOTHING
    return Fleet(quote.zone, spot, job.machines - spot)


def _choices(job: DeadlineJob, sight: JobObservation) -> Iterator[tuple[Quote, int]]:
    return ((quote, n) for quote in sight.quotes for n in range(_useful(quote, job) + 1))


def _reserve(job: DeadlineJob, sight: JobObservation) -> float:
    """Return the slack that is not waited away; seconds.

    It is there for the spot machines that will go: one loss in each hour of the work that is left.
    It is never more than Uniform Progress keeps: of the slack at the beginning the share of the
    work that is left.
    """
    losses = sight.work_left / HOUR * job.cost.replacement
    at_first = job.deadline - job.began - job.work
    return job.cost.cold + min(losses, max(0.0, at_first * sight.work_left / job.work))


def _better_comes(
    job: DeadlineJob, sight: JobObservation, memory: Memory, spot: int, kept: float
) -> bool:
    """Say whether there will be more spot machines for as long as there is work left.

    Without any it is always better to wait: on-demand machines are there later, too.
    """
    if spot in (0, job.machines):
        return spot == 0
    left = max(1.0, job.deadline - sight.now - kept)
    more = memory.experiences[_ANY_ZONE].share(spot + 1, sight.now)
    return more >= sight.work_left / left


@dataclass(frozen=True)
class _Market:
    """What fleets cost as the market is now; prices are per hour, of all machines."""

    job: DeadlineJob
    sight: JobObservation
    memory: Memory
    #: Seconds.
    slack: float

    def life(self, quote: Quote, spot: int) -> float:
        """Return for how many seconds so many spot machines are taken to stay."""
        if not spot:
            return math.inf
        return self.memory.experiences[quote.zone].life(spot, self.sight.now)

    def rate(self, quote: Quote, spot: int) -> float:
        """Return what a fleet costs, the losses that are to be reckoned with included."""
        on_demand = (self.job.machines - spot) * quote.on_demand_price
        losses = self.job.cost.replacement / self.life(quote, spot)
        return on_demand + spot * quote.spot_price + self._worth(quote) * losses

    def change(self, here: Quote, there: Quote, spot: int) -> float:
        """Return what it costs to go over from the fleet that trains, times 3600.

        Machines that leave are paid until those that come have booted.
        """
        fleet = self.sight.fleet
        stay = (spot, self.job.machines - spot) if here is there else (0, 0)
        leaving = max(0, fleet.spot - stay[0]) * here.spot_price
        leaving += max(0, fleet.on_demand - stay[1]) * here.on_demand_price
        return self._worth(here) * self.job.cost.restart + leaving * self.job.cost.boot

    def _worth(self, quote: Quote) -> float:
        """Return what a second of all machines' time is worth, times 3600."""
        scarce = _SLACK_WORTH * self.sight.work_left / max(self.slack, 1.0)
        return self.job.machines * quote.on_demand_price * (1.0 + scarce)
