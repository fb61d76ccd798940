"""The containers of a role: secrets, limits, shared memory.

The types of these options, and their part of the ServiceSpec. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from dcos_tensorflow.core.spec.container_spec import (
    ENVIRONMENT_SOURCE,
    FILE_SOURCE,
    ResourceLimit,
    TaskSecret,
)
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.sections import data_access
from dcos_tensorflow.options.sections.environment import reserved
from dcos_tensorflow.options.sections.section import ROLE_GROUPS, Section
from dcos_tensorflow.options.sections.values import (
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

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

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


def _sandbox_file(value: str) -> str:
    single_line(value)
    if value.startswith("/") or ".." in value.split("/"):
        raise problem("must be a path below the sandbox")
    if value and (not value.strip("/.") or value.endswith("/")):
        raise problem("must name a file below the sandbox")
    return value


Source = Annotated[str, AfterValidator(_source), Allowed(SOURCES), HiddenWhenWrong()]
SourceIfAny = Annotated[
    str,
    AfterValidator(lambda value: _source(value) if value else value),
    Allowed(f"{SOURCES}; or empty text"),
    HiddenWhenWrong(),
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
        description="Place of the secret: a path of the cluster's secret store, file:/path on "
        "the scheduler's machine, or env:NAME of the scheduler's environment.",
    )
    env: Annotated[
        str, shaped(_VARIABLE, "is not the name of an environment variable", or_empty=True)
    ] = Field("", title="Variable", description="Variable with the secret.")
    file: Annotated[str, AfterValidator(_sandbox_file)] = Field(
        "", title="File", description="File below the sandbox with the secret."
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
    ] = Field(title="Name", description="Name of the limit, as in getrlimit.")
    soft: _LimitIfGiven = Field(
        None,
        title="Soft limit",
        description="The limit itself. Left out together with hard: no limit.",
    )
    hard: _LimitIfGiven = Field(
        None,
        title="Hard limit",
        description="Highest value to which a process may raise the limit.",
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


#: What docker run --ulimit does not take (github.com/docker/go-units, ulimit.go).
_NO_ULIMIT = ("RLIMIT_AS",)


def secrets_of(options: Options, group: str) -> tuple[TaskSecret, ...]:
    """Return a role's secrets; its own win over the service's of the same variable or file."""
    given = (
        *data_access.secrets(options),
        *_named(options.service.secrets, "service"),
        *_named(getattr(options, group).secrets, group),
    )
    found: dict[tuple[str, str], TaskSecret] = {}
    for secret in given:
        # Taken out first, so that what wins also stands where it was given.
        found.pop((secret.env, secret.file), None)
        found[secret.env, secret.file] = secret
    return tuple(found.values())


def limits_of(options: Options, group: str) -> tuple[ResourceLimit, ...]:
    """Return a role's limits; its own win over the service's of the same name."""
    given: Sequence[ProcessLimit] = (*options.service.rlimits, *getattr(options, group).rlimits)
    found = {one.name: ResourceLimit(one.name, one.soft, one.hard) for one in given}
    return tuple(found.values())


def shared_memory_of(options: Options, group: str) -> int:
    """Return the size of a role's /dev/shm in MB; 0 is what the agent gives."""
    own: int | None = getattr(options, group).shm_size
    return options.service.shm_size if own is None else own


def container_findings(options: Options, with_image: Sequence[str]) -> Iterator[Finding]:
    """Yield what is wrong with secrets and limits each of which is right in itself.

    ``with_image`` are the groups of the roles whose tasks run in a container image.
    """
    for group in ("service", *ROLE_GROUPS):
        section = getattr(options, group)
        yield from _secrets(f"{group}.secrets", section.secrets)
        yield from _limits(f"{group}.rlimits", section.rlimits)
        for other in ("service", *ROLE_GROUPS) if group == "service" else ("service", group):
            yield from _both(group, section.secrets, other, getattr(options, other).env)
    if options.service.containerizer == "docker" and with_image:
        yield from _docker(options, with_image)


def _named(secrets: Iterable[SecretSource], group: str) -> list[TaskSecret]:
    return [
        TaskSecret(one.source, one.env, one.file, f"{group}.secrets.{number}")
        for number, one in enumerate(secrets)
    ]


def _secrets(path: str, secrets: Sequence[SecretSource]) -> Iterator[Finding]:
    places: dict[str, int] = {}
    for number, secret in enumerate(secrets):
        where = f"{path}.{number}"
        if bool(secret.env) == bool(secret.file):
            how = "both env and file are set" if secret.env else "neither env nor file is set"
            yield Finding(where, f"{how}, and a secret is in one of them", "", (path,), "")
            continue
        if why := reserved(secret.env):
            message = f"{secret.env} is set by the service: {why}"
            yield Finding(f"{where}.env", message, "any other name", (path,), "")
        place = secret.env or secret.file
        if place in places:
            message = f"{place} is that of {path}.{places[place]} too"
            yield Finding(where, message, "a place of its own", (path,), "")
        places.setdefault(place, number)


def _both(
    group: str, secrets: Sequence[SecretSource], other: str, env: Mapping[str, str]
) -> Iterator[Finding]:
    for number, secret in enumerate(secrets):
        if secret.env in env:
            yield Finding(
                f"{group}.secrets.{number}.env",
                f"{secret.env} is set in {other}.env too",
                "one of them",
                (f"{group}.secrets", f"{other}.env"),
                secret.env,
            )


def _limits(path: str, limits: Sequence[ProcessLimit]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for number, limit in enumerate(limits):
        where = f"{path}.{number}"
        if limit.name in seen:
            message = f"{limit.name} is that of {path}.{seen[limit.name]} too"
            yield Finding(where, message, "each name once", (path,), "")
        seen.setdefault(limit.name, number)
        if (limit.soft is None) != (limit.hard is None):
            missing = "soft" if limit.soft is None else "hard"
            message = f"{missing} is missing: a limit has both, and neither is no limit"
            yield Finding(where, message, "", (path,), "")
        elif limit.soft is not None and limit.hard is not None and limit.soft > limit.hard:
            message = f"soft is {limit.soft}, above hard, which is {limit.hard}"
            yield Finding(where, message, "soft at most hard", (path,), "")


def _docker(options: Options, with_image: Sequence[str]) -> Iterator[Finding]:
    """Refuse what Docker's engine is not given: Mesos resolves secrets in its own containers."""
    paths = [f"{g}.secrets" for g in ("service", *with_image) if getattr(options, g).secrets]
    paths += [secret.option for secret in data_access.secrets(options)]
    paths += ["s3.credentials.secret"] if options.s3.credentials.secret else []
    if paths:
        yield Finding(
            "service.containerizer",
            f"the docker containerizer knows no secrets, and there are some in {', '.join(paths)}",
            "mesos",
            ("service.containerizer", *paths),
        )
    for group in ("service", *with_image):
        for number, limit in enumerate(getattr(options, group).rlimits):
            if limit.name in _NO_ULIMIT:
                yield Finding(
                    f"{group}.rlimits.{number}.name",
                    f"Docker's engine knows no {limit.name}",
                    "another limit, or service.containerizer mesos",
                    ("service.containerizer", f"{group}.rlimits"),
                    limit.name,
                )
