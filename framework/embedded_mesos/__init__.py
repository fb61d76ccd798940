"""A Mesos of one machine for any framework: a master and agents that run real processes.

It speaks the v1 scheduler and operator API closely enough that a driver cannot tell the difference.
``up``, ``status`` and ``down`` keep a cluster running in the background; an ``EmbeddedCluster``
lives in the process that makes it. README.md beside this file shows both. It knows nothing of the
frameworks that use it. The names here are for other programs; all other modules may change.

Each name is looked up when it is asked for: a program that describes a cluster need not load one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedded_mesos.agent.agent_config import APPS_ATTRIBUTE
    from embedded_mesos.background_cluster import (
        ClusterStatus,
        credential_file,
        down,
        running_master,
        status,
        up,
    )
    from embedded_mesos.background_process import (
        BackgroundProcess,
        BackgroundProcessError,
        answers,
        read_json,
        stop_requested,
        write_json,
    )
    from embedded_mesos.cluster import EmbeddedCluster
    from embedded_mesos.configuration import (
        APPS_ROLE,
        FIRST_PORT,
        MOST_AGENTS,
        PORTS_PER_AGENT,
        AgentConfig,
        Credential,
        Page,
        Timing,
        alike,
    )
    from embedded_mesos.messages import TERMINAL_STATES
    from embedded_mesos.resources import Ranges, Resources

_MODULES = {
    "agent.agent_config": ("APPS_ATTRIBUTE",),
    "background_process": (
        "BackgroundProcess",
        "BackgroundProcessError",
        "answers",
        "read_json",
        "stop_requested",
        "write_json",
    ),
    "cluster": ("EmbeddedCluster",),
    "configuration": (
        "APPS_ROLE",
        "FIRST_PORT",
        "MOST_AGENTS",
        "PORTS_PER_AGENT",
        "AgentConfig",
        "Credential",
        "Page",
        "Timing",
        "alike",
    ),
    "background_cluster": (
        "ClusterStatus",
        "credential_file",
        "down",
        "running_master",
        "status",
        "up",
    ),
    "messages": ("TERMINAL_STATES",),
    "resources": ("Ranges", "Resources"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "APPS_ATTRIBUTE",
    "APPS_ROLE",
    "FIRST_PORT",
    "MOST_AGENTS",
    "PORTS_PER_AGENT",
    "TERMINAL_STATES",
    "AgentConfig",
    "BackgroundProcess",
    "BackgroundProcessError",
    "ClusterStatus",
    "Credential",
    "EmbeddedCluster",
    "Page",
    "Ranges",
    "Resources",
    "Timing",
    "alike",
    "answers",
    "credential_file",
    "down",
    "read_json",
    "running_master",
    "status",
    "stop_requested",
    "up",
    "write_json",
]


def __getattr__(name: str) -> object:
    """Return a public name; raises AttributeError for all else."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
