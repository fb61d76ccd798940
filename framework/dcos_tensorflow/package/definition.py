"""The parts of a package: description, options, template, resources; and the app it becomes.

Read from the files of ``universe/`` (whose places for versions, addresses and checksums are filled
on the way) or from the repository document that ``make package`` writes: it holds one package, in
the form of Universe itself (Universe, v4-repo-schema.json). Called by the command line, the
local DC/OS and ``packaging/``. The app follows the rules of the Cosmos that the local DC/OS has:
options are judged by the package's ``config.json`` alone, as on a cluster.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.options import OptionProblem, OptionsError
from dcos_tensorflow.options.document import json_value
from dcos_tensorflow.records import dataclass
from local_dcos import RenderError, render_app, violations
from untrusted_input.package_options import defaults, merge

FILES = ("package.json", "config.json", "marathon.json.mustache", "resource.json")
#: ``{{package-version}}``, ``{{artifact-dir}}``, ``{{sha256:<file>}}`` in package and resources.
_PLACE = re.compile(r"\{\{\s*([a-z0-9-]+(?::[^{}]*)?)\s*\}\}")


class PackageError(Exception):
    """Package files that cannot be used; the text says which and why."""


@dataclass(frozen=True)
class Package:
    """One version of a package. ``template`` is the Mustache text of the Marathon app."""

    description: Mapping[str, Any]
    config: Mapping[str, Any]
    template: str
    resource: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the package's name."""
        return str(self.description["name"])

    @property
    def version(self) -> str:
        """Return the package's version."""
        return str(self.description["version"])


def package_folder() -> Path:
    """Return the folder of the package files that this installation brings along."""
    return Path(__file__).resolve().parent


def read_folder(folder: Path, places: Mapping[str, str]) -> Package:
    """Return the package in ``folder`` with ``places`` filled in. Raises PackageError.

    ``places`` are the texts for ``package-version``, ``artifact-dir`` and each ``sha256:<file>``.
    """
    texts = {}
    for name in FILES:
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PackageError(f"{folder / name}: {error}") from error
    for name in ("package.json", "resource.json"):
        texts[name] = filled(texts[name], places, name)
    return Package(
        description=json_file(texts["package.json"], "package.json"),
        config=json_file(texts["config.json"], "config.json"),
        template=texts["marathon.json.mustache"],
        resource=json_file(texts["resource.json"], "resource.json"),
    )


def read_repository(path: Path) -> tuple[Package, ...]:
    """Return the packages of a repository document, as it stands. Raises PackageError."""
    try:
        document = json_file(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise PackageError(f"{path}: {error}") from error
    found = document.get("packages")
    if not isinstance(found, list) or not found:
        raise PackageError(f"{path}: is no package repository: it has no packages")
    return tuple(from_document(each, str(path)) for each in found)


def from_document(document: Mapping[str, Any], source: str) -> Package:
    """Return the package in an entry of a repository document. Raises PackageError."""
    try:
        description = {
            key: value
            for key, value in document.items()
            if key not in ("config", "marathon", "resource")
        }
        template = base64.b64decode(document["marathon"]["v2AppMustacheTemplate"], validate=True)
        return Package(
            description=description,
            config=document.get("config", {"type": "object", "properties": {}}),
            template=template.decode("utf-8"),
            resource=document.get("resource", {}),
        )
    except (KeyError, TypeError, AttributeError, binascii.Error, UnicodeDecodeError) as error:
        raise PackageError(f"{source}: has a package that cannot be read: {error!r}") from error


def json_file(text: str, name: str) -> dict[str, Any]:
    """Return the JSON object in ``text``. Raises PackageError, for duplicate keys too."""
    try:
        value = json_value(text)
    except ValueError as error:
        raise PackageError(f"{name}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise PackageError(f"{name}: must be a JSON object")
    duplicates = sorted(_duplicates(value))
    if duplicates:
        raise PackageError(f"{name}: keys stand there more than once: {', '.join(duplicates)}")
    plain: dict[str, Any] = json.loads(text)
    return plain


def filled(text: str, places: Mapping[str, str], name: str) -> str:
    """Return ``text`` with its places filled. Raises PackageError for one without a value."""

    def fill(match: re.Match[str]) -> str:
        if match[1] not in places:
            raise PackageError(f"{name}: nothing is known to put in place of {match[0]}")
        return json.dumps(places[match[1]])[1:-1]

    return _PLACE.sub(fill, text)


def _duplicates(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(_duplicates(part) for part in value))
    if not isinstance(value, Mapping):
        return set()
    own = set(getattr(value, "duplicates", ()))
    return own.union(*(_duplicates(part) for part in value.values()))


#: The media type that a repository of this form must be served with.
CONTENT_TYPE = "application/vnd.dcos.universe.repo+json;charset=utf-8;version=v4"


def repository_document(package: Package, *, last_updated: int) -> dict[str, Any]:
    """Return the repository with ``package`` alone. ``last_updated`` is in seconds since 1970."""
    template = base64.b64encode(package.template.encode("utf-8")).decode("ascii")
    entry = {
        **package.description,
        "releaseVersion": 0,
        "lastUpdated": last_updated,
        "config": package.config,
        "marathon": {"v2AppMustacheTemplate": template},
        "resource": package.resource,
    }
    return {"packages": [entry]}


def marathon_app(
    package: Package, options: Mapping[str, Any], *, app_id: str = ""
) -> dict[str, Any]:
    """Return the Marathon app of ``package`` with the user's ``options``.

    ``app_id`` takes the place of the template's id and of nothing else. Raises OptionsError naming
    every wrong option's path, RenderError when the package itself is at fault.
    """
    merged = effective_options(package, options)
    try:
        app = render_app(package.template, merged, package.resource)
    except RenderError as error:
        raise RenderError(error.kind, f"{package.name}: {error}") from error
    return {**app, "id": app_id} if app_id else app


def effective_options(package: Package, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` laid over the package's defaults. Raises OptionsError."""
    merged = merge(defaults(package.config), options)
    problems = [
        OptionProblem(".".join(wrong.path), wrong.message, wrong.given, suggestion=wrong.suggestion)
        for wrong in violations(package.config, merged)
    ]
    if problems:
        raise OptionsError(problems)
    return merged
