"""One way to pack tasks onto agents: the free resources, and the best agent for the next task.

``core.placement.search`` makes a :class:`Packing` per order that it tries, feeds it tasks in that
order and keeps the best. Tasks that want the same are one :class:`Kind` and share a vector with a
score per row. It is worked out once over all rows; after that only rows that a placed task changed
are looked at again, one by one. So a task costs the same few operations on one row or on many
agents, and a search for the least score. A Packing changes while it works and is never seen outside
a decision.

Its preferences, most important first:

1. with GROUP_BY: the value with the fewest tasks;
2. agents without a maintenance window;
3. tasks without GPUs: agents without free GPUs, then those with the most cpus and memory to spare
   per free GPU; tasks with GPUs: agents whose other GPUs stay usable, then those whose GPUs they
   use up;
4. the agent with the least cpus and memory left afterwards (best fit);
5. the first by agent id and Mesos role.

Points 3 and 4 are those of ``placement.fitness: pack_gpu``, the default; ``core.placement.fitness``
has the others. GPUs of an agent stay usable with each of them.

A GPU whose agent has no cpus or memory left is never offered again (Mesos' allocator ignores
less than 0.01 cpus and 32 MB). So a task without GPUs must leave 0.1 cpus and 64 MB for
each free GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.placement.agent_table import MACHINE, AgentTable
from dcos_tensorflow.core.placement.agents import (
    CPUS,
    DISK,
    GPUS,
    MEM,
    PORTS,
    UNAVAILABLE,
    choose_ports,
)
from dcos_tensorflow.core.placement.columns import BoolArray, Column, IntArray, allowed_by_counts
from dcos_tensorflow.core.placement.constraints import describe, looks_at_one_value, refuse_broken
from dcos_tensorflow.core.placement.fitness import MAINTENANCE, Preference
from dcos_tensorflow.core.spec.service_spec import (
    ConstraintOperator,
    PlacementConstraint,
    PlacementSpec,
    TaskRole,
)
from dcos_tensorflow.records import dataclass

FloatArray = NDArray[np.float64]
#: All rows, some, or one. Of one row an array yields a scalar: the same formulas work on it.
Rows = slice | IntArray | int
Answers = Any

ALL_ROWS = slice(None)
#: What a free GPU must keep on its agent, in thousandths of cpus and MB.
GPU_HEADROOM_CPUS = 100
GPU_HEADROOM_MEM = 64_000

# Weights of the preferences above; each outweighs all that follow it together.
_PER_GROUPED_TASK = 1e6
_STRANDS_GPUS = 1e4
_HAS_FREE_GPUS = 10.0
_PER_GPU_LEFT = 10.0

#: Scores of so many kinds are kept; those of another kind take the place of the oldest.
_KEPT_SCORES = 256
#: From so many changes on, all changed rows are worked out together.
_MANY_CHANGES = 12
_AMOUNTS = ((GPUS, "gpus"), (CPUS, "cpus"), (MEM, "mem"), (DISK, "disk"))


@dataclass(frozen=True, eq=False)
class Kind:
    """What one or more tasks want. ``need`` has an amount per resource: CPUS, MEM ... PORTS.

    ``eligible`` holds the rules that no placement changes: (what a refusal is called, rows that
    pass); ``allowed`` are the rows that pass them all, None for every row. ``counted`` are the
    constraints that depend on what was placed. ``mount`` is the size (MB) of the whole disk that
    it needs, 0 for none; ``bound_by`` says why it can go to one agent only. ``rules`` is how
    choosy it is, ``size`` its largest share of the largest agent.
    """

    role: TaskRole
    need: tuple[int, int, int, int, int]
    required_port: int | None
    eligible: tuple[tuple[str, BoolArray], ...]
    allowed: BoolArray | None
    counted: tuple[PlacementConstraint, ...]
    mount: float
    bound_by: str
    rules: int
    size: float


@dataclass(frozen=True)
class Problem:
    """What all packings of one decision share.

    ``columns`` has every field that a counted constraint looks at; ``counts`` the tasks that run,
    per role and counted constraint. ``spoken_for`` are ports that some task requires or prefers:
    others take them last. ``preferred`` is what is preferred among the rows that hold a task.
    """

    table: AgentTable
    columns: Mapping[str, Column]
    counts: Mapping[tuple[TaskRole, PlacementConstraint], IntArray]
    required_ports: frozenset[int]
    spoken_for: frozenset[int]
    salt: str
    preferred: PlacementSpec


@dataclass
class _Scores:
    """The score of each row for one kind: infinite where it does not fit; lower is better."""

    values: FloatArray
    seen_changes: int


class _Rule:
    """A constraint that counts tasks, for the tasks of one role.

    ``levels`` has a number per value that is added to the scores of its rows: infinite where no
    more task may go, more for values with more tasks where they are to be spread. The last is for
    rows without a value. ``anchor`` presets the value of a ``CLUSTER`` that no task has decided.
    """

    def __init__(
        self, constraint: PlacementConstraint, column: Column, counts: IntArray, anchor: int | None
    ) -> None:
        refuse_broken(constraint)
        self.constraint, self.codes = constraint, column.codes
        self.label = f"rejected by placement rule {describe(constraint)}"
        self._counts, self._anchor = counts, anchor
        self._spreads = constraint.operator is ConstraintOperator.GROUP_BY
        self.levels = self._levels()

    def one_more(self, code: int) -> IntArray | None:
        """Count one more task on value ``code``; return the rows that changed by it."""
        before = self.levels
        self._counts[code] += 1
        if looks_at_one_value(self.constraint):
            allowed = allowed_by_counts(self.constraint, self._counts[code : code + 1])
            if bool(allowed[0]) == np.isfinite(before[code]):
                return None
            before[code] = np.inf
            return np.flatnonzero(self.codes == code)
        self.levels = self._levels()
        changed = np.flatnonzero(self.levels != before)
        if len(changed) == 1:
            return np.flatnonzero(self.codes == changed[0])
        return np.flatnonzero((self.levels != before)[self.codes]) if len(changed) else None

    def _levels(self) -> FloatArray:
        counts = self._counts
        if self._anchor is not None and not counts.any():
            counts = counts.copy()
            counts[self._anchor] = 1
        levels = np.full(len(counts) + 1, np.inf)
        allowed = np.flatnonzero(allowed_by_counts(self.constraint, counts))
        levels[allowed] = _PER_GROUPED_TASK * counts[allowed] if self._spreads else 0.0
        return levels


@dataclass
class Packing:
    """What is left of the agents after the tasks placed so far.

    ``anchors`` preset the value of rules such as ``rack:CLUSTER`` that no task has decided yet.
    """

    problem: Problem
    anchors: Mapping[tuple[TaskRole, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem, table = self.problem, self.problem.table
        #: An array per resource, CPUS ... PORTS.
        self.free = list(table.free.copy())
        self.on_row: dict[int, list[str]] = {}
        self._mounts: dict[int, list[float]] | None = None
        self._machine = table.column(MACHINE).codes
        self._rows_of_machine = np.bincount(self._machine) if len(table) else self._machine
        self._taken: dict[int, set[int]] = {}
        self._port_open = {
            port: table.offering_port(port) for port in sorted(problem.required_ports)
        }
        self._rules = {
            (role, rule): _Rule(
                rule,
                problem.columns[rule.field],
                counts.copy(),
                self.anchors.get((role, rule.field))
                if rule.operator is ConstraintOperator.CLUSTER
                else None,
            )
            for (role, rule), counts in problem.counts.items()
        }
        self._changes: list[IntArray | int] = []
        self._scores: dict[Kind, _Scores] = {}
        self._largest = [int(amount) for amount in table.free.max(axis=1, initial=1)]
        self._preference = Preference(problem.preferred, self._largest)
        self._unavailable = table.numbers[UNAVAILABLE]
        self._has_gpus = bool(self.free[GPUS].any())
        self._fullness: FloatArray = self._share_free(ALL_ROWS)

    def checks(self, kind: Kind) -> Iterator[tuple[str, BoolArray]]:
        """Yield every condition of every row: (what a refusal is called, whether it passes)."""
        yield from kind.eligible
        for rule in self._rules_of(kind):
            yield rule.label, np.isfinite(rule.levels)[rule.codes]
        yield from self._amount_checks(kind, ALL_ROWS)

    def fits(self, kind: Kind) -> BoolArray:
        """Say for every row whether one more task of ``kind`` fits now."""
        return np.isfinite(self._scores_of(kind))

    def fits_on(self, kind: Kind, row: int) -> bool:
        """Say whether one more task of ``kind`` fits on ``row`` now."""
        return bool(np.isfinite(self._scores_of(kind)[row]))

    def best_row(self, kind: Kind) -> int | None:
        """Return the row that suits one more task of ``kind`` best; None when none does."""
        scores = self._scores_of(kind)
        if not len(scores):
            return None
        row = int(scores.argmin())
        return row if scores[row] < np.inf else None

    def put(self, kind: Kind, row: int, task: str, preferred_port: int | None) -> tuple[int, ...]:
        """Take what ``task`` needs from ``row`` and return its ports."""
        for resource, _ in _AMOUNTS:
            if kind.need[resource]:
                self.free[resource][row] -= kind.need[resource]
        self._fullness[row] = self._share_free(row)
        self.on_row.setdefault(row, []).append(task)
        if kind.mount:
            # The smallest that will do: so the ACCEPT chooses, too (mesos.reservations).
            sizes = self._free_mounts()[row]
            sizes.remove(min(size for size in sizes if size >= kind.mount))
        self._changes.append(row)
        self._count(kind.role, row)
        ports = self._ports_for(kind, row, task, preferred_port)
        for port in ports:
            self._take_port(port, row)
        return ports

    def _count(self, role: TaskRole, row: int) -> None:
        """Count one more task of ``role``; note the rows that its rules judge otherwise now."""
        for (other, constraint), rule in self._rules.items():
            if other is not role:
                continue
            code = int(self.problem.columns[constraint.field].codes[row])
            if code >= 0:
                rows = rule.one_more(code)
                if rows is not None:
                    self._changes.append(rows)

    def _rules_of(self, kind: Kind) -> list[_Rule]:
        return [self._rules[kind.role, constraint] for constraint in kind.counted]

    def _amount_checks(self, kind: Kind, rows: Rows) -> Iterator[tuple[str, Answers]]:
        """Yield the conditions that look at what is free."""
        for resource, label in _AMOUNTS:
            if kind.need[resource]:
                yield label, self.free[resource][rows] >= kind.need[resource]
        if kind.mount:
            yield f"no MOUNT disk of {kind.mount:g} MB", self._has_mount(kind.mount)[rows]
        if kind.required_port is not None:
            label = f"port {kind.required_port} is not free"
            yield label, self._port_open[kind.required_port][rows]
        if kind.need[PORTS]:
            label = f"fewer than {counted(int(kind.need[PORTS]), 'free port')}"
            yield label, self.free[PORTS][rows] >= kind.need[PORTS]
        if self._has_gpus and not kind.need[GPUS] and any(kind.need[:PORTS]):
            yield "the rest is headroom for free gpus", self._gpus_stay_usable(kind, rows)

    def _free_mounts(self) -> dict[int, list[float]]:
        if self._mounts is None:
            agents = self.problem.table.agents
            self._mounts = {row: list(a.mounts) for row, a in enumerate(agents) if a.mounts}
        return self._mounts

    def _has_mount(self, size: float) -> BoolArray:
        found = np.zeros(len(self.problem.table), dtype=np.bool_)
        for row, sizes in self._free_mounts().items():
            found[row] = any(each >= size for each in sizes)
        return found

    def _scores_of(self, kind: Kind) -> FloatArray:
        """Return the score of every row for one more task; infinite where it does not fit."""
        known = self._scores.get(kind)
        if known is None:
            if len(self._scores) >= _KEPT_SCORES:
                del self._scores[next(iter(self._scores))]
            known = _Scores(self._score(kind, ALL_ROWS), len(self._changes))
            self._scores[kind] = known
            return known.values
        changes = self._changes[known.seen_changes :]
        known.seen_changes = len(self._changes)
        if len(changes) > _MANY_CHANGES:
            single = [rows for rows in changes if isinstance(rows, int)]
            several = [rows for rows in changes if not isinstance(rows, int)]
            changes = [np.unique(np.concatenate([np.array(single, dtype=np.int64), *several]))]
        for rows in changes:
            known.values[rows] = self._score(kind, rows)
        return known.values

    def _score(self, kind: Kind, rows: Rows) -> Answers:
        score: Answers = self._fullness[rows]
        if self._has_gpus:
            score = score + self._gpu_score(kind, rows)
        for rule in self._rules_of(kind):
            score = score + rule.levels[rule.codes[rows]]
        fits: Answers = True if kind.allowed is None else kind.allowed[rows]
        for _, passes in self._amount_checks(kind, rows):
            fits = fits & passes
        if isinstance(rows, int):
            return score if fits else np.inf
        return np.where(fits, score, np.inf)

    def _share_free(self, rows: Rows) -> Answers:
        """Return how little a row is wanted: what a task takes from it is the same on every row."""
        return self._preference.share(self.free, rows) + MAINTENANCE * self._unavailable[rows]

    def _gpu_score(self, kind: Kind, rows: Rows) -> Answers:
        left = self.free[GPUS][rows] - kind.need[GPUS]
        if kind.need[GPUS]:
            strands = _STRANDS_GPUS * (1 - self._gpus_stay_usable(kind, rows))
            return strands + _PER_GPU_LEFT * left if self._preference.uses_up_gpus else strands
        if not self._preference.keeps_gpus:
            return 0.0
        shares = [
            (self.free[resource][rows] - kind.need[resource]) / self._largest[resource]
            for resource in (CPUS, MEM)
        ]
        to_spare = np.minimum(*shares) / np.maximum(left, 1)
        return (left > 0) * (_HAS_FREE_GPUS * (2 - np.minimum(np.maximum(to_spare, 0), 1)))

    def _gpus_stay_usable(self, kind: Kind, rows: Rows) -> Answers:
        """Say whether what is left beside a task keeps the free GPUs worth offering."""
        gpus = self.free[GPUS][rows] - kind.need[GPUS]
        cpus = self.free[CPUS][rows] - kind.need[CPUS]
        mem = self.free[MEM][rows] - kind.need[MEM]
        return (cpus >= GPU_HEADROOM_CPUS * gpus) & (mem >= GPU_HEADROOM_MEM * gpus)

    def _ports_for(
        self, kind: Kind, row: int, task: str, preferred_port: int | None
    ) -> tuple[int, ...]:
        if not kind.need[PORTS]:
            return ()
        return choose_ports(
            self.problem.table.agents[row].ports,
            kind.need[PORTS],
            preferred_port if kind.required_port is None else kind.required_port,
            f"{self.problem.salt}/{task}",
            taken=self._taken.get(int(self._machine[row]), frozenset()),
            shunned=self.problem.spoken_for,
        )

    def _take_port(self, port: int, row: int) -> None:
        """Mark ``port`` as used, also for other agents on the same machine that offer it."""
        machine = int(self._machine[row])
        self._taken.setdefault(machine, set()).add(port)
        rows = [row]
        if self._rows_of_machine[machine] > 1:
            there = np.flatnonzero(self._machine == machine).tolist()
            rows = [other for other in there if port in self.problem.table.agents[other].ports]
            self._changes.extend(other for other in rows if other != row)
        for other in rows:
            self.free[PORTS][other] -= 1
            if port in self._port_open:
                self._port_open[port][other] = False
