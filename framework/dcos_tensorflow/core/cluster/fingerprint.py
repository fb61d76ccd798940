"""What a container was launched with, as one short text: equal texts need no restart.

Kept in ``TaskRecord.fingerprint`` at each launch; ``core.recovery.update_order`` compares it with
the target configuration's. Pure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.spec import RoleSpec, ServiceSpec, TaskRole
from dcos_tensorflow.core.model.storage_spec import StorageSpec

#: Fields of a RoleSpec that no container of the role is launched with: they decide about places and
#: retries, and hold for the next placement or failure without any restart.
_NOT_LAUNCHED_WITH = frozenset({"count", "min_count", "constraints", "retry_limit", "outlives_job"})
#: Fields that came later: absent while nothing is set, as what was launched before has it.
_CAME_LATER = frozenset({"user", "secrets", "rlimits", "shm_size", "sandbox_env", "volume"})


#: Fields of the service that every container is launched with, whatever its role.
_OF_SERVICE = (
    "job",
    "user",
    "strategy",
    "addressing",
    "dns_domain",
    "log_max_bytes",
    "log_keep",
    "network",
    "storage",
    "kill_grace_seconds",
    "stall_seconds",
    "freeze_seconds",
)
#: Those of them that came later: absent while they have their defaults.
_OF_SERVICE_LATER = ("kill_grace_seconds", "stall_seconds", "freeze_seconds")


def fingerprint(spec: ServiceSpec, role: TaskRole) -> str:
    """Return what stands for everything in ``spec`` that a container of ``role`` is launched with.

    That is: the role's resources, port, environment, image, interpreter and disk; the job, the
    user, the strategy, how members are addressed, the limits of the logs, what is in S3, and when
    its runner gives a process up. It does not depend on how many tasks there are, nor on where they
    may run. Raises ValueError for a role that the service does not have.
    """
    known = spec.remembered
    if role not in known:
        known[role] = _worked_out(spec, role)
    return known[role]


def as_launched_before(target: ServiceSpec, before: ServiceSpec, role: TaskRole) -> ServiceSpec:
    """Return ``target`` with all that containers of ``role`` are launched with as in ``before``.

    How many tasks there are, where they may run and how often they are tried is the target's.
    """
    old = next((r for r in before.roles if r.role is role), None)
    if old is None:
        return target
    roles = tuple(
        replace(old, **{name: getattr(r, name) for name in _NOT_LAUNCHED_WITH})
        if r.role is role
        else r
        for r in target.roles
    )
    of_service = {name: getattr(before, name) for name in _OF_SERVICE}
    return replace(target, roles=roles, **of_service)


def _worked_out(spec: ServiceSpec, role: TaskRole) -> str:
    found = next((r for r in spec.roles if r.role is role), None)
    if found is None:
        raise ValueError(f"the service has no role {role}")
    storage = _storage(spec.storage)
    plain = {
        "role": _launched_with(found),
        "job": codec.to_plain(spec.job),
        "user": spec.user,
        "strategy": str(spec.strategy),
        "addressing": str(spec.addressing),
        "dns_domain": spec.dns_domain,
        "log_max_bytes": spec.log_max_bytes,
        "log_keep": spec.log_keep,
        # Absent while nothing of it is set: what was launched before there was S3 stays as it is.
        **({"network": codec.to_plain(spec.network)} if spec.network is not None else {}),
        **({"storage": storage} if storage != _storage(StorageSpec()) else {}),
        **{
            name: getattr(spec, name)
            for name in _OF_SERVICE_LATER
            if getattr(spec, name) != getattr(ServiceSpec, name)
        },
    }
    text = json.dumps(_numbers_alike(plain), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _storage(storage: StorageSpec) -> dict[str, Any]:
    plain: dict[str, Any] = codec.to_plain(storage)
    credentials = plain["s3"]["credentials"]
    if credentials is not None and not credentials["secret"]:
        # As before there were any.
        del credentials["secret"]
    return plain


def _launched_with(role: RoleSpec) -> dict[str, Any]:
    plain: dict[str, Any] = codec.to_plain(role)
    if role.container is not None and not role.container.host_directories:
        # As before there were any.
        del plain["container"]["host_directories"]
    for secret in plain["secrets"]:
        # Where an option stands is no part of what it says.
        del secret["option"]
    return {
        name: value
        for name, value in plain.items()
        if name not in _NOT_LAUNCHED_WITH and (value or name not in _CAME_LATER)
    }


def _numbers_alike(plain: Any) -> Any:
    """Return ``plain`` with 64 MB and 64.0 MB the same, as ``configuration_id`` has it."""
    if isinstance(plain, dict):
        return {name: _numbers_alike(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_numbers_alike(value) for value in plain]
    if isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    return plain
