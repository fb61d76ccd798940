"""The service as the core understands it: roles, strategy, rules, places.

Built once by ``options.load`` from the user's options; everything in it is already validated. Every
type here is frozen and serialisable (``core.kept.codec``), so a restarted scheduler works with
exactly the stored target configuration.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from urllib.parse import unquote

from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.launched_with import fingerprint_of
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.storage_spec import StorageSpec
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec
from dcos_tensorflow.core.spec.workload_spec import WorkloadSpec
from dcos_tensorflow.records import dataclass


class TaskRole(StrEnum):
    """A kind of task. (A Mesos role is always called ``mesos_role``.)"""

    CHIEF = "chief"
    WORKER = "worker"
    GPU_WORKER = "gpu-worker"
    PS = "ps"
    EVALUATOR = "evaluator"
    TENSORBOARD = "tensorboard"
    DATA_DISPATCHER = "data-dispatcher"
    DATA_WORKER = "data-worker"

    @property
    def is_in_gang(self) -> bool:
        """Say whether its tasks are placed all or none; the others are sidecars."""
        return self in GANG_ROLES

    @property
    def sees_cluster(self) -> bool:
        """Say whether its tasks are told of the ClusterSpec."""
        return self in GANG_ROLES or self is TaskRole.EVALUATOR

    @property
    def uses_data(self) -> bool:
        """Say whether its tasks read the job's data."""
        return self.runs_job or self is TaskRole.DATA_WORKER

    @property
    def runs_job(self) -> bool:
        """Say whether its tasks run the job's code beyond serving, and work with checkpoints."""
        return self in TRAINING_ROLES or self is TaskRole.EVALUATOR

    @property
    def serves_data(self) -> bool:
        """Say whether its tasks are those of the job's tf.data service."""
        return self in DATA_ROLES


#: Roles that train: members of the ClusterSpec, in the order of the job ``worker`` of a Server.
TRAINING_ROLES = (TaskRole.CHIEF, TaskRole.WORKER, TaskRole.GPU_WORKER)
#: Roles placed all or none. The others follow when the gang is placed and never hold it up.
GANG_ROLES = (*TRAINING_ROLES, TaskRole.PS)

#: Roles of the job's tf.data service: the dispatcher, and the workers that make its elements.
DATA_ROLES = (TaskRole.DATA_DISPATCHER, TaskRole.DATA_WORKER)

#: The order in which the tasks of a gang begin to train (design: start order), sidecars last.
START_ORDER = (
    TaskRole.PS,
    TaskRole.CHIEF,
    TaskRole.WORKER,
    TaskRole.GPU_WORKER,
    TaskRole.EVALUATOR,
    TaskRole.TENSORBOARD,
    *DATA_ROLES,
)

assert set(START_ORDER) == set(TaskRole)


class Strategy(StrEnum):
    """How the user's code is distributed; decides TF_CONFIG and which members restart together."""

    AUTO = "auto"
    PARAMETER_SERVER = "parameter_server"
    MULTI_WORKER = "multi_worker"
    BETWEEN_GRAPH = "between_graph"
    INDEPENDENT = "independent"


class OutcomePolicy(StrEnum):
    """Whose end is the job's end."""

    CHIEF = "chief"
    ALL_WORKERS = "all_workers"


class UpdateStrategy(StrEnum):
    """In which order tasks go over to a changed configuration (SDK: plan strategies)."""

    #: All at once: one restart of the job. What a gang that restarts as a whole wants.
    PARALLEL = "parallel"
    #: One task after the other, each when the one before runs.
    SERIAL = "serial"
    #: One task; the others in parallel once the operator has said go on.
    CANARY = "canary"


class Addressing(StrEnum):
    """How the members of a ClusterSpec are named: by the offer's IP and port, or by DNS."""

    OFFER = "offer"
    DNS = "dns"


class NetworkAddresses(StrEnum):
    """Where a task on a virtual network listens: at its container's address, or the agent's."""

    #: Each container has an address of its own; nothing is taken of the agent's ports.
    CONTAINER = "container"
    #: Ports of the agent are passed on to the container, each to the same number.
    HOST = "host"


