"""What a container was launched with, as one short text: equal texts need no restart.

Kept in ``TaskRecord.fingerprint`` at each launch; ``core.restarts.update_order`` compares it with
the target configuration's. What is in it says ``core.spec.launched_with``. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.spec.launched_with import DECLARED
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole


def fingerprint(spec: ServiceSpec, role: TaskRole) -> str:
    """Return what stands for everything in ``spec`` that a container of ``role`` is launched with.

    That is: the role's resources, port, environment, image, interpreter and disk; the job, the
    user, the strategy, how members are addressed, the limits of the logs, what is in S3, and when
    its runner gives a process up. It does not depend on how many tasks there are, nor on where they
    may run. Raises ValueError for a role that the service does not have.
    """
    found = spec.fingerprints.get(role)
    if found is None:
        raise ValueError(f"the service has no role {role}")
    return found


def as_launched_before(target: ServiceSpec, before: ServiceSpec, role: TaskRole) -> ServiceSpec:
    """Return ``target`` with all that containers of ``role`` are launched with as in ``before``.

    How many tasks there are, where they may run and how often they are tried is the target's.
    """
    old = next((r for r in before.roles if r.role is role), None)
    if old is None:
        return target
    of_role, of_service = (DECLARED[name].of_launch() for name in ("RoleSpec", "ServiceSpec"))
    roles = tuple(
        replace(r, **{name: getattr(old, name) for name in of_role}) if r.role is role else r
        for r in target.roles
    )
    return replace(target, roles=roles, **{name: getattr(before, name) for name in of_service})
