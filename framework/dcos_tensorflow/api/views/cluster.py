"""The ClusterSpec of the current epoch and each task's part of it: ``/v1/cluster``.

The same functions render it here and into a launch, so the answer is the task's own. The
addresses of tasks are at ``/v1/endpoints``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.api.views.pods import wanted_names
from dcos_tensorflow.core.cluster import addresses, rendering
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import DATA_ROLES, GANG_ROLES, TaskRole, split_task_name

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas

#: With more members than this a task's TF_CONFIG is shown at ``/v1/cluster/<task>`` only: each
#: holds every address, so all of them together grow with the square.
FULL_UP_TO = 100


def cluster(state: ServiceState) -> schemas.Cluster:
    """Return epoch, addresses and per task what it is told; epoch 0 before the first placement."""
    spec = state.epoch or ClusterSpec(epoch=0)
    full = len(spec.addresses) <= FULL_UP_TO
    return {
        "epoch": spec.epoch,
        "strategy": str(rendering.rendered_strategy(state.spec)),
        "addressing": str(state.spec.addressing),
        "addresses": dict(spec.addresses),
        "complete": full,
        "tasks": {name: _task(state, spec, name, full) for name in wanted_names(state)}
        if state.epoch is not None
        else {},
    }


def cluster_of_task(state: ServiceState, name: str) -> schemas.TaskOfCluster:
    """Return what one task is told of the current epoch. Raises ElementNotFound."""
    gang = state.gang_wanting(name)
    if gang is None or gang.epoch is None or name not in wanted_names(state):
        raise ElementNotFound(name)
    return {"epoch": gang.epoch.epoch, **_task(state, gang.epoch, name, True)}


def _task(state: ServiceState, spec: ClusterSpec, name: str, full: bool) -> schemas.TaskInCluster:
    record = state.tasks.get(name)
    found: schemas.TaskInCluster = {
        "address": spec.addresses.get(name),
        "launched_with_epoch": record.epoch if record is not None else None,
    }
    if not full:
        return found
    index, count = rendering.data_shard(spec, name)
    # A task that joined the options later is in no epoch yet, and is told nothing.
    member = split_task_name(name)[0] in GANG_ROLES
    told = not member or name in spec.addresses
    return {
        **found,
        "data_shard": {"index": index, "count": count},
        "tf_config": rendering.tf_config(state.spec, spec, name) if told else None,
        "server": rendering.server_definition(state.spec, spec, name) if told else None,
    }


#: Roles that listen: at TensorFlow's gRPC port, or TensorBoard's HTTP port. An evaluator does not.
LISTENING_ROLES = frozenset({*GANG_ROLES, TaskRole.TENSORBOARD, *DATA_ROLES})


def endpoint_names(state: ServiceState) -> list[str]:
    """Return the names of all endpoints: the roles that listen."""
    return [
        str(role.role) for role in state.spec.roles_in_start_order if role.role in LISTENING_ROLES
    ]


def endpoint(state: ServiceState, name: str) -> schemas.Endpoint:
    """Return addresses and names of a role's live tasks, and its VIP. Raises ElementNotFound."""
    if name not in endpoint_names(state):
        raise ElementNotFound(name)
    records = sorted(
        (r for r in state.live_tasks if r.role == name and r.ports), key=lambda r: r.index
    )
    found: schemas.Endpoint = {
        "address": [addresses.reached_at(r) for r in records if r.address],
        "dns": [f"{addresses.dns_name(state.spec, r.name)}:{r.ports[0]}" for r in records],
    }
    virtual = addresses.vip(state.spec, TaskRole(name))
    if virtual is not None:
        found["vip"] = addresses.vip_name(state.spec, virtual)
    return found
