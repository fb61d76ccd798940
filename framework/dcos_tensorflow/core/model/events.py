"""Everything that can happen to a service, as frozen values.

Mesos callbacks, timers, HTTP verbs, runner reports and the outcomes of actions all become one of
these and go through one inbox to ``core.step.step``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from dcos_tensorflow.core.model.gang import MAIN
from dcos_tensorflow.core.model.known_agents import SilentAgents
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Registered:
    """The master accepted our subscription. ``region`` is its own, empty where it has none."""

    framework_id: str
    master: str
    region: str = ""


@dataclass(frozen=True)
class Disconnected:
    """The subscription ended; all offers are void (Mesos scheduler API, "Disconnections")."""

    why: str


@dataclass(frozen=True)
class FrameworkRefused:
    """The master will not have us: an ERROR event or a 4xx to SUBSCRIBE. Never retried blindly."""

    message: str


@dataclass(frozen=True)
class FormerLifeKnown:
    """What Mesos knows of a service of which nothing was stored.

    ``tasks`` maps the ids of its tasks to agent ids. Without a ``framework_id`` it knows nothing.
    """

    framework_id: str = ""
    tasks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OffersReceived:
    """New offers."""

    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class OfferRescinded:
    """An offer is no longer valid."""

    offer_id: str


@dataclass(frozen=True)
class InverseOffer:
    """A request to leave an agent before it goes away for maintenance. Advisory in Mesos.

    ``start`` is when the agent goes, in unix seconds; ``duration`` is for how long, in seconds,
    None when it is not known. An empty ``agent_id`` means all agents that we have tasks on.
    """

    inverse_offer_id: str
    agent_id: str
    start: float
    duration: float | None


@dataclass(frozen=True)
class InverseOffersReceived:
    """Agents of ours are to go away; the answer is AcceptInverse."""

    offers: tuple[InverseOffer, ...]


@dataclass(frozen=True)
class InverseOfferRescinded:
    """An inverse offer is no longer valid: the schedule changed, or the agent went."""

    inverse_offer_id: str


@dataclass(frozen=True)
class TaskUpdate:
    """A status update. ``uuid`` is empty for those that the master made: never acknowledged."""

    task_id: str
    state: TaskState
    agent_id: str = ""
    mesos_state: str = ""
    source: str = ""
    reason: str = ""
    message: str = ""
    uuid: str = ""
    container_address: str = ""


@dataclass(frozen=True)
class AgentFailed:
    """An agent was removed. A hint only: updates and reconciliation tell about its tasks."""

    agent_id: str


@dataclass(frozen=True)
class CallFailed:
    """A call to the master did not succeed.

    ``ambiguous`` is true when the master may have acted on it all the same (bytes were sent and
    no answer came): such an ACCEPT is reconciled, never repeated.
    """

    call: str
    message: str
    ambiguous: bool
    offer_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()
    resource_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunnerReported:
    """What a task runner answered to GET /v1/status (docs/task-runner.md)."""

    task_id: str
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EvidenceFound:
    """Why a task ended, its result and last progress, read from its sandbox after its end."""

    task_id: str
    summary: str
    last_lines: tuple[str, ...] = ()
    error: OwnError | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    #: As a report has it under this name; empty where the sandbox tells none.
    progress: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AgentsSeen:
    """Which machines make no offers, as the master says; none while nothing waits."""

    silent: tuple[SilentAgents, ...]


@dataclass(frozen=True)
class QuotaSeen:
    """What the master says of our Mesos role's quota; None when there is none, or nothing waits."""

    quota: Quota | None


@dataclass(frozen=True)
class StopRequested:
    """The job is to end: Ctrl-C, an API verb, uninstall."""

    why: str


class PlanVerb(StrEnum):
    """What can be asked of a plan, a phase or a step (SDK docs, "Plan Operations")."""

    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    FORCE_RESTART = "force-restart"
    FORCE_COMPLETE = "force-complete"


@dataclass(frozen=True)
class PlanCommand:
    """An operator steers a plan of one gang. ``phase`` and ``step`` are names.

    Empty means the whole above.
    """

    plan: str
    verb: PlanVerb
    phase: str = ""
    step: str = ""
    gang: str = MAIN


class PodVerb(StrEnum):
    """What can be asked of single tasks (SDK: pod commands; a task of ours is a pod of one)."""

    #: Start the process again, in its container.
    RESTART = "restart"
    #: A new container, on another agent where there is one.
    REPLACE = "replace"
    #: Stop the process and keep the container.
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True)
class PodCommand:
    """An operator asks something of tasks, by name."""

    verb: PodVerb
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class ConfigurationChanged:
    """The options have changed: what runs is to become this. Already validated by itself."""

    spec: ServiceSpec


@dataclass(frozen=True)
class UninstallRequested:
    """End everything and leave nothing behind. Cannot be taken back."""

    why: str


@dataclass(frozen=True)
class UnitsGiven:
    """The producer's next units of work, the answer to UnitsWanted. Whatever is known is ignored.

    ``first`` is the number of the first of them, ``payloads`` what each of them is: JSON objects of
    at most 4 KB. With ``last`` no more will ever come. None and not ``last``: it waits for results.
    ``total`` is how many there will be in all; 0 where that is not known.
    """

    first: int
    payloads: tuple[Mapping[str, Any], ...] = ()
    last: bool = False
    total: int = 0


@dataclass(frozen=True)
class UnitsRefused:
    """The producer has no units for us, and ``why``: for ever, or because of what may pass."""

    why: str
    is_final: bool


@dataclass(frozen=True)
class UnitPruned:
    """The producer stops a unit: it would not be a good one. ``result`` is what was known of it."""

    number: int
    why: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CapacityNoted:
    """Records of purchases are to be kept; None forgets one. Answered by CapacityKept.

    ``number`` is the sender's own. No machine is bought or given back before the answer.
    """

    number: int
    changes: Mapping[str, CapacityRecord | None] = field(default_factory=dict)
    #: Why nothing is bought, by the gang that waits; for people.
    told: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleaseRequested:
    """An operator wants idle machines that were bought to go now."""

    why: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = (
    Registered
    | Disconnected
    | FrameworkRefused
    | FormerLifeKnown
    | OffersReceived
    | OfferRescinded
    | InverseOffersReceived
    | InverseOfferRescinded
    | TaskUpdate
    | AgentFailed
    | CallFailed
    | RunnerReported
    | EvidenceFound
    | QuotaSeen
    | AgentsSeen
    | StopRequested
    | PlanCommand
    | PodCommand
    | ConfigurationChanged
    | UninstallRequested
    | UnitsGiven
    | UnitsRefused
    | UnitPruned
    | CapacityNoted
    | ReleaseRequested
    | Tick
)
