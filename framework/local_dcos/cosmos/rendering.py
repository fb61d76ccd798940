"""From package and options to the app definition that Marathon is given. Pure.

Called by ``cosmos`` and ``service_changes``. The labels are those that Cosmos adds, and nothing in
a package can override them.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_dcos.cosmos import package_options
from local_dcos.cosmos.mustache import TemplateError, render
from local_dcos.cosmos.repositories import Package
from local_dcos.errors import CosmosError
from untrusted_input.json_text import read_json

Json = dict[str, Any]

NAME_LABEL = "DCOS_PACKAGE_NAME"
VERSION_LABEL = "DCOS_PACKAGE_VERSION"
SOURCE_LABEL = "DCOS_PACKAGE_SOURCE"
OPTIONS_LABEL = "DCOS_PACKAGE_OPTIONS"
DEFINITION_LABEL = "DCOS_PACKAGE_DEFINITION"
_DEFINITION_TYPE = "application/vnd.dcos.universe.package+json;charset=utf-8;version=v4"


class RenderError(Exception):
    """A package whose template makes no Marathon app of good options: the package is wrong.

    ``kind`` is what Cosmos calls that.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Rendered:
    """An app definition, and the whole options that it was made with."""

    app: Json
    options: Json

    @property
    def app_id(self) -> str:
        """Return the app's id, with its leading slash."""
        return str(self.app["id"])


def rendered(package: Package, options: Json | None, app_id: str | None = None) -> Rendered:
    """Return the app of a package.

    Raises CosmosError when the options do not fit, or the template gives no app.
    """
    schema = package.document.get("config")
    whole = package_options.resolved(schema, options)
    try:
        app = render_app(_template(package), whole, package.document.get("resource", {}))
    except RenderError as error:
        raise _cannot(error.kind, package, str(error)) from error
    labels = app.get("labels", {})
    if app_id is not None:
        app["id"] = app_id
    if not isinstance(app.get("id"), str) or not app["id"].strip("/"):
        raise _cannot("AppIdMissing", package, "it gives no app id")
    app["id"] = with_slash(app["id"])
    app["labels"] = {**labels, **_labels(package, options)}
    return Rendered(app, whole)


def render_app(
    template: str, options: Mapping[str, Any], resource: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the Marathon app of a template with its effective options. Raises RenderError."""
    try:
        text = render(template, {**options, "resource": resource})
    except TemplateError as error:
        raise RenderError(
            "MarathonTemplateMustBeValid", f"marathon.json.mustache: {error}"
        ) from error
    try:
        app = json.loads(text)
    except ValueError as error:
        raise RenderError(
            "RenderedTemplateNotJson", f"the template renders to no JSON: {error}"
        ) from error
    if not isinstance(app, dict):
        raise RenderError("RenderedTemplateNotJsonObject", "the template renders to no JSON object")
    labels = app.get("labels", {})
    if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
        raise RenderError("OptionsNotAllowed", "labels must be text")
    return app


def with_slash(app_id: str) -> str:
    """Return an app id with its leading slash: Marathon's ids are absolute."""
    return "/" + app_id.strip("/")


def _template(package: Package) -> str:
    encoded = package.template
    if encoded is None:
        raise CosmosError(
            "ServiceMarathonTemplateNotFound",
            f"Package: [{package.name}] version: [{package.version}] does not have a Marathon"
            " template defined and can not be rendered",
            {"packageName": package.name, "packageVersion": package.version},
        )
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise _cannot(
            "MarathonTemplateMustBeValid", package, f"it is no base64: {error}"
        ) from error


def _cannot(kind: str, package: Package, why: str) -> CosmosError:
    return CosmosError(
        kind,
        f"The Marathon template of package [{package.name}] version [{package.version}] cannot be"
        f" rendered: {why}",
        {"packageName": package.name, "packageVersion": package.version},
    )


def _labels(package: Package, options: Json | None) -> dict[str, str]:
    packed = gzip.compress(_json(package.document), mtime=0)
    envelope = {
        "metadata": {"Content-Type": _DEFINITION_TYPE, "Content-Encoding": "gzip"},
        "data": base64.b64encode(packed).decode(),
    }
    return {
        NAME_LABEL: package.name,
        VERSION_LABEL: package.version,
        SOURCE_LABEL: package.source,
        OPTIONS_LABEL: base64.b64encode(_json(options or {})).decode(),
        DEFINITION_LABEL: base64.b64encode(_json(envelope)).decode(),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def package_of(labels: dict[str, str]) -> Package | None:
    """Return the package that an app was installed from, None when it came without one."""
    if NAME_LABEL not in labels or DEFINITION_LABEL not in labels:
        return None
    try:
        envelope = read_json(base64.b64decode(labels[DEFINITION_LABEL]))
        document = read_json(gzip.decompress(base64.b64decode(envelope["data"])))
    except (binascii.Error, OSError, EOFError, ValueError, KeyError, TypeError):
        return None
    return Package(document, labels.get(SOURCE_LABEL, ""))


def options_of(labels: dict[str, str]) -> Json | None:
    """Return the options that an app was installed with, None when none are stored."""
    try:
        found = read_json(base64.b64decode(labels[OPTIONS_LABEL]))
    except (KeyError, binascii.Error, ValueError):
        return None
    return found if isinstance(found, dict) else None
