"""What a service has in force of the options that its package manager holds for it.

Used by ``commands`` and ``marathon_update``. A package manager keeps what it was last given, and
lays the next options over that. A scheduler that could not have them goes on with those of before:
they are what to show, and what to lay further options over.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Mapping

from dcos_tensorflow.plugin.client import Cluster
from dcos_tensorflow.plugin.plain_text import escaped
from dcos_tensorflow.plugin.update_check import problem_in

Json = Dict[str, Any]


def differing(cluster: Cluster) -> Json:
    """Return option -> its value in force, where the newest were refused; say why they were.

    Empty when they were not, or the scheduler cannot be asked.
    """
    answer = cluster.scheduler_if_up("GET", "configurations/target", None)
    refused = problem_in(answer).get("refused") if answer and answer.status == 200 else None
    if not isinstance(refused, dict):
        return {}
    why = escaped(str(refused.get("why")))
    print(
        f"The newest options of {cluster.service} are refused, and those before stay in force:"
        f" {why}",
        file=sys.stderr,
    )
    found = refused.get("in_force")
    return found if isinstance(found, dict) else {}


def laid_over(options: Mapping[str, Any], in_force: Mapping[str, Any]) -> Json:
    """Return ``options`` with the values in force; those that are not in force are left out."""
    found: Json = dict(options)
    for name, value in in_force.items():
        found = _with(found, name.split("."), value)
    return found


def _with(options: Mapping[str, Any], path: Any, value: Any) -> Json:
    found, key = dict(options), path[0]
    if len(path) > 1:
        below = found.get(key)
        found[key] = _with(below if isinstance(below, dict) else {}, path[1:], value)
    elif value is None:
        found.pop(key, None)
    else:
        found[key] = value
    return found
