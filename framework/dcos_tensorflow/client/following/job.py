"""Following a job to its end in the foreground: progress, Ctrl-C, signals, the exit code.

Used by ``run``, whose scheduler runs in the same process: the main thread shows the state
five times a second, and asks the user for a choice after Ctrl-C. ``status --follow`` and jobs
that were begun in Python follow a scheduler that runs elsewhere (``follow_service``).
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, TextIO

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.api_client import SchedulerAway
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.plain_progress import PlainProgress
from dcos_tensorflow.client.output import say
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.records import dataclass

_LOOK_SECONDS = 0.2
#: Variables by which rich takes for a terminal what is none.
_FORCES = ("FORCE_COLOR", "TTY_COMPATIBLE")
#: What a stop may take beyond the tasks' own grace before it is given up.
_STOP_MARGIN_SECONDS = 30.0

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class FollowedJob(Protocol):
    """What following needs of a job: ``deploy.served_job.ServedJob``, or one in a test."""

    def snapshot(self) -> Snapshot:
        """Return where the job stands."""

    def wait(self, seconds: float) -> bool:
        """Wait until the job is done; False on time out."""

    def stop_job(self, why: str) -> None:
        """Ask for the job's end."""

    def staying(self) -> tuple[str, ...]:
        """Return what runs on though the job has ended."""

    def machines(self) -> int:
        """Return how many machines there are that were bought for the job."""

    def check(self) -> None:
        """Raise CliError when there is nothing to follow any more."""


class ProgressView(Protocol):
    """Where progress is shown."""

    def show(self, snapshot: Snapshot, now: float) -> None:
        """Show this moment."""

    def close(self) -> None:
        """Leave the terminal to others; ``show`` takes it again."""


class PlainView:
    """Plain lines to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._progress = PlainProgress()

    def show(self, snapshot: Snapshot, now: float) -> None:
        """Print what is new."""
        for line in self._progress.lines(snapshot, now):
            say(line, self._stream)

    def close(self) -> None:
        """There is nothing to give back."""


def view_for(stream: TextIO) -> ProgressView:
    """Return a live view where ``stream`` is a terminal that can show one, else plain lines."""
    # What draws is imported where it may be seen.
    if not stream.isatty() and not any(map(os.environ.get, _FORCES)):
        return PlainView(stream)
    from rich.console import Console

    from dcos_tensorflow.client.following.live_progress import LiveProgress

    console = Console(file=stream)
    return (
        LiveProgress(console)
        if console.is_terminal and not console.is_dumb_terminal
        else PlainView(stream)
    )


@dataclass
class Signals:
    """What has been asked of this process from outside. Set by the signal handlers."""

    interrupts: int = 0
    ending: int = 0


@contextmanager
def caught_signals() -> Iterator[Signals]:
    """Note SIGINT, SIGTERM and SIGHUP instead of ending; restores the handlers at the end."""
    signals = Signals()

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        signals.interrupts += 1

    def ending(number: int, _frame: FrameType | None) -> None:
        signals.ending = number

    before = {signal.SIGINT: signal.signal(signal.SIGINT, interrupted)}
    # nohup's choice is kept: a process that ignores SIGHUP wants to outlive the terminal.
    wanted = [n for n in _ENDING_SIGNALS if signal.getsignal(n) is not signal.SIG_IGN]
    before.update({number: signal.signal(number, ending) for number in wanted})
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class StopPolicy:
    """Whether Ctrl-C asks first, what a signal to end means, and how long a task's end may take."""

    ask: bool
    stop_on_termination: bool
    kill_grace_seconds: float


