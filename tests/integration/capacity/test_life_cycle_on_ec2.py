"""A job on spot machines of EC2, one of which goes without a notice, to its end and its bill."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.api.views.machines import capacity
from dcos_tensorflow.core.model.events import StopRequested
from dcos_tensorflow.core.model.machine_records import machines_left
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, Ec2Spec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, TaskRole
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.gate import Allowed
from dcos_tensorflow.scheduler.scheduler import Scheduler
from ec2_agents import PORTS, Ec2Agents
from ec2_server import KEY_ID, REGION, SECRET_KEY, Ec2Server
from embedded_mesos import AgentConfig, Timing
from scheduled_jobs import command_job, done, running, wait_until

#: Ports of a place of this process' own.
FIRST_PORT = 9700 + os.getpid() % 8 * 400
KIND = "c5.large"


def alive(ec2: Ec2Server, ids: set[str]) -> set[str]:
    return {i.id for i in ec2.instances if i.id in ids and i.state in ("pending", "running")}


@pytest.mark.soak
def test_a_machine_that_is_taken_back_is_replaced_and_all_go_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    ec2 = Ec2Server()
    ec2.client.create_launch_template(
        LaunchTemplateName="machines", LaunchTemplateData={"ImageId": "ami-03cf127a"}
    )
    spec = CapacitySpec(
        Ec2Spec(REGION, endpoint_url=ec2.url, launch_template="machines", prices={KIND: 0.085}),
        instance_types=(KIND,),
        zones=("us-east-1a",),
        max_instances=4,
    )
    # Two of them do not fit on one machine.
    worker = RoleSpec(TaskRole.WORKER, 2, Resources(cpus=1.2, mem=64), python=sys.executable)
    job = replace(command_job("sleep 600"), roles=(worker,), capacity=spec)
    config = SchedulerConfig(
        master="",
        state=f"sqlite:///{tmp_path}/state.db",
        artifacts_dir=tmp_path / "artifacts",
        artifacts="file",
        leadership_timeout_seconds=0.0,
        allowed=Allowed(everything=True),
        tick_seconds=0.05,
        capacity_look_seconds=0.2,
    )
    first = AgentConfig(cpus=0.1, mem=32, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    timing = Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)
    with FaultyCluster([first], tmp_path / "mesos", timing=timing) as cluster:
        stand_ins = Ec2Agents(ec2, cluster, FIRST_PORT + PORTS, cpus=2, mem=512)
        scheduler = Scheduler(job, replace(config, master=cluster.master))
        scheduler.start()
        try:
            wait_until(scheduler, running)
            before = set(stand_ins.agents)
            taken = min(before)
            ec2.client.terminate_instances(InstanceIds=[taken])

            lost = next(i.private_dns_name for i in ec2.instances if i.id == taken)

            def replaced(state: ServiceState) -> bool:
                hosts = {record.hostname for record in state.live_tasks}
                return running(state) and len(hosts) == 2 and lost not in hosts

            wait_until(scheduler, replaced)
            assert len(stand_ins.agents) == 3
            ids = set(stand_ins.agents)
            assert len(alive(ec2, ids)) == 2
            scheduler.submit(StopRequested("the test is over"))
            state = wait_until(scheduler, lambda s: done(s) and not machines_left(s.capacity))
        finally:
            scheduler.stop()
        assert alive(ec2, ids) == set()
    ec2.close()
    found = capacity(state)
    assert {machine["market"] for machine in found["ended"]} == {"spot"}
    assert found["bill"]["total"]["machines"] == 3
    assert found["machines"] == []
