"""The types of single options: the allowed values of each, for pydantic and in words.

Used by the models. A rule that needs more than one option is in ``cross_checks``.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from dcos_tensorflow.core.spec.workload_spec import MOST_UNITS
from dcos_tensorflow.options import document
from dcos_tensorflow.options.errors import HIDDEN
from dcos_tensorflow.options.sections.placement import EXAMPLE, PlacementError, parse_placement
from dcos_tensorflow.records import dataclass

#: What the Mesos fetcher can bring (Mesos docs, "Fetcher": built in, and through a Hadoop client).
FETCHED_SCHEMES = ("http", "https", "ftp", "ftps", "file", "hdfs", "s3", "s3a", "s3n", "gs")

#: Mesos gives a task no less (mesos: src/slave/constants.hpp, MIN_CPUS and MIN_MEM).
MINIMUM_CPUS = 0.01
MINIMUM_MEM = 32
#: Beyond this a number is a slip of the finger, not a wish.
MAXIMUM_COUNT = MOST_UNITS
MAXIMUM_MEGABYTES = 1_000_000_000
MAXIMUM_SECONDS = 31_536_000.0


@dataclass(frozen=True)
class Allowed:
    """What an option may hold, in words, where the JSON Schema does not say it all."""

    text: str


@dataclass(frozen=True)
class Secret:
    """Marks an option whose value is never shown."""


@dataclass(frozen=True)
class HiddenWhenWrong:
    """Marks an option that names where a secret is: what it is not may be the secret itself."""


def problem(message: str, suggestion: str = "") -> PydanticCustomError:
    """Return the error that a validator raises to say ``message`` in its own words."""
    # The message is data: braces in it must not be taken for a template.
    return PydanticCustomError(
        "option", "{message}", {"message": message, "suggestion": suggestion}
    )


def shaped(pattern: str, message: str, suggestion: str = "", *, or_empty: bool = False) -> Any:
    """Return the validator of a text that must match ``pattern``, and what is said if not."""

    def check(value: str) -> str:
        if not re.fullmatch(pattern, value) and not (or_empty and not value):
            raise problem(message, suggestion)
        return value

    return AfterValidator(check)


def auto_or_boolean(value: object) -> object:
    """Take true and false for the texts, which are all that a package can pass."""
    return str(value).lower() if isinstance(value, bool) else value


def whole(value: object) -> object:
    """Take 2.0 for 2, as JSON Schema does; anything else is for pydantic to judge."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def given(value: object) -> object:
    """Refuse null: what has no value is left out."""
    if value is None:
        raise problem("must not be null; leave it out")
    return value


def _whole_gpus(value: object) -> object:
    if isinstance(value, float) and not value.is_integer():
        raise problem("Mesos only has whole GPUs")
    return whole(value)


