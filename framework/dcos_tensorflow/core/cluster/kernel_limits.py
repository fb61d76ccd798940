"""The sizes that a process can be started with, and the sizes that a service would need.

``options`` asks here when it reads options, so that it refuses by name a service that no machine
could start, before all tasks of a gang fail. Nothing is rendered a second way: a sample of the
service, with addresses as long as they get, goes through the same functions as a real launch, and
is measured. Pure.

The limits are the kernel's (execve(2)) and, for launches, those of Mesos: its containerizer hands
environment and command to its helper as the JSON of one variable,
``MESOS_CONTAINERIZER_LAUNCH_INFO`` (``src/slave/containerizer/mesos/containerizer.cpp``), so all of
a launch together must be shorter than one variable may be. Docker gets an argument for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.cluster.launch import launch_task
from dcos_tensorflow.core.cluster.output_places import Run
from dcos_tensorflow.core.cluster.rendering import address_of, tf_config
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.spec.service_spec import (
    Containerizer,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    split_task_name,
)
from dcos_tensorflow.records import dataclass

#: One argument, or one variable with its name, ``=`` and the final zero (MAX_ARG_STRLEN).
VARIABLE_BYTES = contract.VARIABLE_BYTES
#: What a launch may have of that: the agent adds its own environment, secrets and credentials.
LAUNCH_BYTES = VARIABLE_BYTES - 16_384
#: All arguments and variables of one process: a quarter of the stack's usual 8 MiB. The runner
#: makes TF_CONFIG and JOB_CONTEXT out of its spec, and Docker's client has an environment, too.
DOCKER_BYTES = 2 * 1024 * 1024 - 3 * VARIABLE_BYTES
#: No address is shorter than ``a:1``, with its quotes and comma: more members never fit.
_MOST_MEMBERS = VARIABLE_BYTES // 6


@dataclass(frozen=True)
class Launch:
    """How large the launch of a role's task would be, in bytes.

    ``size`` is all of it as it is handed on, ``most`` what it may be. ``variable`` is its largest
    variable, which alone has ``variable_size``. ``addresses`` is what the cluster takes of it.
    """

    size: int
    most: int
    variable: str
    variable_size: int
    addresses: int

    @property
    def fits(self) -> bool:
        """Say whether it can be passed to a process."""
        return self.size <= self.most and self.variable_size <= VARIABLE_BYTES


def members_that_fit(spec: ServiceSpec) -> int | None:
    """Return for how many members the longest TF_CONFIG has room; None where all have it.

    TF_CONFIG is one variable of the user's process, and nothing can be left out of it.
    """
    cluster = _sample(spec)
    longest = max(_tf_config_bytes(spec, cluster, task) for task in _last_ones(spec, cluster))
    if longest <= VARIABLE_BYTES:
        return None
    fitting = len(cluster.table)
    while longest > VARIABLE_BYTES:
        fitting -= 1
        # Two quotes and a comma.
        longest -= len(cluster.table[fitting].encode()) + 3
    return fitting


#: What its name adds to a launch is no more than that of the folder of a run on one machine.
_LONGEST_RUN = Run(number=10**6, instance="0" * 36, home="/" * 1000)


def launches(spec: ServiceSpec) -> Iterator[tuple[RoleSpec, Launch]]:
    """Yield what the launch of the last task of each role would ask for."""
    cluster = _sample(spec)
    for role in spec.roles:
        yield role, _launch(spec, role, cluster)


def _launch(spec: ServiceSpec, role: RoleSpec, cluster: ClusterSpec) -> Launch:
    name = max(cluster.names_by_role.get(role.role, (f"{role.role}-0",)), key=len)
    made = launch_task(spec, LaunchSettings(), "", _record(role, name), cluster, run=_LONGEST_RUN)
    sizes = {name: len(value.encode()) + len(name) + 2 for name, value in made.env.items()}
    variable = max(sizes, key=lambda name: sizes[name])
    by_docker = role.container is not None and role.container.containerizer is Containerizer.DOCKER
    variables = [{"name": n, "type": "VALUE", "value": v} for n, v in made.env.items()]
    # Each pointer to a variable counts, too.
    as_arguments = sum(sizes.values()) + 8 * len(sizes) + len(made.command.encode())
    as_json = len(json.dumps({"command": made.command, "environment": variables}))
    return Launch(
        size=as_arguments if by_docker else as_json,
        most=DOCKER_BYTES if by_docker else LAUNCH_BYTES,
        variable=variable,
        variable_size=sizes[variable],
        addresses=sizes.get(contract.RUNNER_ADDRESSES_VARIABLE, 0),
    )


def _sample(spec: ServiceSpec) -> ClusterSpec:
    """Return a ClusterSpec of all members, but of no more than could ever fit."""
    found: dict[str, str] = {}
    for role in spec.roles:
        if role.role.is_in_gang:
            for index in range(min(role.count, _MOST_MEMBERS - len(found))):
                address = address_of(spec, role, index, *_sample_place(spec, role, len(found)))
                found[f"{role.role}-{index}"] = address
    return ClusterSpec(epoch=1, addresses=found)


def _sample_place(spec: ServiceSpec, role: RoleSpec, member: int) -> tuple[str, int]:
    """Return host and port of a member: as long as in IPv4, and no two alike."""
    # Knuth's multiplicative hash: what looks random cannot be packed better than what is.
    bits = (member + 1) * 2_654_435_761 % 2**32
    host = ".".join(str(100 + (bits >> shift) % 156) for shift in (0, 8, 16, 24))
    own = spec.has_own_addresses()
    return host, addresses.own_ports(role)[0] if own else 10_000 + (bits >> 7) % 55_536


def _last_ones(spec: ServiceSpec, cluster: ClusterSpec) -> Iterator[str]:
    """Yield a task of each role with the longest name: its index is in its TF_CONFIG."""
    yield from (names[-1] for names in cluster.names_by_role.values())
    if spec.role(TaskRole.EVALUATOR) is not None:
        yield f"{TaskRole.EVALUATOR}-0"


def _tf_config_bytes(spec: ServiceSpec, cluster: ClusterSpec, task: str) -> int:
    config = tf_config(spec, cluster, task)
    if config is None:
        return 0
    # As ``task.supervise.environment`` writes it.
    return len(f"{contract.TF_CONFIG}={json.dumps(config, separators=(',', ':'))}".encode()) + 1


def _record(role: RoleSpec, name: str) -> TaskRecord:
    """Return a record of whatever is as long as it gets."""
    return TaskRecord(
        name=name,
        role=role.role,
        index=split_task_name(name)[1],
        attempt=10**9,
        task_id="0" * 255,
        state=TaskState.LAUNCHING,
        epoch=10**9,
        agent_id="",
        hostname="",
        address="",
        ports=(65_535, 65_535),
        launched_at=0.0,
        changed_at=0.0,
    )
