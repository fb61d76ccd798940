"""The cost of interruptions: the time for which a gang did not train after a machine went. Pure.

Called by ``reconcile`` with the core's facts of gangs. A pause is counted to the machine that
went and to none that waited; that of a planned change is counted to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.capacity.ledger import Ledger, OwnedMachine
from dcos_tensorflow.records import dataclass

#: The core may have stopped a gang, and set it going again, so long before a loss is seen here; a
#: look comes every few seconds.
SEEN_LATER_SECONDS = 10.0
#: A pause that begins so long after a machine's end has another cause: Mesos gives a lost agent up
#: after 75 s.
UNRELATED_SECONDS = 120.0


@dataclass(frozen=True)
class Pause:
    """When a gang last did not train; unix seconds, by our clock."""

    since: float
    #: None while it does not train.
    until: float | None


def losses_seen(ledger: Ledger, pauses: Mapping[str, Pause], now: float) -> Ledger:
    """Return the ledger with what is lost of machines that went, or are to go, unasked."""
    for entry in ledger.entries.values():
        of_entry = [pauses[gang] for gang in entry.gangs if gang in pauses]
        machines = tuple(_with_loss(machine, of_entry, now) for machine in entry.machines)
        if machines != entry.machines:
            ledger = ledger.put(replace(entry, machines=machines))
    return ledger


def _with_loss(machine: OwnedMachine, pauses: Iterable[Pause], now: float) -> OwnedMachine:
    if not machine.interrupted_at or machine.lost_until:
        return machine
    for pause in pauses:
        if _is_because_of(pause, machine, now):
            since = machine.lost_since or pause.since
            return replace(machine, lost_since=since, lost_until=pause.until or 0.0)
    return machine


def _is_because_of(pause: Pause, machine: OwnedMachine, now: float) -> bool:
    if machine.lost_since:
        return pause.since >= machine.lost_since
    before = machine.interrupted_at - SEEN_LATER_SECONDS
    was_over = pause.until is not None and pause.until < before
    return not was_over and pause.since <= (machine.ended_at or now) + UNRELATED_SECONDS
