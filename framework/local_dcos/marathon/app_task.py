"""An app's task as Mesos is given it: ports, variables, files, health check, the end's grace.

``marathon`` asks, first for the slow part, which can fail (``prepared``), then, with an offer at
hand, for the TaskInfo. Nothing is kept here.
"""

from __future__ import annotations

import base64
import os
import random
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded_mesos import Ranges, Resources
from local_dcos.download_cache import DownloadCache, DownloadError
from local_dcos.marathon.app_definition import App, HealthCheck
from local_dcos.marathon.app_records import TaskRecord

Json = dict[str, Any]

_HOST = "127.0.0.1"
#: A port for an app that takes any is at least this: the machine's servers rarely listen there.
_FIRST_FREE_PORT = 20000
#: Thousandths: Mesos launches nothing for nothing.
_LEAST_CPUS = 10
_NEVER = 2**31 - 1


@dataclass(frozen=True)
class Machine:
    """What apps get of this machine."""

    #: Gives the variables above those of the app.
    overrides: Callable[[App], Mapping[str, str]]
    #: The folder with a file for each secret.
    secrets: Path
    #: Of what they fetch with ``cache``.
    cache: DownloadCache


@dataclass(frozen=True)
class Prepared:
    """What of a task does not depend on where it runs. ``secrets`` are variables as well."""

    app: App
    version: str
    uris: tuple[Json, ...]
    overrides: Mapping[str, str]
    secrets: Mapping[str, str]


class TaskNotStarted(Exception):
    """A task cannot be started. The text says why."""


def prepared(app: App, version: str, machine: Machine) -> Prepared:
    """Return a task that only needs a place; downloads what is cached, which may take a while.

    Raises TaskNotStarted when a secret is missing, or a cached file cannot be had.
    """
    try:
        uris = tuple(_uri(one, machine.cache) for one in app.fetch)
    except DownloadError as error:
        raise TaskNotStarted(str(error)) from error
    secrets = {name: _secret(machine.secrets, source) for name, source in app.secret_env.items()}
    return Prepared(app, version, uris, machine.overrides(app), secrets)


def _uri(given: Mapping[str, Any], cache: DownloadCache) -> Json:
    uri = given["uri"].strip()
    found: Json = {
        "value": uri,
        "extract": given.get("extract", True),
        "executable": given.get("executable", False),
    }
    if given.get("destPath"):
        found["output_file"] = given["destPath"]
    if given.get("cache") and uri.partition("://")[0].lower() in ("http", "https"):
        found.setdefault("output_file", os.path.basename(uri.partition("?")[0]))
        found["value"] = str(cache.get(uri))
    return found


def _secret(folder: Path, source: str) -> str:
    path = (folder / source).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise TaskNotStarted(f"the secret '{source}' is no path below the secrets' folder")
    try:
        return path.read_text()
    except OSError as error:
        raise TaskNotStarted(
            f"there is no secret '{source}': put it into the file {path}"
        ) from error


def for_apps(offer: Json) -> Resources:
    """Return what of an offer is reserved for apps: the jobs of other frameworks need the rest."""
    return Resources(
        {
            kind: amount
            for kind, amount in Resources.parse(offer["resources"])
            if kind.reservation_role == kind.allocated and not kind.disk
        }
    )


def taken(app: App, task_ports: Sequence[int], offered: Resources) -> Resources | None:
    """Return what the app takes, None when there is not as much.

    GPUs are shown only: there are none for apps.
    """
    wanted = {name: round(app.resources[name] * 1000) for name in ("cpus", "mem", "disk")}
    wanted["cpus"] = max(wanted["cpus"], _LEAST_CPUS)
    amounts: dict[Any, Any] = {}
    for kind, amount in offered:
        if isinstance(amount, Ranges):
            amounts[kind] = Ranges.of((port, port) for port in task_ports if port in amount)
        else:
            amounts[kind] = min(amount, wanted.get(kind.name, 0))
            wanted[kind.name] = wanted.get(kind.name, 0) - amounts[kind]
    return None if any(wanted.values()) else Resources(amounts)


