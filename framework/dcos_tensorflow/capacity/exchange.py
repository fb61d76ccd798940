"""How a gang that trains goes over to other machines: these are bought first, then it moves.

Called by ``reconcile`` and ``leavers`` when the rule for deadlines wants another fleet than the
gang trains on: spot machines in place of on-demand ones, say. It trains on while the new ones boot,
and moves when the last of them is there; where one does not come, nothing was lost. It leaves
machines at once only for the safety of the deadline. Pure; the rule itself is ``deadline``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dcos_tensorflow.capacity.deadline import Fleet
from dcos_tensorflow.capacity.ledger import Entry, Ledger, OwnedMachine, Stage
from dcos_tensorflow.capacity.market import Market, Pool, WantedMachines

#: A machine with its purchase.
_Found = tuple[Entry, OwnedMachine]


def trained_on(ledger: Ledger) -> list[_Found]:
    """Return the machines that a gang trains on, those that it is to move from included."""
    return [
        (entry, machine)
        for entry, machine in ledger.machines()
        if machine.busy_since and (machine.is_useful or (machine.moves and not machine.is_ending))
    ]


def is_going_over(ledger: Ledger, fleet: Fleet | None) -> bool:
    """Say whether a gang trains on one whole fleet, and is to have another with spot machines."""
    now = trained_on(ledger)
    if fleet is None or not fleet.spot or len(now) != fleet.machines:
        return False
    return bool(_wanted(fleet) - _counted(now))


def missing(
    ledger: Ledger, fleet: Fleet, pools: Iterable[Pool]
) -> tuple[WantedMachines, ...] | None:
    """Return the machines that have to be bought before the gang can go over.

    None where not all of them can be had.
    """
    entry, first = trained_on(ledger)[0]
    missing = _wanted(fleet) - _counted(_useful(ledger)) - _expected(ledger)
    by_key = {pool.key: pool for pool in pools}
    found = []
    for (zone, market), count in missing.items():
        pool = by_key.get((first.instance_type, zone, market))
        if pool is None or (pool.available is not None and pool.available < count):
            return None
        found.append(WantedMachines(pool, count, entry.gangs))
    return tuple(found)


def to_be_left(ledger: Ledger, fleet: Fleet | None, *, goes_over: bool) -> dict[str, str]:
    """Return the machines that the gang there is to leave now, each with why.

    Spot ones at once where the rule wants on-demand ones alone. Of a gang that ``goes_over`` what
    the wanted fleet does not have, when all the rest of it is there.
    """
    useful = _useful(ledger)
    if fleet is not None and fleet.on_demand and not fleet.spot:
        why = "the deadline leaves no time for the loss of a spot machine"
        return {m.machine_id: why for entry, m in useful if entry.market is Market.SPOT}
    there = [found for found in useful if found[1].is_registered]
    if fleet is None or not goes_over or _wanted(fleet) - _counted(there):
        return {}
    room, going = _wanted(fleet), {}
    # Idle machines have come for this: of those with tasks the rest goes.
    for entry, machine in sorted(there, key=lambda found: bool(found[1].busy_since)):
        key = (machine.zone, entry.market)
        if room[key]:
            room[key] -= 1
        elif machine.busy_since:
            going[machine.machine_id] = "others are there that cost less"
    return going


def _useful(ledger: Ledger) -> list[_Found]:
    return [(entry, machine) for entry, machine in ledger.machines() if machine.is_useful]


def _wanted(fleet: Fleet) -> Counter[tuple[str, Market]]:
    by = {Market.SPOT: fleet.spot, Market.ON_DEMAND: fleet.on_demand}
    return +Counter({(fleet.zone, market): count for market, count in by.items()})


def _counted(found: Iterable[_Found]) -> Counter[tuple[str, Market]]:
    return Counter((machine.zone, entry.market) for entry, machine in found)


def _expected(ledger: Ledger) -> Counter[tuple[str, Market]]:
    """Return what was ordered and has not come."""
    found: Counter[tuple[str, Market]] = Counter()
    for entry in ledger.entries.values():
        if entry.stage is Stage.WRITTEN:
            found[entry.pool.zone, entry.market] += entry.expected
    return found
