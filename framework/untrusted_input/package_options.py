"""Options of a package laid over its defaults, by the rules of DC/OS' package manager. Pure.

Called by the local package manager, and by the plugin, which does the same where a cluster's own
cannot update a service. Packed with the plugin: any Python from 3.8.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping


def merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> Dict[str, Any]:
    """Return ``over`` laid over ``under``: objects are merged, everything else is replaced."""
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[name] = merge(below, value) if both else value  # type: ignore[arg-type]
    return merged


def defaults(schema: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the defaults that a ``config.json`` gives; a group's own win over those inside it."""
    found: Dict[str, Any] = {}
    for name, below in (schema.get("properties") or {}).items():
        if not isinstance(below, dict):
            continue
        if "default" in below:
            found[name] = below["default"]
        elif "properties" in below:
            found[name] = defaults(below)
    return found
