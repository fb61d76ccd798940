"""A cluster in a process of its own whose faults are ordered over HTTP (``door``).

``up`` starts it as ``embedded_mesos.up`` starts the product's; ``embedded_mesos.status`` and
``embedded_mesos.down`` serve both.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import embedded_mesos
from cluster_faults.door import make_server
from cluster_faults.faults import FaultyCluster
from dcos_tensorflow.deploy.embedded.cluster import PAGE, PRINCIPAL
from embedded_mesos import AgentConfig, ClusterStatus

_TESTS = str(Path(__file__).resolve().parents[1])


def up(state_dir: Path, agents: Sequence[AgentConfig]) -> tuple[ClusterStatus, str]:
    """Start a cluster; return it, and where (``host:port``) its faults are ordered."""
    paths = [_TESTS, *filter(None, [os.environ.get("PYTHONPATH")])]
    with patch.dict(os.environ, {"PYTHONPATH": os.pathsep.join(paths)}):
        status = embedded_mesos.up(
            state_dir, agents, page=PAGE, principal=PRINCIPAL, program="cluster_faults"
        )
    return status, _place(state_dir / "work").read_text()


def _place(work_dir: Path) -> Path:
    return work_dir / "faults"


class ClusterWithDoor(FaultyCluster):
    """Takes orders over HTTP as long as it runs, whatever becomes of its master."""

    def __init__(self, agents: Sequence[AgentConfig], work_dir: Path, **options: Any) -> None:
        super().__init__(agents, work_dir, **options)
        self._place = _place(work_dir)

    def start(self) -> None:
        """Start the cluster and open the door."""
        super().start()
        self._door = make_server(("127.0.0.1", 0), self.faults)
        self._door.start()
        self._place.write_text(f"127.0.0.1:{self._door.server_address[1]}")

    def stop(self) -> None:
        """Close the door and end everything."""
        self._door.stop()
        super().stop()
