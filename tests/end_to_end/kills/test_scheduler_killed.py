"""SIGKILL of the scheduler at random moments: the job succeeds all the same."""

import json
import os
import random
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from data_files import PROGRAMS
from embedded_mesos import AgentConfig, EmbeddedCluster
from free_ports import agent_ports
from scheduler_process import SchedulerProcess
from waiting import eventually

#: ``make soak`` plays 20.
KILLS = min(20, int(os.environ.get("KILLS", "8")))
MEMBER = PROGRAMS / "member.py"
#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = 120.0


def options(tmp_path: Path, marks: Path) -> Path:
    file = tmp_path / "job.json"
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    file.write_text(
        json.dumps(
            {
                "service": {
                    "name": "survivor",
                    "job_cmd": f"{sys.executable} {MEMBER} {marks}",
                    "python": sys.executable,
                    "outcome_grace_seconds": 1,
                    "kill_grace_seconds": 1,
                },
                "retry": {"initial_backoff_seconds": 0.2, "limit": 5},
                "parameter_server": {"count": 1, **small},
                "worker": {"count": 2, **small},
            }
        )
    )
    return file


def master_state(master: str) -> dict:
    with urllib.request.urlopen(f"http://{master}/state", timeout=10) as answer:
        return json.load(answer)


def lives_for(process: subprocess.Popen, seconds: float) -> bool:
    """Let the process live so long; False when it ended by itself before."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def play(tmp_path: Path, state: str, seed: int) -> tuple[Path, dict, int, int]:
    """Kill the scheduler at KILLS random moments of one job; return what was left behind."""
    dice = random.Random(seed)
    marks = tmp_path / "marks"
    marks.mkdir()
    agents = [
        AgentConfig(address=f"127.0.0.{n}", cpus=2, mem=2048, ports=agent_ports(n)) for n in (1, 2)
    ]
    with EmbeddedCluster(agents, tmp_path / "mesos") as cluster:
        daemon = ("scheduler", tmp_path, options(tmp_path, marks), cluster.master, state)
        start = partial(SchedulerProcess, *daemon, "--exit-when-done", environment={})
        kills = 0
        for number in range(KILLS):
            if number == KILLS // 3:
                (marks / "fail").touch()
            if number == KILLS - 2:
                (marks / "finish").touch()
            scheduler = start()
            if number in (KILLS // 3 - 1, KILLS - 3):
                # Sure to have got so far, however slow the machine is.
                wanted = "worker-1.starts" if number < KILLS // 2 else "failed"
                eventually((marks / wanted).exists, seconds=DEADLINE, what=wanted)
            if lives_for(scheduler.process, dice.uniform(0.3, 2.5)):
                kills += 1
            scheduler.kill()
        code = start().process.wait(timeout=DEADLINE)
        eventually(lambda: not alive(cluster.master), what="the end of every task")
        return marks, master_state(cluster.master), code, kills


def alive(master: str) -> list[str]:
    frameworks = master_state(master)["frameworks"]
    return [task["id"] for framework in frameworks for task in framework["tasks"]]


def check(marks: Path, state: dict, code: int, kills: int) -> None:
    log = (marks.parent / "scheduler.log").read_text()
    assert code == 0, log[-3000:]
    # The last two may find that the job was done before them.
    assert kills >= KILLS - 2
    assert list(marks.glob("*.twice")) == []
    assert (marks / "failed").exists()
    assert [t["id"] for f in state["frameworks"] for t in f["tasks"]] == []


@pytest.mark.timeout(300)
def test_with_state_in_sqlite_the_job_succeeds_and_no_task_ran_twice_at_once(tmp_path):
    marks, state, code, kills = play(tmp_path, f"sqlite:///{tmp_path}/state.db", seed=1)
    check(marks, state, code, kills)
