"""The ledger of machines as the core keeps it: records in, a ledger out, and back. Pure.

Used by ``scheduler.capacity``, by ``beginning``, and by the API for what it shows.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.capacity.ledger import Account, Entry, Ledger
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.capacity import CapacityRecord, CapacityRecords

#: Where what is true of all purchases is; a purchase is at its id.
ACCOUNT = "account"


def ledger_of(records: CapacityRecords) -> Ledger:
    """Return the ledger that is kept. Raises ``codec.RecordError``."""
    account, entries = Account(), {}
    for key, record in records.items():
        if key == ACCOUNT:
            account = codec.from_plain(Account, record.body, key)
        else:
            entries[key] = codec.from_plain(Entry, record.body, key)
    return Ledger(account, entries)


def changes_between(before: Ledger, after: Ledger) -> dict[str, CapacityRecord | None]:
    """Return what of a ledger is to be kept anew."""
    changes: dict[str, CapacityRecord | None] = {
        key: CapacityRecord(entry.left, entry.leaving, entry.moving, codec.to_plain(entry))
        for key, entry in after.entries.items()
        if before.entries.get(key) != entry
    }
    changes |= dict.fromkeys(before.entries.keys() - after.entries.keys())
    if before.account != after.account:
        changes[ACCOUNT] = CapacityRecord(body=codec.to_plain(after.account))
    return changes


def for_the_next_run(records: CapacityRecords) -> CapacityRecords:
    """Return what a service has bought as its next run begins: a deadline counts from anew."""
    kept = records.get(ACCOUNT)
    if kept is None:
        return records
    account = replace(codec.from_plain(Account, kept.body, ACCOUNT), began_at=0.0)
    return {**records, ACCOUNT: replace(kept, body=codec.to_plain(account))}
