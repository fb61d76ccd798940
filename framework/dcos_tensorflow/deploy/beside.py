"""One function, called in a process beside this one while this one does something else.

Used by ``serving.starting``: what reads the options takes half of the imports of a run, on another
core. The process is a fork of this one, so the function and what it is given need not be sent;
what comes of it is, as plain values, or the error that it has raised.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from traceback import format_exception
from types import TracebackType
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Beside(Generic[Answer]):
    """The call. A context manager: leaving it ends one that has not been waited for."""

    def __init__(self, function: Callable[[], Answer]) -> None:
        """Begin it. No other thread may run: the fork would have none of them, and their locks."""
        self._answers, answers = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(function, answers)
        os.close(answers)

    def __enter__(self) -> Beside[Answer]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._end()

    def answer(self) -> Answer:
        """Return what came of it, when it is there; raises what it has raised."""
        answered = bytearray()
        while part := os.read(self._answers, 1 << 20):
            answered += part
        status = self._end()
        if not answered:
            raise RuntimeError(f"the process beside this one has ended with {status}")
        answer, error = pickle.loads(answered)
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]

    def _end(self) -> int:
        pid, self._pid = self._pid, 0
        os.close(self._answers)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _serve(function: Callable[[], object], answers: int) -> None:
    """Be the process beside: whatever happens, nothing of its parent's is done a second time."""
    try:
        answered = _answered(function)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with open(answers, "wb") as pipe:
            pipe.write(answered)
    finally:
        os._exit(0)


def _answered(function: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps((function(), None))
    except BaseException as error:
        # Its traceback ends with this process; the log of a mistake of ours is to have it.
        error.add_note("".join(format_exception(error)))
        return pickle.dumps((None, error))
