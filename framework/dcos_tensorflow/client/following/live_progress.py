"""Progress as a live view on a terminal: the job's phase and why, and one row per task.

Used by ``job`` where standard output is a terminal; ``plain_progress`` elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dcos_tensorflow.client.snapshot import Snapshot, TaskLine
from dcos_tensorflow.client.wording import (
    duration,
    metrics,
    short,
    unit_failure,
    units_done,
    without_repeats,
)
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.plugin.plain_text import escaped

_STYLES = {
    "placing": "yellow",
    "waiting": "yellow",
    "starting": "cyan",
    "preparing": "cyan",
    "running": "green",
    "finished": "bold green",
    "failed": "bold red",
    "lost": "bold red",
    "unreachable": "red",
}
#: Rows that fit on most terminals beside the heading; the rest is counted.
_MAX_ROWS = 30


class LiveProgress:
    """The view. A context manager: the terminal is as before once it is left."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def show(self, snapshot: Snapshot, now: float) -> None:
        """Draw the view of this moment."""
        if self._live is None:
            # One that was stopped still goes up by its height first, over what was asked meanwhile.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(render(snapshot, now), refresh=True)

    def close(self) -> None:
        """Take the view off the terminal; ``show`` puts it back."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def render(snapshot: Snapshot, now: float) -> RenderableType:
    """Return the view: a heading, the tasks, the newest failure."""
    parts: list[RenderableType] = [_heading(snapshot, now), _tasks(snapshot, now)]
    for problem in snapshot.storage_problems[:_MAX_ROWS]:
        parts.append(_text(f"{problem.task}: {problem.text}", style="yellow", overflow="fold"))
    for _, told in snapshot.waits[:_MAX_ROWS]:
        parts.append(_text(told, style="yellow", overflow="fold"))
    for failure in _last_failure(snapshot):
        parts.append(_text(f"last failure: {failure}", style="red", overflow="fold"))
    return Group(*parts)


def _last_failure(snapshot: Snapshot) -> list[str]:
    found = [str(incident["summary"]) for incident in (snapshot.job.get("incidents") or [])[-1:]]
    return found or list(filter(None, [unit_failure(snapshot.units or {})]))


def _heading(snapshot: Snapshot, now: float) -> Text:
    heading = Text(overflow="fold")
    heading.append(escaped(snapshot.service), style="bold")
    phase, why = snapshot.standing(now)
    heading.append(f"  run {snapshot.run}", style="dim")
    heading.append(f"  {phase}", style="bold cyan")
    started = snapshot.job.get("started_at")
    if started:
        heading.append(f"  {duration((snapshot.job.get('finished_at') or now) - started)}")
    restarts = snapshot.job.get("restarts", 0)
    if restarts:
        heading.append(f"  {counted(restarts, 'restart')}", style="yellow")
    if snapshot.units:
        heading.append(f"  {units_done(snapshot.units)}", style="cyan")
    heading.append(f"\n{escaped(without_repeats(why, _last_failure(snapshot)))}", style="dim")
    return heading


def _tasks(snapshot: Snapshot, now: float) -> Table:
    tasks, told = snapshot.tasks, [snapshot.standing(now)[1], *_last_failure(snapshot)]
    table = Table(box=None, pad_edge=False, header_style="dim")
    # Beside the loss, where any task tells one: a bar counts the steps of an epoch.
    epochs = any(task.epoch is not None for task in tasks)
    for title in ("task", "", *(["epoch"] if epochs else []), "step", "loss", "accuracy"):
        right = title not in ("task", "")
        table.add_column(title, justify="right" if right else "left", no_wrap=True)
    table.add_column("", overflow="fold")
    for task in tasks[:_MAX_ROWS]:
        table.add_row(
            _text(task.name),
            _text(task.doing, style=_STYLES.get(task.doing, "dim")),
            *([_epoch(task)] if epochs else []),
            "" if task.step is None else str(task.step),
            "" if task.loss is None else short(task.loss),
            "" if task.accuracy is None else short(task.accuracy),
            _text(_detail(task, told), style="red" if task.failed else "dim"),
        )
    if len(tasks) > _MAX_ROWS:
        table.add_row(f"and {len(tasks) - _MAX_ROWS} more")
    return table


def _text(text: str, **how: Any) -> Text:
    return Text(escaped(text), **how)


def _detail(task: TaskLine, told: Sequence[str]) -> str:
    return ", ".join(filter(None, (without_repeats(task.detail, told), *metrics(task))))


def _epoch(task: TaskLine) -> str:
    if task.epoch is None:
        return ""
    return str(task.epoch) if task.epochs is None else f"{task.epoch}/{task.epochs}"
