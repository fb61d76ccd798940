"""Writes results as a table of Markdown and as JSON, and the table into docs/recovery.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.recovery.cases import Case, Way
from benchmarks.recovery.measuring import Result
from benchmarks.recovery.service import TIMING
from dcos_tensorflow.core.spec.service_spec import ServiceSpec

BEGIN = "<!-- begin: written by python -m benchmarks.recovery -->"
END = "<!-- end -->"

#: service.freeze_seconds where the options do not name it.
FREEZE_SECONDS = ServiceSpec.freeze_seconds

_HEAD = (
    "victim",
    "way",
    "healed",
    "noticed",
    "started",
    "training again",
    "by hand",
    "whole again",
    "by hand",
    "ratio",
    "restarted",
    "steps repeated",
    "saved steps lost",
    "retries",
)


def ratio(result: Result) -> float | None:
    """Return how much longer the service took than a shell script, from when the loss was known.

    Until the training went on; until all was whole where it was not interrupted.
    """
    service, hand = result.figures, result.by_hand
    if service is None or hand is None:
        return None
    took, by_hand = service.training_seconds, hand.training_seconds
    if not took or not by_hand:
        took, by_hand = service.whole_seconds, hand.whole_seconds
    if took is None or not by_hand:
        return None
    known = 0.0
    if result.case.way in (Way.FREEZE, Way.SILENT, Way.AGENT):
        # An evaluator's end is no incident of the job.
        noticed = result.noticed_seconds
        known = FREEZE_SECONDS if noticed is None else noticed
    if result.case.way in (Way.SILENT, Way.AGENT):
        # Peers may tell of it before; that the machine is gone is Mesos' to say.
        known = max(known, TIMING.agent_timeout)
    return (took - known) / by_hand


def markdown(results: Sequence[Result]) -> str:
    """Return the tables, one for each strategy and TensorFlow.

    Of a fault that was played several times the median is shown, by the time until all was whole,
    unless one of them was not as it should be.
    """
    parts = []
    results = _one_each(results)
    groups = dict.fromkeys((result.case.strategy, result.tensorflow) for result in results)
    for strategy, version in groups:
        rows = [r for r in results if (r.case.strategy, r.tensorflow) == (strategy, version)]
        lines = [
            f"### `{strategy}`, TensorFlow {version}",
            "",
            f"| {' | '.join(_HEAD)} |",
            "|" + "---|" * len(_HEAD),
            *(f"| {' | '.join(_row(row))} |" for row in rows),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _one_each(results: Sequence[Result]) -> list[Result]:
    found: dict[tuple[Case, str], list[Result]] = {}
    for result in results:
        found.setdefault((result.case, result.tensorflow), []).append(result)
    return [_representative(several) for several in found.values()]


def _representative(several: Sequence[Result]) -> Result:
    wrong = [result for result in several if not result.as_it_should_be or result.figures is None]
    if wrong:
        return wrong[0]
    timed = sorted(several, key=lambda r: (r.figures.whole_seconds if r.figures else 0.0) or 0.0)
    return timed[len(timed) // 2]


def _row(result: Result) -> tuple[str, ...]:
    case, figures = result.case, result.figures
    times = ratio(result)
    if figures is None:
        rest = ("",) * (len(_HEAD) - 3)
        healed = result.note or f"no: {result.why}"
        return (case.victim, str(case.way), healed, *rest)
    return (
        case.victim,
        str(case.way),
        f"yes; {result.note}" if result.note else "yes",
        _time(result.noticed_seconds),
        _time(result.started_seconds),
        _interrupted(figures.training_seconds),
        _interrupted(result.by_hand.training_seconds) if result.by_hand else "",
        _time(figures.whole_seconds) if figures.whole_seconds else "was whole",
        _time(result.by_hand.whole_seconds) if result.by_hand else "",
        "" if times is None else f"{times:.2f}",
        _who(result),
        str(figures.repeated_steps),
        str(figures.lost_steps),
        str(result.charged),
    )


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f} s"


def _interrupted(seconds: float | None) -> str:
    return _time(seconds) if seconds else "not interrupted"


def _who(result: Result) -> str:
    names = [f"{t} (moved)" if t in result.moved else t for t in result.restarted]
    return ", ".join(names) or "none"


def document(results: Sequence[Result]) -> str:
    """Return everything that was measured as JSON."""
    rows = [
        {**asdict(result), "victim": result.case.victim, "ratio": ratio(result)}
        for result in results
    ]
    return json.dumps(rows, indent=1) + "\n"


def write_into(page: Path, table: str) -> None:
    """Write what was measured between the marks of a page; rows of other faults stay.

    Raises:
        ValueError: the page has no marks.
    """
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    there, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} does not hold the lines {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{merged(there, table)}\n{END}{after}")


def merged(there: str, measured: str) -> str:
    """Return the tables of both; a row of ``measured`` takes the place of that of its fault.

    A table with other columns is left out: nothing in it can be compared.
    """
    tables = _tables(there)
    for heading, (head, rows) in _tables(measured).items():
        before = tables.get(heading)
        kept = before[1] if before is not None and before[0] == head else {}
        tables[heading] = (head, {**kept, **rows})
    same = [t for t in tables.items() if t[1][0].startswith(f"| {' | '.join(_HEAD)} |")]
    parts = ["\n".join([name, "", head, *rows.values()]) for name, (head, rows) in same]
    return "\n\n".join(parts) + "\n"


def _tables(text: str) -> dict[str, tuple[str, dict[tuple[str, ...], str]]]:
    """Return for each heading its table: the two first lines, and its rows by victim and way."""
    found: dict[str, tuple[str, dict[tuple[str, ...], str]]] = {}
    for part in text.split("### ")[1:]:
        heading, *lines = [line for line in part.splitlines() if line]
        rows = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in lines[2:]}
        found[f"### {heading}"] = ("\n".join(lines[:2]), rows)
    return found
