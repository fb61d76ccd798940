"""Judges whether the user's process still works: pure, ``look(watch, sight, limits, elapsed)``.

``runner`` looks several times a second at one start and hands over its observations. TensorFlow
does not notice a peer that is frozen or hangs, so its runner must. Nothing here reads /proc or a
clock; ``sight`` does the former, and time is the distance between two looks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.exits.exit_analysis import ExitVerdict
from dcos_tensorflow.task.exits.exit_class import ExitClass

#: A pause between steps is unusual when it is so many times the longest one before.
GAPS = 10
#: No look stands for more time than this: where the runner itself did not run (a machine that
#: slept, a container that was frozen as a whole), no process could have made progress.
MAX_LOOK_SECONDS = 2.0
#: A process that uses less of one CPU than the first, and waits for one less than the second, does
#: nothing. TensorFlow that waits for a peer, in whatever strategy, uses 0.003 at most, and waits
#: 0.04 where it gets only what all others leave over (measured). What computes waits all the time.
IDLE_USED, IDLE_WAITED = 0.02, 0.2
#: So long it must do nothing before anybody is told, in seconds.
IDLE_SECONDS = 60.0
_ALIVE = "another start of it goes on from the newest checkpoint"


@dataclass(frozen=True)
class WatchdogLimits:
    """When a process is given up, in seconds; 0 turns a rule off."""

    stall_seconds: float = 0.0
    freeze_seconds: float = 10.0


@dataclass(frozen=True)
class ProcessSight:
    """What one look saw.

    ``step`` is the newest step of this start, None while none is known, and ``steps`` how many
    different ones there were. ``port_open`` says whether the task's own server listens; None where
    that cannot be said, or the process that had opened the port has left.
    """

    stopped: bool = False
    step: Optional[int] = None
    steps: int = 0
    port: int = 0
    port_open: Optional[bool] = None


@dataclass(frozen=True)
class Watch:
    """What has been seen of one start so far. Times are seconds."""

    frozen_seconds: float = 0.0
    port_seen: bool = False
    port_closed_seconds: float = 0.0
    step: Optional[int] = None
    still_seconds: float = 0.0
    longest_gap: float = 0.0


@dataclass(frozen=True)
class Activity:
    """What a process was seen to do, and for how long nothing. Times are seconds.

    ``cpu`` is the CPU time that it and all that it has started have used, and how long they waited
    for it, None before the first look; ``told`` stands for all that it has said: another value is
    something new.
    """

    cpu: Optional[Tuple[float, float]] = None
    told: Optional[object] = None
    idle: float = 0.0


def rest(before: Activity, cpu: Tuple[float, float], told: object, elapsed: float) -> Activity:
    """Return what is known of a process' activity ``elapsed`` seconds after the last look.

    A process that has used less than before has ended some that it had started: it did something.
    """
    idles = False
    if before.cpu is not None and told == before.told:
        used, waited = cpu[0] - before.cpu[0], cpu[1] - before.cpu[1]
        idles = 0 <= used < IDLE_USED * elapsed and waited < IDLE_WAITED * elapsed
    return Activity(cpu, told, before.idle + elapsed if idles else 0.0)


def examine(
    watch: Watch, sight: ProcessSight, limits: WatchdogLimits, elapsed: float
) -> Tuple[Watch, Optional[ExitVerdict]]:
    """Return what is known after a look, ``elapsed`` seconds after the last, and a verdict if any.

    Source of the rules: docs/task-runner.md, Watchdog.
    """
    elapsed = min(max(elapsed, 0.0), MAX_LOOK_SECONDS)
    watch = _with_port(_with_step(watch, sight.step, elapsed), sight, elapsed)
    watch = replace(watch, frozen_seconds=watch.frozen_seconds + elapsed if sight.stopped else 0.0)
    return watch, _frozen(watch, sight, limits) or _stalled(watch, sight, limits)


def _with_step(watch: Watch, step: Optional[int], elapsed: float) -> Watch:
    still = watch.still_seconds + elapsed
    if step is None or step == watch.step:
        return replace(watch, still_seconds=still)
    # From the start to the first step, TensorFlow loads, connects and compiles: that is no gap.
    gap = 0.0 if watch.step is None else max(watch.longest_gap, still)
    return replace(watch, step=step, still_seconds=0.0, longest_gap=gap)


def _with_port(watch: Watch, sight: ProcessSight, elapsed: float) -> Watch:
    if sight.port_open is None:
        return replace(watch, port_seen=False, port_closed_seconds=0.0)
    if sight.port_open:
        return replace(watch, port_seen=True, port_closed_seconds=0.0)
    closed = watch.port_closed_seconds + elapsed if watch.port_seen else 0.0
    return replace(watch, port_closed_seconds=closed)


def _frozen(watch: Watch, sight: ProcessSight, limits: WatchdogLimits) -> Optional[ExitVerdict]:
    limit = limits.freeze_seconds
    if limit <= 0:
        return None
    if watch.frozen_seconds >= limit:
        return ExitVerdict(
            ExitClass.FROZEN,
            f"The process was stopped (state T) for {watch.frozen_seconds:.0f} s",
            f"another process has sent it SIGSTOP; {_ALIVE}",
        )
    if watch.port_closed_seconds >= limit:
        return ExitVerdict(
            ExitClass.FROZEN,
            f"The server's port {sight.port} has been closed for "
            f"{watch.port_closed_seconds:.0f} s while its process lives",
            f"no other task reaches it any more; {_ALIVE}",
        )
    return None


def _stalled(watch: Watch, sight: ProcessSight, limits: WatchdogLimits) -> Optional[ExitVerdict]:
    if limits.stall_seconds <= 0 or sight.steps < 2:
        return None
    if watch.still_seconds < max(limits.stall_seconds, GAPS * watch.longest_gap):
        return None
    return ExitVerdict(
        ExitClass.STALLED,
        f"No step after step {watch.step} for {watch.still_seconds:.0f} s; the longest pause "
        f"before was {watch.longest_gap:.1f} s",
        f"it waits for a task that is gone, or hangs itself; {_ALIVE}",
    )
