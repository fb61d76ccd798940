"""A model of the task runner for histories under a virtual clock (docs/task-runner.md).

Every live task of ``simulated_mesos.Cluster`` has one. It takes orders as the real one does: a newer
start replaces an older, ``run`` false holds the process, a failed start stays failed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.actions import LaunchTask


@dataclass
class Runner:
    """One task runner: what it was told, and what its process does."""

    start: int
    run: bool
    state: str
    epoch: int
    step: int | None = None
    checkpoint: int | None = None
    strategy: str = ""
    memory_bytes: int | None = None
    exit: Mapping[str, Any] | None = None
    #: Orders that start the process, for tests: (start, epoch, restore_step).
    starts: tuple[tuple[int, int, int | None], ...] = ()
    expected: int | None = None

    @staticmethod
    def of(launch: LaunchTask) -> Runner:
        """Return the runner that this launch starts."""
        spec = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])
        assert spec["hold_on_failure"] is True
        held, epoch = bool(spec["held"]), spec["cluster"]["epoch"]
        runner = Runner(1, not held, contract.RUNNER_HELD, epoch)
        if not held:
            runner._go()
        return runner

    def report(self) -> Mapping[str, Any]:
        """Return what it answers to GET /v1/status."""
        return {
            "start": self.start,
            "run": self.run,
            "state": self.state,
            "epoch": self.epoch,
            "exit": self.exit,
            "strategy": self.strategy,
            "memory_bytes": self.memory_bytes,
            "checkpoint": {"step": self.checkpoint} if self.checkpoint is not None else None,
            "progress": {"step": self.step},
        }

    def take(self, order: Mapping[str, Any]) -> None:
        """Do what PUT /v1/cluster says."""
        start, run = order["start"], order["run"]
        if start < self.start:
            return
        if start > self.start:
            self.start, self.run, self.state = start, run, contract.RUNNER_HELD
        elif self.state == contract.RUNNER_FAILED:
            return
        elif self.run and not run:
            self.state = contract.RUNNER_HELD
        self.run = run
        if run and self.state == contract.RUNNER_HELD:
            self.epoch = order["epoch"]
            self.expected = order.get("restore_step")
            self._go()

    def fail(self, exit_class: str, code: int, summary: str) -> None:
        """Let the user's process end with a failure; the container stays."""
        self.state = contract.RUNNER_FAILED
        self.exit = {"class": exit_class, "code": code, "summary": summary, "start": self.start}

    def _go(self) -> None:
        self.state = contract.RUNNER_RUNNING
        self.starts = (*self.starts, (self.start, self.epoch, self.expected))
