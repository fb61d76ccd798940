"""SIGKILL of the scheduler at random moments of a life with bought machines."""

import json
import os
import random
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.door import make_server
from embedded_mesos import AgentConfig
from machine_rack import PORTS, Rack
from scheduler_process import SchedulerProcess
from waiting import eventually

KILLS = min(20, int(os.environ.get("KILLS", "6")))
#: Ports of a place of this process' own.
FIRST_PORT = 18500 + os.getpid() % 8 * 500
NODE = {
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "price": 0.5,
    "resources": {"cpus": 0.25, "mem": 256, "disk": 500},
    "available": 8,
}
LIMIT = 3


@pytest.mark.soak
def test_no_machine_is_forgotten_or_bought_twice_whenever_the_scheduler_is_killed(
    tmp_path: Path,
) -> None:
    chance = random.Random(KILLS)
    first = AgentConfig(cpus=0.05, mem=64, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    with FaultyCluster([first], tmp_path / "mesos") as cluster:
        door = make_server(("127.0.0.1", 0), cluster.faults)
        door.start()
        rack = Rack(tmp_path, f"127.0.0.1:{door.server_address[1]}", [dict(NODE)], FIRST_PORT)
        options = tmp_path / "options.json"
        options.write_text(
            json.dumps(
                {
                    "service": {"name": "job", "job_cmd": "sleep 3600", "python": sys.executable},
                    "worker": {"count": 2, "cpus": 0.2, "mem": 64, "disk": 10},
                    "capacity": {
                        "provider": "command",
                        "max_instances": LIMIT,
                        "idle_seconds": 5,
                        "command": {"cmd": rack.command},
                    },
                }
            )
        )

        def begun(name: str) -> SchedulerProcess:
            state = f"sqlite:///{tmp_path}/state.db"
            return SchedulerProcess(
                *(name, tmp_path, options, cluster.master, state),
                *("--machines-from", rack.command[0]),
                environment={},
            )

        def alive() -> list[str]:
            return [m["machine_id"] for m in rack.machines if m["state"] == "running"]

        most, watching = 0, threading.Event()

        def watch() -> None:
            nonlocal most
            while not watching.wait(0.1):
                most = max(most, len(alive()))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for number in range(KILLS):
                process = begun(f"killed-{number}")
                # A look comes every five seconds: this falls anywhere into the first few.
                threading.Event().wait(chance.uniform(1.0, 25.0))
                process.kill()
            last = begun("last")
            last.wait_for("running")
            assert len(alive()) <= LIMIT
            eventually(lambda: len(alive()) == 2, seconds=60, what="no machine too many")
            ask = urllib.request.Request(
                f"http://{last.api}/v1/uninstall", b"{}", {"Content-Type": "application/json"}
            )
            urllib.request.urlopen(ask, timeout=10).close()
            eventually(lambda: alive() == [], seconds=120, what="the end of every machine")
            last.close()
        finally:
            watching.set()
            watcher.join()
            door.stop()
    assert most <= LIMIT
