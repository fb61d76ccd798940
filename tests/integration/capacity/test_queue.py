"""Machines of a rack are bought for what waits in a queue, and go when it is done."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.door import make_server
from command_line import CommandLine
from embedded_mesos import AgentConfig, Timing
from jobs.machine_rack import PORTS, Rack
from waiting import eventually

SECONDS = 150.0
LIMIT = 2
#: Ports of a place of this process' own.
FIRST_PORT = 11000 + os.getpid() % 8 * 500
NODE = {
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "price": 0.5,
    "resources": {"cpus": 1.0, "mem": 1024, "disk": 500},
    "available": 4,
}


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[tuple[FaultyCluster, Rack]]:
    """A cluster whose only agent is too small for any job, and a rack beside it."""
    first = AgentConfig(cpus=0.05, mem=64, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    timing = Timing(agent_ping=1.0, agent_ping_timeouts=5)
    with FaultyCluster([first], tmp_path / "mesos", timing=timing) as cluster:
        door = make_server(("127.0.0.1", 0), cluster.faults)
        door.start()
        yield cluster, Rack(tmp_path, f"127.0.0.1:{door.server_address[1]}", [NODE], FIRST_PORT)
        door.stop()


@pytest.fixture
def home(rack: tuple[FaultyCluster, Rack], tmp_path: Path) -> Iterator[CommandLine]:
    """The command line of a queue that may buy two machines."""
    cluster, machines = rack
    made = CommandLine(tmp_path / "home")
    made.environment["DCOS_TENSORFLOW_MASTER"] = cluster.master
    teams = tmp_path / "teams.json"
    capacity = {
        "provider": "command",
        "max_instances": LIMIT,
        "idle_seconds": 1,
        "command": {"cmd": machines.command},
    }
    teams.write_text(json.dumps({"teams": {"red": {}}, "capacity": capacity}))
    with (tmp_path / "queue.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dcos_tensorflow", "queue", "serve", str(teams)),
                *("--state", f"sqlite:///{tmp_path / 'state.db'}"),
                *("--machines-from", machines.command[0]),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=made.environment,
        )
        eventually(lambda: made.ask("queue", "--json").code == 0, seconds=SECONDS, what="a queue")
        yield made
        process.send_signal(signal.SIGTERM)
        process.wait()


def submit(home: CommandLine, folder: Path, name: str) -> None:
    options = folder / f"{name}.json"
    service = {"name": name, "job_cmd": "true", "python": sys.prefix}
    worker = {"count": 1, "cpus": 0.6, "mem": 64, "disk": 10}
    options.write_text(json.dumps({"service": service, "worker": worker}))

    def is_taken() -> bool:
        # The queue does not know the machines yet.
        return home.ask("submit", options).code == 0

    eventually(is_taken, seconds=SECONDS, what=f"{name} to be taken")


def states(home: CommandLine) -> dict[str, str]:
    answer = home.ask("queue", "list", "--all", "--json")
    return {job["job"]: job["state"] for job in json.loads(answer.out)} if not answer.code else {}


@pytest.mark.timeout(400)
def test_machines_are_bought_for_the_line_within_the_limit_and_go_when_it_is_done(
    rack: tuple[FaultyCluster, Rack], home: CommandLine, tmp_path: Path
) -> None:
    names = ("one", "two", "three")
    for name in names:
        submit(home, tmp_path, name)
    wanted = dict.fromkeys(names, "succeeded")
    alive: list[int] = []

    def all_are_done() -> bool:
        alive.append(sum(one["state"] == "running" for one in rack[1].machines))
        return states(home) == wanted

    eventually(all_are_done, seconds=SECONDS, what=(tmp_path / "queue.log").read_text)
    eventually(
        lambda: all(one["state"] != "running" for one in rack[1].machines),
        seconds=SECONDS,
        what="all machines to be given back",
    )
    assert 0 < max(alive) <= LIMIT
