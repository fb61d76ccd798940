"""``sweep``: the leaderboard of a sweep, as a table, for programs, or as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import click

from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.flags import asks_about
from dcos_tensorflow.cli.output import say, say_formatted, say_lines, show_json
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.units import told_units
from dcos_tensorflow.cli.wording import duration, value_text
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.workloads.sweep.leaderboard import Board, Row, board_of
from dcos_tensorflow.workloads.sweep.picture import picture


@click.command()
@click.option("--all", "-a", "whole", is_flag=True, help="Show all trials, not the first 20.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all trials as comma-separated values.")
@click.option("--best", is_flag=True, help="Print the parameters of the best trial as JSON.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Draw the best so far, and the finished trials in parallel coordinates.",
)
@asks_about()
def sweep(asked: Asked, whole: bool, as_csv: bool, best: bool, plot: Path | None) -> int:
    """Show the leaderboard of a sweep."""
    if plot is not None and plot.suffix.lower() != ".svg":
        raise UsageError(f"{plot} cannot be drawn: pictures are SVG; name a file that ends in .svg")
    document = told_units(asked, "trial")
    board = board_of(document)
    if plot is not None:
        _draw(board, plot)
    if best:
        if board.best is None:
            raise CliError("No trial has finished yet.")
        show_json(dict(board.best.parameters))
    elif as_csv:
        say_formatted(as_text(board).rstrip("\n"))
    elif asked.as_json:
        show_json(document)
    elif plot is None:
        say_lines(lines(board, None if whole else 20))
    return 0


def _draw(board: Board, path: Path) -> None:
    drawn = picture(board, f"{board.metric}, {board.goal}, {counted(len(board.rows), 'trial')}")
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}.") from error
    say(f"{path} is drawn.")


def lines(board: Board, most: int | None) -> Iterator[str]:
    """Yield the board for a person; ``most`` rows of it, None for all."""
    told = ", ".join(f"{count} {state}" for state, count in board.counts.items() if count)
    yield f"{counted(board.total, 'trial')}: {told or 'none yet'}."
    if not board.rows:
        return
    shown = board.rows[:most]
    cells = [("", "trial", board.metric, *board.names, "time", "state")]
    cells += [_cells(row, board) for row in shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
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


def as_text(board: Board) -> str:
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
