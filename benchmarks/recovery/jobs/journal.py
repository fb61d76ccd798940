"""What every job of the recovery benchmark shares: a journal of its steps, and its pace.

The journal is one file for all tasks. Each line is JSON, with the machine's monotonic clock, the
task, the process and what happened: ``process`` (the kernel made it), ``started``, ``imported``
(TensorFlow is loaded), ``resumed`` at a step, ``step``, ``saved``, ``evaluated``. Lines are
appended with one write each, so tasks do not tear each other's.
"""

import json
import os
import signal
import time

CONTEXT = json.loads(os.environ.get("JOB_CONTEXT") or "{}")
#: Steps between two checkpoints.
SAVE_EVERY = int(CONTEXT.get("save_every", 20))
#: Rounds of training in a second, at most: the machine has to run several jobs.
ROUNDS_PER_SECOND = float(CONTEXT.get("rounds_per_second", 10))
#: The job ends by itself after so many steps; without a number, when its process is ended.
STEPS = float(CONTEXT.get("steps", "inf"))
#: Each step multiplies two matrices of so many rows, so that it takes its time.
MATRIX = int(CONTEXT.get("matrix", 0))

_task = os.environ["TASK_NAME"]
_mistake = f"{CONTEXT['journal']}.mistake.{_task}"
#: Whether the training saves when it is asked to end, as careful jobs do.
SAVES_WHEN_ASKED = bool(CONTEXT.get("saves_when_asked"))
#: Signals that have asked for the end, where the training saves then.
asked_to_end = []
if SAVES_WHEN_ASKED:
    # In every task, as a script does that is the same for all: a server that waits in TensorFlow's
    # own code never gets to run it.
    signal.signal(signal.SIGTERM, lambda number, frame: asked_to_end.append(number))

_file = os.open(CONTEXT["journal"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def note(event, step=None, at=None):
    """Append one line, of now or of ``at``, and print it, so that the job's progress is seen.

    Raises RuntimeError at the next step when the benchmark has asked for a mistake of this task.
    """
    at = time.monotonic() if at is None else at
    line = {"at": at, "task": _task, "pid": os.getpid(), "event": event, "step": step}
    os.write(_file, (json.dumps(line) + "\n").encode())
    if event == "step":
        print(f"step {step}", flush=True)
        if os.path.exists(_mistake):
            os.remove(_mistake)
            raise RuntimeError("this is the job's own mistake")
    else:
        print(event if step is None else f"{event} at {step}", flush=True)


def process_began():
    """Return when the kernel made this process, in monotonic seconds (a hundredth exactly)."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    return ticks / os.sysconf("SC_CLK_TCK") - since_boot


class Pace:
    """Lets a loop run so many times a second, and not faster after a pause."""

    def __init__(self):
        self._next = time.monotonic()

    def wait(self):
        """Sleep until the next round is due."""
        now = time.monotonic()
        self._next = max(self._next + 1 / ROUNDS_PER_SECOND, now)
        time.sleep(self._next - now)


def passed_checkpoint(before, after):
    """Say whether a checkpoint is due between two step numbers."""
    return before // SAVE_EVERY != after // SAVE_EVERY


note("process", at=process_began())
