"""A training that tests kill everywhere, with every way to kill of it.

It runs ``end_to_end/programs/trainer.py`` (chief, parameter server, two workers, no TensorFlow) on
two agents of an embedded cluster, with its state in ZooKeeper. ``kill_something`` draws what dies,
``trains_on`` waits for steps after it; ``finish`` holds what must be true at the end.
"""

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from cluster_faults import FaultError, FaultyCluster
from data_files import PROGRAMS
from dcos_tensorflow.client.errors import EXIT_LOCKED
from embedded_mesos import AgentConfig, Timing
from processes import processes
from scheduler_process import SchedulerProcess
from servers.zookeeper_server import ZooKeeperServer
from waiting import eventually

TRAINER = PROGRAMS / "trainer.py"
#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = float(os.environ.get("KILLS_DEADLINE", "120"))
LAST_STEP = 200
#: Agents of other tests, which may run at the same time, and servers have other ports.
PORTS = {1: (30000, 30499), 2: (30500, 30999)}
#: As in ``trainer``: the chief saves this often.
SAVE_STEPS = 20


class KilledTraining:
    """One job on an embedded cluster with its state in ZooKeeper, and every way to kill of it."""

    def __init__(
        self, folder: Path, cluster: FaultyCluster, zookeeper: ZooKeeperServer, seed: int
    ) -> None:
        self.folder = folder
        self.cluster = cluster
        self.zookeeper = zookeeper
        self.dice = random.Random(seed)
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.log = (folder / "scheduler.log").open("ab")
        self.options = self._options()
        self.scheduler = self.start_scheduler()
        self.kills: list[str] = []
        #: Each way comes once before any comes again.
        self.untried = self.dice.sample([way for way, _ in self.ways()], len(self.ways()))
        self.farthest = 0

    def _options(self) -> Path:
        file = self.folder / "job.json"
        small = {"cpus": 0.1, "mem": 64, "disk": 10}
        file.write_text(
            json.dumps(
                {
                    "service": {
                        "name": "target",
                        "job_cmd": f"{sys.executable} {TRAINER} {self.marks} {LAST_STEP}",
                        "python": sys.executable,
                        "strategy": "parameter_server",
                        "kill_grace_seconds": 1,
                        "outcome_grace_seconds": 1,
                    },
                    "checkpoints": {"uri": str(self.folder / "checkpoints")},
                    "retry": {"initial_backoff_seconds": 0.2, "max_backoff_seconds": 1, "limit": 3},
                    "gang": {"hold_seconds": 2, "retry_seconds": 0.5},
                    "chief": {"count": 1, **small},
                    "parameter_server": {"count": 1, **small},
                    "worker": {"count": 2, **small},
                }
            )
        )
        return file

    def start_scheduler(self, *more: str) -> SchedulerProcess:
        where = self.options, self.cluster.master, self.zookeeper.url()
        flags = ("--wait-for-leadership", "--session-seconds", "4", "--api-port", "0", *more)
        return SchedulerProcess("scheduler", self.folder, *where, *flags, environment={})

    def keep_scheduler(self) -> None:
        """Start a scheduler that ended by itself again, as systemd and Marathon do.

        It ends when ZooKeeper was away for longer than its session lasts.
        """
        if self.scheduler.process.poll() is not None:
            assert self.scheduler.process.returncode == EXIT_LOCKED
            self.scheduler = self.start_scheduler()

    def close(self) -> None:
        self.scheduler.close()
        self.log.close()

    # What can be killed.

    def tasks(self) -> list[str]:
        return [
            task["id"]
            for framework in master_state(self.cluster.master)["frameworks"]
            for task in framework["tasks"]
            if task["state"] == "TASK_RUNNING"
        ]

    def kill_process(self) -> str:
        name = self.dice.choice(["chief-0", "ps-0", "worker-0", "worker-1"])
        with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
            os.kill(int((self.marks / f"{name}.pid").read_text()), signal.SIGKILL)
        return f"the process of {name}"

    def kill_runner(self) -> str:
        running = self.tasks()
        if not running:
            return self.kill_process()
        task_id = self.dice.choice(running)
        # It may end by itself just now, or not have begun.
        with contextlib.suppress(FaultError):
            self.cluster.faults.signal_task(task_id, signal.SIGKILL)
        return f"the runner of {task_id.split('__')[1]}"

    def kill_executor(self) -> str:
        running = self.tasks()
        if not running:
            return self.kill_process()
        task_id = self.dice.choice(running)
        with contextlib.suppress(FaultError):
            self.cluster.faults.kill_executor(task_id)
        return f"the executor of {task_id.split('__')[1]}"

    def crash_agent(self) -> str:
        agent = self.dice.randrange(2)
        self.cluster.faults.crash_agent(agent)
        self.cluster.faults.restart_agent(agent)
        return f"agent {agent}, which starts again"

    def lose_machine(self) -> str:
        agent = self.dice.randrange(2)
        self.cluster.faults.lose_machine(agent)
        self.cluster.faults.replace_machine(agent)
        return f"machine {agent} with all that runs on it"

    def lose_master(self) -> str:
        self.cluster.faults.lose_master()
        return "the master; another one leads"

    def kill_scheduler(self) -> str:
        self.scheduler.kill()
        self.scheduler = self.start_scheduler()
        return "the scheduler"

    def kill_zookeeper(self) -> str:
        self.zookeeper.kill()
        self.zookeeper.start()
        return "ZooKeeper"

    def ways(self) -> list[tuple[Callable[[], str], float]]:
        return [
            (self.kill_process, 60),
            (self.kill_runner, 15),
            (self.kill_executor, 5),
            (self.crash_agent, 4),
            (self.lose_machine, 4),
            (self.lose_master, 4),
            (self.kill_scheduler, 6),
            (self.kill_zookeeper, 2),
        ]

    def kill_something(self, *, but_the_scheduler: bool = False) -> None:
        drawn = [
            (way, weight)
            for way, weight in self.ways()
            if not (but_the_scheduler and way == self.kill_scheduler)
        ]
        ways, weights = zip(*drawn, strict=True)
        untried = [way for way in self.untried if way in ways]
        way = untried[-1] if untried else self.dice.choices(ways, weights)[0]
        self.untried = [other for other in self.untried if other != way]
        self.kills.append(way())
        self.log.write(f"{time.time():.1f} KILL {len(self.kills)}: {self.kills[-1]}\n".encode())
        self.log.flush()

    # How far it is.

    def lines(self, name: str) -> list[str]:
        file = self.marks / name
        return file.read_text().split() if file.exists() else []

    def trains_on(self) -> None:
        """Wait until the training steps again, and every other time until it has got further."""
        before = len(self.lines("lost"))
        reached = self.highest()
        farthest = self.farthest = max(self.farthest, reached)
        further = self.dice.random() < 0.5

        def goes_on() -> bool:
            self.keep_scheduler()
            now = self.highest()
            if further:
                return now > farthest + SAVE_STEPS
            return now > reached + 3 or (len(self.lines("lost")) > before and now > 3)

        eventually(goes_on, seconds=DEADLINE, what=f"steps after {self.kills[-1]}")

    def has_result(self) -> bool:
        self.keep_scheduler()
        return bool(self.lines("result"))

    def highest(self) -> int:
        return int((self.lines("highest") or ["0"])[0])


