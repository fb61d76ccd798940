"""One job on one recorded market: what a policy pays, and the least that anybody could have paid.

Called by ``spot_market.py``. Time goes in the trace's points. At each, the machines that the market
has not any more are gone, then the policy says which fleet it wants; a gang trains with all of its
machines or not at all:

* From no machines, or from what is left after a loss: none trains for ``boot + restart`` seconds,
  and all machines are paid. A loss repeats up to ``lost`` seconds of work.
  With a notice others have booted for so long by then, are paid for it, and less is repeated.
* From one whole fleet to another: those who come boot while the old ones train; those who leave
  are paid until then; then none trains for ``restart`` seconds.

Money is in hours of one on-demand machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.capacity.deadline import (
    NOTHING,
    DeadlineJob,
    Fleet,
    JobObservation,
    Memory,
    Quote,
    decide,
)

Floats = NDArray[np.float64]
#: Decides as ``dcos_tensorflow.capacity.deadline.decide`` does; a new one for each job.
Policy = Callable[[DeadlineJob, JobObservation], Fleet]

# How closely the least price is looked for: so many prices of a second at once, so many times.
_PRICES, _ROUNDS, _DEAREST = 32, 2, 6.0
_NEVER = -1e15


@dataclass(frozen=True)
class Market:
    """What the zones have, from the moment that the job begins."""

    zones: tuple[str, ...]
    gap_seconds: float
    #: By zone and point.
    available: NDArray[np.int64]
    #: By zone and point: of a spot machine, as a share of an on-demand one's.
    prices: Floats


@dataclass
class Run:
    """What became of a job."""

    #: Hours of on-demand machines, for spot machines and for on-demand ones.
    spot: float = 0.0
    on_demand: float = 0.0
    missed: bool = False
    #: When it ended; seconds after the beginning.
    ended: float = 0.0
    #: How often machines went unasked, and how often the gang started.
    losses: int = 0
    starts: int = 0
    #: Seconds of work that were done twice.
    repeated: float = 0.0

    @property
    def cost(self) -> float:
        """Return what all machines cost."""
        return self.spot + self.on_demand


def on_demand_cost(job: DeadlineJob) -> float:
    """Return what on-demand machines alone cost."""
    return job.machines * (job.cost.cold + job.work) / 3600


def simulate(job: DeadlineJob, market: Market, policy: Policy) -> Run:
    """Play a job to its end, or to its deadline if that comes before."""
    run, now, left, since = Run(), 0.0, job.work, 0.0
    fleet, ready_in = NOTHING, None
    places = {zone: number for number, zone in enumerate(market.zones)}
    for point in range(market.available.shape[1]):
        span = min(market.gap_seconds, job.deadline - now)
        if span <= 0:
            break
        quotes = tuple(
            Quote(zone, int(market.available[n, point]), float(market.prices[n, point]), 1.0)
            for zone, n in places.items()
        )
        warned = 0.0
        if fleet.spot and (has := quotes[places[fleet.zone]].available) < fleet.spot:
            again, warned = min(max(0.0, job.cost.lost - job.cost.notice), since), job.cost.warned
            left, run.repeated, run.losses = left + again, run.repeated + again, run.losses + 1
            fleet, ready_in = Fleet(fleet.zone, has, fleet.on_demand), None
        wanted = policy(job, JobObservation(now, left, fleet, ready_in, quotes, market.gap_seconds))
        if wanted == NOTHING:
            fleet, ready_in = NOTHING, None
            now += span
            continue
        here = quotes[places[wanted.zone]]
        if wanted.machines != job.machines or wanted.spot > here.available:
            raise ValueError(f"{wanted} cannot be had: {here}")
        if ready_in is None:
            stay = fleet if wanted.zone == fleet.zone else NOTHING
            hours = warned / 3600
            run.spot += max(0, wanted.spot - stay.spot) * here.spot_price * hours
            run.on_demand += max(0, wanted.on_demand - stay.on_demand) * hours
            ready_in, since, run.starts = job.cost.cold - warned, 0.0, run.starts + 1
        elif wanted != fleet:
            old = quotes[places[fleet.zone]]
            stay = wanted if wanted.zone == fleet.zone else NOTHING
            hours = job.cost.boot / 3600
            run.spot += max(0, fleet.spot - stay.spot) * old.spot_price * hours
            run.on_demand += max(0, fleet.on_demand - stay.on_demand) * hours
            ready_in, since, run.starts = ready_in + job.cost.restart, 0.0, run.starts + 1
        fleet = wanted
        pause = min(ready_in, span)
        trained = min(left, span - pause)
        ready_in, left, since = ready_in - pause, left - trained, since + trained
        run.spot += fleet.spot * here.spot_price * (pause + trained) / 3600
        run.on_demand += fleet.on_demand * (pause + trained) / 3600
        now += pause + trained
        if left <= 1e-6:
            run.ended = now
            return run
    run.missed, run.ended = True, now
    return run


@dataclass
class DeadlineAware:
    """The rule of the product, with its memory."""

    memory: Memory = field(default_factory=Memory)

    def __call__(self, job: DeadlineJob, sight: JobObservation) -> Fleet:
        """Decide as the planner does."""
        fleet, self.memory = decide(job, sight, self.memory)
        return fleet


def spot_or_nothing(job: DeadlineJob, sight: JobObservation) -> Fleet:
    """Return a gang of spot machines alone, where it is if it can stay there."""
    whole = [quote.zone for quote in sight.quotes if quote.available >= job.machines]
    if not whole:
        return NOTHING
    zone = sight.fleet.zone if sight.fleet.zone in whole else whole[0]
    return Fleet(zone, job.machines, 0)


def _no_way_back(job: DeadlineJob, sight: JobObservation) -> bool:
    """Say whether another try with spot machines, or to wait, could cost the deadline."""
    slack = job.deadline - sight.now - sight.work_left - (sight.ready_in or 0.0)
    if sight.ready_in is not None and sight.fleet.spot:
        return slack < job.cost.loss
    waits = spot_or_nothing(job, sight) == NOTHING
    return slack < job.cost.cold + job.cost.loss or (
        waits and slack - sight.next_look < job.cost.cold
    )


def on_demand(job: DeadlineJob, sight: JobObservation) -> Fleet:
    """Decide for on-demand machines, always."""
    return Fleet(sight.quotes[0].zone, 0, job.machines)


@dataclass
class Greedy:
    """Spot machines whenever the market has all; else wait; on-demand ones when it must be."""

    at_last: bool = False

    def __call__(self, job: DeadlineJob, sight: JobObservation) -> Fleet:
        """Decide as the paper's greedy policy does."""
        self.at_last = self.at_last or _no_way_back(job, sight)
        return on_demand(job, sight) if self.at_last else spot_or_nothing(job, sight)


