"""Which machines go: those that are idle, never came, or whose job is over.

Called by ``reconcile`` once a round. Pure. A machine is emptied before it is ended: in between the
core has heard of it, and places nothing there any more.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.capacity import mirror
from dcos_tensorflow.capacity.exchange import to_be_left
from dcos_tensorflow.capacity.ledger import (
    HOUR,
    Backoff,
    Ledger,
    OwnedMachine,
    pool_key,
)
from dcos_tensorflow.capacity.planner import Plan
from dcos_tensorflow.capacity.sight import Rules, Sight

#: A machine that does not go is asked back again after so long (seconds).
ASK_BACK_SECONDS = 60.0
#: Where an hour is paid whole, an idle machine goes when less than this is left of it (seconds).
HOUR_MARGIN_SECONDS = 300.0
#: By these words a machine left that nobody may be put on again.
_FOR_GOOD = "its agent did not register"


def with_leavers(
    ledger: Ledger, sight: Sight, rules: Rules, *, kept: Plan | None, goes_over: bool = False
) -> tuple[Ledger, list[str]]:
    """Let machines leave that are of no use, and those stay on which a task came in between.

    While a gang ``goes_over`` to other machines, none is idle for nothing.
    """
    told: list[str] = []
    served = goes_over or _is_served(sight, kept)
    left = to_be_left(ledger, sight.fleet, goes_over=goes_over)
    for entry, machine in tuple(ledger.machines()):
        why = _why_leaving(machine, sight, rules, served=served)
        seen = machine
        if not why and machine.machine_id in left:
            why = left[machine.machine_id]
            seen = replace(machine.leave(sight.now, why), moves=True)
            told.append(f"{machine.machine_id} is to be left: {why}")
        elif why and not machine.leaving_since:
            seen = machine.leave(sight.now, why)
            told.append(f"{machine.machine_id} is to go: {why}")
            if why == _FOR_GOOD:
                pools, key = dict(ledger.account.pools), pool_key(entry.pool_of(machine))
                known = pools.get(key, Backoff())
                pools[key] = known.failed(sight.now, f"{why} in time", *mirror.POOL_BACKOFF)
                ledger = ledger.with_account(replace(ledger.account, pools=pools))
        elif not (why or machine.moves) and machine.busy_since and not machine.asked_back_at:
            # A task was put there before it was known that it is to go.
            seen = replace(machine, leaving_since=0.0, why="") if machine.leaving_since else machine
        if seen is not machine:
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(seen))
    return ledger, told


def _is_served(sight: Sight, planned: Plan | None) -> bool:
    """Say whether somebody waits whose places are there, or will be: nobody is idle for nothing."""
    if sight.over_since:
        return False
    waits = {gang for gang, _ in planned.waits} if planned is not None else set()
    return any(demand.gang not in waits for demand in sight.demands)


def _why_leaving(machine: OwnedMachine, sight: Sight, rules: Rules, *, served: bool) -> str:
    """Return why a machine is of no use; empty while it is."""
    now = sight.now
    if machine.is_ending:
        return ""
    if sight.over_since:
        waited = now - sight.over_since >= rules.ending_seconds
        return "the job is over" if waited or not machine.busy_since else ""
    if not machine.is_registered:
        late = now - machine.awaited_since >= rules.register_seconds
        return _FOR_GOOD if late else ""
    if machine.busy_since or served:
        return ""
    if sight.release:
        return "it is idle, and was asked back"
    idle = now - machine.idle_since
    if idle < rules.idle_seconds:
        return ""
    into_hour = (now - machine.counted_at) % HOUR
    if rules.by_the_hour and into_hour < HOUR - HOUR_MARGIN_SECONDS:
        return ""
    return f"no task ran on it for {idle:.0f} s"


def asked_back(
    ledger: Ledger, before: Ledger, sight: Sight, rules: Rules
) -> tuple[Ledger, tuple[str, ...]]:
    """Return the machines to end: those that were to be emptied, as is known and kept, and are."""
    going: list[str] = []
    if ledger.account.provider.holds(sight.now):
        return ledger, ()
    to_be_emptied = {m.machine_id for _, m in before.machines() if m.leaving_since}
    for entry, machine in tuple(ledger.machines()):
        late = sight.over_since and sight.now - sight.over_since >= rules.ending_seconds
        is_empty = not machine.busy_since or late
        again = sight.now - machine.asked_back_at >= ASK_BACK_SECONDS
        named = machine.machine_id in to_be_emptied
        if named and machine.leaving_since and is_empty and again and not machine.is_ending:
            going.append(machine.machine_id)
            asked = replace(machine, asked_back_at=sight.now)
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(asked))
    return ledger, tuple(going)
