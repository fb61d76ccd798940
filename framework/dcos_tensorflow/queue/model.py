"""The nouns of a queue: needs, jobs, teams, hosts, and its decisions.

Frozen values that the other modules of this room pass on. Amounts are whole numbers, so that taking
and giving back adds up to nothing: thousandths of a CPU, MiB, thousandths of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from dcos_tensorflow.records import dataclass

#: An attribute of a host, and the values of it that are allowed.
Constraint: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class TaskNeed:
    """The resources that one task takes of one host."""

    cpu_milli: int
    mem_mib: int
    gpu_milli: int = 0
    #: All must hold of the host.
    where: tuple[Constraint, ...] = ()


#: The tasks of a job that run together or not at all: a need, and of how many tasks.
GangNeed: TypeAlias = tuple[tuple[TaskNeed, int], ...]

#: Where a gang runs: the host's name, the need, and of how many tasks.
Placement: TypeAlias = tuple[tuple[str, TaskNeed, int], ...]


@dataclass(frozen=True)
class Host:
    """A machine of the cluster, with what it has for jobs of this queue."""

    name: str
    cpu_milli: int
    mem_mib: int
    gpu_milli: int = 0
    attributes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: The share of an amount of GPU that is charged for one of this host: 1 is a whole one.
    gpu_weight: float = 1.0
    #: It will be gone soon: what it has is given to no job, and jobs leave it that lose nothing.
    goes: bool = False


@dataclass(frozen=True)
class Team:
    """A team that shares the cluster with others."""

    name: str
    #: The part of the cluster that is the team's own, of its dominant resource, 0 to 1.
    guarantee: float = 0.0
    #: Its part of the rest, compared with other teams.
    weight: float = 1.0
    #: The most that it may ever have, 0 to 1.
    limit: float = 1.0
    #: All must hold of a host that its tasks run on.
    where: tuple[Constraint, ...] = ()
    #: Nothing new of it starts.
    frozen: bool = False


@dataclass(frozen=True)
class QueuedJob:
    """A job as it was submitted.

    A sweep or a batch has a gang for each slot, and as many slots as there is room for.
    """

    id: str
    team: str
    gang: GangNeed
    submitted_at: float
    priority: int = 0
    #: It is ended when it has run so long, in seconds.
    time_limit: float | None = None
    #: When its author needs the result.
    deadline: float | None = None
    #: Runs when that job has succeeded.
    after: str | None = None
    #: The most slots that it can use; 1 of a training.
    slots: int = 1


class JobState(StrEnum):
    """Where a job stands in the queue."""

    WAITING = "waiting"
    #: Its place is found, but others have to leave it first.
    PROMISED = "promised"
    #: Admitted: its scheduler is started, or runs.
    RUNNING = "running"
    #: Asked to publish a checkpoint and to end; it goes back to its place in the line.
    GIVING_WAY = "giving way"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing follows it."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True)
class Interval:
    """An estimate in seconds, with its error."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True)
class JobProgress:
    """The last report of a job's scheduler on its training."""

    at: float
    #: Until it ends, by its measured speed and the steps to go; None where it cannot say.
    rest: Interval | None = None
    #: Seconds of work that it repeats if it ends now without a new checkpoint.
    unsaved_seconds: float | None = None
    #: Whether it can publish a checkpoint when it is asked to give way.
    can_save: bool = True


@dataclass(frozen=True)
class Rules:
    """The settings of the queue as a whole; times in seconds."""

    half_life: float = 86_400.0
    #: A team that waits for what is its own has it back after so long.
    reclaim_after: float = 300.0
    #: The first of the line has a room that others only fragment after so long.
    patience: float = 14_400.0
    #: How long a job may take to publish a checkpoint and end.
    grace: float = 60.0
    #: A job that began less than that ago does not give way.
    least_run: float = 600.0
    #: Nor one that gave way less than that ago.
    between_giving_way: float = 3_600.0
    #: Nothing new starts.
    drained: bool = False
    #: Machines may come for what waits: what no host of today holds is no mistake.
    grows: bool = False


@dataclass(frozen=True)
class Admission:
    """Start the job's scheduler; its gang has a place."""

    job: str
    placement: Placement
    why: str


@dataclass(frozen=True)
class GiveWay:
    """Ask the job to publish a checkpoint and to end; it goes on from there when it has a place."""

    job: str
    #: For which job; None where its time is over, or its host goes.
    to: str | None
    why: str


@dataclass(frozen=True)
class Resize:
    """Let a sweep or a batch have so many slots."""

    job: str
    slots: int
    why: str


@dataclass(frozen=True)
class QueueDecision:
    """The orders to the service of the queue, to be done in this order."""

    give_way: tuple[GiveWay, ...] = ()
    admit: tuple[Admission, ...] = ()
    resize: tuple[Resize, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """Why a job waits: a kind to decide by, a sentence to read."""

    kind: str
    why: str
