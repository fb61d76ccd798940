"""The cluster whose faults are to order, and all that is to order."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster_faults.disturbance import Disturbance
from cluster_faults.masters import MasterFaults
from cluster_faults.operators import OperatorOrders
from embedded_mesos import AgentConfig, EmbeddedCluster


class Faults(OperatorOrders, MasterFaults):
    """See the package."""

    def __init__(self, cluster: EmbeddedCluster, disturbance: Disturbance) -> None:
        self._cluster = cluster
        self._disturbance = disturbance
        disturbance.attach(cluster)


class FaultyCluster(EmbeddedCluster):
    """The embedded cluster of the product with a ``Disturbance`` between its parts."""

    def __init__(
        self,
        agents: Sequence[AgentConfig],
        work_dir: Path,
        namespaces: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """``namespaces`` are the paths of network namespaces (``/run/netns/...``) that have the
        agents' addresses: agents listen there, and their tasks run there."""
        disturbance = Disturbance(len(agents), namespaces)
        super().__init__(agents, work_dir, interference=disturbance, **options)
        self.faults = Faults(self, disturbance)
