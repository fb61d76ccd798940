"""The bodies of the HTTP API as types.

mypy holds ``api.views`` to them, ``api.operations`` names them, and ``api.openapi`` makes the
schemas of its document from them. Clients may rely on them. A key that is not always there is
``NotRequired``; docs/api.md describes a value that is only a ``dict[str, Any]`` here. Pure types.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired
from uuid import UUID

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from dcos_tensorflow.core.plans.elements import PlanStrategy, Status

Count = Annotated[int, Field(ge=0)]
#: Unix seconds.
Time = float
Names = list[str]


class Message(TypedDict):
    """What went wrong, or was done, in a sentence."""

    message: str


class UnknownPath(Message):
    """No such path, or not with this method; ``verbs`` are all that order something."""

    verbs: list[str]


class Problem(TypedDict):
    """What is wrong with one option."""

    path: str
    message: str
    given: str
    allowed: str
    suggestion: NotRequired[str]


class Problems(Message):
    """Everything that is wrong with options."""

    problems: NotRequired[list[Problem]]


class Step(TypedDict):
    """A step of a phase: one task."""

    id: str
    name: str
    status: Status
    message: str


class Phase(TypedDict):
    """A phase of a plan."""

    id: str
    name: str
    steps: list[Step]
    strategy: PlanStrategy
    status: Status


class Plan(TypedDict):
    """A plan, as the SDK's clients expect it."""

    phases: list[Phase]
    errors: list[str]
    strategy: PlanStrategy
    status: Status


class PodTask(TypedDict):
    """The task of a pod instance."""

    id: str
    name: str
    status: str


class PodInstance(TypedDict):
    """A pod instance, which is one task."""

    name: str
    tasks: list[PodTask]


class Pod(TypedDict):
    """All instances of a role."""

    name: str
    instances: list[PodInstance]


class PodsStatus(TypedDict):
    """All tasks by role."""

    service: str
    pods: list[Pod]


class Part(TypedDict):
    """A part of a file; bytes that are no text are replaced."""

    task_id: str
    file: str
    offset: Count
    data: str
    next_offset: Count
    size: Count


class TaskInfo(TypedDict):
    """TaskInfo and TaskStatus, as Mesos has them."""

    info: dict[str, Any]
    status: dict[str, Any]


class Endpoint(TypedDict):
    """Where the live tasks of a role listen."""

    address: list[str]
    dns: list[str]
    vip: NotRequired[str]


class PodSpec(TypedDict):
    """How many tasks of a role there are."""

    type: str
    count: Count
    user: str


class RefusedOptions(TypedDict):
    """Newer options that the service was asked to go over to and cannot have."""

    why: str
    in_force: Annotated[
        dict[str, Any],
        Field(
            description="option in which they differ -> the value in force; null: it is left out"
        ),
    ]


Configuration = TypedDict(
    "Configuration",
    {
        "name": str,
        "role": str,
        "principal": str,
        "user": str,
        "pod-specs": list[PodSpec],
        "spec": dict[str, Any],
        "options": NotRequired[dict[str, Any]],
        "refused": NotRequired[RefusedOptions],
    },
)
Offer = TypedDict(
    "Offer",
    {
        "timestamp": Annotated[int, Field(description="unix milliseconds")],
        "pod-instance-name": str,
        "outcome": Literal["pass", "fail"],
        "explanation": list[str],
        "offer": dict[str, Any],
    },
)


class Offers(TypedDict):
    """What became of offers; reasons and agents are counted over those that are listed."""

    acceptedCount: Count
    rejectedCount: Count
    failureReasons: dict[str, Count]
    rejectedAgents: dict[str, Count]
    offers: list[Offer]


InvalidInput = TypedDict("InvalidInput", {"invalid-input": str})


class PlansOutline(TypedDict):
    """The plans, and how many steps stand where."""

    schedulerState: str
    registered: bool
    suppressed: bool | None
    activePlans: list[str]
    totalSteps: Count
    completedSteps: Count
    stepsByStatus: dict[str, Count]
    plans: list[dict[str, Any]]


class TaskStatus(TypedDict):
    """The Mesos state of a task."""

    name: str
    taskId: str | None
    taskState: str | None


