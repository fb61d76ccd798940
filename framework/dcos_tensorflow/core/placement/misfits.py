"""Why a task went nowhere and why an offer helps no task, in words.

``core.placement.place`` calls it for tasks that were not placed and for the offers that hold none.
The conditions are those that the packing itself applied (``Packing.checks``), so an explanation
cannot differ from the decision. An agent counts for the first condition that it failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dcos_tensorflow.core.counted import amount, counted
from dcos_tensorflow.core.placement.agents import CPUS, DISK, GPUS, MEM, OFFERS, PORTS
from dcos_tensorflow.core.placement.columns import BoolArray, IntArray
from dcos_tensorflow.core.placement.packing import Kind, Packing

AVOIDED = "avoided"
ELSEWHERE = "not where its volume is"
#: Refusals that mean "too little of it": the resource, its divisor and how amounts are written.
_RESOURCES = {
    "gpus": (GPUS, 1, "gpu"),
    "cpus": (CPUS, 1000, "cpu"),
    "mem": (MEM, 1000, "MB mem"),
    "disk": (DISK, 1000, "MB disk"),
}


def explain(packing: Packing, kind: Kind, avoid: Mapping[str, str]) -> tuple[str, dict[str, int]]:
    """Return why no agent takes one more task of ``kind``: a sentence, and agents per reason.

    The sentence counts offers, the numbers count agents (rows of the table).
    """
    table = packing.problem.table
    if kind.bound_by and not _offers_its_place(kind):
        return kind.bound_by, {ELSEWHERE: len(table)}
    if not len(table):
        return "no offers", {}
    labels, failed = _first_failures(packing, kind)
    offers = table.numbers[OFFERS]
    counts: dict[str, int] = {}
    others: list[tuple[int, str]] = []
    for number, label in enumerate(labels):
        rows = failed == number
        if not rows.any():
            continue
        text = f"too little {label}" if label in _RESOURCES else label
        if label == AVOIDED:
            text = _avoided(packing, rows, avoid)
        counts[text] = int(rows.sum())
        if label not in _RESOURCES:
            others.append((int(offers[rows].sum()), text))
    short = np.array([label in _RESOURCES for label in (*labels, "")])[failed]
    parts = [_nearest(packing, kind, short)] if short.any() else []
    for number, text in sorted(others, key=lambda other: -other[0]):
        parts.append(f"{counted(number, 'offer')} {text}")
    return "; ".join(parts), counts


def useless_rows(
    packing: Packing, fitting: Mapping[Kind, BoolArray], avoid: Mapping[str, str]
) -> dict[int, str]:
    """Return for every row that holds nothing why: what the most suitable kind failed at.

    ``packing`` is one that nothing was placed in, ``fitting`` what fits there.
    """
    if not fitting:
        return dict.fromkeys(range(len(packing.problem.table)), "nothing is wanted")
    rows = np.flatnonzero(~np.logical_or.reduce(list(fitting.values())))
    furthest = np.full(len(rows), -1, dtype=np.int64)
    reasons = np.full(len(rows), "", dtype=object)
    for kind in fitting:
        labels, failed = _first_failures(packing, kind)
        texts = np.array(
            [f"too little {label}" if label in _RESOURCES else label for label in labels],
            dtype=object,
        )
        better = failed[rows] > furthest
        furthest[better] = failed[rows][better]
        reasons[better] = texts[failed[rows][better]]
    agents = packing.problem.table.agents
    return {
        int(row): f"{reason}: {avoid[agents[row].key[0]]}" if reason == AVOIDED else str(reason)
        for row, reason in zip(rows, reasons, strict=True)
    }


def _offers_its_place(kind: Kind) -> bool:
    return any(bool(there.any()) for label, there in kind.eligible if label == ELSEWHERE)


def _first_failures(packing: Packing, kind: Kind) -> tuple[list[str], IntArray]:
    """Return the conditions' names and per row the number of the first that fails.

    Rules come before amounts: an agent that a rule forbids is not "too small". A row that passes
    everything gets the number of conditions.
    """
    checks = [*packing.checks(kind)]
    failed = np.full(len(packing.problem.table), len(checks), dtype=np.int64)
    for number in reversed(range(len(checks))):
        failed[~checks[number][1]] = number
    return [label for label, _ in checks], failed


def _avoided(packing: Packing, rows: BoolArray, avoid: Mapping[str, str]) -> str:
    """Name the reasons for which agents are avoided, three at most."""
    agents = packing.problem.table.agents
    reasons = sorted({avoid[agents[row].key[0]] for row in np.flatnonzero(rows)})
    more = f" and {counted(len(reasons) - 3, 'more reason')}" if len(reasons) > 3 else ""
    return f"{AVOIDED}: {', '.join(reasons[:3])}{more}"


def _nearest(packing: Packing, kind: Kind, rows: BoolArray) -> str:
    """Say what is needed and what the agent that comes nearest to it offers."""
    candidates = np.flatnonzero(rows)
    lacking = sum(
        np.maximum(need - free[candidates], 0) / max(need, 1)
        for need, free in zip(kind.need[:PORTS], packing.free, strict=False)
    )
    row = int(candidates[int(np.argmin(lacking))])
    needs, offered = [], []
    for resource, divisor, unit in _RESOURCES.values():
        free = int(packing.free[resource][row])
        if free < kind.need[resource]:
            needs.append(amount(_amount(kind.need[resource], divisor), unit))
            offered.append(_amount(free, divisor))
    neighbours = packing.on_row.get(row, [])
    agent = packing.problem.table.agents[row].key[0]
    return (
        f"needs {' and '.join(needs)}, best agent {agent} offers {' and '.join(offered)}"
        f"{_beside(neighbours)}"
    )


def _beside(tasks: Sequence[str]) -> str:
    """Name the tasks of the same call that took their share of an agent."""
    if not tasks:
        return ""
    named = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
    return f" beside {named}"


def _amount(value: int, divisor: int) -> str:
    return f"{value / divisor:.3f}".rstrip("0").rstrip(".")
