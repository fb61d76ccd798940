"""An app: reads and checks Marathon's app definition. Pure.

``marathon`` keeps definitions as they are shown and asks here for the ``App`` that runs. Fields
that the local DC/OS does not support are refused by name, with the path in the definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema

from local_dcos.errors import InvalidApp

Json = dict[str, Any]

_SINGLE_INSTANCE = "MARATHON_SINGLE_INSTANCE_APP"
_UNKNOWN = "not supported by the local DC/OS"

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


def _words(words: str, **rules: Any) -> Json:
    """Return a schema, and what is said of a value that does not fit it."""
    return {**rules, "description": words}


def _object(rest: Any = True, **members: Json) -> Json:
    """Return the schema of an object; ``rest`` is that of the members that are not named."""
    return {"type": "object", "properties": members, "additionalProperties": rest}


def _list_of(items: Json, **rules: Any) -> Json:
    return {"type": "array", "items": items, **rules}


_NUMBER = _words("must be a number, 0 or more", type="number", minimum=0)
_SHARE = _words("must be a number from 0 to 1", type="number", minimum=0, maximum=1)
_PORT = _words("must be a port from 0 to 65535", type="integer", minimum=0, maximum=65535)
_TEXT = _words("must be text", type="string")
_ANY: Json = {}
#: For what has a meaning on a cluster only: it may be there as long as it says nothing.
_NOTHING = _words(_UNKNOWN, enum=[None, [], {}, "", 0, False])
_PROTOCOLS = "HTTP HTTPS MESOS_HTTP MESOS_HTTPS TCP MESOS_TCP COMMAND"
_HEALTH_CHECK = _object(
    protocol=_words(_UNKNOWN, enum=_PROTOCOLS.split()),
    gracePeriodSeconds=_NUMBER,
    intervalSeconds=_NUMBER,
    timeoutSeconds=_NUMBER,
    maxConsecutiveFailures=_NUMBER,
    portIndex=_words("must be the number of a port", type="integer", minimum=0),
    command={**_object(value=_TEXT), "required": ["value"]},
)
#: What a definition may hold.
_SCHEMA = _object(
    False,
    id=_words(
        "must be lower-case letters, digits, '-' and '.', parts by '/'",
        pattern=r"^(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)+$",
    ),
    cpus=_NUMBER,
    mem=_NUMBER,
    disk=_NUMBER,
    gpus=_NUMBER,
    instances=_words("must be an integer, 0 or more", type="integer", minimum=0),
    cmd=_TEXT,
    args=_list_of(_TEXT, minItems=1),
    env=_object(_words("must be text or a secret", type=["string", "object"])),
    secrets=_object({**_object(source=_TEXT), "required": ["source"]}),
    labels=_object(_TEXT),
    container=_object(_NOTHING, type=_words(_UNKNOWN, enum=["MESOS"])),
    networks=_list_of({**_object(mode=_words(_UNKNOWN, enum=["host"])), "required": ["mode"]}),
    portDefinitions=_list_of(_object(port=_PORT)),
    requirePorts={"type": "boolean"},
    fetch=_list_of({**_object(uri=_TEXT), "required": ["uri"]}),
    healthChecks=_list_of(_HEALTH_CHECK, maxItems=1),
    backoffSeconds=_NUMBER,
    backoffFactor=_words("must be a number, 1 or more", type="number", minimum=1),
    maxLaunchDelaySeconds=_NUMBER,
    taskKillGracePeriodSeconds=_NUMBER,
    upgradeStrategy=_object(minimumHealthCapacity=_SHARE, maximumOverCapacity=_SHARE),
    constraints=_NOTHING,
    dependencies=_NOTHING,
    executor=_words(_UNKNOWN, enum=["", "//cmd"]),
    # Shown, and without a meaning on one machine.
    user=_ANY,
    role=_ANY,
    killSelection=_ANY,
    acceptedResourceRoles=_ANY,
    unreachableStrategy=_ANY,
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

    Raises InvalidApp when it cannot run here, and names every member that does not fit, or, where
    each fits, all that do not fit together.
    """
    if not isinstance(given, dict):
        raise InvalidApp([("/", "must be an object")])
    shown = {*_SHOWN_ONLY, *(name for name, value in given.items() if value is None)}
    found = {**DEFAULTS, **{name: given[name] for name in given if name not in shown}}
    found["id"] = "/" + str(found.get("id", "")).strip("/")
    if "portDefinitions" not in found:
        ports = given.get("ports") or [0]
        found["portDefinitions"] = [{"port": p, "protocol": "tcp"} for p in ports]
    errors = jsonschema.Draft7Validator(_SCHEMA).iter_errors(found)
    details = [detail for error in errors for detail in _details(error)]
    details = details or list(_contradictions(found))
    if details:
        raise InvalidApp(details)
    found["upgradeStrategy"] = {**DEFAULTS["upgradeStrategy"], **found["upgradeStrategy"]}
    if found["labels"].get(_SINGLE_INSTANCE) == "true":
        found["upgradeStrategy"] = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}
    return found


def _details(error: jsonschema.ValidationError) -> Iterator[tuple[str, str]]:
    """Yield path and words of what the schema finds wrong."""
    path = "".join(f"/{part}" for part in error.absolute_path)
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        unknown = [name for name in error.instance if name not in schema["properties"]]
        yield from ((f"{path}/{name}", f"{_UNKNOWN}: {name}") for name in unknown)
    elif error.validator == "required":
        missing = [name for name in schema["required"] if name not in error.instance]
        yield from ((f"{path}/{name}", "is missing") for name in missing)
    elif error.validator == "maxItems":
        yield f"{path}/{schema['maxItems']}", f"{_UNKNOWN}: more than one of {path.strip('/')}"
    else:
        words = schema.get("description", error.message)
        yield path, f"{words}: {error.absolute_path[-1]}" if words == _UNKNOWN else words


def _contradictions(found: Json) -> Iterator[tuple[str, str]]:
    """Yield path and words of members that do not fit together."""
    if ("cmd" in found) == ("args" in found):
        yield "/cmd", "one of cmd and args must be given"
    for name, value in found["env"].items():
        if isinstance(value, dict) and value.get("secret") not in found["secrets"]:
            yield f"/env/{name}", f"there is no secret {value.get('secret')!r}"
    ports, instances = found["portDefinitions"], found["instances"]
    for index, one in enumerate(ports):
        if found["requirePorts"] and one.get("port", 0) and instances != 1:
            yield f"/portDefinitions/{index}/port", "one instance only can have it"
    for one in found["healthChecks"]:
        if one.get("protocol") == "COMMAND":
            if not one.get("command"):
                yield "/healthChecks/0/command", "must have a value"
        elif one.get("port") is None and not (one.get("portIndex") or 0) < len(ports):
            yield "/healthChecks/0/portIndex", f"there are {len(ports)} ports"
    if found["labels"].get(_SINGLE_INSTANCE) == "true" and instances > 1:
        yield "/instances", f"label {_SINGLE_INSTANCE} allows one only"


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
        port_index=given.get("portIndex") or 0,
        port=given.get("port"),
        command=(given.get("command") or {}).get("value", ""),
        grace=float(given.get("gracePeriodSeconds", 300)),
        interval=float(given.get("intervalSeconds", 60)),
        timeout=float(given.get("timeoutSeconds", 20)),
        max_failures=int(given.get("maxConsecutiveFailures", 3)),
    )
