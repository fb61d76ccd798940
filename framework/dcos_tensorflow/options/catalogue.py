"""All options as a flat table: path, JSON Schema, allowed values in words.

Read out of the models once. Error messages, the schemas and the reference table come from it, so
they cannot say different things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.section import Section
from dcos_tensorflow.options.sections.values import Allowed, HiddenWhenWrong, Secret
from dcos_tensorflow.records import dataclass

#: Names that other systems and older files have for an option of ours.
_KNOWN_AS = {
    "ps": "parameter_server",
    "parameter_servers": "parameter_server",
    "workers": "worker",
    "gpu_workers": "gpu_worker",
    "gpuworker": "gpu_worker",
    "master": "chief",
    "cpu": "cpus",
    "memory": "mem",
    "gpu": "gpus",
    "replicas": "count",
    "instances": "count",
    "constraints": "placement_constraint",
    "placement": "placement_constraint",
    "image": "tf_image",
    "command": "job_cmd",
    "cmd": "job_cmd",
    "virtual_network": "virtual_network_enabled",
    "environment": "env",
    "secret": "secrets",
    "ulimits": "rlimits",
    "shm": "shm_size",
}

Path = tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """One option. ``schema`` is JSON Schema 2020-12 without references."""

    path: Path
    schema: Mapping[str, Any]
    allowed: str
    secret: bool
    nullable: bool
    hidden_when_wrong: bool

    @property
    def name(self) -> str:
        """Return the dotted path."""
        return ".".join(self.path)

    @property
    def is_environment(self) -> bool:
        """Say whether this holds environment variables, some of which may be secret."""
        return self.path[-1] == "env" and not self.is_text

    @property
    def has_names(self) -> bool:
        """Say whether this is an object whose names the user chooses, such as an environment."""
        kinds = self.schema.get("anyOf", ())
        return any(isinstance(kind.get("additionalProperties"), Mapping) for kind in kinds)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names in each element of a list of objects; () for any other option."""
        for schema in self.schema.get("anyOf", ()):
            if "properties" in schema.get("items", {}):
                return tuple(schema["items"]["properties"])
        return ()

    def part(self, name: str) -> Mapping[str, Any]:
        """Return the JSON Schema of a name in each element of such a list; empty for no name."""
        for schema in self.schema.get("anyOf", ()):
            found: Mapping[str, Any] = schema.get("items", {}).get("properties", {})
            if name in found:
                return found[name]  # type: ignore[no-any-return]
        return {}

    @property
    def is_text(self) -> bool:
        """Say whether the value is text and nothing else."""
        return self.schema.get("type") == "string"


@cache
def options() -> Mapping[Path, Option]:
    """Return every option by its path, in the order of the models."""
    return {path: _option(path, field) for path, field, group in _fields(Options) if group is None}


@cache
def secrets() -> tuple[Path, ...]:
    """Return the options whose values are never shown. Cheaper than all that ``options`` tells."""
    return tuple(
        path
        for path, field, _ in _fields(Options)
        if any(isinstance(m, Secret) for m in field.metadata)
    )


@cache
def environments() -> tuple[Path, ...]:
    """Return the options that hold environment variables."""
    return tuple(
        path
        for path, field, _ in _fields(Options)
        if path[-1] == "env" and field.annotation is not str
    )


@cache
def groups() -> Mapping[Path, tuple[str, ...]]:
    """Return the names in each group of options, by the group's path; () is the whole."""
    found = {path: tuple(group.model_fields) for path, _, group in _fields(Options) if group}
    return {(): tuple(Options.model_fields), **found}


@cache
def resolved_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of Options with every reference replaced by what it refers to."""
    schema = Options.model_json_schema()
    definitions = schema.pop("$defs", {})
    resolved = _resolve(schema, definitions)
    assert isinstance(resolved, dict)
    return resolved


def find(path: Path) -> Option | None:
    """Return the option that ``path`` is or is a part of (a key of an environment), or None."""
    return next(
        (options()[path[:end]] for end in range(len(path), 0, -1) if path[:end] in options()), None
    )


def nearest(path: Path) -> str:
    """Return the dotted name of the option or group nearest to the unknown ``path``, or ''."""
    if path == ("worker", "gpus"):
        return "gpu_worker.gpus"
    joined = "_".join(path).replace("-", "_")
    for other in options():
        if "_".join(other) == joined:
            return ".".join(other)
    parent, name = path[:-1], path[-1]
    siblings = groups().get(parent, ())
    known = _KNOWN_AS.get(name.lower(), name.lower().replace("-", "_"))
    if known in siblings:
        return ".".join((*parent, known))
    near = get_close_matches(known, siblings, n=1, cutoff=0.6)
    if near:
        return ".".join((*parent, near[0]))
    # One that lies deeper is another matter: service.security.kerberos.enabled is no chief.enabled.
    names = (other for other in (*options(), *groups()) if len(other) <= len(path))
    elsewhere = [other for other in names if other and other[-1] == known]
    if len(elsewhere) == 1:
        return ".".join(elsewhere[0])
    # A path is near where its own name is: that both are of one group makes them no nearer.
    alike = [".".join(o) for o in options() if get_close_matches(known, [o[-1]], n=1, cutoff=0.6)]
    far = get_close_matches(".".join((*parent, known)), alike, n=1, cutoff=0.8)
    return far[0] if far else ""


def _option(path: Path, field: FieldInfo) -> Option:
    schema = resolved_schema()
    for name in path:
        schema = schema["properties"][name]
    words = next((m.text for m in field.metadata if isinstance(m, Allowed)), "")
    return Option(
        path,
        schema,
        words or allowed_by(schema),
        any(isinstance(m, Secret) for m in field.metadata),
        field.default is None,
        any(isinstance(m, HiddenWhenWrong) for m in field.metadata),
    )


def _fields(
    model: type[Section], path: Path = ()
) -> Iterator[tuple[Path, FieldInfo, type[Section] | None]]:
    """Yield every option, and every group with its model, in the order of the models."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        group = kind if isinstance(kind, type) and issubclass(kind, Section) else None
        yield (*path, name), field, group
        if group is not None:
            yield from _fields(group, (*path, name))


def _resolve(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolve(part, definitions) for part in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _resolve({**target, **beside}, definitions)
    plain = {key: _resolve(value, definitions) for key, value in node.items()}
    return _without_null(plain)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Say of an option that may be left out just that: null itself is never given."""
    choices = schema.get("anyOf")
    if not choices or {"type": "null"} not in choices:
        return schema
    (choice,) = [part for part in choices if part != {"type": "null"}]
    rest = {key: schema[key] for key in schema if key not in ("anyOf", "default")}
    return {**choice, **rest}


def allowed_by(schema: Mapping[str, Any]) -> str:
    """Return what ``schema`` allows, in words."""
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    kind = schema.get("type")
    if kind == "boolean":
        return "true or false"
    if kind == "string":
        return "text"
    if kind not in ("integer", "number"):
        return "an object"
    noun = "a whole number" if kind == "integer" else "a number"
    top = schema["maximum"]
    if kind == "integer" and top == schema["minimum"] + 1:
        return f"{schema['minimum']} or {top}"
    if "exclusiveMinimum" in schema:
        return f"{noun} above {schema['exclusiveMinimum']} and at most {top:.15g}"
    return f"{noun} from {schema['minimum']} to {top:.15g}"
