"""What of the ledger is to be paid: each machine's use, as ``bill`` takes it. Pure.

Called by ``status``. How long a machine lived is what its provider's clock says of begin and end.
All moments are told by our clock: the provider's are moved by whole seconds, which rounds none.
"""

from __future__ import annotations

from collections.abc import Iterator

from dcos_tensorflow.capacity.ledger import Entry, Ledger, OwnedMachine
from dcos_tensorflow.capacity.usage import MachineUse, PriceChange


def uses_of(ledger: Ledger, now: float) -> Iterator[MachineUse]:
    """Yield the use of each machine, those that have ended included."""
    for entry in ledger.entries.values():
        for machine in entry.machines:
            yield _use(entry, machine, now)


def _use(entry: Entry, machine: OwnedMachine, now: float) -> MachineUse:
    busy = machine.busy_seconds
    if machine.busy_since:
        busy += max(0.0, (machine.ended_at or now) - machine.busy_since)
    lost = (machine.lost_until or now) - machine.lost_since if machine.lost_since else 0.0
    ahead = machine.clock_ahead
    started_at = machine.started_at - ahead if machine.started_at else machine.known_at
    ended_at = machine.stopped_at - ahead if machine.stopped_at else machine.ended_at
    return MachineUse(
        machine_id=machine.machine_id,
        purchase_id=entry.purchase_id,
        instance_type=machine.instance_type,
        zone=machine.zone,
        market=entry.market,
        started_at=started_at,
        ended_at=ended_at if machine.ended_at else None,
        prices=tuple(PriceChange(at, price) for at, price in machine.prices),
        on_demand_price=entry.on_demand_price_of(machine),
        busy_seconds=busy,
        lost_seconds=max(0.0, lost),
        interrupted=machine.taken_back,
    )
