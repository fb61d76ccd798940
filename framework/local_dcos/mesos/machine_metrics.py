"""The load of this machine, in the form of DC/OS' metrics API for a node.

``mesos_calls`` asks for ``dcos node metrics``: every agent is this machine. Nothing is kept.
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_ROOT = "/"
_KILOBYTE = 1024


def node(agent_id: str, hostname: str, cluster_id: str) -> Json:
    """Return the metrics of an agent's node."""
    load, memory, disk = os.getloadavg()[0], _memory(), shutil.disk_usage(_ROOT)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    root = {"path": _ROOT}
    values: list[tuple[str, float, str, dict[str, str]]] = [
        ("load.1min", load, "count", {}),
        ("cpu.total", min(100.0, 100 * load / (os.cpu_count() or 1)), "percent", {}),
        ("memory.total", memory["MemTotal"], "bytes", {}),
        ("memory.free", memory["MemAvailable"], "bytes", {}),
        ("filesystem.capacity.total", disk.total, "bytes", root),
        ("filesystem.capacity.used", disk.used, "bytes", root),
    ]
    return {
        "datapoints": [
            {"name": name, "value": value, "unit": unit, "timestamp": now, "tags": tags}
            for name, value, unit, tags in values
        ],
        "dimensions": {"mesos_id": agent_id, "cluster_id": cluster_id, "hostname": hostname},
    }


def _memory() -> dict[str, int]:
    """Return the rows of /proc/meminfo, in bytes."""
    rows = (line.split() for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    return {row[0].rstrip(":"): int(row[1]) * _KILOBYTE for row in rows if len(row) > 1}
