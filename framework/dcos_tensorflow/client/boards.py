"""A sweep or a batch as lines for a person, and a sweep as comma-separated values. Pure.

Of the document at ``/v1/units``; used by the commands and by Python.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from dcos_tensorflow.client.wording import (
    UNIT_WORDS,
    columns,
    duration,
    unit_failure,
    value_text,
)
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.workloads.sweep.leaderboard import Board, Row

_MOST_FAILURES = 20


def batch_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a batch stands, for a person."""
    counts, total = document["counts"], document["total"]
    done = counts.get("succeeded", 0)
    share = f" ({100 * done // total} %)" if total else ""
    yield f"{counted(total, 'shard')}: {done} done{share}{_others(counts)}."
    left = total - done - counts.get("failed", 0)
    seconds = seconds_left(document)
    if seconds is not None:
        yield f"About {duration(seconds)} to go for {counted(left, 'shard')}."
    failure = unit_failure(document)
    if failure and left:
        yield f"The newest failure: {failure}"
    failed = [unit for unit in document["units"] if unit["state"] == "failed"]
    for unit in failed[:_MOST_FAILURES]:
        yield f"  shard {unit['index']} [{unit['begin']}:{unit['end']}] failed: {unit['why']}"
    if len(failed) > _MOST_FAILURES:
        yield f"  ... and {len(failed) - _MOST_FAILURES} more: --json lists them."


def seconds_left(document: Mapping[str, Any]) -> float | None:
    """Return the seconds that are left at the pace of the newest shards; None where none ran."""
    counts, usual = document["counts"], document.get("usual_seconds") or 0.0
    decided = sum(counts.get(state, 0) for state in ("succeeded", "failed", "pruned"))
    left, running = document["total"] - decided, counts.get("running", 0)
    return left * float(usual) / running if left and running and usual else None


def _others(counts: Mapping[str, int]) -> str:
    told = ((counts.get(state, 0), state) for state in ("running", "waiting", "failed"))
    return "".join(f", {count} {state}" for count, state in told if count)


def board_lines(board: Board, most: int | None) -> Iterator[str]:
    """Yield the board for a person; ``most`` rows of it, None for all."""
    counts = ((UNIT_WORDS.get(state, state), count) for state, count in board.counts.items())
    told = ", ".join(f"{count} {state}" for state, count in counts if count)
    yield f"{counted(board.total, 'trial')}: {told or 'none yet'}."
    if board.doubt:
        yield f"Note: {board.doubt}."
    if not board.rows:
        return
    shown = board.rows[:most]
    cells = [("", "trial", board.metric, *board.names, "time", "state")]
    cells += [_cells(row, board) for row in shown]
    yield from columns(cells)
    if len(shown) < len(board.rows):
        yield f"... and {len(board.rows) - len(shown)} more: --all shows them."


def _cells(row: Row, board: Board) -> tuple[str, ...]:
    at = f" at step {row.step}" if row.state in ("stopped", "running") and row.step else ""
    return (
        str(row.rank or ""),
        str(row.number),
        "" if row.value is None else f"{row.value:.4g}",
        *(value_text(row.parameters.get(name, "")) for name in board.names),
        "" if row.seconds is None else duration(row.seconds),
        f"{row.state}{at}" + (f": {row.why}" if row.why and row.state != "stopped" else ""),
    )


def board_as_csv(board: Board) -> str:
    """Return the whole board as comma-separated values."""
    into = io.StringIO()
    writer = csv.writer(into, lineterminator="\n")
    head = ("rank", "trial", "state", board.metric, "step", "seconds", "tries", "why")
    writer.writerow((*head, *board.names))
    for row in board.rows:
        known = (row.rank, row.number, row.state, row.value, row.step, row.seconds, row.tries)
        parameters = (row.parameters.get(name, "") for name in board.names)
        writer.writerow((*("" if v is None else v for v in known), row.why, *parameters))
    return into.getvalue()
