"""The tasks that restart when a member is lost: TensorFlow's behaviour as a table, one row a fact.

Asked by ``core.failures.incidents`` when a member fails and by ``core.restarts.membership`` when
one has moved. All rows were measured with TensorFlow 2.15 and 2.21 (docs/recovery.md). Each
strategy's processes notice a loss in their own way: a ParameterServerStrategy chief goes on without
a worker, MultiWorkerMirrored members end when one of them does, and sessions wait for ever for a
peer that has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, split_task_name


class Loss(StrEnum):
    """How a task was lost, as its peers see it."""

    #: The process ended; the kernel closed its connections, and it can be back at its address.
    PROCESS = "process death"
    #: It is at another address now, or is new.
    MOVED = "moved"
    #: Its machine is gone or cut off: no connection was closed, TensorFlow notices nothing.
    SILENT = "silent loss"
    #: The training does not go on, and the task at fault is not known.
    STALLED = "stalled"


class Part(StrEnum):
    """What a member is to the others. The decider is the chief where no task has that role."""

    CHIEF = "chief"
    WORKER = "worker"
    PS = "ps"


class Who(StrEnum):
    """The members that a row names."""

    IT = "it"
    CHIEF = "chief"
    WORKERS = "workers"
    ALL = "all"


_IT = frozenset({Who.IT})
_IT_AND_CHIEF = frozenset({Who.IT, Who.CHIEF})
_ALL_BUT_PS = frozenset({Who.IT, Who.CHIEF, Who.WORKERS})
_ALL = frozenset({Who.ALL})

#: The members that restart, by strategy, by what the lost member is, by how it was lost.
RESTART_SETS: Mapping[Strategy, Mapping[tuple[Part, Loss], frozenset[Who]]] = {
    Strategy.PARAMETER_SERVER: {
        (Part.WORKER, Loss.PROCESS): _IT,
        (Part.WORKER, Loss.MOVED): _IT_AND_CHIEF,
        (Part.WORKER, Loss.SILENT): _IT_AND_CHIEF,
        (Part.PS, Loss.PROCESS): _IT_AND_CHIEF,
        (Part.PS, Loss.MOVED): _IT_AND_CHIEF,
        # Workers that do not restart stay stuck on the dead connection (measured).
        (Part.PS, Loss.SILENT): _ALL_BUT_PS,
        (Part.CHIEF, Loss.PROCESS): _IT,
        (Part.CHIEF, Loss.MOVED): _IT,
        (Part.CHIEF, Loss.SILENT): _IT,
    },
    Strategy.MULTI_WORKER: {
        (part, loss): _ALL for part in Part for loss in (Loss.PROCESS, Loss.MOVED, Loss.SILENT)
    },
    Strategy.BETWEEN_GRAPH: {
        (Part.WORKER, Loss.PROCESS): _IT,
        # Every ps still dials the old address to pull gradients.
        (Part.WORKER, Loss.MOVED): _ALL,
        (Part.WORKER, Loss.SILENT): _IT,
        (Part.PS, Loss.PROCESS): _IT,
        (Part.PS, Loss.MOVED): _ALL_BUT_PS,
        (Part.PS, Loss.SILENT): _ALL_BUT_PS,
        (Part.CHIEF, Loss.PROCESS): _IT,
        (Part.CHIEF, Loss.MOVED): _ALL,
        (Part.CHIEF, Loss.SILENT): _IT,
    },
    Strategy.INDEPENDENT: {
        (part, loss): _IT for part in Part for loss in (Loss.PROCESS, Loss.MOVED, Loss.SILENT)
    },
}

#: Which task waits for which is not known: all start again; independent tasks wait for none.
STALLED_SETS: Mapping[Strategy, frozenset[Who]] = {
    Strategy.PARAMETER_SERVER: _ALL,
    Strategy.MULTI_WORKER: _ALL,
    Strategy.BETWEEN_GRAPH: _ALL,
    Strategy.INDEPENDENT: _IT,
}


#: Whose process ends by itself because of whose loss. In every other case a peer waits or goes on,
#: and an error of its own is its own.
ENDS_WITH: Mapping[Strategy, frozenset[tuple[Part, Part]]] = {
    Strategy.PARAMETER_SERVER: frozenset({(Part.PS, Part.CHIEF)}),
    Strategy.MULTI_WORKER: frozenset((lost, peer) for lost in Part for peer in Part),
    Strategy.BETWEEN_GRAPH: frozenset(),
    Strategy.INDEPENDENT: frozenset(),
}


def ends_with(strategy: Strategy, decider: str, lost: str, peer: str) -> bool:
    """Say whether the process of ``peer`` ends because that of ``lost`` did."""
    return (part_of(lost, decider), part_of(peer, decider)) in ENDS_WITH[strategy]


def part_of(name: str, decider: str) -> Part:
    """Return what a member is to the others."""
    if name == decider:
        return Part.CHIEF
    return Part.PS if split_task_name(name)[0] is TaskRole.PS else Part.WORKER


def restart_set(
    strategy: Strategy, decider: str, members: Iterable[str], losses: Mapping[str, Loss]
) -> tuple[str, ...]:
    """Return the members that restart, in the order of ``members``.

    ``losses`` says which members were lost and how; ``strategy`` is never AUTO. Names that are not
    among the ``members`` (scaled away, done without) are losses too, but do not restart themselves.
    """
    in_order = tuple(members)
    named: set[Who] = set()
    chosen: set[str] = set()
    for name, loss in losses.items():
        part = part_of(name, decider)
        row = (
            STALLED_SETS[strategy] if loss is Loss.STALLED else RESTART_SETS[strategy][(part, loss)]
        )
        named |= row
        if Who.IT in row:
            chosen.add(name)
    if Who.ALL in named:
        return in_order
    if Who.CHIEF in named:
        chosen.add(decider)
    if Who.WORKERS in named:
        chosen.update(name for name in in_order if part_of(name, decider) is Part.WORKER)
    return tuple(name for name in in_order if name in chosen) if chosen else ()
