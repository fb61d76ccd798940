"""What is bought on EC2 becomes agents, and what is ended there takes them away."""

from __future__ import annotations

import os
from pathlib import Path

from cluster_faults import FaultyCluster
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.provider import PurchaseOrder
from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider
from dcos_tensorflow.core.spec.capacity_spec import Ec2Spec
from dcos_tensorflow.core.spec.resources import Resources
from ec2_agents import PORTS, Ec2Agents
from ec2_server import REGION, Ec2Server
from embedded_mesos import AgentConfig
from waiting import eventually

#: Ports of a place of this process' own.
FIRST_PORT = 6500 + os.getpid() % 16 * 400


def test_an_instance_is_an_agent_for_as_long_as_it_lasts(tmp_path: Path) -> None:
    ec2 = Ec2Server()
    first = AgentConfig(cpus=0.1, mem=32, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    with FaultyCluster([first], tmp_path / "mesos") as cluster:
        stand_ins = Ec2Agents(ec2, cluster, FIRST_PORT + PORTS, cpus=1, mem=512)
        spec = Ec2Spec(REGION, launch_template="template")
        ec2.client.create_launch_template(
            LaunchTemplateName="template", LaunchTemplateData={"ImageId": "ami-03cf127a"}
        )
        provider = Ec2Provider(spec, "job", client=ec2.client)
        pool = Pool("c5.large", "us-east-1a", Market.SPOT, 0.03, Resources(cpus=1, mem=512))
        bought = provider.buy(PurchaseOrder("purchase-1", "job", (pool,), 2))
        ids = [machine.machine_id for machine in bought.machines]
        assert sorted(stand_ins.agents) == sorted(ids)
        eventually(lambda: all(a.registered for a in cluster.agents), what="their registration")
        hosts = {machine.hostnames[0] for machine in provider.machines()}
        assert {agent.identity.hostname for agent in cluster.agents[1:]} == hosts
        provider.give_back(ids[:1])
        assert not cluster.agents[stand_ins.agents[ids[0]]].running
        assert cluster.agents[stand_ins.agents[ids[1]]].running
        provider.give_back(ids)
        assert [agent.running for agent in cluster.agents] == [True, False, False]
    ec2.close()
