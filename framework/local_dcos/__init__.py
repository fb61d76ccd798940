"""A DC/OS of one machine, for the real ``dcos`` CLI and the SDK's clients.

Cosmos, Marathon, and the parts of Admin Router that lead to Mesos and to services stand behind one
HTTP server on loopback, in front of an embedded Mesos. ``up``, ``status`` and ``down`` keep one
running in the background; a ``LocalDcos`` lives in the process that makes it. Its starter
hands in the facts of the packages that run there as an ``Integration``. Cosmos' rules are
here for programs that make packages, too. The names here are for other programs; all other modules
may change.

Each name is looked up when it is asked for: a program that describes a DC/OS need not load one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from local_dcos.background_dcos import DcosStatus, down, follow, main, status, up
    from local_dcos.cluster_calls import Login
    from local_dcos.cosmos.mustache import (
        Section,
        TemplateError,
        Variable,
        names_in,
        parse_template,
    )
    from local_dcos.cosmos.package_options import violations
    from local_dcos.cosmos.rendering import RenderError, render_app
    from local_dcos.dcos import DcosConfig, LocalDcos
    from local_dcos.integration import Ask, Driver, Integration, Place
    from local_dcos.marathon.app_definition import App

_MODULES = {
    "cluster_calls": ("Login",),
    "cosmos.mustache": ("Section", "TemplateError", "Variable", "names_in", "parse_template"),
    "cosmos.package_options": ("violations",),
    "cosmos.rendering": ("RenderError", "render_app"),
    "background_dcos": ("DcosStatus", "down", "follow", "main", "status", "up"),
    "dcos": ("DcosConfig", "LocalDcos"),
    "integration": ("Ask", "Driver", "Integration", "Place"),
    "marathon.app_definition": ("App",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "App",
    "Ask",
    "DcosConfig",
    "DcosStatus",
    "Driver",
    "Integration",
    "LocalDcos",
    "Login",
    "Place",
    "RenderError",
    "Section",
    "TemplateError",
    "Variable",
    "down",
    "follow",
    "main",
    "names_in",
    "parse_template",
    "render_app",
    "status",
    "up",
    "violations",
]


def __getattr__(name: str) -> object:
    """Return a public name; raises AttributeError for all else."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
