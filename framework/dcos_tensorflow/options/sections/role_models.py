"""The options of each kind of task: one declaration for all, and the differences of each role.

The descriptions are written once, of "{one}" task or of "{many}"; each role gives its own name.
The parts below stand in the order in which their options are shown; a role takes those that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic.config import JsonDict

from dcos_tensorflow.options.sections.containers import ProcessLimits, Secrets, SharedMemoryIfGiven
from dcos_tensorflow.options.sections.section import Section
from dcos_tensorflow.options.sections.values import (
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

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

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


def _count(default: int) -> Any:
    return Field(default, title="Node count", description="Number of {many}.")


def _gpus(default: int) -> Any:
    return Field(default, title="GPU count", description="Whole GPUs of each {one}.")


def _port(
    default: int | None,
    description: str = "gRPC port of each {one}: preferred when cluster_spec.addressing is offer, "
    "used as it is with dns. 0 is any.",
) -> Any:
    return Field(default, title="Port", description=description)


class RoleSection(Section):
    """What a role is called: a task of it, all of them, and whose failures are counted."""

    names: ClassVar[dict[str, str]] = {}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Fill the role's names into the descriptions."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        for option in schema.get("properties", {}).values():
            if "description" in option:
                option["description"] = described(option["description"], cls.names)
        return schema


def described(text: str, names: dict[str, str]) -> str:
    """Return a description with a role's names in it. It may hold other braces."""
    for key, name in names.items():
        text = text.replace(f"{{{key}}}", name)
    return text


def called(one: str, many: str, whose: str = "", article: str = "a") -> dict[str, str]:
    """Return the names of a role. ``whose`` failures are counted, unless those of ``many``."""
    return {"one": one, "many": many, "whose": whose or many, "article": article}


class _Counted(RoleSection):
    count: Count = _count(0)


class _Elastic(_Counted):
    min_count: CountIfGiven = Field(
        None,
        title="Fewest nodes",
        description="Smallest number of {many} with which the job goes on when the others find "
        "no machine within gang.wait_seconds; it grows again when there is room. Left out: the "
        "job needs all.",
    )


class _Placed(RoleSection):
    placement_constraint: Placement = Field(
        "[]",
        title="Placement constraint",
        description="Agents that may run {article} {one}, and how many of them each, as "
        'Marathon\'s constraints, e.g. [["hostname", "UNIQUE"]] or hostname:UNIQUE. Operators: '
        "UNIQUE, CLUSTER, GROUP_BY, LIKE, UNLIKE, MAX_PER, IS, IS_NOT.",
        json_schema_extra=ZONE_CONSTRAINTS,
    )
    port: PortIfGiven = _port(None)


class _WithGpus(_Placed):
    gpus: Gpus = _gpus(0)


class _Sized(RoleSection):
    cpus: Cpus = Field(1.0, title="CPU count", description="CPUs of each {one}.")
    mem: Memory = Field(4096, title="Memory size (MB)", description="Memory of each {one}, in MB.")


class _WithDisk(RoleSection):
    disk: Megabytes = Field(4096, title="Disk size (MB)", description="Disk of each {one}, in MB.")
    disk_type: DiskType = "ROOT"
    persistent_volume: bool = Field(
        False,
        title="Persistent volume",
        description="Make the disk of each {one} a persistent volume. It outlives the task: "
        "the task comes back to it, on the same agent and with the same resources, until the "
        "task is replaced or the service is uninstalled.",
    )
    volume_path: VolumePath = Field(
        "tf-volume",
        title="Volume path",
        description="Directory in the sandbox with the persistent volume of each {one}. It is "
        "also LOG_DIR and CHECKPOINT_DIR, unless other options name these.",
    )


class _Retried(RoleSection):
    retry_limit: RetryLimitIfGiven = Field(
        None,
        title="Retry limit",
        description="Number of failures of {whose} within retry.window_seconds that the "
        "service repairs by a restart; the next failure ends the job. Left out: retry.limit, "
        "which counts all tasks together.",
    )
    env: Environment = Field(
        default={},
        title="Environment",
        description="Environment variables of each {one}; they override service.env. The "
        "service stores and shows them: do not put secrets here.",
    )
    python: Line = Field(
        "",
        title="Python",
        description="Python interpreter or virtual environment of each {one}; overrides "
        "service.python. When set, the task runs without a container image.",
    )


class _BesideTheGang(_Retried):
    retry_limit: RetryLimitIfGiven = Field(
        None,
        title="Retry limit",
        description="Number of failures of {whose} in a row that the service repairs by a "
        "restart; after the next failure the job goes on without it. After "
        "retry.window_seconds the count begins again. Left out: retry.limit.",
    )


