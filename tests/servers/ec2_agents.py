"""Agents of an embedded cluster stand for the instances of an EC2 server.

Each instance that carries our tags is an agent with the attributes that ``start_agent.sh`` would
give it; when EC2 has terminated the instance, the agent has lost its power.
"""

import threading
from typing import Any

from cluster_faults import FaultyCluster
from dcos_tensorflow.capacity.providers.ec2_facts import OWNER_TAG, PRICE_TAG, PURCHASE_TAG
from servers.ec2_server import Ec2Server

#: Each agent has so many ports of this machine.
PORTS = 50


class Ec2Agents:
    """``agents`` are the places of the agents in the cluster, by instance id."""

    def __init__(
        self, ec2: Ec2Server, cluster: FaultyCluster, first_port: int, *, cpus: float, mem: float
    ) -> None:
        self.agents: dict[str, int] = {}
        #: So many agents say of an instance that they are it.
        self.agents_each = 1
        self._ended: set[str] = set()
        self._ec2 = ec2
        self._cluster = cluster
        self._first_port = first_port
        self._size = {"cpus": cpus, "mem": mem}
        self._looking = threading.Lock()
        # All of moto's servers in a process share what they hold: those are another test's.
        self._others = {instance.id for instance in ec2.instances}
        ec2.on_change = self.look

    def look(self) -> None:
        """Let the agents follow the instances."""
        with self._looking:
            for instance in self._ec2.instances:
                tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
                if instance.id in self._others:
                    continue
                if instance.state == "running" and OWNER_TAG in tags:
                    if instance.id not in self.agents:
                        self.agents[instance.id] = self._start(instance, tags)
                elif instance.id in self.agents.keys() - self._ended:
                    self._ended.add(instance.id)
                    self._cluster.faults.lose_machine(self.agents[instance.id])

    def _start(self, instance: Any, tags: dict[str, str]) -> int:
        number = len(self.agents)
        first = self._first_port + PORTS * number
        attributes = {
            "instance_type": instance.instance_type,
            "zone": instance.placement.zone,
            "market": instance.lifecycle or "on-demand",
            "price": float(tags[PRICE_TAG]),
            "purchase_id": tags[PURCHASE_TAG],
        }
        for more in range(1, self.agents_each):
            self._join(instance, attributes, f"127.0.3.{number + 1}", first + 10_000 * more)
        return self._join(instance, attributes, f"127.0.2.{number + 1}", first)

    def _join(self, instance: Any, attributes: dict[str, Any], address: str, first: int) -> int:
        return self._cluster.faults.start_machine(
            address=address,
            hostname=instance.private_dns_name,
            **self._size,
            ports=[first, first + PORTS - 1],
            attributes=attributes,
            zone=instance.placement.zone,
        )
