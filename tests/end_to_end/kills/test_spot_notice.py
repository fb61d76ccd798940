"""A spot machine is taken back: with its notice used, and without one.

The gate trains without TensorFlow. Checkpoints are published to S3 every few seconds: what a notice
saves is what was trained since the last one.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from command_line import NEWEST, NO_KERAS
from data_files import PROGRAMS
from embedded_mesos import AgentConfig, Timing
from scheduler_process import SchedulerProcess
from servers.metadata_service import MetadataService
from servers.s3_server import S3Server
from waiting import eventually

TRAINER = PROGRAMS / "s3_trainer.py"
#: The same without TensorFlow, and the environment that it runs in.
FILES = TRAINER.with_name("s3_files.py")
WITHOUT = sys.prefix
DEADLINE = 120.0
INTERVAL_SECONDS = 5.0
SMALL = {"cpus": 0.6, "mem": 1024, "disk": 100}
#: By strategy: the roles, how many of them restore, and how many are workers. Their machines go.
JOBS = {
    "multi_worker": ({"parameter_server": {"count": 0}, "worker": {"count": 2, **SMALL}}, 2, 2),
    "parameter_server": (
        {
            "chief": {"count": 1, **SMALL},
            "parameter_server": {"count": 1, **SMALL},
            "worker": {"count": 1, **SMALL},
        },
        1,
        1,
    ),
}
#: Room for all, and to spare for those that move.
AGENTS = 4
#: Of both trainers.
STEPS_PER_SAVE = 10
NOTICE = "spot/instance-action"
#: A lost agent is noticed after 5 s, where Mesos' defaults take 75.
TIMING = Timing(agent_ping=1.0, agent_ping_timeouts=5)
#: Ports of a place of this process' own.
FIRST_PORT = 5500 + os.getpid() % 16 * 400


class Training:
    """A gang on spot machines, of which those of the workers are taken back."""

    def __init__(
        self, folder: Path, s3: S3Server, served: MetadataService, strategy: str, python: str
    ) -> None:
        self.served = served
        self.strategy = strategy
        self.roles, self.restoring, self.workers = JOBS[strategy]
        self.marks = folder / "marks"
        self.marks.mkdir()
        agents = [
            AgentConfig(
                address=f"127.0.0.{n + 1}",
                cpus=1,
                mem=2000,
                ports=(FIRST_PORT + 100 * n, FIRST_PORT + 100 * n + 99),
                attributes={"market": "spot"},
            )
            for n in range(AGENTS)
        ]
        self.cluster = FaultyCluster(agents, folder / "mesos", timing=TIMING)
        self.cluster.start()
        options = folder / "options.json"
        options.write_text(json.dumps(self._options(folder, s3, python)))
        self.scheduler = SchedulerProcess(
            "scheduler",
            folder,
            options,
            self.cluster.master,
            f"sqlite:///{folder}/state.db",
            *("--task-secrets-dir", str(folder)),
            environment={},
        )

    def _options(self, folder: Path, s3: S3Server, python: str) -> dict[str, object]:
        trainer = FILES if python == WITHOUT else TRAINER
        roles = {name: dict(role) for name, role in self.roles.items()}
        roles["worker"]["env"] = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.served.url}
        return {
            "service": {
                "name": "training",
                "job_cmd": f"{python}/bin/python {trainer} {self.marks}",
                "python": python,
                **NO_KERAS,
                "strategy": self.strategy,
                "kill_grace_seconds": 5,
            },
            "checkpoints": {"uri": "s3://bucket/job", "interval_seconds": INTERVAL_SECONDS},
            "s3": s3.options(folder),
            **roles,
        }

    def close(self) -> None:
        self.scheduler.process.kill()
        self.scheduler.process.wait()
        self.cluster.stop()

    def lines(self, name: str) -> list[list[str]]:
        file = self.marks / name
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for_saves(self, count: int) -> None:
        """Wait for so many more checkpoints: those of the process, published or not."""
        enough = len(self.lines("saves")) + count
        eventually(
            lambda: len(self.lines("saves")) >= enough,
            seconds=DEADLINE,
            what=lambda: f"{count} more checkpoints: {self.scheduler.log[-2000:]}",
        )

    def agents(self) -> set[int]:
        """Return the places of the agents that have a worker."""
        return {
            number
            for number, agent in enumerate(self.cluster.agents)
            for container in agent.containerizer.live()
            if "__worker-" in container.task_id
        }

    def goes_on(self, play: Callable[[], object]) -> tuple[int, float]:
        """Play a loss; return the steps that were repeated, and for how long no task trained."""
        starts = len(self.lines("restored"))
        play()
        eventually(
            lambda: len(self.lines("restored")) >= starts + self.restoring,
            seconds=DEADLINE,
            what=lambda: f"the training goes on: {self.scheduler.log[-2000:]}",
        )
        self.wait_for_saves(1)
        saves = [(float(at), int(step)) for at, step in self.lines("saves")]
        pairs = [(saves[n - 1], saves[n]) for n in range(1, len(saves))]
        repeated = max(before + STEPS_PER_SAVE - after for (_, before), (_, after) in pairs)
        return repeated, max(after - before for (before, _), (after, _) in pairs)


@pytest.fixture
def training(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    s3: S3Server,
    tensorflow: Callable[[str], str],
) -> Iterator[Training]:
    strategy, version = request.param
    python = tensorflow(version) if version else WITHOUT
    with MetadataService() as served:
        made = Training(tmp_path, s3, served, strategy, python)
        yield made
        made.close()


def take_back(training: Training) -> None:
    """Give the workers' machines notice, and take them when they are empty."""
    before = training.agents()
    training.served.interrupt()
    eventually(
        lambda: training.served.told.count(NOTICE) >= training.workers,
        seconds=DEADLINE,
        what="that the runners have read the notice",
    )
    # The next machines have one of their own.
    del training.served.facts[NOTICE]
    eventually(
        lambda: not before & training.agents(),
        seconds=DEADLINE,
        what="that their machines are empty",
    )
    for agent in before:
        training.cluster.faults.lose_machine(agent)


def lose(training: Training) -> None:
    for agent in training.agents():
        training.cluster.faults.lose_machine(agent)


WITHOUT_TENSORFLOW = pytest.param(("multi_worker", None), id="without")
WITH_TENSORFLOW = [
    pytest.param((strategy, NEWEST), marks=[pytest.mark.tensorflow, pytest.mark.soak], id=strategy)
    for strategy in JOBS
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("training", [WITHOUT_TENSORFLOW, *WITH_TENSORFLOW], indirect=True)
def test_a_notice_costs_no_step(
    training: Training, record_property: Callable[[str, object], None]
) -> None:
    training.wait_for_saves(10)
    repeated, pause = training.goes_on(lambda: take_back(training))
    record_property("notice", f"{repeated} steps repeated, {pause:.1f} s without a step")
    print(f"notice: {repeated} steps repeated, {pause:.1f} s without a step")
    assert repeated <= 0


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("training", WITH_TENSORFLOW, indirect=True)
def test_without_a_notice_it_goes_on_from_what_was_published(
    training: Training, record_property: Callable[[str, object], None]
) -> None:
    training.wait_for_saves(10)
    repeated, pause = training.goes_on(lambda: lose(training))
    record_property("loss", f"{repeated} steps repeated, {pause:.1f} s without a step")
    print(f"loss: {repeated} steps repeated, {pause:.1f} s without a step")
    assert repeated >= 0
