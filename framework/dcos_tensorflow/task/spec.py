"""What the scheduler tells the task runner: the JSON of ``TASK_RUNNER_SPEC``, read and checked.

``main`` reads it once at the start; ``server`` reads an order for each ``PUT /v1/cluster``.
Nothing here touches files, the network or the environment.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import storage_spec
from dcos_tensorflow.task.spec_fields import Fields, SpecError, json_object
from dcos_tensorflow.task.storage_spec import Storage

#: The versions of the spec that are read: the first says every address out.
VERSIONS = (1, contract.RUNNER_SPEC_VERSION)

CONTRACTS = (
    contract.CONTRACT_AUTO,
    contract.CONTRACT_FUNCTION,
    contract.CONTRACT_SCRIPT,
    contract.CONTRACT_COMMAND,
    contract.CONTRACT_TENSORBOARD,
)


@dataclass(frozen=True)
class ServerCluster:
    """The ClusterSpec of a ``tf.compat.v1.train.Server``: jobs to addresses, and our place in it.

    ``wait_for`` are the addresses that must listen before this task's server starts.
    """

    cluster: Mapping[str, Tuple[str, ...]]
    job_name: str
    task_index: int
    wait_for: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Cluster:
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


@dataclass(frozen=True)
class Order:
    """Which start of the user's process the scheduler wants, with which cluster.

    ``start`` counts from 1. With ``run`` false nothing is to run. ``grace_seconds`` is the grace of
    a process that must be stopped for this; None means the spec's. With ``expects_restore_step``
    the process is started only where it would restore the checkpoint of ``restore_step`` (None: no
    checkpoint at all).
    """

    start: int
    run: bool
    cluster: Cluster
    grace_seconds: Optional[float] = None
    expects_restore_step: bool = False
    restore_step: Optional[int] = None


@dataclass(frozen=True)
class Job:
    """The user's code and how to call it (docs/job-contract.md)."""

    contract: str = contract.CONTRACT_AUTO
    name: str = ""
    path: str = ""
    command: str = ""
    context: str = ""
    tf1_compat: bool = False
    legacy_keras: bool = False


@dataclass(frozen=True)
class RunnerSpec:
    """All that the scheduler says about one attempt of one task. Times are seconds.

    ``held``: nothing is started before an order says so. ``hold_on_failure``: a start that fails
    leaves the container for another one. ``stall_seconds`` and ``freeze_seconds`` are the
    watchdog's; 0 turns it off. ``storage`` is what is in S3.
    """

    service: str
    task: str
    role: str
    index: int
    attempt: int
    cluster: Cluster
    job: Job
    log_dir: str = ""
    checkpoint_dir: str = ""
    shared_filesystem: str = ""
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

    @property
    def first_order(self) -> Order:
        """Return what is wanted before the scheduler has ordered anything."""
        return Order(start=1, run=not self.held, cluster=self.cluster)


def parse_spec(text: str, table: str = "") -> RunnerSpec:
    """Return the spec that ``text`` holds; its cluster may refer to the addresses in ``table``.

    Raises SpecError when it is no JSON, of another version, or has a wrong or missing value.
    """
    fields = Fields(json_object(text, contract.RUNNER_SPEC_VARIABLE), "")
    version = fields.integer("version")
    if version not in VERSIONS:
        raise SpecError(
            f"version is {version}, but this task runner reads version "
            f"{contract.RUNNER_SPEC_VERSION}: scheduler and runner are of different releases"
        )
    addresses = _table(table)
    return RunnerSpec(
        service=fields.text("service"),
        task=fields.text("task"),
        role=fields.text("role", ""),
        index=fields.integer("index", 0),
        attempt=fields.integer("attempt", 1),
        cluster=_cluster(fields.part("cluster", lambda part: _said_out(part, addresses))),
        job=_job(fields.part("job")),
        log_dir=fields.text("log_dir", ""),
        checkpoint_dir=fields.text("checkpoint_dir", ""),
        shared_filesystem=fields.text("shared_filesystem", ""),
        cpus=fields.number("cpus", 1.0),
        gpus=fields.integer("gpus", 0),
        grpc_port=fields.integer("grpc_port", 0),
        wait_seconds=fields.number("wait_seconds", 300.0),
        grace_seconds=fields.number("grace_seconds", 10.0),
        log_max_bytes=fields.integer("log_max_bytes", 20_000_000),
        log_keep=fields.integer("log_keep", 2),
        held=fields.boolean("held", False),
        hold_on_failure=fields.boolean("hold_on_failure", False),
        stall_seconds=fields.number("stall_seconds", 0.0),
        freeze_seconds=fields.number("freeze_seconds", 10.0),
        storage=storage_spec.storage(fields),
    )


def parse_order(text: str) -> Order:
    """Return the order of a ``PUT /v1/cluster`` body. Raises SpecError when it is not one."""
    fields = Fields(json_object(text, "the body"), "")
    start = fields.integer("start")
    if start < 1:
        raise SpecError(f"start must be a whole number of at least 1, got {start}")
    return Order(
        start=start,
        run=fields.boolean("run"),
        cluster=_cluster(fields),
        grace_seconds=fields.number("grace_seconds") if fields.has("grace_seconds") else None,
        expects_restore_step=fields.boolean("expects_restore_step", False),
        restore_step=fields.integer("restore_step") if fields.has("restore_step") else None,
    )


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


def _cluster(fields: Fields) -> Cluster:
    distribute = fields.optional_part("distribute")
    server = fields.optional_part("server")
    shard = fields.optional_part("data_shard")
    return Cluster(
        epoch=fields.integer("epoch"),
        tf_config=distribute.optional_object("tf_config") if distribute else None,
        wait_for=distribute.addresses("wait_for") if distribute else (),
        server=_server(server) if server else None,
        data_shard=(shard.integer("index"), shard.integer("count")) if shard else None,
    )


def _server(fields: Fields) -> ServerCluster:
    members = fields.part("cluster")
    jobs = {name: members.addresses(name) for name in members.names()}
    job_name, task_index = fields.text("job_name"), fields.integer("task_index")
    if task_index >= len(jobs.get(job_name, ())):
        raise SpecError(
            f"{fields.path('task_index')} is {task_index}, but job {job_name!r} of the cluster "
            f"has {len(jobs.get(job_name, ()))} members"
        )
    return ServerCluster(jobs, job_name, task_index, fields.addresses("wait_for"))


def _job(fields: Fields) -> Job:
    job = Job(
        contract=fields.text("contract", contract.CONTRACT_AUTO),
        name=fields.text("name", ""),
        path=fields.text("path", ""),
        command=fields.text("command", ""),
        context=fields.text("context", ""),
        tf1_compat=fields.boolean("tf1_compat", False),
        legacy_keras=fields.boolean("legacy_keras", False),
    )
    if job.contract not in CONTRACTS:
        raise SpecError(
            f"{fields.path('contract')} is {job.contract!r}; allowed are {', '.join(CONTRACTS)}"
        )
    return job
