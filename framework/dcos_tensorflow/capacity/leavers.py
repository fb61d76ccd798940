"""Which machines go: those that are idle, never came, or whose job is over.

Called by ``reconcile`` once a round. Pure. A machine is emptied before it is ended: in between the
core has heard of it, and places nothing there any more, and the master has, and offers it to
no framework. Where the master may not be told that, the core's word has to do.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.capacity import mirror
from dcos_tensorflow.capacity.exchange import to_be_left
from dcos_tensorflow.capacity.ledger import HOUR, Ledger, OwnedMachine, ProviderBackoff, pool_key
from dcos_tensorflow.capacity.observation import Observation, Rules
from dcos_tensorflow.capacity.planner import PurchasePlan
from dcos_tensorflow.core.spec.capacity_spec import Billing

#: A machine that does not go is asked back again after so long (seconds).
ASK_BACK_SECONDS = 60.0
#: A master that takes the order, and does not show that it has, is waited for so long (seconds).
CLOSING_SECONDS = 60.0
#: Where an hour is paid whole, an idle machine goes when less than this is left of it (seconds).
HOUR_MARGIN_SECONDS = 300.0
#: What is left of a spent budget pays for so long when the last machines go (seconds).
LAST_SECONDS = 60.0
#: By these words a machine leaves that is no good: others like it may be, too.
_NEVER_CAME = "its agent did not register in time"
_TWICE = "two agents have registered for it"


def with_leavers(
    ledger: Ledger,
    sight: Observation,
    rules: Rules,
    *,
    kept: PurchasePlan | None,
    goes_over: bool = False,
) -> tuple[Ledger, list[str]]:
    """Let machines leave that are of no use, and those stay on which a task came in between.

    While a gang ``goes_over`` to other machines, none is idle for nothing.
    """
    told: list[str] = []
    served = goes_over or _is_served(sight, kept)
    at_once = _is_late(ledger, sight, rules)
    left = to_be_left(ledger, sight.fleet, goes_over=goes_over)
    for entry, machine in tuple(ledger.machines()):
        why = _why_leaving(machine, sight, rules, served=served, at_once=at_once)
        seen = machine
        if not why and (why := left.get(machine.machine_id) or _why_left(machine, sight)):
            seen = replace(machine.leave(sight.now, why), moves=True)
            told.append(f"{machine.machine_id} is to be left: {why}")
        elif why and not machine.leaving_since:
            seen = machine.leave(sight.now, why)
            told.append(f"{machine.machine_id} is to go: {why}")
        elif not (why or machine.moves) and machine.busy_since and not machine.asked_back_at:
            # A task was put there before it was known that it is to go.
            seen = replace(machine, leaving_since=0.0, why="") if machine.leaving_since else machine
        if seen.leaving_since and not machine.leaving_since and why in (_NEVER_CAME, _TWICE):
            pools, key = dict(ledger.account.pools), pool_key(entry.pool_of(machine))
            known = pools.get(key, ProviderBackoff())
            pools[key] = known.failed(sight.now, why, *mirror.POOL_BACKOFF)
            ledger = ledger.with_account(replace(ledger.account, pools=pools))
        if seen is not machine:
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(seen))
    return ledger, told


def _why_left(machine: OwnedMachine, sight: Observation) -> str:
    """Return why the tasks on a machine have to go on without it; empty when they need not."""
    twice = sight.agents is not None and not machine.names.isdisjoint(sight.agents.twice)
    return _TWICE if twice and machine.is_useful else ""


def _is_served(sight: Observation, planned: PurchasePlan | None) -> bool:
    """Say whether a gang waits whose places are there, or will be: no machine is idle in vain."""
    if sight.over_since:
        return False
    waits = {gang for gang, _ in planned.waits} if planned is not None else set()
    return any(demand.gang not in waits for demand in sight.demands)


def _is_late(ledger: Ledger, sight: Observation, rules: Rules) -> bool:
    """Say whether machines go with what is on them: all is over, and they are waited for no more.

    Where only the budget is spent they stay while what is left of it pays.
    """
    if not sight.over_since:
        return False
    budget = rules.spec.budget
    if sight.is_spent and budget is not None:
        return ledger.spent(sight.now + LAST_SECONDS, rules.tariff) >= budget
    return sight.now - sight.over_since >= rules.ending_seconds


def _why_leaving(
    machine: OwnedMachine, sight: Observation, rules: Rules, *, served: bool, at_once: bool
) -> str:
    """Return why a machine is of no use; empty while it is."""
    now = sight.now
    if machine.is_ending:
        return ""
    if sight.over_since:
        why = "the budget is spent" if sight.is_spent else "the job is over"
        return why if at_once or not machine.busy_since else ""
    if not machine.is_registered:
        late = now - machine.awaited_since >= rules.spec.register_seconds
        return _NEVER_CAME if late else ""
    if machine.busy_since or served:
        return ""
    if sight.release:
        return "it is idle, and was asked back"
    idle = now - machine.idle_since
    if idle < rules.spec.idle_seconds:
        return ""
    into_hour = (now - machine.counted_at) % HOUR
    if rules.spec.billing is Billing.HOUR and into_hour < HOUR - HOUR_MARGIN_SECONDS:
        return ""
    return f"no task ran on it for {idle:.0f} s"


def closed(
    ledger: Ledger, sight: Observation
) -> tuple[Ledger, tuple[frozenset[str], ...], tuple[frozenset[str], ...]]:
    """Return the names of machines to be offered to no framework, and of those that are again.

    They are those that go, by our will or by their provider's; their tasks are not touched.
    """
    closing: list[frozenset[str]] = []
    opening: list[frozenset[str]] = []
    agents = sight.agents
    if agents is None or not agents.can_be_closed:
        return ledger, (), ()
    for entry, machine in tuple(ledger.machines()):
        names = machine.names
        goes = bool(machine.leaving_since) or not names.isdisjoint(agents.noticed)
        is_closed = not names.isdisjoint(agents.closed)
        if machine.is_registered and goes and not is_closed:
            closing.append(names)
        elif machine.is_registered and not goes and is_closed and machine.is_closed:
            opening.append(names)
        wanted = goes or (machine.is_closed and is_closed)
        if wanted != machine.is_closed:
            seen = replace(machine, is_closed=wanted)
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(seen))
    return ledger, tuple(closing), tuple(opening)


def _may_yet_be_offered(machine: OwnedMachine, sight: Observation) -> bool:
    """Say whether a task may be put on a machine before it ends, which can be helped."""
    agents = sight.agents
    if agents is None or not agents.can_be_closed or not machine.is_registered:
        return False
    waited = sight.now - machine.leaving_since >= CLOSING_SECONDS
    return not waited and machine.names.isdisjoint(agents.closed)


def asked_back(
    ledger: Ledger, before: Ledger, sight: Observation, rules: Rules
) -> tuple[Ledger, tuple[str, ...]]:
    """Return the machines to end: those that were to be emptied, as is known and kept, and are."""
    going: list[str] = []
    if ledger.account.provider.holds(sight.now):
        return ledger, ()
    late = _is_late(ledger, sight, rules)
    to_be_emptied = {m.machine_id for _, m in before.machines() if m.leaving_since}
    for entry, machine in tuple(ledger.machines()):
        is_empty = late or not (machine.busy_since or _may_yet_be_offered(machine, sight))
        again = sight.now - machine.asked_back_at >= ASK_BACK_SECONDS
        named = machine.machine_id in to_be_emptied
        if named and machine.leaving_since and is_empty and again and not machine.is_ending:
            going.append(machine.machine_id)
            asked = replace(machine, asked_back_at=sight.now)
            ledger = ledger.put(ledger.entries[entry.purchase_id].put(asked))
    return ledger, tuple(going)
