"""The scheduler's spec for the task runner: the JSON of ``TASK_RUNNER_SPEC``, read and checked.

``main`` reads it once at the start; ``server`` reads an order for each ``PUT /v1/cluster``.
Nothing here touches files, the network or the environment.
"""

from __future__ import annotations

import base64
import re
import zlib
from typing import Any, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.python.python_packages import Packages
from dcos_tensorflow.task.spec_fields import Addresses, SpecError, Texts, checked, json_object, read
from dcos_tensorflow.task.storage_spec import Storage, is_below_the_sandbox
from dcos_tensorflow.task.unit_order import UnitOrder, parse_unit

#: The versions of the spec that are read: the first says every address out.
VERSIONS = (1, contract.RUNNER_SPEC_VERSION)

CONTRACTS = (
    contract.CONTRACT_AUTO,
    contract.CONTRACT_FUNCTION,
    contract.CONTRACT_SCRIPT,
    contract.CONTRACT_COMMAND,
    *contract.CONTRACTS_BESIDE,
)


_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ServerCluster:
    """The ClusterSpec of a ``tf.compat.v1.train.Server``: jobs to addresses, and our place in it.

    ``wait_for`` are the addresses that must listen before this task's server starts.
    """

    cluster: Mapping[str, Addresses]
    job_name: str
    task_index: int
    wait_for: Addresses = ()


@dataclass(frozen=True)
class TaskCluster:
    """One epoch of the ClusterSpec, in the two forms that user code can ask for.

    ``tf_config`` is what ``tf.distribute`` reads (None: no variable ``TF_CONFIG`` at all);
    ``server`` is what the function contract builds its Server from (None: a local one).
    ``data_shard`` is (index, count) of the task's part of the input data in this epoch.
    """

    epoch: int
    tf_config: Optional[Mapping[str, Any]] = None
    wait_for: Tuple[str, ...] = ()
    server: Optional[ServerCluster] = None
    data_shard: Optional[Tuple[int, int]] = None

    @property
    def addresses(self) -> Tuple[str, ...]:
        """Return where all members listen, this task itself included."""
        told = (self.tf_config or {}).get("cluster", {}), self.server.cluster if self.server else {}
        return tuple(dict.fromkeys(a for jobs in told for job in jobs.values() for a in job))


@dataclass(frozen=True)
class StartOrder:
    """Which start of the user's process the scheduler wants, with which cluster.

    ``start`` counts from 1. With ``run`` false nothing is to run. ``grace_seconds`` is the grace of
    a process that must be stopped for this; None means the spec's. With ``expects_restore_step``
    the process is started only where it would restore the checkpoint of ``restore_step`` (None: no
    checkpoint at all). ``unit`` is the unit of work that the start is for, None where the task is
    in no slot or nothing is to run. ``data_service`` is where the dispatcher of the job's tf.data
    service is now; empty where there is none, or it is known as before.
    """

    start: int
    run: bool
    cluster: TaskCluster
    grace_seconds: Optional[float] = None
    expects_restore_step: bool = False
    restore_step: Optional[int] = None
    unit: Optional[UnitOrder] = None
    data_service: str = ""


@dataclass(frozen=True)
class JobCode:
    """The user's code and how to call it (docs/job-contract.md)."""

    contract: str = checked(
        f"one of {', '.join(CONTRACTS)}", lambda value: value in CONTRACTS, contract.CONTRACT_AUTO
    )
    name: str = ""
    path: str = ""
    command: str = ""
    context: str = ""
    arguments: Texts = ()
    parameters_as_arguments: str = "auto"
    tf1_compat: bool = False
    legacy_keras: bool = False
    under_strategy: bool = False


@dataclass(frozen=True)
class FetchedJob:
    """What the fetcher has brought of the job, and the sum that it must have before it is used."""

    #: What its file is called where it comes from.
    name: str = checked("the name of a file", lambda value: bool(value) and "/" not in value)
    #: In hexadecimal.
    sha256: str = checked("64 hexadecimal digits", lambda value: bool(_SHA256.fullmatch(value)))


@dataclass(frozen=True)
class Link:
    """Input data of the task's machine: ``source`` is a file or folder, found at ``path``.

    A file is found there by its own name, as one that comes from S3.
    """

    source: str = checked("an absolute path", lambda value: value.startswith("/"))
    path: str = checked("a path below the sandbox", is_below_the_sandbox)


@dataclass(frozen=True)
class DataService:
    """What a task is told of the job's tf.data service; addresses are ``host:port`` or empty."""

    #: Where the dispatcher is.
    dispatcher: str = ""
    #: Where others reach what this task serves.
    address: str = ""
    #: The dispatcher's folder, below the checkpoints.
    journal: str = ""


