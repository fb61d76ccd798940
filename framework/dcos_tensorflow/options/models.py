"""Every option there is: its name, type, default and meaning.

The one source of the published JSON Schemas, of the DC/OS package's ``config.json`` and of the
table in ``docs/options.md`` (``options.schema`` makes them). Names, types and defaults of the
published beta-tensorflow package stand here unchanged. Models hold values; they decide nothing:
``cross_checks`` has the rules that span several options, ``service`` makes the ServiceSpec.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PrivateAttr

from dcos_tensorflow.options.sections.capacity import Capacity
from dcos_tensorflow.options.sections.role_models import (
    Chief,
    DataDispatcher,
    DataWorker,
    Evaluator,
    GpuWorker,
    ParameterServer,
    TensorBoard,
    Worker,
)
from dcos_tensorflow.options.sections.section import Section, group
from dcos_tensorflow.options.sections.service_models import Service
from dcos_tensorflow.options.sections.storage import S3, Checkpoints, DataCache, DataSource, Logs
from dcos_tensorflow.options.sections.tracking import Mlflow
from dcos_tensorflow.options.sections.values import (
    Allowed,
    BackoffFactor,
    DnsDomain,
    ObjectText,
    PeerNetwork,
    RetryLimit,
    SameFailureLimit,
    Seconds,
    SomeSeconds,
    Weight,
    list_from_text,
    text_schema,
)
from dcos_tensorflow.options.sections.workload_models import Batch, Sweep


class Gang(Section):
    """How the tasks of one ClusterSpec are put together."""

    hold_seconds: SomeSeconds = Field(
        10.0,
        title="Hold (seconds)",
        description="Longest time for which offers are held while the gang is incomplete.",
    )
    retry_seconds: SomeSeconds = Field(
        5.0,
        title="Retry (seconds)",
        description="Time to wait after a gang could not be placed; doubles each time. Each "
        "wait is up to a quarter shorter or longer, so that two services do not stay in step.",
    )
    max_retry_seconds: SomeSeconds = Field(
        60.0,
        title="Longest retry (seconds)",
        description="Longest such wait, apart from that quarter.",
    )
    start_seconds: SomeSeconds = Field(
        600.0,
        title="Start (seconds)",
        description="Longest time until all tasks of a launched gang run.",
    )
    wait_seconds: SomeSeconds = Field(
        300.0,
        title="Wait for a place (seconds)",
        description="Time for which a task may be without a machine before the job goes on "
        "without it, if worker.min_count or gpu_worker.min_count allow it. Otherwise the other "
        "tasks give their machines back, and the whole gang waits.",
    )
    grow_seconds: Seconds = Field(
        300.0,
        title="Grow again (seconds)",
        description="Shortest time between a restart of the job and the next one that only "
        "adds a missing task again.",
    )


class Weights(Section):
    """How much each resource counts in the fitness ``weighted``."""

    cpus: Weight = Field(
        1.0,
        title="CPUs",
        description="Weight of the cpus that a task leaves free, as a share of the largest "
        "agent: above 0 the agent with the fewest is preferred, below 0 the one with the most.",
    )
    mem: Weight = Field(1.0, title="Memory", description="The same for the memory.")
    gpus: Weight = Field(1.0, title="GPUs", description="The same for the GPUs.")


class PlacementOptions(Section):
    """Which agents are preferred."""

    fitness: Literal["pack_gpu", "pack_cpu_mem", "spread", "weighted"] = Field(
        "pack_gpu",
        title="Fitness",
        description="Preferred agent among those that can hold a task. pack_gpu: the agent "
        "with the fewest GPUs left, without free GPUs for a task that needs none; among these "
        "the one with the least cpus and memory left. pack_cpu_mem: only the latter. spread: "
        "the agent with the most cpus and memory left, without free GPUs for a task that needs "
        "none. weighted: by placement.weights. A preference never costs a task its place; the "
        "free GPUs of an agent always keep the cpus and memory that they need.",
    )
    weights: Weights = group(Weights, "The weights of the fitness weighted.")


class Retry(Section):
    """How often a failed job is started again."""

    limit: RetryLimit = Field(
        3,
        title="Limit",
        description="Number of failures within window_seconds that the service repairs by a "
        "restart; the next failure ends the job. Preemption, lost agents and port clashes do "
        "not count.",
    )
    window_seconds: SomeSeconds = Field(
        3600.0, title="Window (seconds)", description="Time window in which failures are counted."
    )
    initial_backoff_seconds: Seconds = Field(
        2.0,
        title="First back-off (seconds)",
        description="Time to wait before the first restart. Each wait is up to a quarter "
        "shorter or longer.",
    )
    backoff_factor: BackoffFactor = Field(
        2.0, title="Back-off factor", description="Factor by which each further wait is longer."
    )
    max_backoff_seconds: Seconds = Field(
        120.0,
        title="Longest back-off (seconds)",
        description="Longest wait before a restart, apart from that quarter.",
    )
    out_of_memory_limit: RetryLimit = Field(
        1,
        title="Out-of-memory limit",
        description="Number of the counted failures that may be tasks out of memory, because a "
        "restart gives them no more memory. The next one ends the job.",
    )
    fruitless_limit: RetryLimit = Field(
        20,
        title="Fruitless limit",
        description="Number of interruptions from outside the job, such as lost agents, that "
        "may follow one another without progress of the job in between. They do not count as "
        "failures; the next one ends the job.",
    )
    same_failure_limit: SameFailureLimit = Field(
        2,
        title="Same failure limit",
        description="Number of failures with the same exception at the same line of the job's "
        "code, without a step of progress in between, that end the job, because a restart "
        "cannot repair them. Up to 2, an exception in all tasks before the first step ends the "
        "job at once. A batch or a sweep ends when its first failed shards or trials, one more "
        "than this number, fail in this way and none has succeeded.",
    )


class ClusterSpecOptions(Section):
    """How the members of the ClusterSpec are named."""

    addressing: Literal["offer", "dns"] = Field(
        "offer",
        title="Addressing",
        description="offer: the agents' addresses and the ports that they offered. dns: names of "
        "DC/OS and the configured ports, which stay the same wherever a task moves.",
    )
    dns_domain: DnsDomain = Field(
        "autoip.dcos.thisdcos.directory",
        title="DNS domain",
        description="Domain of the tasks' names when addressing is dns.",
    )
    peer_network: PeerNetwork = Field(
        "",
        title="Peer network",
        description="Network (10.1.0.0/16) or interface (ib0) whose address of each machine peers "
        "use, on machines with several; each machine must have one there. Empty: the address that "
        "its agent announces.",
    )


class Queue(Section):
    """A queue of teams that the package serves; ``queue_service.teams_file`` checks what it is."""

    teams: ObjectText = Field(
        "",
        title="Teams",
        description="The file of queue serve as JSON text: teams, and rules. The "
        "package then serves a queue in place of a job, and of the other options only those of "
        "service about the name, the user, the account and the log count. Empty: a job.",
    )


DataSources = Annotated[
    list[DataSource],
    BeforeValidator(list_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("a list of objects with uri and path, or JSON text of one"),
]


class Options(Section):
    """All options, validated. ``options.load`` makes them.

    ``base_directory`` is where the options file lies, None when there was none: what a relative
    ``service.job_url`` starts from.
    """

    service: Service = group(Service, "The service as a whole: its name, its job, its rules.")
    parameter_server: ParameterServer = group(ParameterServer, "Parameter servers (ps).")
    chief: Chief = group(Chief, "The chief, for jobs that want one beside the workers.")
    worker: Worker = group(Worker, "Workers without GPUs.")
    gpu_worker: GpuWorker = group(GpuWorker, "Workers with GPUs; members of the job worker.")
    evaluator: Evaluator = group(Evaluator, "The evaluator, beside the training.")
    tensorboard: TensorBoard = group(TensorBoard, "TensorBoard.")
    data_dispatcher: DataDispatcher = group(
        DataDispatcher, "The dispatcher of the job's tf.data service: there with data workers."
    )
    data_worker: DataWorker = group(DataWorker, "The workers of the job's tf.data service.")
    gang: Gang = group(Gang, "How all tasks of a job are placed and started together.")
    placement: PlacementOptions = group(
        PlacementOptions, "Which agents are preferred, of those that can hold a task."
    )
    retry: Retry = group(Retry, "How often a failed job is started again.")
    cluster_spec: ClusterSpecOptions = group(
        ClusterSpecOptions, "How tasks are addressed in the ClusterSpec."
    )
    sweep: Sweep = group(Sweep, "A search for the best parameters: the job is run once a trial.")
    batch: Batch = group(Batch, "Many pieces of input: the job is run once a piece.")
    capacity: Capacity = group(
        Capacity, "Machines that are bought when the job waits for them, and given back after."
    )
    checkpoints: Checkpoints = group(Checkpoints, "Where checkpoints are kept.")
    data: DataSources = Field(
        default=[],
        title="Data",
        description="Input data that the service puts into the sandbox of each task that "
        "trains or evaluates before it starts: a list of objects with uri (an object in S3, a "
        "prefix for all objects below it, or a file or folder) and path (the place in the "
        "sandbox). Files beside the options file are linked on the embedded cluster, and "
        "packed for any other.",
    )
    data_cache: DataCache = group(DataCache, "Where the tasks of an agent share fetched data.")
    logs: Logs = group(Logs, "How much of each task's output is kept, and where else it goes.")
    s3: S3 = group(S3, "How S3 is reached, for checkpoints, data and logs alike.")
    mlflow: Mlflow = group(Mlflow, "An MLflow tracking server that is told of runs.")
    queue: Queue = group(Queue, "A queue of teams, which the package serves in place of a job.")

    _base_directory: Path | None = PrivateAttr(default=None)

    @property
    def base_directory(self) -> Path | None:
        """Return the directory of the options file, None when there was no file."""
        return self._base_directory