@dataclass(frozen=True)
class VirtualNetwork:
    """A network that containers join by its name (CNI), with labels for its plugin."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    addresses: NetworkAddresses = NetworkAddresses.CONTAINER


class ConstraintOperator(StrEnum):
    """Marathon's placement operators (Marathon docs, "Constraints"; SDK docs, "Placement")."""

    UNIQUE = "UNIQUE"
    CLUSTER = "CLUSTER"
    GROUP_BY = "GROUP_BY"
    LIKE = "LIKE"
    UNLIKE = "UNLIKE"
    MAX_PER = "MAX_PER"
    IS = "IS"
    IS_NOT = "IS_NOT"


#: The field of a rule about agents' names.
HOSTNAME_FIELD = "hostname"
#: What a shape calls the files that secrets come from: one of that name beside the role's own.
SECRET_FIELD = "secret"
#: The field of a rule about agents' regions.
REGION_FIELD = "@region"
#: What a rule ends in, as users write it, that counts the tasks of all gangs of the service.
OF_SERVICE = "service"


@dataclass(frozen=True)
class PlacementConstraint:
    """One rule, e.g. ``rack:LIKE:r[12]``. ``field`` is hostname, @zone, @region or an attribute.

    A rule that counts tasks counts those of the gang, or with ``of_service`` those of all gangs.
    """

    field: str
    operator: ConstraintOperator
    value: str = ""
    of_service: bool = False


class Fitness(StrEnum):
    """Which agent suits a task best, of those that can hold it."""

    #: Few GPUs stay free beside those that are used, then as with ``PACK_CPU_MEM``.
    PACK_GPU = "pack_gpu"
    #: The one with the least cpus and memory left.
    PACK_CPU_MEM = "pack_cpu_mem"
    #: The one with the most cpus and memory left.
    SPREAD = "spread"
    #: By weights of its own.
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class PlacementSpec:
    """What is preferred among the agents that a task may go to; it never costs a task its place.

    ``cpus``, ``mem`` and ``gpus`` are the weights of ``WEIGHTED``: above 0 packs, below 0 spreads.
    """

    fitness: Fitness = Fitness.PACK_GPU
    cpus: float = 1.0
    mem: float = 1.0
    gpus: float = 1.0


#: What holds where the options do not say otherwise.
PACKED = PlacementSpec()


@dataclass(frozen=True)
class Uri:
    """A file that the Mesos fetcher brings into the sandbox (mesos.proto, CommandInfo.URI)."""

    value: str
    extract: bool = True
    executable: bool = False
    cache: bool = False
    output_file: str | None = None


class Containerizer(StrEnum):
    """What runs an image: the Mesos containerizer (default; GPUs need it) or Docker's engine."""

    MESOS = "mesos"
    DOCKER = "docker"


@dataclass(frozen=True)
class Container:
    """A container image and what runs it.

    ``host_directories`` of the agent are in the container too, under the same path, to be written.
    """

    image: str
    containerizer: Containerizer = Containerizer.MESOS
    force_pull: bool = False
    host_directories: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackagesSpec:
    """What is installed for a task beside what its Python has.

    ``requirements`` are the lines of a requirements file. ``tensorflow`` is the version that must
    be there, empty: whichever is. ``directory`` is a folder of each machine in which its tasks
    share what was installed; empty: each has its own, in its sandbox.
    """

    requirements: tuple[str, ...] = ()
    tensorflow: str = ""
    directory: str = ""

    @property
    def are_wanted(self) -> bool:
        """Say whether anything may have to be installed."""
        return bool(self.requirements or self.tensorflow)


@dataclass(frozen=True)
class LinkedData:
    """Input data that is a file or folder of the task's machine.

    ``source`` is absolute; ``path`` is where it is found below the sandbox, a file by its own name
    in there. A relative ``source`` lies beside the options, and is never linked as it is.
    """

    source: str
    path: str


#: What the units of some slots have of their roles in place of what the options say: role, name of
#: the option (count, or of a resource) and value each, sorted, or the ``hostname`` of the machine
#: that alone will do. Empty: what the options say.
Shape = tuple[tuple[TaskRole, str, float | str], ...]