def _json_text(value: object) -> object:
    """Take an object or a list that is written as JSON text: all that a DC/OS package can pass."""
    if not isinstance(value, str):
        return value
    try:
        parsed = document.json_value(value) if value.strip() else None
    except json.JSONDecodeError as error:
        raise problem(
            f"the text is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None
    except ValueError as error:
        raise problem(f"the text is not JSON: {error}") from None
    return parsed


def object_from_text(value: object) -> object:
    """Take an object that is written as JSON text; empty text is an empty object."""
    parsed = _json_text(value)
    if parsed is None and isinstance(value, str):
        return {}
    _refuse_duplicates(parsed)
    return parsed


def list_from_text(value: object) -> object:
    """Take a list that is written as JSON text; empty text is an empty list."""
    parsed = _json_text(value)
    return [] if parsed is None and isinstance(value, str) else parsed


def _refuse_duplicates(value: object) -> None:
    for path, part in document.walk(value):
        if isinstance(part, document.JsonObject) and part.duplicates:
            key = ".".join((*path, part.duplicates[0]))
            raise problem(f"the key {key} stands there more than once")


def _placement(value: str) -> str:
    try:
        parse_placement(value)
    except PlacementError as error:
        raise problem(str(error), error.suggestion) from None
    return value


def _object_text_kind(value: object) -> object:
    if isinstance(value, Mapping):
        raise problem("must be JSON text, not an object", json.dumps(json.dumps(value)))
    return value


def _object_text(value: str) -> str:
    parsed = object_from_text(value)
    if not isinstance(parsed, Mapping):
        raise problem(f"must be JSON text of an object, not of {document.kind_of(parsed)}")
    return value


_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"


def _service_name(value: str) -> str:
    if not value.strip("/"):
        raise problem("must not be empty")
    if "__" in value:
        raise problem(
            "must not contain two underscores in a row: they part the words of a Mesos task id",
            _dns_form(value),
        )
    if len(value.replace("/", "")) > 63:
        raise problem(
            f"is {len(value.replace('/', ''))} characters long without its slashes; DNS allows 63"
        )
    if not re.fullmatch(f"/?{_LABEL}(?:/{_LABEL})*", value):
        raise problem("is not a name that DNS can carry", _dns_form(value))
    return value


def _dns_form(value: str) -> str:
    labels = [re.sub("[^a-z0-9]+", "-", part.lower()).strip("-") for part in value.split("/")]
    return "/".join(label for label in labels if label)


def _mesos_role(value: str) -> str:
    # Mesos docs, "Roles": invalid role names.
    for part in value.split("/"):
        if not part or part in (".", "..") or part.startswith("-") or re.search(r"[\s\x08]", part):
            raise problem("is not a name that Mesos takes for a role")
        if "*" in part and value != "*":
            raise problem("is not a name that Mesos takes for a role: * stands alone")
    return value


def _peer_network(value: str) -> str:
    if "/" not in value:
        # IFNAMSIZ of Linux: 15 characters, no white space.
        if value and not re.fullmatch(r"[^\s/:]{1,15}", value):
            raise problem("is not the name of an interface")
        return value
    try:
        network = ipaddress.ip_network(value)
    except ValueError as error:
        raise problem(f"is not a network: {error}") from None
    if network.prefixlen == 0:
        raise problem("is every network")
    return value


def _job_name(value: str) -> str:
    if value and not re.fullmatch(r"\w[\w-]*(?:\.\w[\w-]*)*", value):
        module = value.strip().removesuffix(".py").strip("/").replace("/", ".")
        raise problem("is not the name of a Python module", module)
    if value.endswith(".py"):
        raise problem("is a file; name the module, without .py", value.removesuffix(".py"))
    return value


def _job_path(value: str) -> str:
    if ".." in value.split("/"):
        raise problem("must stay below the sandbox: .. is not allowed")
    return value


def single_line(value: str) -> str:
    """Return ``value``, which must be one line of text. Raises PydanticCustomError."""
    if "\n" in value or "\r" in value:
        raise problem("must be one line")
    flaw = document.text_flaw(value)
    if flaw:
        raise problem(flaw)
    return value


def _command(value: str) -> str:
    if value and not value.strip():
        raise problem("is blank")
    return value


def _image(value: str) -> str:
    if re.search(r"\s", value):
        raise problem("is not the name of an image: it holds white space", "".join(value.split()))
    return value


def fetchable(value: str) -> str:
    """Return ``value``, a URI for the Mesos fetcher or a path. Raises PydanticCustomError."""
    single_line(value)
    try:
        parts = urlsplit(value.strip())
        password = parts.password
    except ValueError as error:
        raise problem(f"is not a URI: {error}") from None
    if password:
        raise problem("holds a password, which would be stored and shown to everyone")
    if "://" in value and parts.scheme not in FETCHED_SCHEMES:
        raise problem(f"the Mesos fetcher knows no {value.split('://', maxsplit=1)[0].strip()}://")
    return value


def _not_hidden(value: str) -> str:
    if value == HIDDEN:
        raise problem("is the mask that stands for a hidden value; give the value itself")
    return value


def text_schema(schema: JsonDict) -> None:
    """Let the schema say that an object or a list may also be written as JSON text."""
    title, structure = schema.pop("title", None), dict(schema)
    for key in ("description", "default"):
        structure.pop(key, None)
    for key in structure:
        schema.pop(key)
    schema["anyOf"] = [structure, {"type": "string", "contentMediaType": "application/json"}]
    if title is not None:
        schema["title"] = title


def _requirements(value: object) -> object:
    """Take the path of a requirements file for the line that includes it."""
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return list_from_text(value)
    return [f"-r {value.strip()}"] if value.strip() else []


def _requirement(value: str) -> str:
    single_line(value)
    if not value.strip():
        raise problem("is blank")
    # In https://x@host the one word may be a token; git@host of ssh is none.
    if re.search(r"https?://[^/@\s]+@|://[^/@\s:]*:[^/@\s]+@", value):
        raise problem(
            "holds a password or a token, which would be stored and shown to everyone; "
            "service.secrets can set PIP_INDEX_URL"
        )
    return value.strip()


def _requirements_schema(schema: JsonDict) -> None:
    text_schema(schema)
    choices = schema["anyOf"]
    assert isinstance(choices, list)
    choices[-1] = {"type": "string"}


Count = Annotated[int, Field(ge=0, le=MAXIMUM_COUNT), BeforeValidator(whole)]
OneOrNone = Annotated[int, Field(ge=0, le=1), BeforeValidator(whole)]
Gpus = Annotated[int, Field(ge=0, le=1024), BeforeValidator(_whole_gpus)]
Cpus = Annotated[
    float,
    Field(ge=MINIMUM_CPUS, le=100_000, allow_inf_nan=False),
    Allowed(f"a number from {MINIMUM_CPUS}, the least that Mesos gives, to 100000"),
]
Megabytes = Annotated[
    int,
    Field(ge=1, le=MAXIMUM_MEGABYTES),
    BeforeValidator(whole),
    Allowed(f"a whole number of MB from 1 to {MAXIMUM_MEGABYTES}"),
]
Memory = Annotated[
    int,
    Field(ge=MINIMUM_MEM, le=MAXIMUM_MEGABYTES),
    BeforeValidator(whole),
    Allowed(
        f"a whole number of MB from {MINIMUM_MEM}, the least that Mesos gives, "
        f"to {MAXIMUM_MEGABYTES}"
    ),
]
Port = Annotated[
    int,
    Field(ge=0, le=65535),
    BeforeValidator(whole),
    Allowed("a whole number from 1 to 65535, or 0 for any port"),
]
CountIfGiven = Annotated[Count | None, BeforeValidator(given)]
RetryLimit = Annotated[int, Field(ge=0, le=MAXIMUM_COUNT), BeforeValidator(whole)]
RetryLimitIfGiven = Annotated[RetryLimit | None, BeforeValidator(given)]
SameFailureLimit = Annotated[int, Field(ge=1, le=MAXIMUM_COUNT), BeforeValidator(whole)]
BackoffFactor = Annotated[float, Field(ge=1, le=1000, allow_inf_nan=False)]
LogBytes = Annotated[int, Field(ge=10_000, le=1_000_000_000_000), BeforeValidator(whole)]
LogKeep = Annotated[int, Field(ge=0, le=1000), BeforeValidator(whole)]
Weight = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=MAXIMUM_SECONDS, allow_inf_nan=False)]
SomeSeconds = Annotated[float, Field(gt=0, le=MAXIMUM_SECONDS, allow_inf_nan=False)]
Line = Annotated[str, AfterValidator(single_line)]
PortIfGiven = Annotated[
    Port | None,
    BeforeValidator(given),
    Allowed("a whole number from 1 to 65535, or 0 for any port"),
]
KdcPort = Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)]
KdcPortIfGiven = Annotated[KdcPort | None, BeforeValidator(given)]
LineIfGiven = Annotated[Line | None, BeforeValidator(given)]
Placement = Annotated[
    str, AfterValidator(_placement), Allowed(f"placement constraints such as {EXAMPLE}")
]
ObjectText = Annotated[
    str,
    BeforeValidator(_object_text_kind),
    AfterValidator(_object_text),
    Allowed("JSON text of an object, or empty text"),
]
ServiceName = Annotated[
    str,
    AfterValidator(_service_name),
    Allowed(
        "lower-case letters, digits and hyphens, in groups separated by /, at most 63 characters "
        "without the slashes"
    ),
]
DnsDomain = Annotated[
    str,
    shaped(rf"{_LABEL}(?:\.{_LABEL})*", "is not a domain name"),
    Allowed("a domain name such as autoip.dcos.thisdcos.directory"),
]
PeerNetwork = Annotated[
    str,
    AfterValidator(_peer_network),
    Allowed("a network such as 10.1.0.0/16, an interface such as ib0, or empty text"),
]
MesosRole = Annotated[str, AfterValidator(_mesos_role), Allowed("the name of a Mesos role, or *")]
JobName = Annotated[
    str, AfterValidator(_job_name), Allowed("the name of a module, without .py, or empty text")
]
Command = Annotated[str, AfterValidator(_command), Allowed("a command line of sh, or empty text")]
Image = Annotated[
    str, AfterValidator(_image), Allowed("an image such as usr/img:version, or empty text")
]
TensorFlowVersion = Annotated[
    str,
    shaped(r"\d+\.\d+\.\d+", "is no version of TensorFlow", or_empty=True),
    Allowed("a version such as 2.21.0, or empty text"),
]
Checksum = Annotated[
    str,
    BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value),
    shaped("[0-9a-f]{64}", "is not a SHA-256 in hexadecimal", or_empty=True),
    Allowed("64 hexadecimal digits, as sha256sum prints them, or empty text"),
]
JobPath = Annotated[
    str, AfterValidator(_job_path), Allowed("a path below the sandbox, or empty text")
]
VolumePath = Annotated[
    str,
    shaped(r"[A-Za-z0-9_][A-Za-z0-9._-]*", "is not the name of one directory in the sandbox"),
    Allowed("a name of letters, digits, dots, underscores and hyphens, such as tf-volume"),
]
FetchedUri = Annotated[
    str,
    AfterValidator(fetchable),
    Allowed(f"a path or a URI with one of {', '.join(FETCHED_SCHEMES)}"),
]
SecretText = Annotated[str, AfterValidator(_not_hidden), Secret()]
UriList = Annotated[
    list[FetchedUri],
    BeforeValidator(list_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("a list of URIs, or JSON text of one"),
]
RequirementLines = Annotated[
    list[Annotated[str, AfterValidator(_requirement)]],
    BeforeValidator(_requirements),
    Field(json_schema_extra=_requirements_schema),
    Allowed("the path of a requirements file, a list of requirements, or JSON text of one"),
]
TextList = Annotated[
    list[str],
    BeforeValidator(list_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("a list of texts, or JSON text of one"),
]
Environment = Annotated[
    dict[str, str],
    BeforeValidator(object_from_text),
    Field(json_schema_extra=text_schema, repr=False),
    Allowed("an object of texts, or JSON text of one"),
]
AutoOrBoolean = Annotated[
    Literal["auto", "true", "false"],
    BeforeValidator(auto_or_boolean),
    Allowed("auto, true or false"),
]
