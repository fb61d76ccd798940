"""Tasks to be placed, and their places: question and answer of ``core.placement.place``.

Read by all that ask for places: ``core.offers``, ``capacity``, the embedded cluster. Values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property

from dcos_tensorflow.core.model.gang import Misfit
from dcos_tensorflow.core.model.offer import AttributeValue
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import PlacementConstraint, TaskRole
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class TaskRequest:
    """One task that is to be placed.

    ``port_count`` ports are taken from the offer. The first of them is ``required_port`` (DNS
    addressing: nothing else will do), else ``preferred_port`` when it is offered and free. An
    empty ``region`` means any. ``mount`` is the size (MB) of the whole disk that it needs, 0 for
    none. With ``bound_by`` it goes to ``agent_id`` only, empty for nowhere; that text says why.
    """

    name: str
    role: TaskRole
    resources: Resources
    port_count: int
    preferred_port: int | None = None
    required_port: int | None = None
    constraints: tuple[PlacementConstraint, ...] = ()
    region: str = ""
    mount: float = 0.0
    agent_id: str = ""
    bound_by: str = ""


@dataclass(frozen=True)
class Assignment:
    """A task and the agent it goes to.

    ``offer_ids`` are all offers of that agent and Mesos role: one ACCEPT takes all assignments
    with the same ``offer_ids``. ``ports`` begins with the required or preferred port.
    """

    task: str
    role: TaskRole
    agent_id: str
    hostname: str
    address: str
    mesos_role: str
    offer_ids: tuple[str, ...]
    ports: tuple[int, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    zone: str | None = None
    region: str | None = None

    @property
    def name(self) -> str:
        """Return the task, as its record will call it."""
        return self.task


#: A task that has a place already: constraints count it by its role and by what its agent is.
RunningTask = TaskRecord | Assignment


@dataclass(frozen=True)
class Placement:
    """The answer to one call of :func:`place`.

    ``assignments`` and ``misfits`` are in the order of the requests; of a gang that is not
    complete the assignments show what would go where, and nothing of it may be launched.
    ``why_useless`` works out what ``useless_offers`` shows.
    """

    assignments: tuple[Assignment, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    why_useless: Callable[[], Mapping[str, str]] = field(default=dict, compare=False, repr=False)

    @property
    def complete(self) -> bool:
        """Say whether every requested task was placed."""
        return not self.misfits

    @cached_property
    def useless_offers(self) -> Mapping[str, str]:
        """Return the offers that could hold none of the tasks, not even alone, and why.

        Worked out when it is asked for: where all have a place it is not.
        """
        return self.why_useless()
