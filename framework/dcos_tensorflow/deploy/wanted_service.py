"""Which service a scheduler process is to serve, and whether the options that it got can be had.

Used by ``daemon``. Two things must work whatever options say: an uninstall, which needs the name
and nothing else of them, and looking after tasks that run already. So mistakes in options are kept
here as a problem, which the scheduler tells once it knows whether former options are stored.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.options import Options, OptionsError, as_given, effective, load
from dcos_tensorflow.options.document import json_value, parse, read_file
from dcos_tensorflow.options.sections.images import with_images
from dcos_tensorflow.package import variables
from dcos_tensorflow.records import dataclass

#: The id of its app, in the environment of everything that Marathon starts. A package's app is
#: named after its service.
_APP_VARIABLE = "MARATHON_APP_ID"
_NAME = "service.name"
#: What Mesos knows a service by. The name comes first: without it there is no service.
_IDENTITY = ("name", "user", "mesos_role", "service_account", "region")


@dataclass(frozen=True)
class WantedService:
    """What a scheduler process was given to serve."""

    #: The options; of those that are wrong what says who the service is, and defaults.
    options: Options
    #: The whole document, secrets hidden; of options that are wrong as it stands there.
    given: Mapping[str, Any]
    #: Why they cannot be used; None when they can.
    problem: OptionsError | CliError | None = None
    #: The options as they were given, with secrets and without what a package's app says beside
    #: them, to lay others over; None when they cannot be used.
    as_given: Mapping[str, Any] | None = None


def to_serve(
    file: Path | None,
    overrides: Sequence[str],
    settings: Settings,
    environ: Mapping[str, str],
    folder: Path | None = None,
) -> WantedService:
    """Return what to serve. Raises UsageError and OptionsError where not even a name is found."""
    file = _options_file(file, settings)
    if file is not None and variables.has_options(environ):
        raise UsageError(
            f"The options are in {file} and in {variables.PREFIX}* variables, and can be in one of"
            " them only."
        )
    if file is None and not variables.has_options(environ):
        raise UsageError(
            "Which options? Name the file as an argument, as options in the --config file, or"
            f" in DCOS_TENSORFLOW_OPTIONS, or give them in {variables.PREFIX}* variables."
        )
    try:
        read = load(
            variables.options_in(environ) if file is None else file,
            overrides=overrides,
            published_defaults=published_defaults(settings, environ),
            folder=folder,
        )
        return WantedService(of_package(read, environ), effective(read), as_given=as_given(read))
    except OptionsError as problem:
        known = _identified(file, overrides, environ)
        if known is None:
            raise
        return WantedService(known, _document(file, environ) or {}, problem)


def published_defaults(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Say whether options mean what they mean to the published package, as in a package's app."""
    return bool(settings["published_defaults"]) or variables.has_options(environ)


def to_uninstall(
    file: Path | None, overrides: Sequence[str], settings: Settings, environ: Mapping[str, str]
) -> WantedService:
    """Return what to uninstall, by the name alone. Raises UsageError where there is none."""
    file = _options_file(file, settings)
    known = _identified(file, overrides, environ)
    if known is None:
        raise UsageError(
            "Which service is to be uninstalled? Its name cannot be told from the options; say"
            f" --set {_NAME}=NAME."
        )
    return WantedService(known, {})


def of_package(options: Options, environ: Mapping[str, str]) -> Options:
    """Return the options with what a package's app says beside them. Raises OptionsError."""
    options = with_images(options, variables.images_in(environ))
    return variables.with_group_role(options, environ)


def _options_file(file: Path | None, settings: Settings) -> Path | None:
    return Path(settings["options"]) if file is None and settings["options"] else file


def _document(file: Path | None, environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the options as they stand there; None where there is nothing that can be read."""
    if file is None:
        return variables.options_in(environ) if variables.has_options(environ) else None
    try:
        return parse(read_file(file), str(file))
    except OptionsError:
        return None


def _identified(
    file: Path | None, overrides: Sequence[str], environ: Mapping[str, str]
) -> Options | None:
    """Return who the service is, by the first of all places that names one."""
    given = _document(file, environ)
    for document in (*_overridden(given or {}, overrides), given, _app(environ)):
        known = _identity(document) if document is not None else None
        if known is not None:
            with contextlib.suppress(OptionsError):
                known = variables.with_group_role(known, environ)
            return known
    return None


def _overridden(given: Mapping[str, Any], overrides: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the options under the name that an override gives them, if one does."""
    for override in reversed(overrides):
        path, _, text = override.partition("=")
        if path.strip() != _NAME:
            continue
        try:
            value = json_value(text)
        except ValueError:
            value = text
        service = given.get("service")
        known = service if isinstance(service, Mapping) else {}
        name = value if isinstance(value, str) else json.dumps(value)
        yield {"service": {**known, "name": name}}


def _app(environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    name = environ.get(_APP_VARIABLE, "").strip("/")
    return {"service": {"name": name}} if name else None


def _identity(given: Mapping[str, Any]) -> Options | None:
    """Return defaults with what in ``given`` says who the service is; None without a name.

    What is wrong of it is left out, but for the name.
    """
    service = given.get("service", {})
    if not isinstance(service, Mapping):
        return None
    found = Options()
    kept: dict[str, Any] = {}
    for key in _IDENTITY:
        if key not in service:
            continue
        try:
            found = Options.model_validate({"service": {**kept, key: service[key]}})
        except (ValidationError, RecursionError):
            if key == "name":
                return None
        else:
            kept[key] = service[key]
    return found
