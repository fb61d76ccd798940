"""A model of the task runner for histories under a virtual clock (docs/task-runner.md).

Every live task of ``simulated_mesos.Cluster`` has one. It takes orders as the real one does: a
newer start replaces an older, ``run`` false holds it until the same start is let go, a failed start
stays failed, and a process that is stopped may take its time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import LaunchTask

TRAINING = (contract.RUNNER_WAITING, contract.RUNNER_RUNNING, contract.RUNNER_STOPPING)


@dataclass
class Runner:
    """One task runner: what it was told, and what its process does.

    ``stop_seconds`` is how long the process takes to end when it is stopped; ``obeys`` false is a
    runner that answers and never does what it is told. ``checkpoint`` is the step that a start
    would restore, ``restored`` the one that the start which runs was told of.
    """

    start: int
    run: bool
    state: str
    epoch: int
    step: int | None = None
    #: When its job told anything last.
    told_at: float | None = None
    checkpoint: int | None = None
    strategy: str = ""
    memory_bytes: int | None = None
    exit: Mapping[str, Any] | None = None
    #: What it waits for before the process begins, and how the job is brought.
    waiting_for: tuple[str, ...] = ()
    contract: str = ""
    #: Since when its process does nothing.
    idle_since: float | None = None
    #: What its machine says of its own end.
    notice: Mapping[str, Any] | None = None
    #: Starts of the process: (start, epoch, restore_step).
    starts: tuple[tuple[int, int, int | None], ...] = ()
    #: The grace of each order that stopped a process.
    graces: tuple[float, ...] = ()
    expected: int | None = None
    stop_seconds: float = 0.0
    obeys: bool = True
    _stopping_left: float = 0.0
    order_taken: Mapping[str, Any] | None = None
    #: The unit of work that the start which runs is for, and what it has left when it is done.
    unit: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    #: Its process takes other workers while it runs; ``refuses`` is one that finds that it cannot.
    takes_workers: bool = False
    refuses: bool = False
    #: What it has found in the network of the peers.
    peer_address: str = ""
    #: Where its way to the job's tf.data service leads.
    data_service: str = ""

    @staticmethod
    def of(launch: LaunchTask) -> Runner:
        """Return the runner that this launch starts; peers reach its machine by 10.1.0.N."""
        spec = json.loads(launch.env[contract.RUNNER_SPEC_VARIABLE])
        assert spec["hold_on_failure"] is True
        held, epoch = bool(spec["held"]), spec["cluster"]["epoch"]
        data = spec.get("data_service", {}).get("dispatcher", "")
        runner = Runner(1, not held, contract.RUNNER_HELD, epoch, data_service=data)
        if spec.get("peer_network"):
            number = int("".join(filter(str.isdigit, launch.agent_id)) or 0)
            runner.peer_address = f"10.1.0.{number}"
        if not held:
            runner._go()
        return runner

    @property
    def trains(self) -> bool:
        """Say whether the user's process runs, or still does."""
        return self.state in TRAINING

    def report(self) -> Mapping[str, Any]:
        """Return what it answers to GET /v1/status."""
        return {
            "start": self.start,
            "run": self.run,
            "state": self.state,
            "epoch": self.epoch,
            "takes_workers": self.takes_workers,
            "exit": self.exit,
            "strategy": self.strategy,
            "memory_bytes": self.memory_bytes,
            "checkpoint": {"step": self.checkpoint} if self.checkpoint is not None else None,
            "progress": {"step": self.step, "at": self.told_at},
            "waiting_for": list(self.waiting_for),
            "contract": self.contract,
            "idle_since": self.idle_since,
            "notice": self.notice,
            "peer_address": self.peer_address,
            "data_service": self.data_service,
            **({"unit": {**self.unit, "result": self.result}} if self.unit is not None else {}),
        }

    def take(self, order: Mapping[str, Any]) -> None:
        """Do what PUT /v1/cluster says."""
        start, run = order["start"], order["run"]
        if start < self.start or not self.obeys:
            return
        newer = start > self.start
        if not newer and self.run and not run:
            # It was made before the order that has let this start go.
            return
        self.data_service = order.get("data_service") or self.data_service
        if not newer and self.state == contract.RUNNER_FAILED:
            return
        if not newer and self.trains and self.takes_workers and order["epoch"] > self.epoch:
            self.takes_workers = not self.refuses
            self.epoch = self.epoch if self.refuses else order["epoch"]
        self.start, self.run, self.order_taken = start, run, order
        if self.trains and newer:
            self._stop(order)
        elif newer:
            self.state = contract.RUNNER_HELD
        self._settle()

    def pass_time(self, seconds: float) -> None:
        """Let the clock go on."""
        if self.state == contract.RUNNER_STOPPING:
            self._stopping_left -= seconds
            self._settle()

    def finish(self, result: Mapping[str, Any]) -> None:
        """Let the user's process end with 0 when its unit is done; the container stays."""
        assert self.unit is not None
        self.state, self.result = contract.RUNNER_DONE, result

    def wait_for(self, address: str, how: str) -> None:
        """Let the start wait for a peer's port, in a job that is brought in this way."""
        self.state, self.waiting_for, self.contract = contract.RUNNER_WAITING, (address,), how

    def fail(
        self, exit_class: str, code: int | None, summary: str, error: tuple[str, int] | None = None
    ) -> None:
        """Let the user's process end with a failure; the container stays.

        ``error`` is an exception of the user's code: its type, and its line in ``train.py``.
        """
        self.state = contract.RUNNER_FAILED
        self.exit = {"class": exit_class, "code": code, "summary": summary, "start": self.start}
        if error is not None:
            exception, line = error
            place = {"exception": exception, "file": "train.py", "line": line, "step": self.step}
            self.exit = {**self.exit, "error": place}

    def _stop(self, order: Mapping[str, Any]) -> None:
        grace = order.get("grace_seconds", 10.0)
        if self.state in (contract.RUNNER_WAITING, contract.RUNNER_RUNNING):
            self.state = contract.RUNNER_STOPPING
            self._stopping_left = self.stop_seconds
            self.graces = (*self.graces, grace)
        self._stopping_left = min(self._stopping_left, grace)

    def _settle(self) -> None:
        if self.state == contract.RUNNER_STOPPING and self._stopping_left <= 0:
            self.state = contract.RUNNER_HELD
        if self.run and self.state == contract.RUNNER_HELD and self.order_taken is not None:
            self.epoch = self.order_taken["epoch"]
            self.expected = self.order_taken.get("restore_step")
            if self.order_taken.get("expects_restore_step") and self.expected != self.checkpoint:
                there, wanted = self.checkpoint, self.expected
                self.fail("checkpoint_mismatch", None, f"step {there} is here, not {wanted}")
            else:
                self._go()

    def _go(self) -> None:
        self.waiting_for, self.idle_since = (), None
        unit = (self.order_taken or {}).get("unit")
        self.unit = {k: unit[k] for k in ("number", "attempt")} if unit is not None else None
        self.result = None
        self.state = contract.RUNNER_RUNNING
        self.starts = (*self.starts, (self.start, self.epoch, self.expected))
