"""The types of the options about secrets and limits of containers.

Used by the models. What a secret is never stands in the options, only where it is; a message about
one shows nothing of it, since what is there by mistake may be the secret itself.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.core.spec.container_spec import ENVIRONMENT_SOURCE, FILE_SOURCE
from dcos_tensorflow.options.section import Section
from dcos_tensorflow.options.values import (
    MAXIMUM_MEGABYTES,
    Allowed,
    HiddenWhenWrong,
    given,
    list_from_text,
    problem,
    shaped,
    single_line,
    text_schema,
    whole,
)

#: Where a secret can be, in words.
SOURCES = (
    "a path of the cluster's secret store, file:/path on the scheduler's machine, or env:NAME of "
    "the scheduler's environment"
)
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
# DC/OS documentation, "Secrets": letters, digits, underscores, hyphens and dots between slashes.
_STORE_PATH = r"/?[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*"


def _source(value: str) -> str:
    single_line(value)
    if value.startswith(FILE_SOURCE):
        path = value.removeprefix(FILE_SOURCE)
        path = f"/{path.lstrip('/')}" if path.startswith("/") else path
        if not path.startswith("/") or not path.strip("/") or ".." in path.split("/"):
            raise problem("names no absolute path after file:")
        return FILE_SOURCE + path
    if value.startswith(ENVIRONMENT_SOURCE):
        if not re.fullmatch(_VARIABLE, value.removeprefix(ENVIRONMENT_SOURCE)):
            raise problem("names no variable after env:")
        return value
    if not value:
        raise problem("must not be empty")
    if not re.fullmatch(_STORE_PATH, value) or ".." in value.split("/"):
        raise problem("is no place where a secret can be")
    return value


def _if_any(value: str) -> str:
    return _source(value) if value else value


def _sandbox_file(value: str) -> str:
    single_line(value)
    if value.startswith("/") or ".." in value.split("/"):
        raise problem("must be a path below the sandbox")
    if value and (not value.strip("/.") or value.endswith("/")):
        raise problem("must name a file below the sandbox")
    return value


Source = Annotated[str, AfterValidator(_source), Allowed(SOURCES), HiddenWhenWrong()]
SourceIfAny = Annotated[
    str, AfterValidator(_if_any), Allowed(f"{SOURCES}; or empty text"), HiddenWhenWrong()
]
SourceIfGiven = Annotated[
    Source | None, BeforeValidator(given), Allowed(SOURCES), HiddenWhenWrong()
]
_Limit = Annotated[int, Field(ge=0, le=10**15), BeforeValidator(whole)]
_LimitIfGiven = Annotated[_Limit | None, BeforeValidator(given)]


class SecretSource(Section):
    """A secret, and where tasks find it."""

    source: Source = Field(
        title="Source",
        description="Where it is: a path of the cluster's secret store, file:/path on the "
        "scheduler's machine, or env:NAME of the scheduler's environment.",
    )
    env: Annotated[
        str, shaped(_VARIABLE, "is not the name of an environment variable", or_empty=True)
    ] = Field("", title="Variable", description="Variable that holds it.")
    file: Annotated[str, AfterValidator(_sandbox_file)] = Field(
        "", title="File", description="File below the sandbox that holds it."
    )


class ProcessLimit(Section):
    """A limit of a task's processes."""

    name: Literal[
        "RLIMIT_AS",
        "RLIMIT_CORE",
        "RLIMIT_CPU",
        "RLIMIT_DATA",
        "RLIMIT_FSIZE",
        "RLIMIT_LOCKS",
        "RLIMIT_MEMLOCK",
        "RLIMIT_MSGQUEUE",
        "RLIMIT_NICE",
        "RLIMIT_NOFILE",
        "RLIMIT_NPROC",
        "RLIMIT_RSS",
        "RLIMIT_RTPRIO",
        "RLIMIT_RTTIME",
        "RLIMIT_SIGPENDING",
        "RLIMIT_STACK",
    ] = Field(title="Name", description="Name of the limit, as getrlimit has it.")
    soft: _LimitIfGiven = Field(
        None, title="Soft limit", description="The limit itself. Left out with hard: none."
    )
    hard: _LimitIfGiven = Field(
        None, title="Hard limit", description="How far a process may raise it."
    )


Secrets = Annotated[
    list[SecretSource],
    BeforeValidator(list_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("a list of objects with source and either env or file, or JSON text of one"),
    HiddenWhenWrong(),
]
ProcessLimits = Annotated[
    list[ProcessLimit],
    BeforeValidator(list_from_text),
    Field(json_schema_extra=text_schema),
    Allowed("a list of objects with name, soft and hard, or JSON text of one"),
]
SharedMemory = Annotated[int, Field(ge=0, le=MAXIMUM_MEGABYTES), BeforeValidator(whole)]
SharedMemoryIfGiven = Annotated[SharedMemory | None, BeforeValidator(given)]