class FollowingEnded(Exception):
    """Following was ended from outside while the job goes on. ``signal`` says by what."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.signal = number


def follow(
    job: FollowedJob,
    view: ProgressView,
    signals: Signals,
    policy: StopPolicy,
    *,
    ask: Callable[[], bool] | None = None,
    clock: Callable[[], float] = time.time,
) -> Snapshot:
    """Show the job until it is done; return its last snapshot.

    Raises Left when a signal ended the following but not the job, and CliError when the scheduler
    ended by itself or a stop was not finished in time.
    """
    ask = ask or (lambda: confirm_stop(signals))
    stop_by: float | None = None
    seen = 0
    try:
        while True:
            done = job.wait(_LOOK_SECONDS)
            job.check()
            snapshot = job.snapshot()
            view.show(snapshot, clock())
            if done or snapshot.done:
                return snapshot
            if stop_by is not None:
                if time.monotonic() > stop_by:
                    raise CliError(_not_stopped(snapshot))
                continue
            why = ""
            if signals.ending:
                if not policy.stop_on_termination:
                    raise FollowingEnded(signals.ending)
                why = f"{signal.Signals(signals.ending).name} ended the command"
            elif signals.interrupts > seen:
                seen = signals.interrupts
                view.close()
                if not policy.ask or ask():
                    why = "Ctrl-C"
                seen = signals.interrupts
            if why:
                job.stop_job(why)
                stop_by = time.monotonic() + policy.kill_grace_seconds + _STOP_MARGIN_SECONDS
    finally:
        view.close()


def wait_for_the_end(job: FollowedJob, signals: Signals) -> None:
    """Wait until a user ends what has outlived the job, here or from elsewhere.

    Raises CliError when the scheduler ended by itself.
    """
    seen = signals.interrupts
    while job.staying() and not signals.ending and signals.interrupts == seen:
        time.sleep(_LOOK_SECONDS)
        job.check()


def wait_for_machines(job: FollowedJob, signals: Signals) -> int:
    """Wait until the machines that were bought are given back, or the user does not want to.

    Return how many are left. Raises CliError when the scheduler ended by itself.
    """
    seen = signals.interrupts
    while (left := job.machines()) and not signals.ending and signals.interrupts == seen:
        time.sleep(_LOOK_SECONDS)
        job.check()
    return left


def confirm_stop(signals: Signals) -> bool:
    """Ask on the terminal whether to stop the job; a second Ctrl-C or the end of input is yes."""
    before = signals.interrupts
    print("\nStop the job? [y/N] ", end="", flush=True)
    while not signals.ending:
        if signals.interrupts > before:
            print(flush=True)
            return True
        # Not input(): a Ctrl-C just before it begins to read would be seen after the answer only.
        if select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
            answer = sys.stdin.readline()
            return not answer or answer.strip().lower() in ("y", "yes")
    return False


def _not_stopped(snapshot: Snapshot) -> str:
    live = [
        t.name for t in snapshot.tasks if t.doing not in ("finished", "failed", "ended", "lost")
    ]
    waiting = f" It waits for {', '.join(live)}." if live else ""
    return (
        f"The job {snapshot.service} was asked to stop and has not ended.{waiting} The same command"
        " takes it up again."
    )


LOOK_SECONDS = 0.5


def follow_service(
    service: KnownService,
    view: ProgressView,
    *,
    left: Callable[[], bool],
    tell: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, Any] | None:
    """Show progress until the job has ended, and return how; None once it is ``left`` alone.

    ``tell`` is what a person hears while the scheduler is away. Raises CliError for an answer
    that is none of its scheduler, and once the embedded cluster of the job has ended.
    """
    ended: dict[str, Any] | None = None
    told_away = ""
    try:
        while ended is None and not left():
            try:
                snapshot = service.snapshot()
            except SchedulerAway as away:
                ended = service.last_end()
                if ended is None:
                    service.check_cluster()
                if ended is None and str(away) != told_away:
                    told_away = str(away)
                    view.close()
                    tell(f"{away} Waiting for it to come back.")
            else:
                told_away = ""
                view.show(snapshot, time.time())
                ended = _end_in(snapshot, service)
            if ended is None:
                pause(LOOK_SECONDS)
    finally:
        view.close()
    return ended


def _end_in(snapshot: Snapshot, service: KnownService) -> dict[str, Any] | None:
    """Return how the job ended, as its scheduler here tells it, or as the API does."""
    if not snapshot.done:
        return None
    # What is kept here knows places on this machine, too, and is written a moment later.
    return ending.document(snapshot, {}) if service.directory is None else service.last_end()
