"""Where the tasks can be reached: ``/v1/endpoints`` and ``/v1/endpoints/<role>``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, TaskRole

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas

#: Roles that listen: TensorFlow's gRPC port, or TensorBoard's HTTP port. An evaluator does not.
LISTENING_ROLES = frozenset({*GANG_ROLES, TaskRole.TENSORBOARD})


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
        "address": [f"{_host(r)}:{r.ports[0]}" for r in records if r.address],
        "dns": [f"{addresses.dns_name(state.spec, r.name)}:{r.ports[0]}" for r in records],
    }
    virtual = addresses.vip(state.spec, TaskRole(name))
    if virtual is not None:
        found["vip"] = addresses.vip_name(state.spec, virtual)
    return found


def _host(record: TaskRecord) -> str:
    return f"[{record.address}]" if ":" in record.address else record.address