@dataclass(frozen=True)
class RoleSpec:
    """All tasks of one role.

    ``port`` is the configured gRPC port: used as it is with DNS addressing, preferred when offered
    otherwise. ``python`` is an interpreter or a virtual environment; empty means ``python3``.
    ``container`` is None on bare metal. ``min_count`` is how few of them the job goes on with when
    the others find no place; None means all are needed. ``retry_limit`` is how many charged
    failures tasks of this role may have within the window; None means the job's limit. ``volume``
    is the persistent volume that each of them has, which is then all of its disk.
    ``user`` empty means that of the service, ``shm_size`` (MB) 0 what the agent gives.
    ``sandbox_env`` are variables that name something in the sandbox, as paths below it.
    ``packages`` is what is installed for them. ``outlives_job``: they run on when the job has
    ended, until they are stopped. ``data_service``: they know of the job's tf.data service.
    """

    role: TaskRole
    count: int
    resources: Resources
    port: int | None = None
    constraints: tuple[PlacementConstraint, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    python: str = ""
    disk_type: str = "ROOT"
    min_count: int | None = None
    retry_limit: int | None = None
    outlives_job: bool = False
    volume: VolumeSpec | None = None
    user: str = ""
    secrets: tuple[TaskSecret, ...] = ()
    rlimits: tuple[ResourceLimit, ...] = ()
    shm_size: int = 0
    sandbox_env: Mapping[str, str] = field(default_factory=dict)
    packages: PackagesSpec = PackagesSpec()
    data_service: bool = False

    def shaped(self, shape: Shape) -> RoleSpec:
        """Return the role with what a shape says of it."""
        mine = {name: value for role, name, value in shape if role is self.role}
        if not mine:
            return self
        rules = self.constraints
        if host := mine.pop(HOSTNAME_FIELD, ""):
            is_there = PlacementConstraint(HOSTNAME_FIELD, ConstraintOperator.IS, str(host))
            rules = (*rules, is_there)
        secrets = self.secrets
        if file := mine.pop(SECRET_FIELD, ""):
            places = [one.source.rpartition("/")[0] for one in secrets]
            found = zip(secrets, places, strict=True)
            secrets = tuple(replace(one, source=f"{place}/{file}") for one, place in found)
        said = {name: float(value) for name, value in mine.items()}
        count = int(said.pop("count", self.count))
        gpus = int(said.pop("gpus", self.resources.gpus))
        resources = replace(self.resources, gpus=gpus, **said)
        return replace(self, count=count, resources=resources, constraints=rules, secrets=secrets)

    def task_names(self) -> tuple[str, ...]:
        """Return the names of this role's tasks, by index."""
        return tuple(f"{self.role}-{index}" for index in range(self.count))

    def names_region(self) -> bool:
        """Say whether a rule of its own says in which regions its tasks may be."""
        return any(rule.field == REGION_FIELD for rule in self.constraints)


@dataclass(frozen=True)
class JobSpec:
    """The user's code and how it is called (docs/job-contract.md).

    ``uri`` is what the fetcher brings, ``path`` is put on PYTHONPATH below the sandbox, ``name``
    is a module, with ``arguments`` of its own, or ``command`` a command line. ``checkpoint_dir`` is
    a directory that all members share, or empty: each task's own sandbox. ``links`` is input data
    of the tasks' machines. ``sha256`` is the sum in hexadecimal that what the fetcher brings must
    have, empty for any.
    """

    uri: str = ""
    path: str = ""
    name: str = ""
    command: str = ""
    contract: str = "auto"
    context: str = "{}"
    tf1_compat: bool = False
    legacy_keras: bool = False
    #: The code is of one task, and trains on all workers together.
    under_strategy: bool = False
    shared_filesystem: str = ""
    checkpoint_dir: str = ""
    extra_uris: tuple[Uri, ...] = ()
    arguments: tuple[str, ...] = ()
    #: Whether what is in ``context`` reaches a script as arguments: auto, true or false.
    parameters_as_arguments: str = "auto"
    links: tuple[LinkedData, ...] = ()
    sha256: str = ""

    @property
    def file_name(self) -> str:
        """Return what the file that ``uri`` names is called; empty where it names none."""
        _, scheme, rest = self.uri.partition("://")
        path = unquote(rest.partition("?")[0].partition("#")[0]) if scheme else self.uri
        # Of an address its host is no file.
        name = path.rpartition("/")[2] if "/" in path or not scheme else ""
        return "" if name in (".", "..") else name


@dataclass(frozen=True)
class GangSpec:
    """How a gang is put together. Seconds.

    No offer is held longer than ``hold_seconds``; a gang that could not be placed by then hands
    everything back and waits ``retry_seconds`` (doubling up to ``max_retry_seconds``).
    ``start_seconds`` is how long all members may take to run once launched. A member that finds
    no place within ``wait_seconds`` is done without where ``min_count`` allows it; where it does
    not, the places of the others are given back and the whole gang waits. One that was done without
    joins again at the earliest ``grow_seconds`` after the last restart: joining costs one.
    """

    hold_seconds: float = 10.0
    retry_seconds: float = 5.0
    max_retry_seconds: float = 60.0
    start_seconds: float = 600.0
    wait_seconds: float = 300.0
    grow_seconds: float = 300.0


@dataclass(frozen=True)
class RetrySpec:
    """How often a failed job is started again.

    ``limit`` charged incidents within ``window_seconds``, of which at most ``out_of_memory_limit``
    may be tasks that ran out of memory: more tries do not give them more. Incidents from
    outside the job cost nothing, but ``fruitless_limit`` of them in a row without any progress in
    between end the job too: what never gets anywhere is not healed by trying. So does the same
    exception at the same line ``same_failure_limit`` times without a step of progress between.
    """

    limit: int = 3
    window_seconds: float = 3600.0
    initial_backoff_seconds: float = 2.0
    backoff_factor: float = 2.0
    max_backoff_seconds: float = 120.0
    out_of_memory_limit: int = 1
    fruitless_limit: int = 20
    same_failure_limit: int = 2


class UnitKind(StrEnum):
    """What a unit of work is."""

    #: One training of a sweep: another configuration each.
    TRIAL = "trial"
    #: One part of a batch: the same work on other data each.
    SHARD = "shard"
    #: The scheduler of a job of a queue: it is there as long as its job is.
    SCHEDULER = "scheduler"


@dataclass(frozen=True)
class UnitsSpec:
    """How units of work are taken by slots: gangs of the service's roles that outlive a unit.

    ``parallelism`` is how many slots there are at most, 0: as many as there is room for.
    A unit that has failed ``max_attempts`` times by its own fault has failed. ``max_share`` is how
    much of what the cluster offers the slots may have together (0 to 1). ``objective`` is the
    number that units are for: the work of those that never tell it is for nothing. Empty: none.
    ``are_the_rest``: other units of the same work may have been done before.
    """

    kind: UnitKind
    parallelism: int = 0
    max_attempts: int = 3
    max_share: float = 1.0
    objective: str = ""
    are_the_rest: bool = False

    @property
    def is_one_work(self) -> bool:
        """Say whether the units are parts of one work, which ends, and may fail, as a whole.

        Schedulers come one by one as others say, and none tells anything of the next.
        """
        return self.kind is not UnitKind.SCHEDULER


@dataclass(frozen=True)
class ServiceSpec:
    """One service: a name, its roles, its job, and the rules it runs by.

    A task whose known step has not moved for ``stall_seconds`` has failed (0: never), one whose
    process is frozen for ``freeze_seconds`` too, and so has a gang in which no task does anything
    for ``idle_seconds`` (0: never). A task on an agent that does not answer is replaced
    ``replace_after_seconds`` after Mesos said so. Tasks leave an agent ``maintenance_lead_seconds``
    before its maintenance begins, and, with ``leave_on_rebalance``, one that may be taken back as
    soon as there is another place. An uninstall gives up what does not answer after
    ``uninstall_give_up_seconds``. With ``units`` the roles are those of each slot, and ``workload``
    says what the units are; without, the service is one job. With ``capacity`` machines are bought
    for what finds no place; ``tracking`` is told of runs.
    """

    name: str
    roles: tuple[RoleSpec, ...]
    job: JobSpec = JobSpec()
    user: str = ""
    mesos_role: str = "*"
    principal: str = ""
    strategy: Strategy = Strategy.AUTO
    outcome: OutcomePolicy = OutcomePolicy.CHIEF
    outcome_grace_seconds: float = 10.0
    kill_grace_seconds: float = 10.0
    addressing: Addressing = Addressing.OFFER
    dns_domain: str = "autoip.dcos.thisdcos.directory"
    peer_network: str = ""
    gang: GangSpec = GangSpec()
    retry: RetrySpec = RetrySpec()
    stall_seconds: float = 300.0
    freeze_seconds: float = 10.0
    idle_seconds: float = 1800.0
    replace_after_seconds: float = 0.0
    maintenance_lead_seconds: float = 300.0
    leave_on_rebalance: bool = False
    update_strategy: UpdateStrategy = UpdateStrategy.PARALLEL
    uninstall_give_up_seconds: float = 900.0
    region: str = ""
    failover_timeout_seconds: float = 1209600.0
    log_max_bytes: int = 20_000_000
    log_keep: int = 2
    storage: StorageSpec = StorageSpec()
    network: VirtualNetwork | None = None
    units: UnitsSpec | None = None
    workload: WorkloadSpec | None = None
    placement: PlacementSpec = PACKED
    capacity: CapacitySpec | None = None
    tracking: TrackingSpec | None = None

    @functools.cached_property
    def remembered(self) -> dict[str, str]:
        """Hold what others work out of this spec once (its configuration's id)."""
        return {}

    @functools.cached_property
    def gang_members(self) -> tuple[str, ...]:
        """Return the names of all tasks that belong into the ClusterSpec, in the order of roles."""
        return tuple(n for r in self.roles if r.role in GANG_ROLES for n in r.task_names())

    @functools.cached_property
    def wanted_names(self) -> frozenset[str]:
        """Return the names of all tasks as a set."""
        return frozenset(self.task_names())

    @functools.cached_property
    def decider(self) -> str:
        """Return the task whose success is the job's: chief-0, else worker-0, else gpu-worker-0.

        Empty when nothing trains: such options are refused (``cluster_spec.illegal_mix``).
        """
        training = (role for role in TRAINING_ROLES if self.role(role) is not None)
        return next((f"{role}-0" for role in training), "")

    @functools.cached_property
    def roles_in_start_order(self) -> tuple[RoleSpec, ...]:
        """Return the roles that have tasks, in the order of ``START_ORDER``."""
        wanted = (role for role in self.roles if role.count > 0)
        return tuple(sorted(wanted, key=lambda role: START_ORDER.index(role.role)))

    def role(self, role: TaskRole) -> RoleSpec | None:
        """Return the spec of ``role``, or None when no task of it is wanted."""
        return next((r for r in self.roles if r.role is role and r.count > 0), None)

    def task_names(self) -> tuple[str, ...]:
        """Return the names of all tasks, in the order of ``roles``."""
        return tuple(name for role in self.roles for name in role.task_names())

    def shaped(self, shape: Shape) -> ServiceSpec:
        """Return what a slot of this shape runs with; the service's roles are of the largest."""
        if not shape:
            return self
        if shape not in self._shaped:
            roles = tuple(role.shaped(shape) for role in self.roles)
            self._shaped[shape] = replace(self, roles=roles)
        return self._shaped[shape]

    @functools.cached_property
    def _shaped(self) -> dict[Shape, ServiceSpec]:
        return {}

    def has_own_addresses(self) -> bool:
        """Say whether every task has an address of its own, which is known once it is launched."""
        return self.network is not None and self.network.addresses is NetworkAddresses.CONTAINER

    def wants_gpus(self) -> bool:
        """Say whether any task asks for a GPU: only then is GPU_RESOURCES sent to Mesos."""
        return any(r.count > 0 and r.resources.gpus > 0 for r in self.roles)

    @functools.cached_property
    def fingerprints(self) -> Mapping[TaskRole, str]:
        """Return for each role what stands for all that its containers are launched with.

        Equal texts need no restart. They do not depend on how many tasks there are, nor on where
        they may run (``core.spec.launched_with``). Worked out once for each spec: every step
        compares them with those of all tasks.
        """
        return {role.role: fingerprint_of(self, role) for role in self.roles}


#: The gang of a service that has one.
MAIN = "main"
#: What the names of slots begin with: ``slot-0``, ``slot-1``, ... Their tasks' names begin so, too.
SLOT = "slot-"


def slot_name(number: int) -> str:
    """Return the name of a slot."""
    return f"{SLOT}{number}"


def is_slot(gang: str) -> bool:
    """Say whether a gang of this name is a slot."""
    return gang.startswith(SLOT)


def task_in(gang: str, name: str) -> str:
    """Return the whole name of the task of a gang that is ``name`` in there (``worker-0``)."""
    return f"{gang}-{name}" if is_slot(gang) else name


def gang_named(task: str) -> str:
    """Return the name of the gang that a task of this name is of: it says so itself."""
    return "-".join(task.split("-", 2)[:2]) if is_slot(task) else MAIN


def name_in_gang(task: str) -> str:
    """Return what a task is called in its gang: ``worker-0`` for ``slot-3-worker-0``."""
    return task.split("-", 2)[-1] if is_slot(task) else task


def split_task_name(name: str) -> tuple[TaskRole, int]:
    """Return role and index of a task name such as ``gpu-worker-3`` or ``slot-3-worker-0``.

    Raises ValueError when the name is not of that form.
    """
    role, _, index = name_in_gang(name).rpartition("-")
    return TaskRole(role), int(index)
