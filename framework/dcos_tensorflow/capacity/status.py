"""The status of machines, for people and programs: machines, their cost, reasons for no purchase.

Called by ``api.views.machines``. A view of the ledger; decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dcos_tensorflow.capacity.billing import bill
from dcos_tensorflow.capacity.billing.usage import Tariff, tariff_of
from dcos_tensorflow.capacity.billing.uses import bill_of
from dcos_tensorflow.capacity.ledger import Entry, Ledger, OwnedMachine, Stage
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec

#: Of machines that have ended the newest are shown, this many.
ENDED_SHOWN = 100


def document(
    ledger: Ledger, waits: Mapping[str, str], spec: CapacitySpec, now: float
) -> dict[str, Any]:
    """Return everything as JSON-ready builtins; times are unix seconds, prices an hour's."""
    tariff = tariff_of(spec.billing)
    paid = bill.document(bill_of(ledger, tariff, now))
    machines = [(e, m) for e in ledger.entries.values() for m in e.machines]
    there = [_machine(e, m, tariff, now) for e, m in machines if m.costs]
    ended = sorted((each for each in machines if not each[1].costs), key=lambda p: p[1].ended_at)
    return {
        "machines": there,
        "ended": [_machine(e, m, tariff, now) for e, m in ended[-ENDED_SHOWN:]],
        "ordered": [_ordered(entry) for entry in ledger.entries.values() if entry.expected],
        "price_per_hour": round(float(ledger.price_per_hour), 6),
        "spent": round(ledger.spent(now, tariff), 6),
        "budget": spec.budget,
        "bill": paid,
        "waits": dict(waits),
        "backing_off": list(_backing_off(ledger, now)),
    }


def state_of(machine: OwnedMachine) -> str:
    """Return where a machine is, in one word."""
    if machine.ended_at:
        return "ended"
    if machine.is_ending or machine.asked_back_at:
        return "ending"
    if machine.leaving_since:
        return "leaving"
    if not machine.is_registered:
        return "starting"
    return "busy" if machine.busy_since else "idle"


def _machine(entry: Entry, machine: OwnedMachine, tariff: Tariff, now: float) -> dict[str, Any]:
    return {
        "machine_id": machine.machine_id,
        "purchase_id": entry.purchase_id,
        "instance_type": machine.instance_type,
        "zone": machine.zone,
        "market": str(entry.market),
        "hostnames": list(machine.hostnames),
        "state": state_of(machine),
        "gangs": list(entry.gangs),
        "ordered_at": entry.written_at,
        "ended_at": machine.ended_at or None,
        "price_per_hour": machine.price,
        "cost": round(machine.cost(now, tariff), 6),
        "why": machine.reason or machine.why,
    }


def _ordered(entry: Entry) -> dict[str, Any]:
    return {
        "purchase_id": entry.purchase_id,
        "count": entry.expected,
        "instance_type": entry.pool.instance_type,
        "zone": entry.pool.zone,
        "market": str(entry.market),
        "gangs": list(entry.gangs),
        "ordered_at": entry.written_at,
        "is_cancelled": entry.stage is Stage.CANCELLED,
        "trouble": entry.trouble,
    }


def _backing_off(ledger: Ledger, now: float) -> Iterator[dict[str, Any]]:
    account = ledger.account
    known = {"asking the provider": account.provider, "buying": account.orders, **account.pools}
    for what, backoff in known.items():
        if backoff.holds(now):
            yield {"what": what, "until": backoff.until, "why": backoff.why}
