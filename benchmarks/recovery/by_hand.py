"""The same TensorFlow processes, started and restarted by a person with a shell script.

``by_hand.sh`` does it; here its directories are made, and the result measured. The person is
assumed to know at once what died and who must restart.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.recovery import evidence, processes
from benchmarks.recovery.cases import Training
from benchmarks.recovery.evidence import Entry, Figures
from benchmarks.recovery.watching import Watch

HERE = Path(__file__).parent
START_SECONDS = 300.0
#: Sessions of TensorFlow 1 look every 30 s whether the variables are there again.
HEAL_SECONDS = 60.0
#: Steps until a checkpoint is surely there, before the first fault.
SETTLE_STEPS = 45


class ByHand:
    """One training by hand. A context manager: starts everything, kills everything."""

    def __init__(self, training: Training, python: Path, folder: Path, **context: object) -> None:
        self.training = training
        self._python = python
        self._context = context
        self._folder = folder
        self._journal = folder / "journal"
        self._watch = Watch(training, self._journal, lambda task: folder / task)

    def __enter__(self) -> ByHand:
        context = {"journal": str(self._journal), **self._context}
        lay_out(self.training, self._folder, context, {})
        with ExitStack() as stack:
            stack.push(self.__exit__)
            self._script("start", self.training.tasks)
            if not self._settled():
                raise RuntimeError(
                    f"{self.training.strategy} did not start by hand: {self._folder}"
                )
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._script("kill", self.training.tasks)

    def _settled(self) -> bool:
        watch = self._watch
        return watch.wait_until(
            lambda: watch.saved and watch.step >= SETTLE_STEPS and watch.whole(0.0, ()),
            START_SECONDS,
        )

    def restart(self, tasks: tuple[str, ...], *, gently: bool = False) -> Figures | None:
        """Kill tasks and start them again; None when the training was not whole in time.

        With ``gently`` they are asked to end, and are started again when they have.
        """
        fault_at = time.monotonic()
        if gently:
            self._ask_to_end(tasks)
        self._script("start" if gently else "restart", tasks)
        pause_over = fault_at + 2 * evidence.PAUSE_SECONDS
        healed = self._watch.wait_until(
            lambda: time.monotonic() > pause_over and self._watch.whole(fault_at + 0.5, tasks),
            HEAL_SECONDS,
        )
        if not healed:
            return None
        training = self.training
        return evidence.figures(
            self._watch.entries(), fault_at, training.participants, training.trainers
        )

    def _ask_to_end(self, tasks: tuple[str, ...]) -> None:
        pids = [int((self._folder / task / "pid").read_text()) for task in tasks]
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        self._watch.wait_until(
            lambda: all(processes.start_time(str(pid)) is None for pid in pids), HEAL_SECONDS
        )

    def entries(self) -> list[Entry]:
        """Return what the journal holds by now."""
        return self._watch.entries()

    def _script(self, verb: str, tasks: tuple[str, ...]) -> None:
        line = command(verb, self._folder, self._python, self.training, tasks)
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def command(
    verb: str, folder: Path, python: Path, training: Training, tasks: tuple[str, ...]
) -> list[str]:
    """Return the command line of the shell script for tasks of a training."""
    job = HERE / "jobs" / f"{training.job}.py"
    return [str(HERE / "by_hand.sh"), verb, str(folder), str(python), str(job), *tasks]


def lay_out(
    training: Training, folder: Path, context: dict[str, object], variables: dict[str, str]
) -> None:
    """Make the directory of each task, with its environment: ``variables`` and what it needs."""
    (folder / "checkpoints").mkdir(parents=True)
    addresses = dict(zip(training.tasks, _free_addresses(len(training.tasks)), strict=True))
    for task in training.tasks:
        config = tf_config(training, task, addresses)
        environment = {
            "TASK_NAME": task,
            "CHECKPOINT_DIR": str(folder / "checkpoints"),
            "JOB_CONTEXT": json.dumps(context, separators=(",", ":")),
            "TF_CPP_MIN_LOG_LEVEL": "1",
            "CUDA_VISIBLE_DEVICES": "",
            **variables,
        }
        if config is not None:
            environment["TF_CONFIG"] = json.dumps(config, separators=(",", ":"))
        (folder / task).mkdir()
        lines = (f"{name}={value}\n" for name, value in environment.items())
        (folder / task / "environment").write_text("".join(lines))


def tf_config(training: Training, task: str, addresses: dict[str, str]) -> object:
    """Return the TF_CONFIG of a task, as its strategy wants it; None for a task that is alone."""
    if len(training.tasks) == 1:
        return None
    one_of = {"between_graph": {"chief": "worker"}}.get(training.strategy, {})
    cluster: dict[str, list[str]] = {}
    place: dict[str, tuple[str, int]] = {}
    for name in training.tasks:
        role = name.rpartition("-")[0]
        kind = one_of.get(role, role)
        if kind == "evaluator":
            place[name] = (kind, 0)
            continue
        members = cluster.setdefault(kind, [])
        place[name] = (kind, len(members))
        members.append(addresses[name])
    kind, index = place[task]
    return {"cluster": cluster, "task": {"type": kind, "index": index}}


def _free_addresses(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    finally:
        for one in sockets:
            one.close()
