"""The display for a user who waits for a job in Python: progress and the tasks' output.

On a terminal a live view with the lines above it, in a notebook a table and curves that are drawn
anew with the lines below them, elsewhere lines alone. Only the thread that waits prints: in a
notebook that is the cell's output.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job import PlainView, ProgressView
from dcos_tensorflow.client.following.job_output import FollowedOutput
from dcos_tensorflow.client.following.live_progress import LiveProgress
from dcos_tensorflow.client.following.logs import FROM_THE_BEGINNING, Follower
from dcos_tensorflow.client.following.task_output import Attempt
from dcos_tensorflow.client.output import say
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.estimator.notebook import Drawing, NotebookView, in_notebook
from dcos_tensorflow.plugin.log_lines import LineFormat
from dcos_tensorflow.plugin.plain_text import escaped

_WAIT_SECONDS = 0.05


class ShownJob:
    """A view (``following.job.ProgressView``) that lines can be told beside."""

    def __init__(
        self, view: ProgressView, tell: Callable[[str], None], lines: PrintedLines | None
    ) -> None:
        self._view = view
        self._tell = tell
        self._lines = lines

    def show(self, snapshot: Snapshot, now: float) -> None:
        """Show this moment."""
        self._view.show(snapshot, now)

    def close(self) -> None:
        """Leave the terminal to others."""
        self._view.close()

    def tell(self, text: str) -> None:
        """Show a line."""
        self._tell(text)

    def pause(self, seconds: float) -> None:
        """Let this time pass; what the tasks print meanwhile is shown at once."""
        if self._lines is None:
            time.sleep(seconds)
            return
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._lines.show(self._tell, left)

    def finish(self, ended: Mapping[str, Any]) -> None:
        """Show the end of the job, and what its tasks have printed last."""
        while self._lines is not None and not self._lines.over():
            self._lines.show(self._tell, _WAIT_SECONDS)
        if isinstance(self._view, NotebookView):
            self._view.end(ended)


@contextlib.contextmanager
def shown(service: KnownService, drawing: Drawing, *, logs: bool) -> Iterator[ShownJob]:
    """Hand over where a job is shown, with what its tasks print where ``logs`` are wanted."""
    view, tell = _view(drawing)
    lines = PrintedLines(service) if logs else None
    try:
        yield ShownJob(view, tell, lines)
    finally:
        if lines is not None:
            lines.end()
        view.close()


def _view(drawing: Drawing) -> tuple[ProgressView, Callable[[str], None]]:
    if in_notebook():
        return NotebookView(drawing), say
    console = Console(file=sys.stdout)
    if not console.is_terminal or console.is_dumb_terminal:
        return PlainView(sys.stdout), say

    def tell(text: str) -> None:
        console.print(Text(escaped(text)), soft_wrap=True, highlight=False)

    return LiveProgress(console), tell


class PrintedLines:
    """What tasks print (``following.logs.Sink``): followed in a thread, shown on request."""

    def __init__(self, service: KnownService) -> None:
        self._waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._form = LineFormat(())
        self._ended = threading.Event()
        self._left = False
        job = FollowedOutput(service, ())
        self._follower = Follower(job, self, None, FROM_THE_BEGINNING)
        self._thread = threading.Thread(target=self._follow, name="job-output", daemon=True)
        self._thread.start()

    def line(self, attempt: Attempt, text: str) -> None:
        """Take a line of a task."""
        self._waiting.put((attempt.task, text))

    def note(self, text: str) -> None:
        """Take nothing else: a missing answer is told beside the progress."""

    def gone(self) -> bool:
        """Say whether the caller waits no more."""
        return self._left

    def show(self, tell: Callable[[str], None], seconds: float) -> None:
        """Show the next line; wait at most so long for it."""
        with contextlib.suppress(queue.Empty):
            task, text = self._waiting.get(timeout=seconds)
            tell(self._form.line(task, text))

    def over(self) -> bool:
        """Say whether all that was printed has been shown."""
        return self._ended.is_set() and self._waiting.empty()

    def end(self) -> None:
        """Follow no more."""
        self._left = True

    def _follow(self) -> None:
        try:
            self._follower.run()
        except (CliError, BrokenPipeError):
            # The thread that follows the progress has met the same: no caller waits for lines then.
            pass
        finally:
            self._ended.set()
