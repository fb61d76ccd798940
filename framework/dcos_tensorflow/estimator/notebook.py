"""Progress in a notebook: a table of the tasks, and pictures below it, drawn anew each time.

It is HTML that every frontend shows, and that stays in the saved notebook; no widget is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Protocol

from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.wording import detailed, duration, numbers, units_done
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.plugin.plain_text import escaped
from dcos_tensorflow.records import dataclass

#: Rows that are shown; the rest is counted.
_MAX_ROWS = 30
_STYLE = "font-family: monospace; text-align: left; padding: 0 1.5em 0 0; border: 0"


def in_notebook() -> bool:
    """Say whether this process is the kernel of a notebook: what is displayed can be replaced."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return getattr(shell, "kernel", None) is not None


class Drawing(Protocol):
    """What stands below the table of the tasks."""

    def html(self, snapshot: Snapshot | None) -> str:
        """Return it as it is at this moment; None is the end of the job."""


@dataclass(frozen=True)
class Picture:
    """What is shown of a job at one moment, in words."""

    heading: str
    why: str
    #: Of each task the name, what it does, and what it tells.
    rows: Sequence[tuple[str, str, str]]

    @classmethod
    def of(cls, snapshot: Snapshot, now: float) -> Picture:
        """Return that of a job that has not ended."""
        phase, why = snapshot.standing(now)
        started = snapshot.job.get("started_at")
        took = duration((snapshot.job.get("finished_at") or now) - started) if started else ""
        done = units_done(snapshot.units) if snapshot.units else ""
        rows = [(t.name, detailed(t.doing, t.detail), numbers(t)) for t in snapshot.tasks]
        return cls(_heading(snapshot.service, snapshot.run, phase, took, done), why, rows)

    def at_the_end(self, ended: Mapping[str, Any]) -> Picture:
        """Return that of the job once it has ended, whenever it was looked at last."""
        started, finished = ended.get("started_at"), ended.get("finished_at")
        took = duration(finished - started) if started and finished else ""
        heading = _heading(ended["service"], ended.get("run", 1), str(ended["outcome"]), took)
        tasks, last = ended.get("tasks", {}), ended.get("numbers", {})
        before = {name: (did, told) for name, did, told in self.rows}
        rows = []
        for name in before or tasks:
            did, told = before.get(name, ("", ""))
            state = str(tasks.get(name, {}).get("state") or did)
            rows.append((name, state, str(last.get(name) or told)))
        return Picture(heading, str(ended.get("summary", "")), rows)

    def html(self) -> str:
        """Return the heading and the table of the tasks."""
        rows = "".join(
            f'<tr style="background: none">{"".join(map(_cell, row))}</tr>'
            for row in self.rows[:_MAX_ROWS]
        )
        more = len(self.rows) - _MAX_ROWS
        rest = f"<div>and {counted(more, 'more task')}</div>" if more > 0 else ""
        said = f"<b>{as_html(self.heading)}</b><br>{as_html(self.why)}"
        return f'<div style="font-family: monospace">{said}</div><table>{rows}</table>{rest}'

    def text(self) -> str:
        """Return the same for what shows no HTML."""
        rows = [" ".join(filter(None, row)) for row in self.rows[:_MAX_ROWS]]
        return escaped("\n".join([f"{self.heading}: {self.why}", *rows]), lines=True)


class NotebookView:
    """A view (``following.job.View``) that is one output of a cell."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self._handle: Any = None
        self._shown: dict[str, str] = {}
        self._picture = Picture("", "", ())

    def show(self, snapshot: Snapshot, now: float) -> None:
        """Draw this moment, where anything has changed."""
        self._draw(Picture.of(snapshot, now), self._drawing.html(snapshot))

    def end(self, ended: Mapping[str, Any]) -> None:
        """Draw the end of the job."""
        self._draw(self._picture.at_the_end(ended), self._drawing.html(None))

    def close(self) -> None:
        """What was drawn last stays."""

    def _draw(self, picture: Picture, below: str) -> None:
        both = {"text/plain": picture.text(), "text/html": picture.html() + below}
        if both == self._shown:
            return
        self._picture, self._shown = picture, both
        from IPython.display import display

        if self._handle is None:
            self._handle = display(both, raw=True, display_id=True)
        else:
            self._handle.update(both, raw=True)


def _heading(service: str, run: int, *standing: str) -> str:
    return "  ".join(filter(None, (service, f"run {run}", *standing)))


def _cell(text: str) -> str:
    return f'<td style="{_STYLE}">{as_html(text)}</td>'


def as_html(text: str) -> str:
    """Return what anybody has said so that a page shows it as it is."""
    return escape(escaped(text))
