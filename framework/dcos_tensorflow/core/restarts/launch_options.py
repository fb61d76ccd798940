"""Which options a task is launched with: the target's, or its old ones while it is kept from those.

Asked where tasks are placed and launched (``core.offers.wants``, ``core.offers.launching``,
``core.offers.reservations``), and by ``core.restarts.sidecars``. A task that fails while the
operator holds the update back comes back as it was (DC/OS SDK: a task is recovered with the
configuration that it was launched with). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.spec.launched_with import DECLARED
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole, split_task_name


def options_of(view: GangView, name: str) -> ServiceSpec:
    """Return what a task of this name is launched with now."""
    record = view.tasks.get(name)
    role, _ = split_task_name(name)
    if record is None or not update_order.is_kept_back(view, name):
        return view.spec
    if record.fingerprint in ("", view.spec.fingerprints[role]):
        return view.spec
    for former in view.service.former_options.values():
        before = former.shaped(view.job.shape)
        if _was_launched_with(record, before):
            return _unless_addressed_otherwise(view.spec, before, record)
    return view.spec


def preferred_port(view: GangView, name: str) -> int | None:
    """Return the port that a task would like: the one it had, unless its options are others now."""
    before = view.tasks.get(name)
    role = options_of(view, name).role(split_task_name(name)[0])
    configured = role.port if role is not None else None
    if before is None:
        return configured
    return (has_other_options_now(view, before) and configured) or before.ports[0]


def has_other_options_now(view: GangView, record: TaskRecord) -> bool:
    """Say whether a task would be launched with other options than it was."""
    if view.spec.role(record.role) is None:
        return False
    spec = options_of(view, record.name)
    return record.fingerprint not in ("", spec.fingerprints[record.role])


def still_of_use(
    former: Mapping[str, ServiceSpec], views: Iterable[GangView]
) -> dict[str, ServiceSpec]:
    """Return of the former options those that some task was launched with: one for each kind."""
    kinds = {
        (record.role, record.fingerprint): (record, view.job.shape)
        for view in views
        for record in view.tasks.values()
    }
    found = {}
    for record, shape in kinds.values():
        known = ((key, spec.shaped(shape)) for key, spec in former.items())
        key = next((key for key, spec in known if _was_launched_with(record, spec)), "")
        if key:
            found[key] = former[key]
    return found


def _was_launched_with(record: TaskRecord, spec: ServiceSpec) -> bool:
    known = any(role.role is record.role for role in spec.roles)
    return known and spec.fingerprints[record.role] == record.fingerprint


def _unless_addressed_otherwise(
    target: ServiceSpec, before: ServiceSpec, record: TaskRecord
) -> ServiceSpec:
    """Return the mixture, unless the two differ in what all members must have alike."""
    alike = ("addressing", "dns_domain", "network", "peer_network")
    if any(getattr(target, name) != getattr(before, name) for name in alike):
        return target
    return as_launched_before(target, before, record.role)


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