@dataclass
class UniformProgress:
    """Uniform Progress as published: as far as a steady job would be, on-demand ones where behind.

    A gang has spot machines alone, or on-demand ones alone.
    """

    at_last: bool = False

    def __call__(self, job: DeadlineJob, sight: JobObservation) -> Fleet:
        """Decide as the paper's policy does."""
        self.at_last = self.at_last or _no_way_back(job, sight)
        if self.at_last:
            return on_demand(job, sight)
        spot = spot_or_nothing(job, sight)
        if spot != NOTHING:
            return spot
        # Once on them, until it is ahead by what two changes take.
        ahead = 2 * job.cost.cold if sight.fleet.on_demand else 0.0
        expected = (sight.now + ahead) * job.work / job.deadline
        behind = job.work - sight.work_left < expected
        return on_demand(job, sight) if behind else NOTHING


def least(job: DeadlineJob, market: Market) -> float:
    """Return a price below which no policy could have ended this job, the future known.

    Of all fleets at all points the dynamic programme finds those that earn most, where a second
    of training is paid with a price, and money is spent as in ``simulate``. A policy that does all
    the work spends at least what that price pays for it, less what could be earned (the Lagrangian
    dual); the price that says most is looked for. A known end of a machine costs nothing but a
    restart: others are there before.
    """
    points = math.ceil(job.deadline / market.gap_seconds - 1e-9)
    spans = np.full(points, market.gap_seconds)
    spans[-1] = job.deadline - market.gap_seconds * (points - 1)
    low, high, best = 0.0, _DEAREST * job.machines, 0.0
    for _ in range(_ROUNDS):
        prices = np.linspace(low, high, _PRICES)
        known = (prices * job.work - _earned(job, market, spans, prices)) / 3600
        at = int(known.argmax())
        best, apart = max(best, float(known[at])), (high - low) / (_PRICES - 1)
        low, high = max(0.0, prices[at] - apart), prices[at] + apart
    return best


def _earned(job: DeadlineJob, market: Market, spans: Floats, prices: Floats) -> Floats:
    """Return the most that can be earned at each price of a second; by price."""
    machines, cost = job.machines, job.cost
    zones = range(len(market.zones))
    spot = np.arange(machines + 1)
    going = np.maximum(0, spot[:, None] - spot[None, :])
    pause = (prices * cost.restart)[:, None, None] * (spot[:, None] != spot[None, :])
    # By zone: the most that was earned with so many spot machines now; and with none at all.
    state = np.full((len(zones), len(prices), machines + 1), _NEVER)
    idle, done = np.zeros(len(prices)), np.zeros(len(prices))
    for point, span in enumerate(spans):
        has = [min(int(market.available[z, point]), machines) for z in zones]
        before = list(state)
        lost = [before[z][:, has[z] + 1 :].max(axis=1) for z in zones if has[z] < machines]
        again = prices * max(0.0, cost.lost - cost.notice)
        fallen = np.max([np.full_like(idle, _NEVER), *(each - again for each in lost)], axis=0)
        begin = np.maximum(idle, fallen)
        kept, price = [before[z][:, : has[z] + 1] for z in zones], market.prices[:, point]
        rest = np.max([begin, *(each.max(axis=1) for each in kept)], axis=0)
        leave = [price[z] * spot + (machines - spot) for z in zones]
        moved = np.max(
            [(kept[z] - cost.boot * leave[z][: has[z] + 1]).max(axis=1) for z in zones], axis=0
        )
        begun = np.maximum(idle - prices * cost.cold, fallen - prices * (cost.cold - cost.warned))
        start = np.maximum(begun, moved - prices * cost.restart)
        state = np.full_like(state, _NEVER)
        for z in zones:
            top = has[z] + 1
            change = pause + cost.boot * (price[z] * going + going.T)
            best = (kept[z][:, :, None] - change[:, :top, :top]).max(axis=1)
            best = np.maximum(best, start[:, None])
            state[z][:, :top] = best + span * (prices[:, None] - leave[z][None, :top])
        # A job that is done then hears of no loss any more.
        idle, done = rest, np.maximum(done, state.max(axis=(0, 2)))
    return done