#: By plan, phase and step.
TaskStatuses = dict[str, dict[str, dict[str, list[TaskStatus]]]]


class DataShard(TypedDict):
    """Which part of the data a task works on."""

    index: Count
    count: Count


class TaskInCluster(TypedDict):
    """What a task is told of the ClusterSpec."""

    address: str | None
    launched_with_epoch: int | None
    data_shard: NotRequired[DataShard]
    tf_config: NotRequired[dict[str, Any] | None]
    server: NotRequired[dict[str, Any] | None]


class TaskOfCluster(TaskInCluster):
    """What one task is told of the ClusterSpec."""

    epoch: Count


class Cluster(TypedDict):
    """The ClusterSpec; not ``complete`` where each task's part of it is left out."""

    epoch: Count
    strategy: str
    addressing: str
    addresses: dict[str, str]
    complete: bool
    tasks: dict[str, TaskInCluster]


class Evidence(TypedDict):
    """Why a task ended, as its sandbox tells."""

    summary: str
    last_lines: list[str]


class GpuUsage(TypedDict):
    """What a task uses of one GPU: the share of time in which it computes, from 0 to 1."""

    utilisation: float
    mem_bytes: Count


class Usage(TypedDict):
    """What a task uses now, and what it was given; percents are of one processor."""

    cpu_percent: float
    cpus: float
    mem_bytes: Count
    mem_limit_bytes: Count
    gpus: list[GpuUsage]
    steps_per_second: float | None


class TaskOfJob(TypedDict):
    """How far a task is; of one that was never launched the first three are known."""

    state: str | None
    attempt: Count
    report: dict[str, Any] | None
    #: Of a task that runs and whose runner tells it.
    usage: Usage | None
    task_id: NotRequired[str]
    epoch: NotRequired[int]
    failures: NotRequired[Count]
    agent_id: NotRequired[str]
    hostname: NotRequired[str]
    address: NotRequired[str]
    ports: NotRequired[list[int]]
    asked_port: NotRequired[int | None]
    launched_at: NotRequired[Time]
    changed_at: NotRequired[Time]
    reason: NotRequired[str]
    message: NotRequired[str]
    kill_reason: NotRequired[str]
    evidence: NotRequired[Evidence | None]
    #: The number of the unit of work that it has.
    unit: NotRequired[int | None]


class Verdict(TypedDict):
    """How the job ended."""

    outcome: str
    exit_code: int
    summary: str


class Incident(TypedDict):
    """One cause, and the members that died of it."""

    task: str
    task_id: str
    at: Time
    kind: str
    summary: str
    charged: bool
    #: The first members that died of it ...
    collateral: list[str]
    #: ... and how many more there were.
    more_collateral: int
    step: int | None


class UnitFailure(TypedDict):
    """A try of a unit that failed: which unit, counted from 0, when and why."""

    number: Count
    at: float
    why: str


class UnitCounts(TypedDict):
    """How many units of work there are in all, and in each state.

    ``kind`` is trial or shard; ``total`` is 0 while that is not known. ``failure`` is the newest
    one, which may be tried again.
    """

    kind: str
    total: Count
    counts: dict[str, Count]
    failure: UnitFailure | None


class Objective(TypedDict):
    """What a sweep looks for, and the parameters that it looks at by their logarithms."""

    metric: str
    goal: str
    logarithmic: list[str]


class Units(UnitCounts):
    """The units of work. ``usual_seconds`` is the median of what the newest ones took."""

    objective: Objective | None
    usual_seconds: float | None
    units: list[dict[str, Any]]


class Job(TypedDict):
    """Where the job stands. Times are unix seconds; null where something has not happened."""

    service: str
    phase: str
    why: str
    deployed: bool
    run: Count
    output: str | None
    attempt: Count
    restarts: Count
    retry_limit: Count
    started_at: Time | None
    finished_at: Time | None
    restart_at: Time | None
    restarting: list[str]
    absent: list[str]
    paused: list[str]
    configuration: str
    refused_configuration: str | None
    uninstalling: bool
    given_up: list[str]
    outcome_policy: str
    deciding_tasks: list[str]
    verdict: Verdict | None
    result: dict[str, Any] | None
    units: UnitCounts | None
    buys_machines: bool
    incidents: list[Incident]
    tasks: dict[str, TaskOfJob]


