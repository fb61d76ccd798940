"""The same TensorFlow processes, started and restarted by a person with a shell script.

``by_hand.sh`` does it; here its directories are made, and the result measured. The person is
assumed to know at once what died and who must restart.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path

from benchmarks.recovery import evidence
from benchmarks.recovery.cases import Training
from benchmarks.recovery.evidence import Figures
from benchmarks.recovery.watching import Watch

HERE = Path(__file__).parent
START_SECONDS = 90.0
#: Sessions of TensorFlow 1 look every 30 s whether the variables are there again.
HEAL_SECONDS = 60.0
#: Steps until a checkpoint is surely there, before the first fault.
SETTLE_STEPS = 45


class ByHand:
    """One training by hand. A context manager: starts everything, kills everything."""

    def __init__(self, training: Training, python: Path, folder: Path) -> None:
        self.training = training
        self._python = python
        self._folder = folder
        self._journal = folder / "journal"
        self._watch = Watch(training, self._journal, lambda task: folder / task)

    def __enter__(self) -> ByHand:
        (self._folder / "checkpoints").mkdir(parents=True)
        free = _free_addresses(len(self.training.tasks))
        addresses = dict(zip(self.training.tasks, free, strict=True))
        for task in self.training.tasks:
            directory = self._folder / task
            directory.mkdir()
            config = tf_config(self.training, task, addresses)
            context = {"journal": str(self._journal)}
            lines = [
                f"TASK_NAME={task}",
                f"CHECKPOINT_DIR={self._folder / 'checkpoints'}",
                f"JOB_CONTEXT={json.dumps(context, separators=(',', ':'))}",
                "TF_CPP_MIN_LOG_LEVEL=1",
                "CUDA_VISIBLE_DEVICES=",
            ]
            if config is not None:
                lines.append(f"TF_CONFIG={json.dumps(config, separators=(',', ':'))}")
            (directory / "environment").write_text("\n".join(lines) + "\n")
        self._script("start", self.training.tasks)
        if not self._settled():
            self.__exit__()
            raise RuntimeError(f"{self.training.strategy} did not start by hand: {self._folder}")
        return self

    def __exit__(self, *_: object) -> None:
        self._script("kill", self.training.tasks)

    def _settled(self) -> bool:
        watch = self._watch
        return watch.wait_until(
            lambda: watch.saved and watch.step >= SETTLE_STEPS and watch.whole(0.0, ()),
            START_SECONDS,
        )

    def restart(self, tasks: tuple[str, ...]) -> Figures | None:
        """Kill tasks and start them again; None when the training was not whole in time."""
        fault_at = time.monotonic()
        self._script("restart", tasks)
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

    def _script(self, verb: str, tasks: tuple[str, ...]) -> None:
        job = HERE / "jobs" / f"{self.training.job}.py"
        subprocess.run(
            [
                str(HERE / "by_hand.sh"),
                verb,
                str(self._folder),
                str(self._python),
                str(job),
                *tasks,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )


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
