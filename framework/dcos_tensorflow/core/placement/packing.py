"""One attempt to pack tasks onto agents: what is still free, and the best agent for the next task.

``core.placement.place`` makes a :class:`Packing` per attempt, feeds it tasks in an order of its
choice and keeps the best attempt. Tasks that want the same are one :class:`Kind` and share their
vectors: after a task was placed only the changed rows are looked at again. A Packing changes while
it works and is never seen outside a decision.

What it prefers, most important first:

1. with GROUP_BY: the value with the fewest tasks;
2. agents without a maintenance window;
3. tasks without GPUs: agents without free GPUs, then those with the most cpus and memory to spare
   per free GPU; tasks with GPUs: agents whose other GPUs stay usable, then those whose GPUs they
   use up;
4. the agent with the least cpus and memory left afterwards (best fit);
5. the first by agent id and Mesos role.

A GPU whose agent has no cpus or memory left is never offered again (Mesos' allocator ignores
what is below 0.01 cpus and 32 MB). So a task without GPUs must leave 0.1 cpus and 64 MB for
each free GPU.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.model.resources import PortRanges
from dcos_tensorflow.core.model.spec import ConstraintOperator, PlacementConstraint, TaskRole
from dcos_tensorflow.core.placement.agent_table import CPUS, DISK, GPUS, MEM, AgentTable
from dcos_tensorflow.core.placement.constraints import (
    Column,
    allowed_agents,
    depends_on_counts,
    describe,
)

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Rows = slice | IntArray

ALL_ROWS = slice(None)
#: What a free GPU must keep on its agent, in thousandths of cpus and MB.
GPU_HEADROOM_CPUS = 100
GPU_HEADROOM_MEM = 64_000

# Weights of the preferences above; each outweighs all that follow it together.
_PER_GROUPED_TASK = 1e6
_MAINTENANCE = 1e5
_STRANDS_GPUS = 1e4
_HAS_FREE_GPUS = 10.0
_PER_GPU_LEFT = 10.0


@dataclass(frozen=True)
class Kind:
    """What one or more tasks want. ``need`` is a column of the table's resource matrix.

    ``eligible`` holds the rules that no placement changes: (what a refusal is called, rows that
    pass). ``counted`` are the constraints that depend on what was placed. ``mount`` is the size
    (MB) of the whole disk that it needs, 0 for none; ``bound_by`` says why it can go to one agent
    only.
    """

    role: TaskRole
    need: IntArray
    port_count: int
    required_port: int | None
    eligible: tuple[tuple[str, BoolArray], ...]
    counted: tuple[PlacementConstraint, ...]
    mount: float = 0.0
    bound_by: str = ""


@dataclass
class _Scores:
    """The score of each row for one kind: infinite where it does not fit; lower is better."""

    values: FloatArray
    seen_changes: int


@dataclass(frozen=True)
class Problem:
    """What all attempts of one decision share.

    ``columns`` has every field that a counted constraint looks at; ``counts`` the tasks that run,
    per role and field. ``spoken_for`` are ports that some task requires or prefers: others take
    them last.
    """

    table: AgentTable
    columns: Mapping[str, Column]
    counts: Mapping[tuple[TaskRole, str], IntArray]
    required_ports: frozenset[int]
    spoken_for: frozenset[int]
    salt: str


@dataclass
class Packing:
    """What is left of the agents after the tasks placed so far.

    ``anchors`` preset the value of rules such as ``rack:CLUSTER`` that no task has decided yet.
    """

    problem: Problem
    anchors: Mapping[tuple[TaskRole, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table = self.problem.table
        self.free = table.free.copy()
        self.ports_free = table.port_count.copy()
        self.counts = {key: counts.copy() for key, counts in self.problem.counts.items()}
        self.on_row: dict[int, list[str]] = {}
        self._mounts = {row: list(sizes) for row, sizes in table.mounts.items()}
        self._taken: dict[int, set[int]] = {}
        self._port_open = {
            port: table.offering_port(port) for port in sorted(self.problem.required_ports)
        }
        self._machine_rows = np.bincount(table.machine) if len(table) else table.machine
        self._changes: list[int] = []
        self._scores: dict[int, _Scores] = {}
        largest = table.free[[CPUS, MEM]].max(axis=1) if len(table) else np.ones(2)
        self._largest = np.maximum(largest, 1).astype(np.float64)
        self._maintenance = np.array(
            [offer.unavailable_from is not None for offer in table.offers], dtype=np.float64
        )

    def checks(self, kind: Kind, rows: Rows = ALL_ROWS) -> Iterator[tuple[str, BoolArray]]:
        """Yield every condition that does not count tasks: (what a refusal is called, passes)."""
        for label, passes in kind.eligible:
            yield label, passes[rows]
        left = self.free[:, rows] - kind.need[:, np.newaxis]
        yield "gpus", left[GPUS] >= 0
        yield "cpus", left[CPUS] >= 0
        yield "mem", left[MEM] >= 0
        yield "disk", left[DISK] >= 0
        if kind.mount:
            yield f"no MOUNT disk of {kind.mount:g} MB", self._has_mount(kind.mount)[rows]
        if kind.required_port is not None:
            label = f"port {kind.required_port} is not free"
            yield label, self._port_open[kind.required_port][rows]
        if kind.port_count:
            yield (
                f"fewer than {kind.port_count} free ports",
                self.ports_free[rows] >= (kind.port_count),
            )
        if kind.need[GPUS] == 0 and kind.need.any():
            yield "the rest is headroom for free gpus", _gpus_stay_usable(left)

    def rule_checks(self, kind: Kind) -> Iterator[tuple[str, BoolArray]]:
        """Yield the constraints that count tasks, as they stand now."""
        for constraint in kind.counted:
            passes = allowed_agents(
                constraint, self.problem.columns[constraint.field], self._counts(kind, constraint)
            )
            yield f"rejected by placement rule {describe(constraint)}", passes

    def fits(self, kind: Kind) -> BoolArray:
        """Say for every row whether one more task of ``kind`` fits now."""
        return np.isfinite(self.scores(kind))

    def scores(self, kind: Kind) -> FloatArray:
        """Return the score of every row for one more task; infinite where it does not fit."""
        scores = self._resource_scores(kind)
        for constraint, (_, passes) in zip(kind.counted, self.rule_checks(kind), strict=True):
            scores = np.where(passes, scores, np.inf)
            if constraint.operator is ConstraintOperator.GROUP_BY:
                column = self.problem.columns[constraint.field]
                counts = np.append(self._counts(kind, constraint), 0)
                scores = scores + _PER_GROUPED_TASK * counts[column.codes]
        return scores

    def best_row(self, kind: Kind) -> int | None:
        """Return the row that suits one more task of ``kind`` best; None when none does."""
        scores = self.scores(kind)
        if not len(scores):
            return None
        row = int(scores.argmin())
        return row if np.isfinite(scores[row]) else None

    def put(self, kind: Kind, row: int, task: str, preferred_port: int | None) -> tuple[int, ...]:
        """Take what ``task`` needs from ``row`` and return its ports."""
        self.free[:, row] -= kind.need
        self.on_row.setdefault(row, []).append(task)
        for (role, name), counts in self.counts.items():
            code = self.problem.columns[name].codes[row]
            if role is kind.role and code >= 0:
                counts[code] += 1
        if kind.mount:
            # The smallest that will do: so the ACCEPT chooses, too (mesos.reservations).
            self._mounts[row].remove(min(m for m in self._mounts[row] if m >= kind.mount))
        self._changes.append(row)
        ports = self._choose_ports(kind, row, task, preferred_port)
        for port in ports:
            self._take_port(port, row)
        return ports

    def _has_mount(self, size: float) -> BoolArray:
        found = np.zeros(len(self.problem.table), dtype=np.bool_)
        for row, sizes in self._mounts.items():
            found[row] = any(each >= size for each in sizes)
        return found

    def _counts(self, kind: Kind, constraint: PlacementConstraint) -> IntArray:
        """Return tasks per value; an undecided CLUSTER is decided by its anchor."""
        key = (kind.role, constraint.field)
        counts = self.counts[key]
        undecided = constraint.operator is ConstraintOperator.CLUSTER and not counts.any()
        if undecided and key in self.anchors:
            counts = counts.copy()
            counts[self.anchors[key]] = 1
        return counts

    def _resource_scores(self, kind: Kind) -> FloatArray:
        """Return the scores but for counted rules; only rows that changed are worked out again."""
        known = self._scores.get(id(kind))
        if known is None:
            known = _Scores(self._score(kind, ALL_ROWS), len(self._changes))
            self._scores[id(kind)] = known
        elif known.seen_changes < len(self._changes):
            rows = np.unique(np.array(self._changes[known.seen_changes :], dtype=np.int64))
            known.values[rows] = self._score(kind, rows)
            known.seen_changes = len(self._changes)
        return known.values

    def _score(self, kind: Kind, rows: Rows) -> FloatArray:
        fits = np.ones(self.ports_free[rows].shape, dtype=np.bool_)
        for _, passes in self.checks(kind, rows):
            fits &= passes
        left = self.free[:, rows] - kind.need[:, np.newaxis]
        share_left = left[[CPUS, MEM]] / self._largest[:, np.newaxis]
        score = share_left.mean(axis=0) + _MAINTENANCE * self._maintenance[rows]
        gpus_left = left[GPUS]
        if kind.need[GPUS] > 0:
            score += _STRANDS_GPUS * ~_gpus_stay_usable(left) + _PER_GPU_LEFT * gpus_left
        elif gpus_left.any():
            per_gpu = share_left.min(axis=0) / np.maximum(gpus_left, 1)
            score += (gpus_left > 0) * (_HAS_FREE_GPUS * (2 - np.clip(per_gpu, 0, 1)))
        return np.where(fits, score, np.inf)

    def _choose_ports(
        self, kind: Kind, row: int, task: str, preferred_port: int | None
    ) -> tuple[int, ...]:
        """Choose distinct free ports: the required or preferred one, then by the task's name.

        The rest starts at a place among the free ports that follows from salt and task name, and
        goes on upwards and around. Two services with different salts so begin at different
        places: the port that one has just released is not what the other takes next, while a
        task that comes back to an agent finds its old ports, if they are free.
        """
        table = self.problem.table
        offered = table.ports[row]
        taken = self._taken.get(int(table.machine[row]), set())
        first = kind.required_port if kind.required_port is not None else preferred_port
        chosen: list[int] = []
        if kind.port_count and first is not None and first in offered and first not in taken:
            chosen.append(first)
        start = zlib.crc32(f"{self.problem.salt}/{task}".encode())
        for shunned in (self.problem.spoken_for, frozenset[int]()):
            for port in _ports_from(offered, start):
                if len(chosen) >= kind.port_count:
                    break
                if port not in taken and port not in shunned and port not in chosen:
                    chosen.append(port)
        return tuple(chosen)

    def _take_port(self, port: int, row: int) -> None:
        """Mark ``port`` as used, also for other agents on the same machine that offer it."""
        table = self.problem.table
        machine = int(table.machine[row])
        self._taken.setdefault(machine, set()).add(port)
        rows = np.array([row], dtype=np.int64)
        if self._machine_rows[machine] > 1:
            rows = np.flatnonzero(table.offering_port(port) & (table.machine == machine))
            self._changes.extend(int(other) for other in rows if other != row)
        self.ports_free[rows] -= 1
        if port in self._port_open:
            self._port_open[port][rows] = False


def _gpus_stay_usable(left: IntArray) -> BoolArray:
    """Say whether what is left on each row keeps its free GPUs worth offering."""
    usable: BoolArray = (left[CPUS] >= GPU_HEADROOM_CPUS * left[GPUS]) & (
        left[MEM] >= GPU_HEADROOM_MEM * left[GPUS]
    )
    return usable


def _ports_from(offered: PortRanges, start: int) -> Iterator[int]:
    """Yield every offered port once, beginning at number ``start`` modulo their count."""
    skip = start % max(len(offered), 1)
    head: list[tuple[int, int]] = []
    for position, (first, last) in enumerate(offered.ranges):
        if skip <= last - first:
            yield from range(first + skip, last + 1)
            for later_first, later_last in offered.ranges[position + 1 :]:
                yield from range(later_first, later_last + 1)
            head.append((first, first + skip - 1))
            break
        head.append((first, last))
        skip -= last - first + 1
    for first, last in head:
        yield from range(first, last + 1)


def columns_for(
    table: AgentTable, fields: Iterable[str], more_values: Mapping[str, frozenset[str]]
) -> dict[str, Column]:
    """Return the columns of ``fields``; ``more_values`` are values of tasks on other agents."""
    return {name: table.column(name, more_values.get(name, ())) for name in sorted(set(fields))}


def static_check(constraint: PlacementConstraint, table: AgentTable) -> tuple[str, BoolArray]:
    """Return the answer of a constraint that counts no tasks. See :func:`depends_on_counts`."""
    assert not depends_on_counts(constraint)
    column = table.column(constraint.field)
    passes = allowed_agents(constraint, column, np.zeros(len(column.values), dtype=np.int64))
    return f"rejected by placement rule {describe(constraint)}", passes