class Curve(TypedDict):
    """What a task told of its training, oldest first; the lists are of one length."""

    at: list[Time]
    step: list[int | None]
    metrics: Annotated[
        dict[str, list[float | str | None]],
        Field(description="by name: loss, accuracy and other metrics of the job; null: not told"),
    ]


class Range(TypedDict):
    """Of one metric of a run; ``least`` and ``most`` are those of its finite values."""

    least: float | None
    most: float | None
    newest: float


class KeptIncident(TypedDict):
    """A failure in a run, as it is kept."""

    at: Time
    task: str
    kind: str
    summary: str
    step: int | None


class BestValue(TypedDict):
    """Of the metric by which a run is told from others."""

    metric: str
    value: float


class Notes(TypedDict, total=False):
    """What a person says of a run."""

    tags: Annotated[list[Annotated[str, Field(max_length=50)]], Field(max_length=20)]
    note: Annotated[str, Field(max_length=2000)]


class KeptRun(TypedDict):
    """A run of the service, as it is kept when it is over, too."""

    service: str
    id: Annotated[str, Field(description="the number, and a part that no other run has")]
    run: int
    phase: str
    outcome: str | None
    summary: str
    uninstalled: bool
    started_at: Time | None
    finished_at: Time | None
    configuration: str
    options: Annotated[dict[str, Any], Field(description="those in force, secrets hidden")]
    incidents: Annotated[list[KeptIncident], Field(description="the newest hundred")]
    result: dict[str, Any]
    units: Annotated[
        dict[str, Any] | None, Field(description="the outcome of a sweep or batch that is over")
    ]
    step: Annotated[int | None, Field(description="the highest that was told")]
    metrics: Annotated[dict[str, Range], Field(description="over all points, by name")]
    best: Annotated[
        BestValue | None, Field(description="of the usual metric, or of a sweep's best trial")
    ]
    tags: Annotated[list[str], Field(description="labels that a user gave the run")]
    note: Annotated[str, Field(description="the note that a user gave the run")]


class Waiting(TypedDict):
    """Why a step is not complete."""

    plan: str
    status: Status
    why: str
    agents_by_reason: dict[str, Count]


class StorageProblem(TypedDict):
    """What keeps a part of a task's state from S3."""

    part: str
    about: str
    state: str
    kind: str
    summary: str
    hint: str
    since: Time | None


class StorageTrouble(StorageProblem):
    """The same, and in a sentence."""

    why: str


class Resources(TypedDict):
    """What an offer has of each resource; memory and disk in MB."""

    cpus: float
    mem: float
    disk: float
    gpus: Count


class HeldOffer(TypedDict):
    """An offer in hand."""

    offer_id: str
    agent_id: str
    hostname: str
    resources: Resources


class OffersOfLate(TypedDict):
    """Offers in hand, and the newest that did not help."""

    held: list[HeldOffer]
    handed_back: list[Offer]


class SilentAgents(TypedDict):
    """Machines that make no offer, all for the same reason."""

    why: str
    hostnames: Annotated[list[str], Field(description="the first of them")]
    count: Count
    told: Annotated[str, Field(description="the same as a sentence")]


class Wait(TypedDict):
    """Tasks that wait longer than a start takes; ``ends`` is what ends it, ``told`` all of it."""

    tasks: Names
    waits_for: Names
    since: Time
    why: str
    ends: str
    told: str


class Why(TypedDict):
    """Why the job is not further."""

    phase: str
    why: str
    not_updated: str | None
    registered: bool
    suppressed: bool | None
    tasks: dict[str, Waiting]
    waits: list[Wait]
    storage: dict[str, list[StorageTrouble]]
    silent_agents: list[SilentAgents]
    machines: dict[str, str]
    offers: OffersOfLate