def ports(app: App, offered: Ranges) -> tuple[int, ...] | None:
    """Return a port for each definition: its own when ports are required, else a free one.

    None when the offer has not as many.
    """
    own = [one.port if app.require_ports else 0 for one in app.ports]
    if any(port and port not in offered for port in own):
        return None
    others = [port for port in offered if port >= _FIRST_FREE_PORT and port not in own]
    random.Random().shuffle(others)
    free = filter(is_free, others)
    found = tuple(port or next(free, 0) for port in own)
    return found if all(found) else None


def is_free(port: int) -> bool:
    """Say whether no process listens on a port of this machine."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((_HOST, port))
        except OSError:
            return False
    return True


def task_info(one: Prepared, task: TaskRecord, resources: Resources) -> Json:
    """Return the TaskInfo of a task that has its agent, its ports and ``resources`` of an offer."""
    app = one.app
    command: Json = {"value": app.command}
    if app.command is None:
        command = {"shell": False, "value": app.args[0], "arguments": list(app.args)}
    secrets = {name: value for name, value in one.secrets.items() if name not in one.overrides}
    plain = {name: value for name, value in environment(one, task).items() if name not in secrets}
    command["uris"] = list(one.uris)
    command["environment"] = {
        "variables": [
            *({"name": name, "value": value} for name, value in plain.items()),
            *(_secret_variable(name, value) for name, value in secrets.items()),
        ]
    }
    found: Json = {
        "name": ".".join(reversed(app.app_id.strip("/").split("/"))),
        "task_id": {"value": task.task_id},
        "agent_id": {"value": task.agent_id},
        "resources": resources.to_json(),
        "command": command,
        "kill_policy": {"grace_period": {"nanoseconds": round(app.kill_grace * 1e9)}},
    }
    if app.health_check is not None:
        found["health_check"] = _health_check(app.health_check, task.ports)
    return found


def environment(one: Prepared, task: TaskRecord) -> dict[str, str]:
    """Return the variables that Marathon sets; the agent adds its own and those of the machine."""
    app = one.app
    found = {
        "MARATHON_APP_ID": app.app_id,
        "MARATHON_APP_VERSION": one.version,
        "MARATHON_APP_ENFORCE_GROUP_ROLE": "false",
        "MARATHON_APP_LABELS": " ".join(_upper(name) for name in app.labels),
    }
    for name, amount in app.resources.items():
        found[f"MARATHON_APP_RESOURCE_{name.upper()}"] = str(amount)
    for name, value in app.labels.items():
        # Marathon leaves long ones away: the environment of a process is limited.
        if len(value) <= 512:
            found[f"MARATHON_APP_LABEL_{_upper(name)}"] = value
    found |= {**app.env, **one.overrides}
    found |= {"MESOS_TASK_ID": task.task_id, "HOST": _HOST}
    found["PORTS"] = ",".join(map(str, task.ports))
    for index, (port, definition) in enumerate(zip(task.ports, app.ports, strict=True)):
        found[f"PORT{index}"] = str(port)
        if definition.name:
            found[f"PORT_{_upper(definition.name)}"] = str(port)
    if task.ports:
        found["PORT"] = str(task.ports[0])
    return found


def _upper(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _secret_variable(name: str, value: str) -> Json:
    data = base64.b64encode(value.encode()).decode()
    return {
        "name": name,
        "type": "SECRET",
        "secret": {"type": "VALUE", "value": {"data": data}},
    }


def _health_check(check: HealthCheck, task_ports: Sequence[int]) -> Json:
    found: Json = {
        "delay_seconds": 0,
        "grace_period_seconds": check.grace,
        "interval_seconds": check.interval,
        "timeout_seconds": check.timeout,
        "consecutive_failures": check.max_failures or _NEVER,
    }
    if check.protocol == "COMMAND":
        return {**found, "type": "COMMAND", "command": {"value": check.command}}
    port = check.port if check.port is not None else task_ports[check.port_index]
    kind = check.protocol.removeprefix("MESOS_")
    if kind == "TCP":
        return {**found, "type": "TCP", "tcp": {"port": port}}
    http = {"scheme": kind.lower(), "path": check.path, "port": port}
    return {**found, "type": "HTTP", "http": http}
