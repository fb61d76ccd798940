"""Prints the output of tasks, line by line, each with its task's name in front (``logs.Sink``).

Used by ``logs``, and by ``run --logs``, which follows the job's output in a thread beside its
progress. Nothing is read here.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job_output import FollowedOutput
from dcos_tensorflow.client.following.logs import FROM_THE_BEGINNING, GIVE_UP_SECONDS, Follower
from dcos_tensorflow.client.following.task_output import Attempt
from dcos_tensorflow.client.output import complain, say_formatted
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.plugin.log_lines import LineFormat

#: How long after the end of its job a follower may take beyond what it gives a lost agent.
_MARGIN_SECONDS = 5.0


class LinePrinter:
    """Prints lines to a stream, and what is to be said beside them to standard error."""

    def __init__(
        self, tasks: Sequence[str] = (), *, as_json: bool = False, stream: TextIO | None = None
    ) -> None:
        self._stream = stream or sys.stdout
        coloured = self._stream.isatty() and "NO_COLOR" not in os.environ
        self._as_json = as_json
        self._format = LineFormat(tasks, as_json=as_json, coloured=coloured)

    def line(self, attempt: Attempt, text: str) -> None:
        """Print a line of a task."""
        more = {"task_id": attempt.task_id} if self._as_json else {}
        say_formatted(self._format.line(attempt.task, text, **more), self._stream)

    def note(self, text: str) -> None:
        """Tell something that no task has printed."""
        complain(text)

    def gone(self) -> bool:
        """Say whether the reader of our output has gone; a quiet job would never let us know."""
        try:
            watched = select.poll()
            watched.register(self._stream.fileno(), 0)
            return any(event & select.POLLERR for _, event in watched.poll(0))
        except (OSError, ValueError):
            return False


@contextmanager
def printed_beside(service: KnownService, tasks: Sequence[str], stream: TextIO) -> Iterator[None]:
    """Print all that the tasks print from now on, until the job is done.

    ``tasks`` are all that the job has. At the end what is left of it is waited for.
    """
    sink = LinePrinter(tasks, stream=stream)

    def follow() -> None:
        try:
            Follower(FollowedOutput(service, ()), sink, None, FROM_THE_BEGINNING).run()
        except BrokenPipeError:
            # The progress beside it meets the same.
            return
        except CliError as error:
            sink.note(str(error))

    # A daemon: of a job that goes on nothing more is wanted.
    thread = threading.Thread(target=follow, name="job-output", daemon=True)
    thread.start()
    yield
    thread.join(GIVE_UP_SECONDS + _MARGIN_SECONDS)
