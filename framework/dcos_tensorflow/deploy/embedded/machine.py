"""The resources of this machine for an embedded cluster.

Used by ``local up`` and ``run``. Limits of a container (cgroup v2) count as the machine's size.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.records import dataclass
from embedded_mesos import FIRST_PORT, MOST_AGENTS, AgentConfig, alike

_CGROUP = Path("/sys/fs/cgroup")
_MEGABYTE = 1024 * 1024
#: The first port of those clusters that are one service's: far below those of ``local up``.
FIRST_OWN_PORT = 12000


@dataclass(frozen=True)
class AgentWishes:
    """What the flags say of the embedded cluster's agents; None where they say nothing."""

    agents: int = 1
    cpus: float | None = None
    mem: float | None = None
    disk: float | None = None
    gpus: int | None = None
    attributes: str = ""

    @property
    def given(self) -> bool:
        """Say whether any flag was given."""
        return self != AgentWishes()

    @property
    def sized(self) -> frozenset[str]:
        """Return the resources whose size was given."""
        named = {"cpus": self.cpus, "mem": self.mem, "disk": self.disk, "gpus": self.gpus}
        return frozenset(name for name, size in named.items() if size is not None)


def machine(place: Path) -> Resources:
    """Return what this machine has; disk is what is free where ``place`` lies."""
    while not place.exists():
        place = place.parent
    return Resources(
        cpus=_cpus(),
        mem=float(_memory_megabytes()),
        disk=float(shutil.disk_usage(place).free // _MEGABYTE),
        gpus=sum(
            1 for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)
        ),
    )


def _cpus() -> float:
    cpus = float(len(os.sched_getaffinity(0)))
    quota = _first_line(_CGROUP / "cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit():
        cpus = min(cpus, round(int(quota[0]) / int(quota[1]), 1))
    return max(cpus, 0.1)


def _memory_megabytes() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _first_line(_CGROUP / "memory.max")
    if limit.isdigit():
        total = min(total, int(limit))
    return total // _MEGABYTE


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def agents(
    wishes: AgentWishes, place: Path, first_port: int = FIRST_PORT
) -> tuple[AgentConfig, ...]:
    """Return the agents: what the flags say, else an even share of the machine each.

    An attribute with one value is that of all agents; several values go to them in turn. Raises
    UsageError.
    """
    count = wishes.agents
    if not 1 <= count <= MOST_AGENTS:
        raise UsageError(f"--agents must be from 1 to {MOST_AGENTS} (given: {count}).")
    here = machine(place)
    share = Resources(
        cpus=round(here.cpus / count, 2),
        mem=float(int(here.mem / count)),
        disk=float(int(here.disk / count)),
        gpus=here.gpus // count,
    )
    attributes = parse_attributes(wishes.attributes)
    like = AgentConfig(
        cpus=share.cpus if wishes.cpus is None else wishes.cpus,
        mem=share.mem if wishes.mem is None else wishes.mem,
        disk=share.disk if wishes.disk is None else wishes.disk,
        gpus=share.gpus if wishes.gpus is None else wishes.gpus,
    )
    return tuple(
        replace(agent, attributes={name: v[turn % len(v)] for name, v in attributes.items()})
        for turn, agent in enumerate(alike(like, count, first_port))
    )


def parse_attributes(text: str) -> Mapping[str, tuple[str | float, ...]]:
    """Return the attributes of ``name:value;name:value``, as a Mesos agent takes them.

    Several values, ``rack:r1,r2``, go to the agents in turn. A number is a SCALAR attribute.
    Raises UsageError.
    """
    found: dict[str, tuple[str | float, ...]] = {}
    for part in filter(None, (p.strip() for p in text.split(";"))):
        name, colon, values = part.partition(":")
        if not colon or not name.strip() or not all(v.strip() for v in values.split(",")):
            raise UsageError(f"--attributes must be name:value;name:value (given: {part}).")
        found[name.strip()] = tuple(_attribute(v.strip()) for v in values.split(","))
    return found


def _attribute(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