class BoughtMachine(TypedDict):
    """A machine that was bought. ``state`` is starting, busy, idle, leaving, ending or ended."""

    machine_id: str
    purchase_id: str
    instance_type: str
    zone: str
    market: str
    hostnames: list[str]
    state: str
    gangs: list[str]
    ordered_at: float
    ended_at: float | None
    price_per_hour: float
    cost: float
    why: str


class OrderedMachines(TypedDict):
    """Machines of a purchase that the provider has not answered yet."""

    purchase_id: str
    count: int
    instance_type: str
    zone: str
    market: str
    gangs: list[str]
    ordered_at: float
    is_cancelled: bool
    trouble: str


class BackingOff(TypedDict):
    """What has failed and is tried again later."""

    what: str
    until: float
    why: str


class Capacity(TypedDict):
    """The machines that were bought. ``waits`` gives the reason for each gang without any."""

    machines: list[BoughtMachine]
    ended: list[BoughtMachine]
    ordered: list[OrderedMachines]
    price_per_hour: float
    spent: float
    budget: float | None
    bill: dict[str, Any]
    waits: dict[str, str]
    backing_off: list[BackingOff]


class Watched(TypedDict):
    """What ``/v1/events`` tells of, as each of them is shown by itself; plans by name."""

    job: Job
    why: Why
    plans: dict[str, Plan]


class Gauge(TypedDict):
    """The value of a gauge."""

    value: float | str


class Counter(TypedDict):
    """The value of a counter."""

    count: float


class Timer(TypedDict):
    """How often something happened, and how long it took on average."""

    count: int
    mean: float
    duration_units: Literal["seconds"]


class Metrics(TypedDict):
    """All metrics, as Dropwizard has them."""

    version: str
    gauges: dict[str, Gauge]
    counters: dict[str, Counter]
    histograms: dict[str, Any]
    meters: dict[str, Any]
    timers: dict[str, Timer]


class Health(TypedDict):
    """The health; the HTTP status is the same number."""

    value: int
    reasons: NotRequired[list[str]]


class Received(Message):
    """A command was taken; it is carried out afterwards."""

    why: NotRequired[str]


class PodAnswer(TypedDict):
    """The pod instance that a command is about."""

    pod: str
    tasks: list[str]


class Command(TypedDict):
    """A command, without a shell: a program and its arguments."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    command: Annotated[list[str], Field(min_length=1)]
    #: It is killed then; 300 if it is not said.
    timeout_seconds: NotRequired[Annotated[float, Field(gt=0, le=3600)]]


class CommandBegun(Message):
    """The id by which a command is asked about."""

    id: str


class CommandOutput(TypedDict):
    """Parts of what a command has printed, each with its stream, and how it has ended."""

    output: list[tuple[Literal["stdout", "stderr"], str]]
    next: Count
    exit_code: int | None
    timed_out: bool


class CopiedPath(TypedDict):
    """What of a sandbox is copied; `.` is all of it."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    path: str


class NoSuchTasks(Message):
    """Those of the body's names that are no tasks of the pod instance."""

    tasks: list[str]


class Unchanged(Message):
    """The configuration is the target already."""

    id: str


class Changed(Unchanged):
    """The new target, and the running tasks whose containers are replaced for it."""

    restarts: list[str]
    along: list[str]
    joining: list[str]
    leaving: list[str]


class Reason(TypedDict, total=False):
    """Why a caller orders something."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    why: Annotated[str, Field(max_length=300)]


class WantedConfiguration(TypedDict):
    """Which configuration is meant."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    id: UUID


#: The types that operations name, where they have no name of their own.
UNNAMED: dict[str, Any] = {
    "Any": Annotated[Any, Field(description="any JSON")],
    "Names": Names,
    "TaskInfos": list[TaskInfo],
    "Curves": dict[str, Curve],
    "Runs": list[KeptRun],
    "DebugPlans": InvalidInput | PlansOutline,
    "TaskStatuses": InvalidInput | TaskStatuses,
    "Reservations": dict[str, list[str]],
    "NoParameters": Annotated[
        dict[str, Any],
        Field(
            max_length=0,
            description="plans take no parameters: variables for the tasks are options",
        ),
    ],
    "Options": Annotated[
        dict[str, Any], Field(description="an options file: config-schemas/options.schema.json")
    ],
}
