"""The options about secrets, limits and shared memory to what a role's containers are given.

Called by ``options.service``; the rules about them are here too, for ``cross_checks``. Pure, and
without any secret: options only name where one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.options import data_access
from dcos_tensorflow.options.container_values import ProcessLimit, SecretSource
from dcos_tensorflow.options.environment_checks import reserved
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.role_models import ROLE_GROUPS

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