class _Contained(RoleSection):
    user: Line = Field(
        "",
        title="User",
        description="User of each {one}; overrides service.user. Empty: service.user.",
    )
    secrets: Secrets = Field(
        default=[],
        title="Secrets",
        description="Secrets of each {one}, in addition to service.secrets: a list of objects "
        "with source and either env or file. They override service.secrets with the same "
        "variable or file.",
    )
    rlimits: ProcessLimits = Field(
        default=[],
        title="Process limits",
        description="Limits of the processes of each {one}: a list of objects with name, soft "
        "and hard. They override limits of the same name in service.rlimits.",
    )
    shm_size: SharedMemoryIfGiven = Field(
        None,
        title="Shared memory size (MB)",
        description="Size of /dev/shm of each {one}, in MB. Left out: service.shm_size.",
    )


# A class lists its parts from the last to the first: that is how their options come in order.


class ParameterServer(_Contained, _Retried, _WithDisk, _Sized, _Placed, _Counted):
    """Options of the ps tasks."""

    names = called("parameter server", "parameter servers")
    count: Count = _count(2)
    port: Port = _port(2223)


class Chief(_Contained, _Retried, _WithDisk, _Sized, _WithGpus, _Counted):
    """Options of the chief."""

    names = called("chief", "chiefs", whose="the chief")
    count: OneOrNone = _count(0)
    port: Port = _port(2221)


class Worker(_Contained, _Retried, _WithDisk, _Sized, _Placed, _Elastic):
    """Options of the workers without GPUs."""

    names = called("worker", "workers")
    count: Count = _count(3)
    port: Port = _port(2222)


class GpuWorker(_Contained, _Retried, _WithDisk, _Sized, _WithGpus, _Elastic):
    """Options of the workers with GPUs."""

    names = called("GPU worker", "GPU workers")
    port: PortIfGiven = _port(
        None, "gRPC port of each {one}, as worker.port, which it is when left out."
    )
    gpus: Gpus = _gpus(1)


class Evaluator(_Contained, _BesideTheGang, _WithDisk, _Sized, _WithGpus, _Counted):
    """Options of the evaluator."""

    names = called("evaluator", "evaluators", whose="the evaluator", article="an")
    count: OneOrNone = _count(0)
    port: Port = _port(
        2224,
        "Port of the {one}, which is in no ClusterSpec: used when the agent has it free. 0 is any.",
    )


_BESIDE_PORT = "Port of each {one}: used when the agent has it free. 0 is any."


class _KeepsRunning(RoleSection):
    keep_running: bool = Field(
        False,
        description="Leave TensorBoard running after the job's end, until an operator stops it "
        "or uninstalls the service. dcos-tensorflow run then waits for Ctrl-C.",
    )


class TensorBoard(_Contained, _KeepsRunning, _BesideTheGang, _Sized, _Placed):
    """Options of TensorBoard. It runs when service.use_tensorboard is true."""

    names = called("TensorBoard", "TensorBoard")
    port: Port = _port(6006, "HTTP port of {one}: used when the agent has it free. 0 is any.")


class DataDispatcher(_Contained, _BesideTheGang, _WithDisk, _Sized, _Placed):
    """Options of the dispatcher of the job's tf.data service: there with the first data worker."""

    names = called("dispatcher", "dispatchers", whose="the dispatcher")
    port: Port = _port(0, _BESIDE_PORT)
    cpus: Cpus = Field(0.5, title="CPU count", description="CPUs of the {one}.")
    mem: Memory = Field(1024, title="Memory size (MB)", description="Memory of the {one}, in MB.")
    disk: Megabytes = Field(256, title="Disk size (MB)", description="Disk of the {one}, in MB.")


class DataWorker(_Contained, _BesideTheGang, _WithDisk, _Sized, _Placed, _Counted):
    """Options of the workers of the job's tf.data service."""

    names = called("data worker", "data workers", whose="a data worker")
    count: Count = Field(
        0,
        title="Node count",
        description="Number of data workers: tasks that make the elements of tf.data for the "
        "training, which finds them in TF_DATA_SERVICE. It may change while the job runs, "
        "and only between none and some that restarts the training.",
    )
    port: Port = _port(0, _BESIDE_PORT)
    mem: Memory = Field(2048, title="Memory size (MB)", description="Memory of each {one}, in MB.")


RoleOptions = (
    ParameterServer
    | Chief
    | Worker
    | GpuWorker
    | Evaluator
    | TensorBoard
    | DataDispatcher
    | DataWorker
)


def role_options(options: Options, group: str) -> RoleOptions:
    """Return the options of one of ROLE_GROUPS."""
    role: RoleOptions = getattr(options, group)
    return role


def count_of(options: Options, group: str) -> int:
    """Return how many tasks of a role are wanted."""
    role = role_options(options, group)
    if isinstance(role, TensorBoard):
        return int(options.service.use_tensorboard)
    if isinstance(role, DataDispatcher):
        return int(options.data_worker.count > 0)
    return role.count


def gpus_of(options: Options, group: str) -> int:
    """Return how many GPUs each task of a role gets."""
    role = role_options(options, group)
    return role.gpus if isinstance(role, Chief | GpuWorker | Evaluator) else 0
