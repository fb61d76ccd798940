"""Three teams share four machines by a queue, and processes are killed on the way.

The gate runs a few jobs without TensorFlow; ``make soak`` runs thirty with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from command_line import NEWEST, NO_KERAS, CommandLine
from data_files import PROGRAMS
from embedded_mesos import AgentConfig, Timing
from servers.s3_server import S3Server
from waiting import eventually

AGENTS = 4
DEADLINE = 240.0
MORE_STEPS = 50
SECONDS_A_JOB = 40.0
#: A lost machine is noticed soon, and a thread that waits for a busy one is no lost machine.
TIMING = Timing(agent_ping=1.0, agent_ping_timeouts=5)
FIRST_PORT = 5700 + os.getpid() % 16 * 400
TEAMS = {
    "teams": {"red": {"guarantee": 0.25}, "blue": {"guarantee": 0.5}, "green": {}},
    "rules": {
        "reclaim_after_seconds": 1.0,
        "least_run_seconds": 1.0,
        "grace_seconds": 10.0,
        "between_giving_way_seconds": 30.0,
    },
}


class SharedCluster:
    """Four machines with room for one job and its scheduler each, and a queue.

    Jobs are gangs of two that save their steps to S3.
    """

    def __init__(self, folder: Path, s3: S3Server, python: str) -> None:
        self.folder = folder
        self._s3 = s3
        self._python = python
        agents = [
            AgentConfig(
                address=f"127.0.0.{n + 1}",
                cpus=1.1,
                mem=4000,
                ports=(FIRST_PORT + 100 * n, FIRST_PORT + 100 * n + 99),
            )
            for n in range(AGENTS)
        ]
        self.cluster = FaultyCluster(agents, folder / "mesos", timing=TIMING)
        self.cluster.start()
        self.home = CommandLine(folder / "home")
        self.home.environment["DCOS_TENSORFLOW_MASTER"] = self.cluster.master
        self.teams = folder / "teams.json"
        self.teams.write_text(json.dumps(TEAMS))
        self._log = (folder / "queue.log").open("ab")
        self.queue = self.serve()

    def serve(self, *flags: str) -> subprocess.Popen[bytes]:
        """Serve the queue; return its process once it answers."""
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dcos_tensorflow", "queue", "serve", str(self.teams)),
                *("--state", f"sqlite:///{self.folder / 'state.db'}"),
                *("--task-secrets-dir", str(self.folder), *flags),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=self.home.environment,
            start_new_session=True,
        )
        eventually(
            lambda: self.home.ask("queue", "--json").code == 0 or process.poll() is not None,
            seconds=DEADLINE,
            what=self.log,
        )
        return process

    def log(self) -> str:
        return (self.folder / "queue.log").read_text()[-4000:]

    def submit(self, team: str, name: str) -> None:
        marks = self.marks(name)
        marks.mkdir(parents=True)
        trainer = "s3_files.py" if self._python == sys.prefix else "s3_trainer.py"
        options = self.folder / f"{name}.json"
        program = PROGRAMS / trainer
        document = {
            "service": {
                "name": name,
                "job_cmd": f"{self._python}/bin/python {program} {marks}",
                "python": self._python,
                **NO_KERAS,
                "strategy": "multi_worker",
                "kill_grace_seconds": 5,
            },
            "checkpoints": {"uri": f"s3://bucket/{name}", "interval_seconds": 1},
            "s3": self._s3.options(self.folder),
            "parameter_server": {"count": 0},
            "worker": {"count": 2, "cpus": 0.5, "mem": 900, "disk": 10},
            "retry": {"initial_backoff_seconds": 0.2},
        }
        options.write_text(json.dumps(document))
        ended = self.home.ask("submit", options, "--team", team)
        assert ended.code == 0, ended.out

    def finish(self, name: str) -> int:
        """Let a job end after some more steps; return the last of them."""
        last = max(self.steps_of(name, "saves"), default=0) + MORE_STEPS
        whole = self.marks(name) / "finish"
        partial = whole.with_suffix(".part")
        partial.write_text(str(last))
        partial.replace(whole)
        return last

    def marks(self, name: str) -> Path:
        return self.folder / "marks" / name

    def steps_of(self, name: str, what: str) -> list[int]:
        file = self.marks(name) / what
        lines = file.read_text().splitlines() if file.exists() else []
        return [int(line.split()[-1]) for line in lines]

    def jobs(self, *flags: str) -> dict[str, dict[str, Any]]:
        answered = self.home.ask("queue", "list", "--json", *flags)
        if answered.code != 0:
            return {}
        return {job["job"]: job for job in json.loads(answered.out)}

    def running(self, team: str) -> list[str]:
        """Return the jobs of a team that have saved something and run on."""
        found = self.jobs().values()
        names = [j["job"] for j in found if j["team"] == team and j["state"] == "running"]
        return [name for name in names if self.steps_of(name, "saves")]

    def wait_for(self, condition: Any, what: str, seconds: float = DEADLINE) -> Any:
        return eventually(condition, seconds=seconds, what=lambda: f"{what}: {self.log()}")

    def frameworks(self) -> list[str]:
        """Return the frameworks that the master still has."""
        with urllib.request.urlopen(f"http://{self.cluster.master}/state") as answer:
            return [found["name"] for found in json.loads(answer.read())["frameworks"]]

    def kill_queue(self, job: str) -> None:
        """Kill the queue, and serve it again when a job has gone on without it."""
        self.queue.kill()
        self.queue.wait()
        reached = self.steps_of(job, "saves")[-1]
        self.wait_for(lambda: self.steps_of(job, "saves")[-1] > reached, "it goes on")
        self.queue = self.serve()

    def scheduler_of(self, job: str) -> dict[str, Any]:
        """Return what the scheduler of a job has left: its process, its address."""
        registered = self.folder / "home" / "services" / job / "scheduler.json"
        return dict(json.loads(registered.read_text()))

    def kill_scheduler(self, job: str) -> None:
        os.kill(self.scheduler_of(job)["pid"], signal.SIGKILL)

    def machine_of(self, job: str) -> int:
        """Return a machine that a task of a job runs on."""
        return next(
            number
            for number, agent in enumerate(self.cluster.agents)
            for container in agent.containerizer.live()
            if container.task_id.startswith(f"{job}__")
        )

    def machine_of_scheduler(self, job: str) -> int:
        host = self.scheduler_of(job)["api"].rpartition(":")[0]
        return int(host.rpartition(".")[2]) - 1

    def lose_machine(self, agent: int) -> None:
        self.cluster.faults.lose_machine(agent)
        self.cluster.faults.replace_machine(agent)

    def close(self) -> None:
        self.queue.kill()
        self.queue.wait()
        for file in (self.folder / "home" / "services").glob("*/scheduler.json"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                if (pid := json.loads(file.read_text())["pid"]) > 0:
                    os.kill(pid, signal.SIGKILL)
        self.cluster.stop()
        self._log.close()


@pytest.fixture
def shared(
    request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server, tensorflow: Any
) -> Iterator[SharedCluster]:
    version = request.param
    made = SharedCluster(tmp_path, s3, tensorflow(version) if version else sys.prefix)
    yield made
    made.close()


@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("shared", "jobs"),
    [
        pytest.param(None, {"red": 4, "blue": 2, "green": 1}, id="without"),
        pytest.param(
            NEWEST,
            {"red": 14, "blue": 10, "green": 6},
            id="tensorflow",
            marks=[pytest.mark.tensorflow, pytest.mark.soak],
        ),
    ],
    indirect=["shared"],
)
def test_teams_share_a_cluster_and_all_jobs_end_right(
    shared: SharedCluster, jobs: dict[str, int]
) -> None:
    names = {team: [f"{team}-{n}" for n in range(count)] for team, count in jobs.items()}
    for name in names["red"]:
        shared.submit("red", name)
    shared.wait_for(lambda: len(shared.running("red")) == AGENTS, "red has all machines")
    before = {name: shared.steps_of(name, "saves")[-1] for name in shared.running("red")}
    for team in ("blue", "green"):
        for name in names[team]:
            shared.submit(team, name)
    gave_way = shared.wait_for(
        lambda: [n for n, j in shared.jobs().items() if j["times_given_way"]], "one gives way"
    )
    shared.kill_queue(shared.wait_for(lambda: shared.running("red"), "a job of red runs")[0])
    shared.wait_for(lambda: shared.running("blue"), "blue has what it is guaranteed")
    shared.kill_scheduler(shared.running("blue")[0])
    lost = shared.wait_for(lambda: shared.running("red"), "a job of red runs")[0]
    shared.lose_machine(shared.machine_of(lost))
    left = shared.wait_for(lambda: shared.running("blue"), "a job of blue runs")[0]
    shared.lose_machine(shared.machine_of_scheduler(left))
    everything = sorted(name for of_team in names.values() for name in of_team)
    last = {name: shared.finish(name) for name in everything}
    shared.wait_for(
        lambda: sorted(n for n, j in shared.jobs("--all").items() if j["ended_at"]) == everything,
        "the end of all jobs",
        DEADLINE + SECONDS_A_JOB * len(everything),
    )
    ended = shared.jobs("--all")
    assert {n: j["why"] for n, j in ended.items() if j["state"] != "succeeded"} == {}
    assert {n for n in everything if shared.steps_of(n, "saves")[-1] < last[n]} == set()
    for name in set(gave_way) - {lost, left}:
        # What it had saved before was published, and nothing of that is trained again.
        assert min(shared.steps_of(name, "restored")[2:4]) >= before.get(name, 0)
    shared.queue.terminate()
    assert shared.queue.wait(DEADLINE) == 0
    assert shared.serve("--uninstall").wait(DEADLINE) == 0
    assert not (shared.folder / "home" / "queues" / "queue").exists()
    assert shared.frameworks() == []
