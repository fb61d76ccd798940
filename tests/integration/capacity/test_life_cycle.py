"""From nothing to a trained job and back: machines of a rack, bought by a real scheduler.

The command of ``machine_rack`` starts agents of an embedded cluster, as an operator's would.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.door import make_server
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.scheduler.scheduler import Scheduler
from embedded_mesos import AgentConfig, Timing
from jobs.machine_rack import PORTS, Rack
from jobs.scheduled_jobs import command_job, done, here, wait_until

#: Ports of a place of this process' own.
FIRST_PORT = 22000 + os.getpid() % 16 * 500
NODE = {
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "price": 0.5,
    "resources": {"cpus": 0.25, "mem": 256, "disk": 500},
    "available": 4,
}


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[tuple[FaultyCluster, Rack]]:
    """A cluster whose only agent is too small for any task, and a rack beside it."""
    first = AgentConfig(cpus=0.05, mem=64, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    timing = Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)
    with FaultyCluster([first], tmp_path / "mesos", timing=timing) as cluster:
        door = make_server(("127.0.0.1", 0), cluster.faults)
        door.start()
        address = f"127.0.0.1:{door.server_address[1]}"
        pools: list[dict[str, Any]] = [dict(NODE)]
        yield cluster, Rack(tmp_path, address, pools, FIRST_PORT)
        door.stop()


def scheduler_of(
    rack: tuple[FaultyCluster, Rack], folder: Path, command: str, **capacity: object
) -> Scheduler:
    spec = CapacitySpec(CommandSpec(tuple(rack[1].command), 30.0), **capacity)  # type: ignore[arg-type]
    scheduler = Scheduler(
        replace(command_job(command), capacity=spec),
        here(folder, rack[0].master, capacity_look_seconds=0.2),
    )
    scheduler.start()
    return scheduler


def alive(rack: Rack) -> list[str]:
    return [m["machine_id"] for m in rack.machines if m["state"] == "running"]


def given_back(state: ServiceState) -> bool:
    return done(state) and not machines_left(state.capacity)


def test_machines_come_when_a_job_waits_and_go_when_it_is_done(
    rack: tuple[FaultyCluster, Rack], tmp_path: Path
) -> None:
    scheduler = scheduler_of(rack, tmp_path, "true", max_instances=4)
    try:
        state = wait_until(scheduler, given_back)
    finally:
        scheduler.stop()
    assert state.job.verdict is not None
    assert state.job.verdict.exit_code == 0
    assert {record.hostname for record in state.tasks.values()} == {"rack-1", "rack-2"}
    assert len(rack[1].machines) == 2
    assert alive(rack[1]) == []
