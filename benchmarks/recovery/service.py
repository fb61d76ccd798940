"""A training as a service: the embedded cluster, a scheduler of the command line, its HTTP API.

One agent for each task and some spare ones, each large enough for one task, so that a lost agent is
one lost task. Faults are played on the real processes, and on the cluster by its own interface.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.recovery import network, processes
from benchmarks.recovery.cases import Training, Way
from benchmarks.recovery.processes import TaskProcess
from benchmarks.recovery.watching import Watch
from cluster_faults import FaultyCluster
from cluster_faults.network_namespace import run_inside
from embedded_mesos import AgentConfig, Timing

HERE = Path(__file__).parent
#: More than one loss takes: an agent whose tasks failed again and again is avoided for a while.
SPARE_AGENTS = 4
#: A lost agent is noticed after 5 s: Mesos' defaults (75 s) would only be waited for.
TIMING = Timing(agent_ping=1.0, agent_ping_timeouts=5)
START_SECONDS = 300.0
SETTLE_STEPS = 45
#: Seconds until a task makes the mistake that it was asked for: it does so at its next step.
MISTAKE_SECONDS = 10.0

_ROLES = {"ps": "parameter_server", "chief": "chief", "worker": "worker", "evaluator": "evaluator"}


@dataclass(frozen=True)
class Fault:
    """A fault that was played: when (monotonic seconds), and the places of the lost agents."""

    at: float
    agents: tuple[int, ...]


class Service:
    """One job that runs. A context manager: starts everything and ends everything."""

    def __init__(self, training: Training, python: Path, folder: Path, **context: object) -> None:
        self.training = training
        self._python = python
        self._context = context
        self.folder = folder
        self.journal = folder / "journal"
        self.watch = Watch(training, self.journal, self._directory_of)
        self._stack = ExitStack()
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._looked_at = 0.0
        #: The highest step that any fault has met.
        self.highest_step = 0
        self._known: dict[str, TaskProcess] = {}
        self._listeners: list[socket.socket] = []

    def __enter__(self) -> Service:
        (self.folder / "checkpoints").mkdir(parents=True)
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def _start(self) -> None:
        self.machines: network.Machines | None = None
        agents = self._agents()
        self.cluster = self._stack.enter_context(
            FaultyCluster(agents, self.folder / "mesos", self._namespaces(), timing=TIMING)
        )
        self._write_options()
        self._api_port = _free_port()
        self._log = self._stack.enter_context((self.folder / "scheduler.log").open("ab"))
        self._stack.callback(self._end_scheduler)
        self.start_scheduler()
        if not self.watch.wait_until(self._settled, START_SECONDS):
            raise RuntimeError(f"the job did not start: {self.why()}; see {self.folder}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _agents(self) -> list[AgentConfig]:
        count = len(self.training.tasks) + SPARE_AGENTS
        one = AgentConfig(cpus=2, mem=2048, disk=1000)
        if not network.available():
            return [
                replace(
                    one,
                    address=f"127.0.0.{index + 1}",
                    ports=(31000 + 100 * index, 31099 + 100 * index),
                )
                for index in range(count)
            ]
        machines = self._stack.enter_context(network.Machines(count))
        self.machines = machines
        return [replace(one, address=address) for address in machines.addresses]

    def _namespaces(self) -> list[str]:
        if self.machines is None:
            return []
        return [self.machines.namespace(n) for n in range(len(self.machines.addresses))]

    def _write_options(self) -> None:
        roles: dict[str, dict[str, Any]] = {
            name: {"count": 0} for name in ("parameter_server", "worker")
        }
        for task in self.training.tasks:
            role = roles.setdefault(_ROLES[task.rpartition("-")[0]], {"count": 0})
            role.update(count=role["count"] + 1, cpus=2, mem=1024, disk=100)
        service = {
            "name": f"recovery-{self.training.strategy.replace('_', '-')}",
            "job_url": str(HERE / "jobs"),
            "job_name": self.training.job,
            "job_context": json.dumps({"journal": str(self.journal), **self._context}),
            "strategy": self.training.strategy,
            "python": str(self._python),
        }
        document = {
            "service": service,
            "checkpoints": {"uri": str(self.folder / "checkpoints")},
            # Faults come one after the other for minutes: none of them may be the last.
            "retry": {"limit": 1000, "out_of_memory_limit": 1000},
            **roles,
        }
        (self.folder / "options.json").write_text(json.dumps(document, indent=1))

    # -- the scheduler -------------------------------------------------------------------------

    def start_scheduler(self) -> None:
        """Start the scheduler as Marathon or systemd would."""
        folder = self.folder
        self._scheduler = subprocess.Popen(
            [
                *(sys.executable, "-m", "dcos_tensorflow", "scheduler"),
                *(str(folder / "options.json"), "--master", self.cluster.master),
                *("--state", f"sqlite:///{folder}/state.db"),
                *("--artifacts", "file", "--artifacts-dir", str(folder / "artifacts")),
                *("--api-port", str(self._api_port), "--api-open"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "DCOS_TENSORFLOW_HOME": str(folder / "home")},
        )

    def kill_scheduler(self) -> None:
        """Kill the scheduler's process (SIGKILL)."""
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def _end_scheduler(self) -> None:
        if self._scheduler is not None:
            self.kill_scheduler()

    def url(self, path: str) -> str:
        """Return where the API answers for a path."""
        return f"http://127.0.0.1:{self._api_port}{path}"

    def ask(self, path: str) -> Any:
        """Return an answer of the API; None while there is none."""
        try:
            with urllib.request.urlopen(self.url(path), timeout=5) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None  # The scheduler has been killed, or is not up yet.

    def why(self) -> str:
        """Return what the job says of itself."""
        job = self.ask("/v1/job") or {}
        return f"{job.get('phase', 'no answer')}: {job.get('why', '')}"

    # -- tasks ---------------------------------------------------------------------------------

    def task_ids(self) -> dict[str, str]:
        """Return the present Mesos task id of each task that has one."""
        job = self.ask("/v1/job") or {"tasks": {}}
        return {n: t["task_id"] for n, t in job["tasks"].items() if t.get("task_id")}

    def processes(self) -> dict[str, TaskProcess]:
        """Return the user's process of each task that has one now."""
        found = processes.user_processes(self.folder)
        return {task: found[i] for task, i in self.task_ids().items() if i in found}

    def runners(self, tasks: Iterable[str]) -> list[TaskProcess]:
        """Return the task runners of tasks."""
        found = processes.runners(self.folder)
        ids = self.task_ids()
        return [found[ids[task]] for task in tasks]

    def _directory_of(self, task: str) -> Path | None:
        known = self._known.get(task)
        if (known is None or not known.lives) and time.monotonic() > self._looked_at + 0.5:
            self._looked_at = time.monotonic()
            present = self.processes()
            self._known = {t: p for t, p in present.items() if not self.watch.disregards(p.pid)}
            known = self._known.get(task)
        return None if known is None else known.directory

    def disregard(self, lost: Iterable[TaskProcess]) -> None:
        """Let nothing count that these do out of the cluster's sight."""
        lost = list(lost)
        self.watch.disregard(process.pid for process in lost)
        for process in lost:
            self._known.pop(process.task, None)

    def agent_of(self, task: str) -> int:
        """Return the place of the agent that a task runs on."""
        job = self.ask("/v1/job")
        agent_id = job["tasks"][task]["agent_id"]
        ids = [agent.agent_id for agent in self.cluster.agents]
        return ids.index(agent_id)

    def _settled(self) -> bool:
        watch = self.watch
        return (
            watch.saved and watch.step >= SETTLE_STEPS and watch.whole(0.0, ()) and self.running()
        )

    def running(self) -> bool:
        """Say whether the job says that it runs."""
        job = self.ask("/v1/job")
        return job is not None and job["phase"] == "running"

    # -- faults --------------------------------------------------------------------------------

    def fault(self, way: Way, victims: tuple[str, ...]) -> Fault:
        """Play a fault; return when it was and which agents are concerned."""
        if way is Way.SCHEDULER:
            at = time.monotonic()
            self.kill_scheduler()
            self.start_scheduler()
            return Fault(at, ())
        if way in (Way.PROCESS, Way.FREEZE):
            number = signal.SIGKILL if way is Way.PROCESS else signal.SIGSTOP
            present = self.processes()
            return self._signal([present[task] for task in victims], number)
        if way is Way.MISTAKE:
            return self._ask_for_mistake(victims)
        if way is Way.PORT:
            return self._kill_and_take_port(victims[0])
        if way is Way.CONTAINER:
            return self._signal(self.runners(victims), signal.SIGKILL)
        agents = tuple(self.agent_of(task) for task in victims)
        at = time.monotonic()
        for agent in agents:
            if way is Way.AGENT:
                self.cluster.faults.lose_machine(agent)
            else:
                assert self.machines is not None
                self.machines.cut(agent)
                self.cluster.faults.partition_agent(agent)
        return Fault(at, agents)

    def _signal(self, victims: list[TaskProcess], number: signal.Signals) -> Fault:
        at = time.monotonic()
        processes.send(victims, number)
        return Fault(at, ())

    def _ask_for_mistake(self, victims: tuple[str, ...]) -> Fault:
        asked = [Path(f"{self.journal}.mistake.{task}") for task in victims]
        for file in asked:
            file.touch()
        self.watch.wait_until(lambda: not any(file.exists() for file in asked), MISTAKE_SECONDS)
        return Fault(time.monotonic(), ())

    def _kill_and_take_port(self, task: str) -> Fault:
        """Kill a process, and listen on its port before its successor can."""
        victim, agent = self.processes()[task], self.agent_of(task)
        listener = partial(_listen, self.ask("/v1/job")["tasks"][task]["ports"][0])
        fault = self._signal([victim], signal.SIGKILL)
        if self.machines is not None:
            listener = partial(run_inside, self.machines.namespace(agent), listener)
        self._listeners.append(self._stack.enter_context(listener()))
        return fault

    def mend(self, way: Way, fault: Fault) -> None:
        """Bring lost agents back, and free ports, so that the next fault finds as many."""
        while self._listeners:
            self._listeners.pop().close()
        for agent in fault.agents:
            if way is Way.AGENT:
                self.cluster.faults.replace_machine(agent)
            else:
                assert self.machines is not None
                self.machines.mend(agent)
                self.cluster.faults.heal_agent(agent)


def _listen(port: int) -> socket.socket:
    """Listen on a port as soon as its owner, who was just killed, has gone."""
    deadline = time.monotonic() + 2.0
    while True:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("0.0.0.0", port))
            one.listen()
        except OSError:
            one.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return one


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
