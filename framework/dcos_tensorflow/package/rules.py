"""The rules of Universe and DC/OS for a package, checked before it is published.

Called by ``packaging/`` and by tests. Rules come from Universe's schemas and validators (package
4.0, resource 3.0; ASCII only, no duplicate keys) and from its air-gap linter: whatever a cluster
would have to download stands in ``resource.json``, so that a copy of that file is all it takes to
move the package to a cluster without the Internet. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from dcos_tensorflow.options.document import walk
from dcos_tensorflow.package.definition import Package
from local_dcos import Section, TemplateError, Variable, names_in, parse_template

_VERSION = r"[-a-zA-Z0-9.]+"
_PACKAGE_KEYS = {
    "packagingVersion": r"4\.0",
    "name": r"[a-z][a-z0-9-]*[a-z0-9]",
    "version": _VERSION,
    "maintainer": r".+",
    "description": r".+",
    "minDcosReleaseVersion": r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))*",
    "website": r"https?://.+",
    "scm": r".+",
    "preInstallNotes": None,
    "postInstallNotes": None,
    "postUninstallNotes": None,
}
_PACKAGE_SWITCHES = ("selected", "framework", "hasKnownIssues")
_PACKAGE_LISTS = {
    "tags": r"\S+",
    "upgradesFrom": rf"{_VERSION}|\*",
    "downgradesTo": rf"{_VERSION}|\*",
}
_PACKAGE_OTHERS = ("licenses", "lastUpdated")
_REQUIRED = ("packagingVersion", "name", "version", "maintainer", "description", "tags")

_WEB = r"https?://"
_LOCAL = r"https?://|file:///"
_URI = re.compile(r"\b(?!zk:)[a-z][a-z0-9+.-]*://[^\s\"',}]+")
#: Universe's resource schema knows these systems, and one kind of processor.
_SYSTEMS = ("linux", "darwin", "windows")


def problems(package: Package, *, local: bool = False) -> tuple[str, ...]:
    """Return everything that is wrong with ``package``, one line each; empty when nothing is.

    ``local`` lets it name files of this machine: for the local DC/OS, and for no cluster.
    """
    return (
        *_ascii(package),
        *_description(package.description),
        *_config(package.config),
        *_resource(package.resource, _LOCAL if local else _WEB),
        *_template(package),
        *_air_gap(package),
    )


def _ascii(package: Package) -> Iterator[str]:
    parts = {
        "package.json": package.description,
        "config.json": package.config,
        "marathon.json.mustache": package.template,
        "resource.json": package.resource,
    }
    for name, part in parts.items():
        text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        strange = sorted({char for char in text if ord(char) > 126 or ord(char) < 9})
        if strange:
            yield f"{name}: holds more than ASCII: {''.join(strange)!r}"


def _description(description: Mapping[str, Any]) -> Iterator[str]:
    known = {*_PACKAGE_KEYS, *_PACKAGE_SWITCHES, *_PACKAGE_LISTS, *_PACKAGE_OTHERS}
    for name in _REQUIRED:
        if name not in description:
            yield f"package.json: {name} is missing"
    for name, value in description.items():
        if name not in known:
            yield f"package.json: {name} is nothing that packaging version 4.0 knows"
        elif name in _PACKAGE_KEYS:
            pattern = _PACKAGE_KEYS[name]
            if not isinstance(value, str) or (pattern and not re.fullmatch(pattern, value, re.S)):
                yield f"package.json: {name} must be text of the form {pattern}: {value!r}"
        elif name in _PACKAGE_SWITCHES and not isinstance(value, bool):
            yield f"package.json: {name} must be true or false"
        elif name in _PACKAGE_LISTS:
            pattern = _PACKAGE_LISTS[name]
            bad = [v for v in value if not isinstance(v, str) or not re.fullmatch(pattern, v)]
            if bad:
                yield f"package.json: {name} has a value that is not of the form {pattern}: {bad}"


def _config(config: Mapping[str, Any]) -> Iterator[str]:
    try:
        jsonschema.Draft4Validator.check_schema(config)
    except jsonschema.SchemaError as error:
        yield f"config.json: is no JSON Schema of draft 4: {error.message}"
        return
    for path, option in leaves(config):
        name = ".".join(path)
        if option.get("type") not in ("string", "boolean", "integer", "number"):
            yield f"config.json: {name} is a structure; a template can take single values only"
        if not option.get("description"):
            yield f"config.json: {name} has no description"
        if "default" in option and not jsonschema.Draft4Validator(option).is_valid(
            option["default"]
        ):
            yield f"config.json: the default of {name} breaks its own rules"
    for path, group in _groups(config):
        if group.get("additionalProperties") is not False:
            yield f"config.json: {'.'.join(path) or 'the whole'} takes misspelt options in silence"


def _resource(resource: Mapping[str, Any], address: str) -> Iterator[str]:
    """Yield what is wrong with ``resource.json``; ``address`` is what its URLs look like."""
    unknown = sorted(set(resource) - {"assets", "images", "cli"})
    if unknown:
        yield f"resource.json: nothing is known of {', '.join(unknown)}"
    for path, value in walk(resource):
        if isinstance(value, str) and "{{" in value:
            yield f"resource.json: {'.'.join(path)} has a place without a value"
    images = {k: v for k, v in resource.get("images", {}).items() if isinstance(v, str)}
    uris = {**resource.get("assets", {}).get("uris", {}), **images}
    for name, uri in uris.items():
        if not re.match(address, uri):
            yield f"resource.json: {name} must be an address of the web: {uri}"
    for system, kinds in resource.get("cli", {}).get("binaries", {}).items():
        where = f"resource.json: the command line for {system}"
        if system not in _SYSTEMS or set(kinds) != {"x86-64"}:
            yield f"{where} is for a system that DC/OS does not know"
            continue
        binary = kinds["x86-64"]
        if binary.get("kind") not in ("executable", "zip"):
            yield f"{where} must be of the kind executable or zip"
        if not re.match(address, binary.get("url", "")):
            yield f"{where} must have an address of the web: {binary.get('url')}"
        hashes = binary.get("contentHash") or [{}]
        if not all(
            each.get("algo") == "sha256" and re.fullmatch(r"[0-9a-f]{64}", each.get("value", ""))
            for each in hashes
        ):
            yield f"{where} needs its sha256"


def _template(package: Package) -> Iterator[str]:
    where = "marathon.json.mustache"
    try:
        parts = parse_template(package.template)
    except TemplateError as error:
        yield f"{where}: {error}"
        return
    options = dict(leaves(package.config))
    resources = {("resource", *path) for path, value in walk(package.resource)}
    guarded = {place.name for place in names_in(parts) if isinstance(place, Section)}
    for place in names_in(parts):
        path = tuple(place.name.split("."))
        if path in resources:
            continue
        if path not in options:
            yield f"{where}: line {place.line}: there is no option and no resource {place.name}"
        elif (
            isinstance(place, Variable)
            and "default" not in options[path]
            and place.name not in guarded
        ):
            yield f"{where}: line {place.line}: {place.name} may have no value"
    used = {place.name for place in names_in(parts)}
    for path in options:
        if ".".join(path) not in used:
            yield f"{where}: nothing uses the option {'.'.join(path)}"
    for kind in ("uris", "container"):
        for path, value in walk(package.resource.get("assets", {}).get(kind, {})):
            name = ".".join(("resource", "assets", kind, *path))
            if isinstance(value, str) and name not in used:
                yield f"{where}: {name} is used nowhere"


def _air_gap(package: Package) -> Iterator[str]:
    for uri in _URI.findall(re.sub(r"\{\{.*?\}\}", "", package.template)):
        yield f"marathon.json.mustache: {uri} must come from resource.json"
    known = {value for _, value in walk(package.resource) if isinstance(value, str)}
    for path, option in leaves(package.config):
        default = option.get("default")
        if not default or not isinstance(default, str) or default in known:
            continue
        if _URI.search(default) or path[-1].endswith("image"):
            yield f"config.json: the default of {'.'.join(path)} is not in resource.json"


def leaves(
    schema: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every option of a ``config.json`` with its path."""
    for name, below in schema.get("properties", {}).items():
        if "properties" in below:
            yield from leaves(below, (*path, name))
        else:
            yield (*path, name), below


def _groups(
    schema: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        if "properties" in below:
            yield from _groups(below, (*path, name))
