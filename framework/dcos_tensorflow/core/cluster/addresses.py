"""The names and ports by which peers reach tasks: DNS, virtual addresses, containers of their own.

Used by ``core.cluster.rendering``, by the verbs that launch, and by the API's endpoints. Pure; the
address itself comes from an offer or a status update, never from here.

A task on a virtual network with an address of its own (``VirtualNetwork``) takes no port of its
agent: it listens at the port of its role, whatever else runs on that machine. Its address is known
only once it is launched, from Mesos' first status update. With ``cluster_spec.addressing``
``offer`` a gang is therefore launched with its processes held, and started when every address is
known; with ``dns`` the names are known before. Where the options name a network for peers
(``cluster_spec.peer_network``), each task runner finds its machine's address there, and the gang is
launched with its processes held, too.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.actions import Vip
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import Addressing, RoleSpec, ServiceSpec, TaskRole

#: Where TensorFlow listens in a container of its own when no port is configured.
DEFAULT_PORT = 2222
#: Where the task runner listens in a container with an address of its own.
RUNNER_PORT = 2218
#: DC/OS' domain of virtual addresses that only tasks of the cluster can use.
VIP_DOMAIN = "l4lb.thisdcos.directory"
_TENSORBOARD_PORT = 6006


def own_ports(role: RoleSpec) -> tuple[int, int]:
    """Return where a task listens that has an address of its own: TensorFlow, task runner."""
    port = role.port or DEFAULT_PORT
    return port, RUNNER_PORT if port != RUNNER_PORT else RUNNER_PORT + 1


def reached_at(record: TaskRecord) -> str:
    """Return the ``host:port`` of what an attempt serves; empty until its address is known."""
    host = f"[{record.address}]" if ":" in record.address else record.address
    return f"{host}:{record.ports[0]}" if host else ""


def are_learned(spec: ServiceSpec) -> bool:
    """Say whether a ClusterSpec needs addresses that only a launched container has or finds."""
    if spec.addressing is not Addressing.OFFER:
        return False
    return spec.has_own_addresses() or bool(spec.peer_network)


def not_known_yet(task: str) -> str:
    """Return what stands in a ClusterSpec for a host that is not known: a name that leads nowhere.

    The domain is reserved for that (RFC 6761).
    """
    return f"{task}.invalid"


def dns_name(spec: ServiceSpec, task: str) -> str:
    """Return the name that DC/OS gives a task: service names lose their slashes in it."""
    return f"{task}.{spec.name.replace('/', '')}.{spec.dns_domain}"


def vip(spec: ServiceSpec, role: TaskRole) -> Vip | None:
    """Return the virtual address of a role: TensorBoard's, as of the published package."""
    if role is not TaskRole.TENSORBOARD:
        return None
    found = spec.role(role)
    return Vip(str(role), (found.port if found is not None else None) or _TENSORBOARD_PORT)


def vip_name(spec: ServiceSpec, address: Vip) -> str:
    """Return the name and port by which other tasks of the cluster reach a virtual address."""
    return f"{address.prefix}.{spec.name.replace('/', '')}.{VIP_DOMAIN}:{address.port}"
