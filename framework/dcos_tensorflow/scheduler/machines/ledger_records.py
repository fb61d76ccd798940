"""The ledger of machines as the core keeps it: records in, a ledger out, and back. Pure.

Used by ``scheduler.machines.buying``, by ``beginning``, and by the API's views.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from dcos_tensorflow.capacity.ledger import Account, Entry, Ledger
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.machine_records import CapacityRecord, CapacityRecords

T = TypeVar("T")

#: Where what is true of all purchases is; a purchase is at its id.
ACCOUNT = "account"


def ledger_of(records: CapacityRecords) -> Ledger:
    """Return the ledger that is kept. Raises ``codec.RecordError``."""
    kept = records.get(ACCOUNT)
    account = _read(Account, kept, ACCOUNT) if kept is not None else Account()
    entries = {}
    for key, record in records.items():
        if key != ACCOUNT:
            # What has changed neither itself nor in its prices is the purchase that it was.
            known = record.remembered.get("ledger")
            if known is None or known[0] is not kept:
                entry = known[1] if known is not None else _read(Entry, record, key)
                one = Ledger(account, {key: entry}).priced()
                known = record.remembered["ledger"] = (kept, one.entries[key])
            entries[key] = known[1]
    return Ledger(account, entries)


def _read(kind: type[T], record: CapacityRecord, key: str) -> T:
    """Return what a record holds; it is read once."""
    found = record.remembered.get(kind)
    if found is None:
        found = record.remembered[kind] = codec.from_plain(kind, record.body, key)
    return found  # type: ignore[no-any-return]


def changes_between(before: Ledger, after: Ledger) -> dict[str, CapacityRecord | None]:
    """Return what of a ledger is to be kept anew."""
    changes: dict[str, CapacityRecord | None] = {
        key: CapacityRecord(entry.left, entry.leaving, entry.moving, _plain(entry))
        for key, entry in after.entries.items()
        if before.entries.get(key) != entry
    }
    changes |= dict.fromkeys(before.entries.keys() - after.entries.keys())
    if before.account != after.account:
        changes[ACCOUNT] = CapacityRecord(body=codec.to_plain(after.account))
    return changes


def _plain(entry: Entry) -> dict[str, Any]:
    """Return a purchase as it is kept: what pools cost is kept once, with the account."""
    plain: dict[str, Any] = codec.to_plain(entry)
    for machine in plain["machines"]:
        del machine["later"]
    return plain


def for_the_next_run(records: CapacityRecords) -> CapacityRecords:
    """Return what a service has bought as its next run begins: a deadline counts from anew."""
    kept = records.get(ACCOUNT)
    if kept is None:
        return records
    account = replace(codec.from_plain(Account, kept.body, ACCOUNT), began_at=0.0)
    return {**records, ACCOUNT: replace(kept, body=codec.to_plain(account))}
