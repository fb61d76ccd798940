"""Options in the environment of the scheduler's app: one variable for each.

A package template can put single values into an app and nothing else, so each option travels in a
variable of its own, ``OPTION__SERVICE__JOB_NAME`` for ``service.job_name``: seen in Marathon, and
there to be edited by hand. The template is generated from here (``template``), and the scheduler
reads the variables back (``deploy.daemon``), so the two cannot drift apart. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.options import OptionProblem, Options, OptionsError
from dcos_tensorflow.options.catalogue import Option, Path, find, options
from dcos_tensorflow.options.document import json_value
from dcos_tensorflow.options.sections.images import TensorFlowImages

PREFIX = "OPTION__"
#: JSON text of the images in the package's resource.json: {"<TensorFlow version>": [CPU, GPU]}.
IMAGES_VARIABLE = "TENSORFLOW_IMAGES"
#: In the app of a queue: where the package's scheduler is fetched from.
ARCHIVE_VARIABLE = "SCHEDULER_ARCHIVE"

_ENFORCED = "MARATHON_APP_ENFORCE_GROUP_ROLE"
_ALLOCATION_ROLE = "MESOS_ALLOCATION_ROLE"
#: The role of Marathon on DC/OS, and of every app that was given no other.
_DEFAULT_ROLE = "slave_public"


def variable_of(path: Path) -> str:
    """Return the variable that carries the option at ``path``."""
    return PREFIX + "__".join(path).upper()


def option_variables() -> dict[str, Option]:
    """Return every option by its variable, in the order of the models."""
    return {variable_of(path): option for path, option in options().items()}


def has_options(environ: Mapping[str, str]) -> bool:
    """Say whether ``environ`` carries options."""
    return any(name.startswith(PREFIX) for name in environ)


def options_in(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the options in ``environ`` as the JSON object that an options file would hold.

    Nothing is checked: a name or value that is wrong comes out as it is, for ``options.load`` to
    refuse with its path. An empty variable of an option that may be left out is left out.
    """
    found: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX):
            continue
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        option = find(path)
        if text == "" and option is not None and (option.nullable or not _takes_text(option)):
            continue
        value = text if option is None or _takes_text(option) else _json(text)
        _put(found, path, value)
    return found


def _put(into: dict[str, Any], path: Path, value: Any) -> None:
    """Put a value where it belongs; what stands in the place of a whole group stays, as wrong."""
    for key in path[:-1]:
        below = into.setdefault(key, {})
        if not isinstance(below, dict):
            return
        into = below
    into[path[-1]] = value


def as_package_options(given: Options) -> dict[str, Any]:
    """Return validated options as a package takes them: structures written as JSON text.

    Only what was given is in it; the package's own defaults stand for the rest.
    """
    plain: dict[str, Any] = given.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    for path in options():
        into: Any = plain
        for key in path[:-1]:
            into = into.get(key, {}) if isinstance(into, dict) else {}
        if isinstance(into, dict) and isinstance(into.get(path[-1]), list | dict):
            into[path[-1]] = json.dumps(into[path[-1]], sort_keys=True)
    return plain


def images_in(environ: Mapping[str, str]) -> dict[str, TensorFlowImages]:
    """Return the package's images by TensorFlow version; none when it brings none.

    Raises OptionsError when the variable is not what the package's template writes.
    """
    text = environ.get(IMAGES_VARIABLE, "")
    if not text:
        return {}
    try:
        return {
            str(version): TensorFlowImages(str(cpu), str(gpu))
            for version, (cpu, gpu) in json_value(text).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionsError(
            [OptionProblem("", f"is not the package's table of images: {error}")], IMAGES_VARIABLE
        ) from error


def with_group_role(given: Options, environ: Mapping[str, str]) -> Options:
    """Return the options under the Mesos role that Marathon tells the app to use, if it does.

    As services of the DC/OS SDK do it: a group that enforces its role has all its tasks under it,
    for its quota. Where nothing is enforced, the app's own role is taken unless it is the default
    of DC/OS. A role in the options stays; in an enforcing group it must be the group's or one
    below it.
    Raises OptionsError when it is another.
    """
    enforced = environ.get(_ENFORCED, "").strip().lower() in ("true", "yes", "1")
    role, own = environ.get(_ALLOCATION_ROLE, "").strip(), given.service.mesos_role
    if not role or role == own:
        return given
    if own != "*":
        if enforced and not own.startswith(f"{role}/"):
            told = OptionProblem(
                "service.mesos_role",
                f"is not the role that the service's group in Marathon enforces, which is {role}",
                json.dumps(own),
                f"*, {role}, or a role below it",
            )
            raise OptionsError([told], _ENFORCED)
        return given
    if not enforced and role == _DEFAULT_ROLE:
        return given
    service = given.service.model_copy(update={"mesos_role": role})
    return given.model_copy(update={"service": service})


def _takes_text(option: Option) -> bool:
    """Say whether the option takes any text: text itself, or a structure written as JSON text."""
    choices = option.schema.get("anyOf", (option.schema,))
    return any(choice.get("type", "string") == "string" for choice in choices)


def _json(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError:
        return text
