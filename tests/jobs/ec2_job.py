"""A job on machines of a test's EC2: the server, a cluster that its instances join, schedulers."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster_faults import FaultyCluster
from embedded_mesos import AgentConfig, Timing
from scheduler_process import SchedulerProcess
from servers.ec2_agents import PORTS, Ec2Agents
from servers.ec2_server import KEY_ID, REGION, SECRET_KEY, Ec2Server
from waiting import eventually

KIND = "c5.large"
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
#: Of a machine an hour, on demand.
ON_DEMAND = 90.0
#: A lost agent is noticed after a second.
_TIMING = Timing(agent_ping=0.2, agent_ping_timeouts=5, update_retry=0.5)
_QUICK = str(Path(__file__).parents[1] / "quick_scheduler.py")
#: Ports of a place of this process' own.
_FIRST_PORT = 12900 + os.getpid() % 8 * 800


class Ec2Job:
    """The place of a job of two workers, each of which takes a machine; close it.

    ``more`` are further sections of its options; ``capacity`` is added to its section of machines.
    The cluster has one agent, with no room for any task.
    """

    def __init__(
        self,
        folder: Path,
        service: Mapping[str, object],
        capacity: Mapping[str, object],
        more: Mapping[str, object] | None = None,
        worker_environment: Mapping[str, str] | None = None,
    ) -> None:
        self.ec2 = Ec2Server()
        template = self.ec2.client.create_launch_template(
            # All of moto's servers in a process share what they hold.
            LaunchTemplateName=f"machines-{self.ec2.url.rpartition(':')[2]}",
            LaunchTemplateData={"ImageId": "ami-03cf127a"},
        )["LaunchTemplate"]
        first = AgentConfig(cpus=0.1, mem=32, ports=(_FIRST_PORT, _FIRST_PORT + PORTS - 1))
        self.cluster = FaultyCluster([first], folder / "mesos", timing=_TIMING)
        self.cluster.start()
        self.stand_ins = Ec2Agents(self.ec2, self.cluster, _FIRST_PORT + PORTS, cpus=2, mem=2048)
        self._folder = folder
        self._options = folder / "options.json"
        zones = {"Name": "availability-zone", "Values": list(ZONES)}
        subnets = self.ec2.client.describe_subnets(Filters=[zones])["Subnets"]
        market = {
            "provider": "ec2",
            "max_instances": 4,
            "instance_types": [KIND],
            "ec2": {
                "region": REGION,
                "endpoint_url": self.ec2.url,
                "launch_template": template["LaunchTemplateId"],
                # moto has a default subnet in each zone, and heeds the zones of subnets alone.
                "subnets": [subnet["SubnetId"] for subnet in subnets],
                "prices": {KIND: ON_DEMAND},
            },
        }
        worker = {"count": 2, "cpus": 1.2, "mem": 256, "disk": 10}
        self._options.write_text(
            json.dumps(
                {
                    "service": {"name": "job", "python": sys.executable, **service},
                    "parameter_server": {"count": 0},
                    "worker": {**worker, "env": dict(worker_environment or {})},
                    "capacity": {**market, **capacity},
                    **(more or {}),
                }
            )
        )
        self._schedulers: list[SchedulerProcess] = []

    def scheduler(self) -> SchedulerProcess:
        """Start a scheduler; one after another, they are one service."""
        made = SchedulerProcess(
            f"scheduler-{len(self._schedulers)}",
            self._folder,
            self._options,
            self.cluster.master,
            f"sqlite:///{self._folder}/state.db",
            *("--task-secrets-dir", str(self._folder), "--machines-from", self.ec2.url),
            environment={"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
            program=(_QUICK,),
        )
        self._schedulers.append(made)
        return made

    def close(self) -> None:
        for scheduler in self._schedulers:
            scheduler.close()
        self.cluster.stop()
        self.ec2.close()

    @property
    def instances(self) -> list[Any]:
        """Return moto's instances of this job, in the order of their purchase."""
        return [each for each in self.ec2.instances if each.id in self.stand_ins.agents]

    @property
    def alive(self) -> list[Any]:
        return [each for each in self.instances if each.state in ("pending", "running")]

    def with_tasks(self) -> set[str]:
        """Return the instances on which a worker is."""
        agents = self.cluster.agents
        return {
            instance_id
            for instance_id, place in self.stand_ins.agents.items()
            if any("__worker-" in c.task_id for c in agents[place].containerizer.live())
        }


def machines_of(scheduler: SchedulerProcess) -> dict[str, Any]:
    """Return what is told of machines (``/v1/capacity``), once a scheduler answers."""

    def told() -> dict[str, Any] | None:
        status, found = scheduler.ask("/v1/capacity")
        return dict(found) if status == 200 else None

    return eventually(told, seconds=60, what=lambda: f"an answer: {scheduler.log[-2000:]}")


def all_given_back(scheduler: SchedulerProcess) -> dict[str, Any]:
    """Wait until no machine is left; return what is told then."""

    def gone() -> dict[str, Any] | None:
        found = machines_of(scheduler)
        return None if found["machines"] or found["ordered"] else found

    return eventually(gone, seconds=60, what=lambda: f"no machine is left: {scheduler.log[-3000:]}")
