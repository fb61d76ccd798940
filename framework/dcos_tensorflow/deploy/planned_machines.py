"""Machines of options without a scheduler: the purchase for a job, and the end of them all.

Called by the command ``capacity``. Buys nothing.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.capacity.planner import GangDemand, Owned, plan
from dcos_tensorflow.capacity.provider import MachineState, ProviderError
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.core.model.service_state import ServiceState, Subscription
from dcos_tensorflow.core.offers.waiting import waiting
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, slot_name
from dcos_tensorflow.deploy.cluster_machines import read
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.scheduler.machines.machine_provider import provider_for
from dcos_tensorflow.scheduler.machines.observing import demand_of, owner_prefix
from dcos_tensorflow.scheduler.machines.standing_machines import so_many

#: So many slots are planned for where all that find a place are wanted.
_SLOTS = 16


def planned_machines(options: Path, machines: int | None = None) -> dict[str, Any]:
    """Return what would be bought for the job of an options file that begins now, as JSON.

    With ``machines`` for a cluster that is to have so many. Raises CliError.
    """
    if machines is None:
        spec, section = _asked_for(options)
        name, demands = spec.name, _demands(spec)
    else:
        name, section = read(options)
        demands = [so_many(machines, section)]
    try:
        pools = tuple(provider_for(section, f"{owner_prefix(name)}planned").pools())
    except ProviderError as error:
        raise CliError(f"The machines for sale are not known: {sentence(str(error))}") from error
    found = plan(demands, Owned(), pools, section)
    return {
        "wanted": [
            {
                "count": each.count,
                "instance_type": each.pool.instance_type,
                "zone": each.pool.zone,
                "market": str(each.pool.market),
                "price_per_hour": each.pool.price,
                "gangs": list(each.gangs),
            }
            for each in found.wanted
        ],
        "waits": dict(found.waits),
        "price_per_hour": float(sum(each.price for each in found.wanted)),
    }


def _demands(spec: ServiceSpec) -> list[GangDemand]:
    """Return what waits when the job begins: its gang, or each slot of a sweep or batch."""
    now = time.time()
    alone = ServiceState.of_one_gang(replace(spec, units=None, workload=None), "planned")
    subscription = Subscription(registered=True, registered_at=now)
    found = waiting(replace(alone, subscription=subscription), now, 0)
    gangs = [demand_of(each, now) for each in found]
    if spec.units is None:
        return gangs
    slots = range(spec.units.parallelism or _SLOTS)
    return [replace(each, gang=slot_name(number)) for number in slots for each in gangs]


def end_all_machines(options: Path) -> list[str]:
    """End every machine of the service that these options name; return their ids.

    Raises CliError.
    """
    spec, section = _asked_for(options)
    try:
        provider = provider_for(section, owner_prefix(spec.name))
        there = (MachineState.STARTING, MachineState.RUNNING)
        found = sorted(m.machine_id for m in provider.machines() if m.state in there)
        provider.give_back(found)
    except ProviderError as error:
        raise CliError(f"The machines cannot be ended: {sentence(str(error))}") from error
    return found


def _asked_for(options: Path) -> tuple[ServiceSpec, CapacitySpec]:
    spec = service_spec(load(options))
    if spec.capacity is None:
        raise CliError(f"{options} has no section capacity: no machines are bought for its job.")
    return spec, spec.capacity
