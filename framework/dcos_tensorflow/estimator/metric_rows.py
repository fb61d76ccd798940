"""The metrics that tasks have reported of their training, as rows: one for each report.

Read from their output and from their progress files, by the rules of the task runner
(``task.output.progress``), so that rows and live display agree. Pure but for ``frame``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dcos_tensorflow.core.json_numbers import as_number
from dcos_tensorflow.task.output.error_texts import without_errors
from dcos_tensorflow.task.output.progress import Progress, numbers_of, read_line
from untrusted_input.json_text import read_json

#: A row holds the task's name, the step, and whatever else was told by name.
MetricRow = dict[str, Any]


def rows_of(task: str, printed: Iterable[str], records: Iterable[str]) -> list[MetricRow]:
    """Return the rows of one task, oldest first: of its progress file, else of what it printed."""
    return list(_of_records(task, records)) or list(_of_lines(task, printed))


def _of_records(task: str, lines: Iterable[str]) -> Iterator[MetricRow]:
    for line in lines:
        try:
            record = read_json(line)
        except ValueError:
            # The job may be in the middle of writing it.
            continue
        if not isinstance(record, Mapping):
            continue
        found = {name: as_number(value) for name, value in record.items()}
        numbers = {
            name: record[name] if isinstance(record[name], int) else value
            for name, value in found.items()
            if value is not None
        }
        if numbers:
            yield {"task": task, **numbers}


def _of_lines(task: str, lines: Iterable[str]) -> Iterator[MetricRow]:
    """Yield a row for each line that tells a number; what it does not tell, it does not repeat.

    Only the epoch goes on until there is another: it is told once, before its steps.
    """
    known = Progress()
    for line in without_errors(lines):
        before = Progress(epoch=known.epoch, epochs=known.epochs)
        known = read_line(before, line, 0.0)
        told = _numbers(known)
        epoch: MetricRow = {name: told.pop(name) for name in ("epoch", "epochs") if name in told}
        if told:
            yield {"task": task, **epoch, **told}


def _numbers(progress: Progress) -> MetricRow:
    """Return the numbers by name, those among ``metrics`` beside the others."""
    counts = {"step": progress.step, "epoch": progress.epoch, "epochs": progress.epochs}
    return {k: v for k, v in (counts | numbers_of(progress)).items() if v is not None}


def frame(rows: list[MetricRow]) -> Any:
    """Return the rows as a frame of pandas where that is installed, else as they are."""
    if importlib.util.find_spec("pandas") is None:
        return rows
    import pandas

    return pandas.DataFrame(rows)
