"""The life of one bought machine, as its ledger is told of it."""

from dataclasses import replace

from dcos_tensorflow.capacity import mirror
from dcos_tensorflow.capacity.ledger import Entry, Ledger
from dcos_tensorflow.capacity.losses import Pause, losses_seen
from dcos_tensorflow.capacity.mirror import Agents, PurchaseAnswer
from dcos_tensorflow.capacity.provider import Bought, Machine, MachineState
from unit.capacity.simulated_market import KEPT, OWNER, SPOT

#: By our clock; the provider's is an hour and some behind.
WRITTEN = 1_700_000_000.0
BEHIND = 4000.0
STARTED = WRITTEN - BEHIND + 2
NEW = Machine(
    "i-0",
    "p-1",
    OWNER,
    SPOT.instance_type,
    SPOT.zone,
    SPOT.market,
    MachineState.RUNNING,
    started_at=STARTED,
    hostnames=("host-0",),
    told_at=STARTED,
)
TAKEN = replace(NEW, state=MachineState.ENDED, reason="gone", taken_back=True)
HERE = Agents(frozenset({"host-0"}), frozenset({"host-0"}))
GONE = Agents()


def bought(machine: Machine = NEW) -> Ledger:
    """The ledger two seconds after its only machine was ordered."""
    entry = Entry("p-1", (SPOT,), 1, ("main",), WRITTEN, (KEPT.price,))
    answer = PurchaseAnswer("p-1", Bought((machine,)))
    return mirror.answered(Ledger().put(entry), answer, WRITTEN + 2)


def heard(ledger: Ledger, machine: Machine | None, after: float) -> Ledger:
    """Let the provider list a machine, or none, so long after the purchase."""
    machines = [replace(machine, told_at=WRITTEN - BEHIND + after)] if machine is not None else []
    return mirror.listed(ledger, machines, OWNER, WRITTEN + after)[0]


def seen(ledger: Ledger, agents: Agents, after: float, pause: Pause | None = None) -> Ledger:
    ledger = mirror.agents_seen(ledger, agents, WRITTEN + after)
    return losses_seen(ledger, {"main": pause} if pause else {}, WRITTEN + after)
