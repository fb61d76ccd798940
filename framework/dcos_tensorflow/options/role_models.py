"""The options of each kind of task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.config import JsonDict

from dcos_tensorflow.options.container_values import (
    ProcessLimits,
    Secrets,
    SharedMemoryIfGiven,
)
from dcos_tensorflow.options.section import Section
from dcos_tensorflow.options.values import (
    Count,
    CountIfGiven,
    Cpus,
    Environment,
    Gpus,
    Line,
    Megabytes,
    Memory,
    OneOrNone,
    Placement,
    Port,
    PortIfGiven,
    RetryLimitIfGiven,
    VolumePath,
)

#: How the DC/OS UI knows what to edit a value with.
ZONE_CONSTRAINTS: JsonDict = {"media": {"type": "application/x-zone-constraints+json"}}

DiskType = Annotated[
    Literal["ROOT", "MOUNT"],
    Field(
        title="Disk type [ROOT, MOUNT]",
        description="Kind of disk of a persistent volume: ROOT is a share of the agent's disk, "
        "MOUNT a whole disk that the operator has mounted. Without persistent_volume the task "
        "takes its share of the agent's disk.",
    ),
]


def _count(default: int, what: str) -> Any:
    return Field(default, title="Node count", description=f"How many {what} to run.")


def _min_count(what: str) -> Any:
    return Field(
        None,
        title="Fewest nodes",
        description=f"With how few {what} the job goes on when the others find no machine within "
        "gang.wait_seconds; it grows again when there is room. Left out: all are needed.",
    )


def _cpus(what: str) -> Any:
    return Field(1.0, title="CPU count", description=f"CPUs of each {what}.")


def _mem(what: str) -> Any:
    return Field(4096, title="Memory size (MB)", description=f"Memory of each {what}, in MB.")


def _disk(what: str) -> Any:
    return Field(4096, title="Disk size (MB)", description=f"Disk of each {what}, in MB.")


def _persistent_volume(what: str) -> Any:
    return Field(
        False,
        title="Persistent volume",
        description=f"Whether the disk of each {what} is a persistent volume. It outlives the "
        "task, which comes back to it, on the same agent and with the same resources, until it is "
        "replaced or the service is uninstalled.",
    )


def _volume_path(what: str) -> Any:
    return Field(
        "tf-volume",
        title="Volume path",
        description=f"Directory in the sandbox where each {what} finds its persistent volume. It "
        "is also LOG_DIR and CHECKPOINT_DIR, where these are not named otherwise.",
    )


def _gpus(default: int, what: str) -> Any:
    return Field(default, title="GPU count", description=f"Whole GPUs of each {what}.")


def _port(default: int, what: str) -> Any:
    return Field(
        default,
        title="Port",
        description=f"gRPC port of each {what}: preferred when cluster_spec.addressing is offer, "
        "used as it is with dns. 0 is any.",
    )


def _placement(what: str, article: str = "a") -> Any:
    return Field(
        "[]",
        title="Placement constraint",
        description=f"Which agents may run {article} {what}, and how many of them on one, as "
        'Marathon\'s constraints, e.g. [["hostname", "UNIQUE"]] or hostname:UNIQUE. Operators: '
        "UNIQUE, CLUSTER, GROUP_BY, LIKE, UNLIKE, MAX_PER, IS, IS_NOT.",
        json_schema_extra=ZONE_CONSTRAINTS,
    )


def _retry_limit(what: str) -> Any:
    return Field(
        None,
        title="Retry limit",
        description=f"How many failures of {what} within retry.window_seconds are healed by a new "
        "start; the next one is the end. Left out: as retry.limit, which holds for all tasks "
        "together.",
    )


def _sidecar_retry_limit(what: str) -> Any:
    return Field(
        None,
        title="Retry limit",
        description=f"How many failures of {what} in a row are healed by a new start; after the "
        "next one the job goes on without it. A failure after retry.window_seconds is a first one "
        "again. Left out: as retry.limit.",
    )


def _env(what: str) -> Any:
    return Field(
        default={},
        title="Environment",
        description=f"Environment variables of each {what}; they win over service.env. Stored and "
        "shown as they are: no place for secrets.",
    )


def _python(what: str) -> Any:
    return Field(
        "",
        title="Python",
        description=f"Python interpreter or virtual environment of each {what}; wins over "
        "service.python. When set, the task runs without a container image.",
    )


def _user(what: str) -> Any:
    return Field(
        "",
        title="User",
        description=f"User that each {what} runs as; wins over service.user. Empty: that user.",
    )


def _secrets(what: str) -> Any:
    return Field(
        default=[],
        title="Secrets",
        description=f"Secrets of each {what}, beside those of service.secrets: a list of objects "
        "with source and either env or file. They win over those of the same variable or file.",
    )


def _rlimits(what: str) -> Any:
    return Field(
        default=[],
        title="Process limits",
        description=f"Limits of the processes of each {what}: a list of objects with name, soft "
        "and hard. They win over those of the same name in service.rlimits.",
    )


def _shm_size(what: str) -> Any:
    return Field(
        None,
        title="Shared memory size (MB)",
        description=f"Size of /dev/shm of each {what}, in MB. Left out: service.shm_size.",
    )


class ParameterServer(Section):
    """Options of the ps tasks."""

    count: Count = _count(2, "parameter servers")
    placement_constraint: Placement = _placement("parameter server")
    port: Port = _port(2223, "parameter server")
    cpus: Cpus = _cpus("parameter server")
    mem: Memory = _mem("parameter server")
    disk: Megabytes = _disk("parameter server")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = _persistent_volume("parameter server")
    volume_path: VolumePath = _volume_path("parameter server")
    retry_limit: RetryLimitIfGiven = _retry_limit("parameter servers")
    env: Environment = _env("parameter server")
    python: Line = _python("parameter server")
    user: Line = _user("parameter server")
    secrets: Secrets = _secrets("parameter server")
    rlimits: ProcessLimits = _rlimits("parameter server")
    shm_size: SharedMemoryIfGiven = _shm_size("parameter server")


class Chief(Section):
    """Options of the chief."""

    count: OneOrNone = _count(0, "chiefs")
    placement_constraint: Placement = _placement("chief")
    port: Port = _port(2221, "chief")
    gpus: Gpus = _gpus(0, "chief")
    cpus: Cpus = _cpus("chief")
    mem: Memory = _mem("chief")
    disk: Megabytes = _disk("chief")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = _persistent_volume("chief")
    volume_path: VolumePath = _volume_path("chief")
    retry_limit: RetryLimitIfGiven = _retry_limit("the chief")
    env: Environment = _env("chief")
    python: Line = _python("chief")
    user: Line = _user("chief")
    secrets: Secrets = _secrets("chief")
    rlimits: ProcessLimits = _rlimits("chief")
    shm_size: SharedMemoryIfGiven = _shm_size("chief")


class Worker(Section):
    """Options of the workers without GPUs."""

    count: Count = _count(3, "workers")
    min_count: CountIfGiven = _min_count("workers")
    placement_constraint: Placement = _placement("worker")
    port: Port = _port(2222, "worker")
    cpus: Cpus = _cpus("worker")
    mem: Memory = _mem("worker")
    disk: Megabytes = _disk("worker")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = _persistent_volume("worker")
    volume_path: VolumePath = _volume_path("worker")
    retry_limit: RetryLimitIfGiven = _retry_limit("workers")
    env: Environment = _env("worker")
    python: Line = _python("worker")
    user: Line = _user("worker")
    secrets: Secrets = _secrets("worker")
    rlimits: ProcessLimits = _rlimits("worker")
    shm_size: SharedMemoryIfGiven = _shm_size("worker")


class GpuWorker(Section):
    """Options of the workers with GPUs."""

    count: Count = _count(0, "GPU workers")
    min_count: CountIfGiven = _min_count("GPU workers")
    placement_constraint: Placement = _placement("GPU worker")
    port: PortIfGiven = Field(
        None,
        title="Port",
        description="gRPC port of each GPU worker, as worker.port, which it is when left out.",
    )
    gpus: Gpus = _gpus(1, "GPU worker")
    cpus: Cpus = _cpus("GPU worker")
    mem: Memory = _mem("GPU worker")
    disk: Megabytes = _disk("GPU worker")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = _persistent_volume("GPU worker")
    volume_path: VolumePath = _volume_path("GPU worker")
    retry_limit: RetryLimitIfGiven = _retry_limit("GPU workers")
    env: Environment = _env("GPU worker")
    python: Line = _python("GPU worker")
    user: Line = _user("GPU worker")
    secrets: Secrets = _secrets("GPU worker")
    rlimits: ProcessLimits = _rlimits("GPU worker")
    shm_size: SharedMemoryIfGiven = _shm_size("GPU worker")


class Evaluator(Section):
    """Options of the evaluator."""

    count: OneOrNone = _count(0, "evaluators")
    placement_constraint: Placement = _placement("evaluator", "an")
    port: Port = Field(
        2224,
        title="Port",
        description="Port of the evaluator, which is in no ClusterSpec: used when the agent has it "
        "free. 0 is any.",
    )
    gpus: Gpus = _gpus(0, "evaluator")
    cpus: Cpus = _cpus("evaluator")
    mem: Memory = _mem("evaluator")
    disk: Megabytes = _disk("evaluator")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = _persistent_volume("evaluator")
    volume_path: VolumePath = _volume_path("evaluator")
    retry_limit: RetryLimitIfGiven = _sidecar_retry_limit("the evaluator")
    env: Environment = _env("evaluator")
    python: Line = _python("evaluator")
    user: Line = _user("evaluator")
    secrets: Secrets = _secrets("evaluator")
    rlimits: ProcessLimits = _rlimits("evaluator")
    shm_size: SharedMemoryIfGiven = _shm_size("evaluator")


class TensorBoard(Section):
    """Options of TensorBoard. It runs when service.use_tensorboard is true."""

    placement_constraint: Placement = _placement("TensorBoard")
    port: Port = Field(
        6006,
        title="Port",
        description="HTTP port of TensorBoard: used when the agent has it free. 0 is any.",
    )
    cpus: Cpus = _cpus("TensorBoard")
    mem: Memory = _mem("TensorBoard")
    retry_limit: RetryLimitIfGiven = _sidecar_retry_limit("TensorBoard")
    env: Environment = _env("TensorBoard")
    python: Line = _python("TensorBoard")
    keep_running: bool = Field(
        False,
        description="Leave TensorBoard running when the job has ended, until it is stopped, or the "
        "service uninstalled. dcos-tensorflow run then waits for Ctrl-C.",
    )
    user: Line = _user("TensorBoard")
    secrets: Secrets = _secrets("TensorBoard")
    rlimits: ProcessLimits = _rlimits("TensorBoard")
    shm_size: SharedMemoryIfGiven = _shm_size("TensorBoard")
