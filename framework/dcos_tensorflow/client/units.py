"""The units of a sweep or a batch: the document at ``/v1/units``, and its lines for a person.

Used by the commands and by Python. Where no scheduler of the service runs any more, the document is
made of its stored state.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.client.api_client import NoScheduler
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.client.wording import columns, duration, unit_failure, value_text
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.workloads.sweep.leaderboard import Board, Row

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState

#: What a service of each kind is called, and the command that shows it.
_CALLED = {"trial": "sweep", "shard": "batch"}
#: So many of those that failed are told of at the end.
_FAILURES = 3
#: So many trials of a sweep are shown at its end.
_LEADERS = 10


def units_document(choice: ServiceChoice, kind: str, state: str = "") -> dict[str, Any]:
    """Return the units of a service, of one ``state`` where it is named. Raises CliError."""
    none = f"{_CALLED[kind]} in this service: it is one job"
    service = choice.service()
    try:
        wanted = f"?state={state}" if state else ""
        found = service.connect().ask("GET", f"/v1/units{wanted}").found(none)
    except NoScheduler as away:
        found = _stored(service, state, none, away)
    if found.get("kind") != kind:
        other = _CALLED.get(str(found.get("kind")), "job")
        raise CliError(f"This service is a {other}, and no {_CALLED[kind]}; see {other}.")
    return dict(found)


def units_outcome(state: ServiceState) -> dict[str, Any]:
    """Return what came of a service's units, for the end of its job; nothing where it has none.

    ``best`` is the best trial of a sweep, None where there is none or it is a batch;
    ``leaderboard`` are its first trials as a table for a person, its head the first row; ``doubt``
    is what is to be said of what all trials told, empty for nothing. ``failures``
    are the first of those that failed or, of a sweep, told no objective; each has its ``number``,
    that of a shard being its index, its ``state`` and ``why``; ``failed`` is how many they are.
    """
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import unit_views as units

    counts = units.counts(state)
    if counts is None:
        return {}
    document = redact(units.UnitsView().shown(state), secret_values(state))
    bad = [unit for unit in document["units"] if _is_bad(unit)]
    best, doubt, leaders = None, "", []
    if document["objective"]:
        from dcos_tensorflow.workloads.sweep.leaderboard import board_of

        board = board_of(document)
        row, metric, doubt = board.best, board.metric, board.doubt
        leaders = _table(board, board.finished[:_LEADERS]) if row is not None else []
        if row is not None:
            told = {"metric": metric, "value": row.value, "parameters": dict(row.parameters)}
            best = {"number": row.number, **told}
    failures = [
        {"number": unit.get("index", unit["number"]), "state": unit["state"], "why": unit["why"]}
        for unit in bad[:_FAILURES]
    ]
    said = {"leaderboard": leaders, "doubt": doubt}
    return {**counts, "best": best, **said, "failures": failures, "failed": len(bad)}


def _is_bad(unit: Mapping[str, Any]) -> bool:
    silent = "value" in unit and unit["value"] is None and unit["stopped_at"] is None
    return unit["state"] == "failed" or (unit["state"] == "succeeded" and silent)


def _stored(service: KnownService, state: str, none: str, away: NoScheduler) -> dict[str, Any]:
    """Return what the state of a service without a scheduler tells. Raises CliError."""
    from dcos_tensorflow.api.errors import ElementNotFound
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import unit_views as units
    from dcos_tensorflow.client.kept.stored import state_url, stored_state

    directory = service.directory
    kept = stored_state(state_url(directory), service.name) if directory is not None else None
    if kept is None:
        raise away
    try:
        found: dict[str, Any] = redact(units.UnitsView().shown(kept, state), secret_values(kept))
    except ElementNotFound:
        raise CliError(f"There is no {none}.") from None
    return found


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
    counts = Counter(row.state for row in board.rows)
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    yield f"{counted(board.total, 'trial')}: {told or 'none yet'}."
    if board.doubt:
        yield f"Note: {board.doubt}."
    if not board.rows:
        return
    shown = board.rows[:most]
    yield from columns(_table(board, shown))
    if len(shown) < len(board.rows):
        yield f"... and {len(board.rows) - len(shown)} more: --all shows them."


def _table(board: Board, rows: Sequence[Row]) -> list[Sequence[str]]:
    head = ("", "trial", board.metric, *board.names, "time", "state")
    return [head, *(_cells(row, board) for row in rows)]


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