def master_state(master: str) -> dict:
    with urllib.request.urlopen(f"http://{master}/state", timeout=10) as answer:
        return json.load(answer)


def marked_processes(marks: Path) -> list[int]:
    """Return the processes that this job started and that still run."""
    return [one.pid for one in processes(str(marks)) if one.pid != os.getpid()]


def listening(ports: set[int]) -> list[int]:
    taken = []
    for port in ports:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                taken.append(port)
    return taken


@contextlib.contextmanager
def killed_training(
    folder: Path, zookeeper: ZooKeeperServer, seed: int, *, kept_tasks: int = 150
) -> Iterator[KilledTraining]:
    """Run one that has made its first steps; each agent keeps so many that have ended."""
    agents = [
        AgentConfig(address=f"127.0.0.{n}", cpus=2, mem=2048, ports=ports, kept_tasks=kept_tasks)
        for n, ports in PORTS.items()
    ]
    # Mesos gives an agent up after 75 s; here it is two, because it happens so often.
    timing = Timing(agent_ping=0.5, agent_ping_timeouts=4, max_completed_tasks=2 * kept_tasks)
    with FaultyCluster(agents, folder / "mesos", timing=timing) as cluster:
        training = KilledTraining(folder, cluster, zookeeper, seed)
        try:
            eventually(lambda: training.highest() > 3, seconds=DEADLINE, what="the first steps")
            yield training
        finally:
            training.close()


def finish(training: KilledTraining) -> None:
    """Let the training end; its result must be right, and an uninstall must leave nothing."""
    (training.marks / "finish").touch()
    eventually(training.has_result, seconds=DEADLINE, what=f"the result: {training.kills}")
    check_result(training)
    check_nothing_is_left(training)


def check_result(training: KilledTraining) -> None:
    result = json.loads((training.marks / "result").read_text())
    assert result["step"] >= LAST_STEP
    assert result["sum"] == result["step"] * (result["step"] + 1) // 2
    assert list(training.marks.glob("*.twice")) == []
    lost = [int(steps) for steps in training.lines("lost")]
    assert max(lost) <= SAVE_STEPS
    assert sum(lost) <= SAVE_STEPS * len(training.kills)


def check_nothing_is_left(training: KilledTraining) -> None:
    """Uninstall, and look for what it should have taken away."""
    ports = {
        port
        for framework in master_state(training.cluster.master)["frameworks"]
        for task in framework["tasks"] + framework["completed_tasks"]
        for port in task_ports(task)
    }
    training.scheduler.kill()
    training.scheduler = training.start_scheduler("--uninstall")
    eventually(
        lambda: not master_state(training.cluster.master)["frameworks"],
        seconds=DEADLINE,
        what="the end of the framework",
    )
    eventually(lambda: not nodes(training.zookeeper), seconds=DEADLINE, what="an empty ZooKeeper")
    training.scheduler.kill()
    eventually(lambda: not marked_processes(training.marks), seconds=DEADLINE, what="no process")
    assert listening(ports) == []


def task_ports(task: dict) -> list[int]:
    ranges = task["resources"].get("ports", "")
    return [int(part) for pair in ranges.strip("[]").split(",") if pair for part in pair.split("-")]


def nodes(zookeeper: ZooKeeperServer) -> list[str]:
    """Return what the service has left in ZooKeeper, other than its lock's empty folder."""
    client = KazooClient(zookeeper.address)
    client.start()
    try:
        return [n for n in client.get_children("/dcos-service-target") if n != "lock"]
    except NoNodeError:
        return []
    finally:
        client.stop()
        client.close()