@dataclass(frozen=True)
class RunnerSpec:
    """All that the scheduler says about one attempt of one task. Times are seconds.

    ``held``: nothing is started before an order says so. ``hold_on_failure``: a start that fails
    leaves the container for another one. ``stall_seconds`` and ``freeze_seconds`` are the
    watchdog's; 0 turns it off. ``storage`` is what is in S3. ``packages`` is what is installed
    beside what the task's Python has, ``links`` input data of the task's machine, ``fetched`` a job
    that is looked at first. ``takes_units``:
    the task is in a slot, where each start is for a unit of work that an order names, and what is
    kept in S3 is the unit's. ``is_spot``: the machine may be taken back, and says so before.
    ``peer_network``: a network or an interface, in which peers are to reach this machine.
    ``data_service`` is for tasks that serve or use the job's tf.data service.
    """

    service: str
    task: str
    cluster: TaskCluster
    job: JobCode
    role: str = ""
    index: int = 0
    attempt: int = 1
    log_dir: str = ""
    checkpoint_dir: str = ""
    shared_filesystem: str = ""
    output_dir: str = ""
    cpus: float = 1.0
    gpus: int = 0
    grpc_port: int = 0
    wait_seconds: float = 300.0
    grace_seconds: float = 10.0
    log_max_bytes: int = 20_000_000
    log_keep: int = 2
    held: bool = False
    hold_on_failure: bool = False
    stall_seconds: float = 0.0
    freeze_seconds: float = 10.0
    storage: Storage = Storage()
    packages: Packages = Packages()
    fetched: Optional[FetchedJob] = None
    links: Tuple[Link, ...] = ()
    takes_units: bool = False
    is_spot: bool = False
    peer_network: str = ""
    data_service: Optional[DataService] = None

    @property
    def first_order(self) -> StartOrder:
        """Return what is wanted before the scheduler has ordered anything."""
        return StartOrder(start=1, run=not self.held, cluster=self.cluster)


def parse_spec(text: str, table: str = "") -> RunnerSpec:
    """Return the spec that ``text`` holds; its cluster may refer to the addresses in ``table``.

    Raises SpecError when it is no JSON, of another version, or has a wrong or missing value.
    """
    document = json_object(text, contract.RUNNER_SPEC_VARIABLE)
    version = read(_Version, document).version
    if version not in VERSIONS:
        raise SpecError(
            f"version is {version}, but this task runner reads version "
            f"{contract.RUNNER_SPEC_VERSION}: scheduler and runner are of different releases"
        )
    said_out = _said_out(read(_Part, document).cluster, _table(table))
    return read(
        RunnerSpec, document, cluster=_cluster(said_out, "cluster"), storage=read(Storage, document)
    )


def parse_order(text: str) -> StartOrder:
    """Return the order of a ``PUT /v1/cluster`` body. Raises SpecError when it is not one."""
    document = json_object(text, "the body")
    order = read(
        StartOrder, document, cluster=_cluster(document), unit=parse_unit(document.get("unit"))
    )
    if order.start < 1:
        raise SpecError(f"start must be a whole number of at least 1, got {order.start}")
    return order


@dataclass(frozen=True)
class _Version:
    version: int


@dataclass(frozen=True)
class _Part:
    cluster: Mapping[str, Any]


@dataclass(frozen=True)
class _Distribute:
    tf_config: Optional[Mapping[str, Any]] = None
    wait_for: Addresses = ()


@dataclass(frozen=True)
class _Shard:
    index: int
    count: int


@dataclass(frozen=True)
class _ClusterSections:
    epoch: int
    distribute: _Distribute = _Distribute()
    server: Optional[ServerCluster] = None
    data_shard: Optional[_Shard] = None


def _table(text: str) -> Tuple[str, ...]:
    try:
        lines = zlib.decompress(base64.b64decode(text)).decode() if text else ""
    except (ValueError, zlib.error) as error:
        raise SpecError(f"{contract.RUNNER_ADDRESSES_VARIABLE} is no table: {error}") from None
    return tuple(lines.split("\n")) if lines else ()


def _said_out(part: Any, table: Tuple[str, ...]) -> Any:
    """Return ``part`` of a cluster with each ``[[start, end], ...]`` as the addresses there."""
    if isinstance(part, dict):
        return {name: _said_out(value, table) for name, value in part.items()}
    if not isinstance(part, list) or not part or not all(_is_stretch(item) for item in part):
        return part
    if any(end > len(table) for _, end in part):
        raise SpecError(
            f"the cluster refers to addresses up to {max(end for _, end in part)}, and "
            f"{contract.RUNNER_ADDRESSES_VARIABLE} has {len(table)}"
        )
    return [address for start, end in part for address in table[start:end]]


def _is_stretch(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(type(n) is int for n in item)


def _cluster(document: Mapping[str, Any], path: str = "") -> TaskCluster:
    told = read(_ClusterSections, document, path)
    server, shard = told.server, told.data_shard
    if server and server.task_index >= len(server.cluster.get(server.job_name, ())):
        raise SpecError(
            f"{f'{path}.' if path else ''}server.task_index is {server.task_index}, but job "
            f"{server.job_name!r} of the cluster has "
            f"{len(server.cluster.get(server.job_name, ()))} members"
        )
    return TaskCluster(
        epoch=told.epoch,
        tf_config=told.distribute.tf_config,
        wait_for=told.distribute.wait_for,
        server=server,
        data_shard=(shard.index, shard.count) if shard else None,
    )
