"""What an app is: reads and checks Marathon's app definition. Pure.

``marathon`` keeps definitions as they are shown and asks here for the ``App`` that runs. What the
local DC/OS does not do is refused by name, with the path in the definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dcos_tensorflow.local.dcos.errors import InvalidApp

Json = dict[str, Any]

_ID = re.compile(r"/[a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)*")
_HTTP = ("HTTP", "HTTPS", "MESOS_HTTP", "MESOS_HTTPS")
_TCP = ("TCP", "MESOS_TCP")
_COMMAND = ("COMMAND",)
_SINGLE_INSTANCE = "MARATHON_SINGLE_INSTANCE_APP"

#: Marathon's own defaults, shown with every app.
DEFAULTS: Json = {
    "cpus": 1,
    "mem": 128,
    "disk": 0,
    "gpus": 0,
    "instances": 1,
    "env": {},
    "labels": {},
    "secrets": {},
    "fetch": [],
    "healthChecks": [],
    "constraints": [],
    "dependencies": [],
    "backoffSeconds": 1,
    "backoffFactor": 1.15,
    "maxLaunchDelaySeconds": 300,
    "taskKillGracePeriodSeconds": 3,
    "requirePorts": False,
    "upgradeStrategy": {"minimumHealthCapacity": 1, "maximumOverCapacity": 1},
    "killSelection": "YOUNGEST_FIRST",
    "executor": "",
    "role": "slave_public",
}
# Shown, and without a meaning on one machine.
_ACCEPTED = {
    *DEFAULTS,
    "id",
    "cmd",
    "args",
    "user",
    "portDefinitions",
    "ports",
    "container",
    "networks",
    "acceptedResourceRoles",
    "unreachableStrategy",
    "version",
    "versionInfo",
    "storeUrls",
    "uris",
}
# What Marathon adds to an app that it shows: a client may send it back.
_SHOWN_ONLY = (
    "version",
    "versionInfo",
    "tasks",
    "tasksStaged",
    "tasksRunning",
    "tasksHealthy",
    "tasksUnhealthy",
    "deployments",
    "lastTaskFailure",
    "ports",
    "uris",
    "storeUrls",
)


@dataclass(frozen=True)
class PortDefinition:
    """A port that the app listens on; 0 asks for any."""

    port: int
    name: str


@dataclass(frozen=True)
class HealthCheck:
    """One health check; all times in seconds. ``max_failures`` 0 never kills."""

    protocol: str
    path: str
    port_index: int
    port: int | None
    command: str
    grace: float
    interval: float
    timeout: float
    max_failures: int


@dataclass(frozen=True)
class App:
    """A definition in a form that runs. Times are seconds, ``mem`` and ``disk`` megabytes."""

    app_id: str
    instances: int
    command: str | None
    args: tuple[str, ...]
    env: Mapping[str, str]
    secret_env: Mapping[str, str]
    labels: Mapping[str, str]
    ports: tuple[PortDefinition, ...]
    require_ports: bool
    fetch: tuple[Json, ...]
    health_check: HealthCheck | None
    resources: Mapping[str, float]
    backoff: float
    backoff_factor: float
    max_launch_delay: float
    kill_grace: float
    minimum_health: float
    maximum_over: float


def normalised(given: Any) -> Json:
    """Return a definition with Marathon's defaults, ready to be kept.

    Raises:
        InvalidApp: it cannot run here; every reason is named.
    """
    if not isinstance(given, dict):
        raise InvalidApp([("/", "must be an object")])
    definition = {k: v for k, v in given.items() if k not in _SHOWN_ONLY}
    details = [(f"/{k}", _unknown(k)) for k in definition if k not in _ACCEPTED]
    definition = {k: v for k, v in definition.items() if v is not None}
    definition["id"] = "/" + str(definition.get("id", "")).strip("/")
    if not _ID.fullmatch(definition["id"]):
        details.append(("/id", "must be lower-case letters, digits, '-' and '.', parts by '/'"))
    found = {**DEFAULTS, **definition}
    found["upgradeStrategy"] = {**DEFAULTS["upgradeStrategy"], **_object(found, "upgradeStrategy")}
    if found["labels"].get(_SINGLE_INSTANCE) == "true" if _is_object(found["labels"]) else False:
        found["upgradeStrategy"] = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}
    if "portDefinitions" not in found:
        ports = given.get("ports") or [0]
        found["portDefinitions"] = [{"port": p, "protocol": "tcp"} for p in ports]
    details += _problems(found)
    if details:
        raise InvalidApp(details)
    return found


def _unknown(name: str) -> str:
    return f"not supported by the local DC/OS: {name}"


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _object(found: Json, name: str) -> Json:
    value = found[name]
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535


_CHECKS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("cpus", _number, "must be a number, 0 or more"),
    ("mem", _number, "must be a number, 0 or more"),
    ("disk", _number, "must be a number, 0 or more"),
    ("gpus", _number, "must be a number, 0 or more"),
    ("backoffSeconds", _number, "must be a number, 0 or more"),
    ("backoffFactor", lambda v: _number(v) and v >= 1, "must be a number, 1 or more"),
    ("maxLaunchDelaySeconds", _number, "must be a number, 0 or more"),
    ("taskKillGracePeriodSeconds", _number, "must be a number, 0 or more"),
    ("instances", lambda v: _number(v) and isinstance(v, int), "must be an integer, 0 or more"),
    ("labels", _texts, "must be an object of texts"),
    ("requirePorts", lambda v: isinstance(v, bool), "must be true or false"),
    ("constraints", lambda v: v == [], "not supported by the local DC/OS: constraints"),
    ("dependencies", lambda v: v == [], "not supported by the local DC/OS: dependencies"),
    ("executor", lambda v: v in ("", "//cmd"), "not supported by the local DC/OS: executors"),
)


def _problems(found: Json) -> list[tuple[str, str]]:
    details = [(f"/{name}", text) for name, good, text in _CHECKS if not good(found[name])]
    command, args = found.get("cmd"), found.get("args")
    if (command is None) == (args is None):
        details.append(("/cmd", "one of cmd and args must be given"))
    elif not isinstance(command if args is None else "", str):
        details.append(("/cmd", "must be text"))
    elif args is not None and not (args and all(isinstance(one, str) for one in args)):
        details.append(("/args", "must be a list of texts"))
    return [
        *details,
        *_environment_problems(found),
        *_container_problems(found),
        *_port_problems(found),
        *_fetch_problems(found),
        *_health_problems(found),
        *_strategy_problems(found),
    ]


def _environment_problems(found: Json) -> list[tuple[str, str]]:
    if not isinstance(found["env"], dict) or not isinstance(found["secrets"], dict):
        return [("/env", "env and secrets must be objects")]
    details = []
    for name, value in found["env"].items():
        if isinstance(value, dict):
            if value.get("secret") not in found["secrets"]:
                details.append((f"/env/{name}", f"there is no secret {value.get('secret')!r}"))
        elif not isinstance(value, str):
            details.append((f"/env/{name}", "must be text or a secret"))
    for name, secret in found["secrets"].items():
        if not isinstance(secret, dict) or not isinstance(secret.get("source"), str):
            details.append((f"/secrets/{name}", "must name its source"))
    return details


def _container_problems(found: Json) -> list[tuple[str, str]]:
    details = []
    container = found.get("container", {"type": "MESOS"})
    if not isinstance(container, dict) or container.get("type", "MESOS") != "MESOS":
        details.append(("/container/type", _unknown("containers of another type than MESOS")))
    else:
        for name in container:
            if name != "type" and container[name]:
                details.append((f"/container/{name}", _unknown(f"container {name}")))
    for index, network in enumerate(found.get("networks", [])):
        if not isinstance(network, dict) or network.get("mode", "container") != "host":
            details.append((f"/networks/{index}", _unknown("networks of another mode than host")))
    return details


def _port_problems(found: Json) -> list[tuple[str, str]]:
    definitions = found["portDefinitions"]
    if not isinstance(definitions, list):
        return [("/portDefinitions", "must be a list")]
    details = []
    for index, one in enumerate(definitions):
        if not isinstance(one, dict) or not _port(one.get("port", 0)):
            details.append((f"/portDefinitions/{index}/port", "must be a port from 0 to 65535"))
        elif found["requirePorts"] and one.get("port", 0) and found["instances"] != 1:
            details.append((f"/portDefinitions/{index}/port", "one instance only can have it"))
    return details


def _fetch_problems(found: Json) -> list[tuple[str, str]]:
    if not isinstance(found["fetch"], list):
        return [("/fetch", "must be a list")]
    return [
        (f"/fetch/{index}/uri", "must be text")
        for index, one in enumerate(found["fetch"])
        if not isinstance(one, dict) or not isinstance(one.get("uri"), str)
    ]


def _health_problems(found: Json) -> list[tuple[str, str]]:
    if not isinstance(found["healthChecks"], list):
        return [("/healthChecks", "must be a list")]
    details = []
    if len(found["healthChecks"]) > 1:
        details.append(("/healthChecks/1", _unknown("more than one health check")))
    for index, one in enumerate(found["healthChecks"]):
        where = f"/healthChecks/{index}"
        protocol = one.get("protocol", "HTTP") if isinstance(one, dict) else None
        if protocol not in (*_HTTP, *_TCP, *_COMMAND):
            details.append((f"{where}/protocol", _unknown(f"health checks by {protocol}")))
            continue
        for name in _HEALTH_TIMES:
            if name in one and not _number(one[name]):
                details.append((f"{where}/{name}", "must be a number, 0 or more"))
        if protocol in _COMMAND and not isinstance(one.get("command", {}).get("value"), str):
            details.append((f"{where}/command", "must have a value"))
        elif protocol not in _COMMAND and one.get("port") is None:
            count = len(found["portDefinitions"])
            port_index = one.get("portIndex", 0)
            if not isinstance(port_index, int) or not 0 <= port_index < count:
                details.append((f"{where}/portIndex", f"there are {count} ports"))
    return details


_HEALTH_TIMES = (
    "gracePeriodSeconds",
    "intervalSeconds",
    "timeoutSeconds",
    "maxConsecutiveFailures",
)


def _strategy_problems(found: Json) -> list[tuple[str, str]]:
    strategy = found["upgradeStrategy"]
    details = []
    for name in ("minimumHealthCapacity", "maximumOverCapacity"):
        if not _number(strategy[name]) or strategy[name] > 1:
            details.append((f"/upgradeStrategy/{name}", "must be a number from 0 to 1"))
    labels = found["labels"]
    single = isinstance(labels, dict) and labels.get(_SINGLE_INSTANCE) == "true"
    instances = found["instances"]
    if single and isinstance(instances, int) and instances > 1:
        details.append(("/instances", f"label {_SINGLE_INSTANCE} allows one only"))
    return details


def app_of(definition: Json) -> App:
    """Return the app of a definition that ``normalised`` returned."""
    strategy = definition["upgradeStrategy"]
    env = definition["env"]
    sources = {name: one["source"] for name, one in definition["secrets"].items()}
    return App(
        app_id=definition["id"],
        instances=definition["instances"],
        command=definition.get("cmd"),
        args=tuple(definition.get("args") or ()),
        env={k: v for k, v in env.items() if isinstance(v, str)},
        secret_env={k: sources[v["secret"]] for k, v in env.items() if isinstance(v, dict)},
        labels=definition["labels"],
        ports=tuple(
            PortDefinition(one.get("port", 0), one.get("name") or "")
            for one in definition["portDefinitions"]
        ),
        require_ports=definition["requirePorts"],
        fetch=tuple(definition["fetch"]),
        health_check=next(map(_health_check, definition["healthChecks"]), None),
        resources={name: float(definition[name]) for name in ("cpus", "mem", "disk", "gpus")},
        backoff=float(definition["backoffSeconds"]),
        backoff_factor=float(definition["backoffFactor"]),
        max_launch_delay=float(definition["maxLaunchDelaySeconds"]),
        kill_grace=float(definition["taskKillGracePeriodSeconds"]),
        minimum_health=float(strategy["minimumHealthCapacity"]),
        maximum_over=float(strategy["maximumOverCapacity"]),
    )


def _health_check(given: Json) -> HealthCheck:
    return HealthCheck(
        protocol=given.get("protocol", "HTTP"),
        path=given.get("path") or "/",
        port_index=given.get("portIndex", 0),
        port=given.get("port"),
        command=given.get("command", {}).get("value", ""),
        grace=float(given.get("gracePeriodSeconds", 300)),
        interval=float(given.get("intervalSeconds", 60)),
        timeout=float(given.get("timeoutSeconds", 20)),
        max_failures=int(given.get("maxConsecutiveFailures", 3)),
    )
